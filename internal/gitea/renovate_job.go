package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
	"signalbox/internal/renovate"
)

// kept is what is kept of a run.
var kept = renovate.Keep{Proof: 6, Branches: 100}

const (
	// maxLog bounds a log that is read, in bytes; logReads is how many of one run
	// are read.
	maxLog   = 64 << 20
	logReads = 4
)

// pickJobs returns the jobs of a run that start Renovate. They are sure where
// the run has no other job, or the file of the workflow names them; else they
// are all that may be.
func (c *Client) pickJobs(ctx context.Context, q renovateQuery, r apiRun, jobs jobList) (picked jobList, sure bool, err error) {
	if len(jobs) == 1 {
		return jobs, true, nil
	}
	ids, err := c.renovateJobs(ctx, q, r)
	if err != nil {
		return nil, false, err
	}
	for _, id := range ids {
		// A job is called like its key in the file, unless that gives it a name; a
		// matrix adds its values in brackets.
		named := func(j apiJob) bool { return j.Name == id || strings.HasPrefix(j.Name, id+" (") }
		if !slices.ContainsFunc(jobs, named) {
			return jobs, false, nil
		}
		for _, j := range jobs {
			if named(j) {
				picked = append(picked, j)
			}
		}
	}
	if len(picked) == 0 {
		return jobs, false, nil
	}
	return picked, true, nil
}

// renovateJobs returns the keys of the jobs that start Renovate, by the file
// at the commit of a run; none where it does not tell.
func (c *Client) renovateJobs(ctx context.Context, q renovateQuery, r apiRun) ([]string, error) {
	if known := checkCommit(r.HeadSHA) == nil; !known {
		return nil, nil
	}
	workflow, _ := splitPath(r.Path)
	for _, dir := range workflowDirs {
		data, err := c.RawFile(ctx, q.repo, r.HeadSHA, dir+"/"+workflow)
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrTooLarge):
			continue
		case err != nil:
			return nil, err
		}
		read, err := renovate.Workflow(workflow, data, nil)
		if err != nil {
			// A file that cannot be read tells nothing; the logs may.
			return nil, nil //nolint:nilerr // See above.
		}
		var ids []string
		for _, place := range read.Places {
			if !slices.Contains(ids, place.Job) {
				ids = append(ids, place.Job)
			}
		}
		return ids, nil
	}
	return nil, nil
}

// describeJobs fills in what the jobs of Renovate tell of a run. A job that was
// skipped counts only where all were; else the worst conclusion does.
func describeJobs(out *fact.RenovateRun, jobs jobList) {
	ran := slices.DeleteFunc(slices.Clone(jobs), func(j apiJob) bool { return j.Conclusion == "skipped" })
	if len(ran) == 0 {
		ran = jobs
	}
	// A word that is not known ranks worst, so that no success hides it.
	rank := func(conclusion string) int {
		known := []string{"failure", "cancelled", "success", "skipped"}
		return slices.Index(known, conclusion)
	}
	var names []string
	out.Conclusion, out.Started, out.Completed = "", time.Time{}, time.Time{}
	for i, j := range ran {
		names = append(names, j.Name)
		if i == 0 || rank(j.Conclusion) < rank(out.Conclusion) {
			out.Conclusion = j.Conclusion
		}
		if started := instant(j.StartedAt); out.Started.IsZero() || !started.IsZero() && started.Before(out.Started) {
			out.Started = started
		}
		if completed := instant(j.CompletedAt); completed.After(out.Completed) {
			out.Completed = completed
		}
	}
	out.Job = strings.Join(names, ", ")
}

// jobLog is what the log of a job says, or why it says nothing.
type jobLog struct {
	job     apiJob
	report  renovate.Report
	problem string
}

// readLogs reads the logs of jobs. It is not lasting where a log may be read
// another time.
func (c *Client) readLogs(ctx context.Context, repo pull.Repo, jobs jobList) (logs []jobLog, lasting bool, err error) {
	lasting = true
	for _, j := range jobs {
		if j.Conclusion == "skipped" {
			continue
		}
		if len(logs) == logReads {
			return append(logs, jobLog{
				job: j, problem: fmt.Sprintf("the logs of %d jobs were read, and the run has more", logReads),
			}), lasting, nil
		}
		l, again, err := c.readLog(ctx, repo, j)
		if err != nil {
			return nil, false, fmt.Errorf("log of job %d: %w", j.ID, err)
		}
		logs, lasting = append(logs, l), lasting && !again
	}
	return logs, lasting, nil
}

// readLog reads the log of a job as a stream. again says that the problem may
// pass.
func (c *Client) readLog(ctx context.Context, repo pull.Repo, j apiJob) (out jobLog, again bool, _ error) {
	out.job = j
	resp, err := c.get(ctx, call{
		route:  "/repos/:owner/:repo/actions/jobs/:id/logs",
		stream: true,
		// One byte more tells that there is more.
		limit: maxLog + 1,
		// Gitea answers 500 for the log of a job that wrote no line.
		finalError: true,
	}, fmt.Sprintf("%s/actions/jobs/%d/logs", repoPath(repo), j.ID), nil)
	var answer *answerError
	switch {
	case errors.Is(err, ErrNotFound):
		out.problem = "Gitea does not have the log of job " + j.Name + ", or not any more"
		return out, false, nil
	case errors.Is(err, ErrForbidden):
		out.problem = "signalbox's account may not read the log of job " + j.Name
		return out, true, nil
	case errors.As(err, &answer) && answer.code == http.StatusInternalServerError:
		out.problem = "Gitea fails to give the log of job " + j.Name + ", as it does where a job wrote none"
		return out, true, nil
	case err != nil:
		return out, false, err
	}
	defer func() { _ = resp.Body.Close() }()
	out.report, err = renovate.Analyze(resp.Body, renovate.Limits{Bytes: maxLog})
	if err != nil {
		return out, false, err
	}
	if out.report.Cut {
		out.problem = fmt.Sprintf("the log of job %s is longer than the %d MiB that are read", j.Name, maxLog>>20)
	}
	return out, false, nil
}

// describeLogs fills in what logs say of a run.
func describeLogs(out *fact.RenovateRun, repo pull.Repo, logs []jobLog) {
	var modes []renovate.Mode
	var problems []string
	why := "no job of the run has a log of Renovate"
	if out.Conclusion == "skipped" {
		why = "the job was skipped, so Renovate did not run"
	}
	for _, l := range logs {
		mode := l.report.Mode
		if l.problem != "" {
			problems = append(problems, l.problem)
			if mode != renovate.ModeLive {
				mode = renovate.ModeUnknown
			}
		}
		modes = append(modes, mode)
	}
	out.LogProblem = strings.Join(problems, "; ")
	worst := renovate.Worst(modes...)
	out.Mode = worst.Word()
	for i, l := range logs {
		if modes[i] == worst && l.report.Why != "" {
			why = l.report.Why
		}
		for _, run := range l.report.Runs {
			kept.Add(out, run, repo.String())
		}
	}
	if worst == renovate.ModeUnknown || len(out.Proof) == 0 {
		out.Proof = []string{why}
	}
}
