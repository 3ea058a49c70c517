package gitea

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

const (
	// runPages is how many pages of 50 runs, of all workflows, are looked through
	// for those of one, and headPages how many where all are of one commit.
	runPages  = 4
	headPages = 10
	// finishedSize is of how many completed runs the jobs are remembered.
	finishedSize = 512
)

// WorkflowRuns returns runs of a workflow, the newest first, at most
// [fact.MaxRuns] of them. The workflow is the name of its file, or the path by
// which Gitea names it in a run, "file.yaml@refs/heads/main"; that picks runs on
// the one branch. With a commit only runs whose head it is count, pushes of it
// and pull requests with this head, and of those the newest of each event: for
// what happens to pull requests, the newest of each event and pull request.
//
// A run has its jobs where one decides by it: with a commit each, without one the
// newest completed run of each event on each branch. Whoever decides does so by
// the jobs: Gitea says that a run was cancelled while a job of it still waits,
// and that one succeeded of which a job was skipped.
//
// The calls: Gitea cannot be asked for the runs of a workflow, so those of all on
// the commit or the branch are looked through, 50 a call. On a commit all are,
// with ten calls at most, else with four at most until there are enough;
// [fact.Runs.More] says that there may be more. Then one call for each run with
// jobs, of which those of a run that is over are remembered. So with nothing new
// it is one call as a rule, and one more for each run with jobs that goes on.
func (c *Client) WorkflowRuns(ctx context.Context, repo pull.Repo, workflow, commit string) (fact.Runs, error) {
	const operation = "list the runs of %s in %s"
	search := runSearch{
		repo: repo, workflow: workflow, query: url.Values{}, pages: runPages,
		enough: func(found []apiRun) bool { return len(found) > fact.MaxRuns },
	}
	if branch, ok := strings.CutPrefix(refOf(workflow), "refs/heads/"); ok {
		search.query.Set("branch", branch)
	}
	if commit != "" {
		if err := checkCommit(commit); err != nil {
			return fact.Runs{}, c.fail(err, nil, operation, c.clean(workflow), repo)
		}
		search.query.Set("head_sha", commit)
		search.pages, search.enough = headPages, func([]apiRun) bool { return false }
	}
	found, whole, err := c.findRuns(ctx, search)
	if err == nil && commit != "" {
		found, err = newestOfEach(found)
	}
	if err != nil {
		return fact.Runs{}, c.fail(err, nil, operation, c.clean(workflow), repo)
	}
	out := fact.Runs{More: !whole || len(found) > fact.MaxRuns}
	found = found[:min(len(found), fact.MaxRuns)]
	matter := decisive(found)
	for _, r := range found {
		run := r.fact()
		if commit != "" || matter[r.ID] {
			jobs, err := c.jobs(ctx, repo, r)
			if err != nil {
				return fact.Runs{}, c.fail(err, nil, operation, c.clean(workflow), repo)
			}
			run.Jobs, run.Attempt = jobs.facts(), jobs.attempt()
		}
		out.Runs = append(out.Runs, run)
	}
	return out, nil
}

// newestOfEach returns the newest of the runs on a commit, of each event and
// pull request.
func newestOfEach(list []apiRun) ([]apiRun, error) {
	var out []apiRun
	seen := map[string]bool{}
	for _, r := range list {
		ref := refOf(r.Path)
		if ref == "" {
			return nil, fmt.Errorf("run %d does not say what it ran on", r.ID)
		}
		key := r.event()
		if strings.HasPrefix(ref, "refs/pull/") {
			key += " " + ref
		}
		if !seen[key] {
			seen[key], out = true, append(out, r)
		}
	}
	return out, nil
}

// decisive returns the ids of the runs on branches by which one decides.
func decisive(list []apiRun) map[int64]bool {
	out, seen := map[int64]bool{}, map[string]bool{}
	for _, r := range list {
		key := r.event() + " " + r.HeadBranch
		if r.Status == "completed" && r.HeadBranch != "" && !seen[key] {
			seen[key], out[r.ID] = true, true
		}
	}
	return out
}

// apiRun is a run as Gitea gives it.
type apiRun struct {
	ID           int64     `json:"id"`
	RunNumber    int64     `json:"run_number"`
	DisplayTitle string    `json:"display_title"`
	Path         string    `json:"path"`
	Event        string    `json:"event"`
	HeadBranch   string    `json:"head_branch"`
	HeadSHA      string    `json:"head_sha"`
	HTMLURL      string    `json:"html_url"`
	Status       string    `json:"status"`
	Conclusion   string    `json:"conclusion"`
	StartedAt    time.Time `json:"started_at"`
	CompletedAt  time.Time `json:"completed_at"`
	Actor        *struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	} `json:"actor"`
	Repository *struct {
		ID int64 `json:"id"`
	} `json:"repository"`
}

// actionsID is the id that Gitea gives to its Actions as an account.
const actionsID = -2

// event returns what started the run. Gitea tells the event that a schedule
// was registered by, a push as a rule, in the place of the schedule; but no push
// by its own Actions starts a workflow, and they do start what is scheduled. It
// also tells apart what happened to a pull request, which a workflow does not.
func (r apiRun) event() string {
	switch {
	case r.Event == "push" && r.Actor != nil && r.Actor.ID == actionsID:
		return "schedule"
	case strings.HasPrefix(r.Event, "pull_request_review_") && r.Event != "pull_request_review_request":
		return "pull_request_review"
	case r.Event == "pull_request_comment":
		return "issue_comment"
	case strings.HasPrefix(r.Event, "pull_request_") && r.Event != "pull_request_target":
		return "pull_request"
	}
	return r.Event
}

// fact converts a run, without its jobs.
func (r apiRun) fact() fact.Run {
	workflow, ref := splitPath(r.Path)
	out := fact.Run{
		ID: r.ID, Number: r.RunNumber, Workflow: workflow, Title: r.DisplayTitle, Event: r.event(),
		Ref: ref, Branch: r.HeadBranch, Commit: r.HeadSHA, URL: r.HTMLURL, Status: r.Status, Conclusion: r.Conclusion,
		Started: instant(r.StartedAt), Completed: instant(r.CompletedAt),
	}
	if r.Actor != nil {
		out.Actor = r.Actor.Login
	}
	return out
}

// splitPath splits what Gitea calls the path of a run, such as
// "file.yaml@refs/heads/main".
func splitPath(path string) (workflow, ref string) {
	workflow, ref, ok := strings.Cut(path, "@refs/")
	if !ok {
		return path, ""
	}
	return workflow, "refs/" + ref
}

// refOf is the second part of [splitPath].
func refOf(path string) string {
	_, ref := splitPath(path)
	return ref
}

// runSearch says which runs are looked for.
type runSearch struct {
	repo     pull.Repo
	workflow string
	query    url.Values
	// pages is how many pages are looked through at most.
	pages int
	// enough ends the search after a page.
	enough func(found []apiRun) bool
}

// findRuns returns the runs of a workflow, the newest first. whole says that
// the list was read to its end.
func (c *Client) findRuns(ctx context.Context, s runSearch) (found []apiRun, whole bool, err error) {
	want, ref := splitPath(s.workflow)
	if want = path.Base(want); want == "." || want == "/" {
		return nil, false, fmt.Errorf("%q is not the name of a workflow's file", c.clean(s.workflow))
	}
	p := pages[apiRun]{
		client: c,
		route:  "/repos/:owner/:repo/actions/runs",
		path:   repoPath(s.repo) + "/actions/runs",
		query:  s.query,
		field:  "workflow_runs",
	}
	seen := map[int64]bool{}
	least := 0
	for n := 1; n <= s.pages; n++ {
		items, total, err := p.read(ctx, n)
		switch {
		case err != nil:
			return nil, false, err
		case total < least:
			// What was deleted made a run of the next page one of this, unseen.
			return nil, false, fmt.Errorf("%w: runs were deleted while it was read", ErrIncomplete)
		}
		least = total
		for _, r := range items {
			if r.Repository != nil {
				if err := sameRepo(s.repo, r.Repository.ID); err != nil {
					return nil, false, err
				}
			}
			// What is new moves the rest, so that a page may begin with the end of the
			// one before.
			workflow, at := splitPath(r.Path)
			if r.ID <= 0 || seen[r.ID] {
				continue
			}
			seen[r.ID] = true
			if workflow == want && (ref == "" || ref == at) {
				found = append(found, r)
			}
		}
		if len(seen) >= total || len(items) == 0 {
			return sorted(found), true, nil
		}
		if s.enough(found) {
			break
		}
	}
	return sorted(found), false, nil
}

func sorted(list []apiRun) []apiRun {
	slices.SortFunc(list, func(a, b apiRun) int { return cmp.Compare(b.ID, a.ID) })
	return list
}
