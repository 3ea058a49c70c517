package gitea

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

const (
	// borneOutSize is of how many statuses it is remembered which job bears them
	// out.
	borneOutSize = 4096
	// statusRuns is of how many runs the jobs are read for the statuses of a
	// commit at once.
	statusRuns = 10
)

// statusKey names a status. One that was posted never changes.
type statusKey struct {
	repo pull.Repo
	id   int64
}

// jobPage is the address that a status of Gitea Actions points to.
var jobPage = regexp.MustCompile(`/actions/runs/([0-9]{1,18})/jobs/([0-9]{1,18})$`)

// statusJobs returns, by the ids of statuses, the jobs of Gitea Actions that bear
// them out. Gitea tells no creator of a status of its Actions, but neither does
// it of an account that was deleted, and the token of a workflow may post any
// status on any commit. So it is looked whether the job that a status points to
// is of a run on the commit, is called like that in the context, and ended so.
func (c *Client) statusJobs(ctx context.Context, repo pull.Repo, commit string, list []sdk.Status) (map[int64]int64, error) {
	out := map[int64]int64{}
	claims := map[int64][]sdk.Status{}
	for _, s := range slices.Backward(list) {
		page := jobPage.FindStringSubmatch(s.TargetURL)
		// What has not ended, or failed, needs nobody to bear it out.
		if s.Creator != nil || page == nil || s.State != "success" && s.State != "skipped" {
			continue
		}
		if job, ok := c.borneOut.Get(statusKey{repo, s.ID}); ok {
			out[s.ID] = job
			continue
		}
		run, err := strconv.ParseInt(page[1], 10, 64)
		if _, known := claims[run]; err == nil && (known || len(claims) < statusRuns) {
			claims[run] = append(claims[run], s)
		}
	}
	for run, statuses := range claims {
		jobs, err := c.readJobs(ctx, repo, run)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, errNoRun) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, s := range statuses {
			if job, ok := jobs.bearing(commit, s); ok {
				out[s.ID] = job
				c.borneOut.Add(statusKey{repo, s.ID}, job)
			}
		}
	}
	return out, nil
}

// bearing returns the id of the job that bears a status out.
func (l jobList) bearing(commit string, s sdk.Status) (int64, bool) {
	for _, j := range l {
		// A context is the name that the workflow gives itself, or nothing, then that
		// of the job and the event.
		named := strings.Contains(" "+s.Context, " / "+j.Name+" (") && strings.HasSuffix(s.Context, ")")
		if strings.HasSuffix(s.TargetURL, "/jobs/"+strconv.FormatInt(j.ID, 10)) && named &&
			j.HeadSHA == commit && j.Status == "completed" && j.Conclusion == string(s.State) {
			return j.ID, true
		}
	}
	return 0, false
}
