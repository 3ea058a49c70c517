package gitea

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

const (
	// renovatePages is how many pages of 50 runs, of all workflows on a branch, are
	// looked through for one of Renovate's that is completed, and againPages for an
	// old one that was started again.
	renovatePages = 20
	againPages    = 4
	// renovateSize is of how many workflows it is remembered what was read.
	renovateSize = 256
)

// renovateKey names a workflow of a repository.
type renovateKey struct {
	repo           int64
	name, workflow string
}

// renovateMemory says what need not be read again as long as it stays so.
type renovateMemory struct {
	// run is the run that the last answer told, with its log.
	run finishedKey
	// file is the sum of the workflow's file, and second that the first of the
	// folders for workflows was not there.
	file   [sha256.Size]byte
	second bool
}

// RenovateOf returns what Renovate last did in a workflow, and what it is told
// to do now by the file on the default branch, main. The workflow is the name
// of its file in .gitea/workflows or .github/workflows. accounts are the logins
// under which Renovate works; without any there is no dashboard. before is what
// this method returned the last time, or nil; it is not changed.
//
// Only runs on main count: a log is as trustworthy as the file that wrote it,
// and on a branch of their own anybody who may push writes that file. The last
// run is the one that was completed last, so one that was started again counts if
// it is among the newest 200 runs, of all workflows, on main; further back it is
// not seen. Its job is the one that starts Renovate, by the file at the commit of
// the run, or where that does not tell, the one whose log does. With several,
// the mode is the one of which most must be feared. Of a run that before holds no
// log is read again. What cannot be read of a log makes the mode unknown, with
// the reason; failures that pass are an error.
//
// [fact.Renovate.Missing] says that main has no such workflow; what it did before
// is told all the same. [ErrIncomplete] means that among the newest thousand runs
// on main none of the workflow is over.
//
// The calls: two where nothing is new, the runs and the file; one more for each
// 50 runs on main, up to 200 of all workflows and beyond that until there is one
// of this workflow that is over; one if the file uses
// variables, one if it is in .github/workflows, one while a secret is missing,
// and one while Gitea fails to give a log. A new run costs one for its jobs, one
// for each log (four at most), two or four for the file at its commit if it has
// several jobs, one for the secrets if the file uses any, and one for each
// account for the dashboard. What was read last is remembered: after a start,
// jobs, secrets and dashboard are read once more.
func (c *Client) RenovateOf(ctx context.Context, repo pull.Repo, main, workflow string, accounts []string, before *fact.Renovate) (fact.Renovate, error) {
	out, err := c.renovateOf(ctx, renovateQuery{
		repo: repo, main: main, workflow: workflow, accounts: accounts, before: before,
	})
	if err != nil {
		return fact.Renovate{}, c.fail(err, nil, "read what Renovate does in %s of %s", c.clean(workflow), repo)
	}
	return out, nil
}

// renovateQuery is what was asked for.
type renovateQuery struct {
	repo           pull.Repo
	main, workflow string
	accounts       []string
	before         *fact.Renovate
	// known is what is remembered of before.
	known renovateMemory
}

func (c *Client) renovateOf(ctx context.Context, q renovateQuery) (fact.Renovate, error) {
	if q.main == "" || q.workflow == "" || path.Base(q.workflow) != q.workflow {
		return fact.Renovate{}, errors.New("the default branch and the name of the workflow's file, without folders, are needed")
	}
	key := renovateKey{repo: q.repo.ID, workflow: q.workflow}
	if key.repo == 0 {
		key.name = q.repo.String()
	}
	known, remembered := c.renovate.Get(key)
	if q.before == nil {
		q.before, remembered = &fact.Renovate{}, false
	}
	if remembered {
		q.known = known
	}
	var out fact.Renovate
	fresh, err := c.renovateRuns(ctx, q, &out)
	if err != nil {
		return fact.Renovate{}, err
	}
	quiet := remembered && fresh.run == q.known.run
	if err := c.configured(ctx, q, &out, &fresh, quiet); err != nil {
		return fact.Renovate{}, err
	}
	if out.Dashboard = q.before.Dashboard; !quiet {
		if out.Dashboard, err = c.dashboard(ctx, q.repo, q.accounts); err != nil {
			return fact.Renovate{}, err
		}
	}
	c.renovate.Add(key, fresh)
	return out, nil
}

// renovateRuns fills in the last run and the one that goes on.
func (c *Client) renovateRuns(ctx context.Context, q renovateQuery, out *fact.Renovate) (renovateMemory, error) {
	page := 0
	found, whole, err := c.findRuns(ctx, runSearch{
		repo: q.repo, workflow: q.workflow + "@refs/heads/" + q.main,
		query: url.Values{"branch": {q.main}}, pages: renovatePages,
		enough: func(found []apiRun) bool {
			page++
			return page >= againPages && slices.ContainsFunc(found, func(r apiRun) bool { return r.Status == "completed" })
		},
	})
	if err != nil {
		return renovateMemory{}, err
	}
	var over []apiRun
	for _, r := range found {
		switch {
		case r.Status == "completed":
			over = append(over, r)
		case out.Running == nil:
			out.Running = r.renovate()
		}
	}
	// The highest id goes first where two were completed in one second.
	slices.SortStableFunc(over, func(a, b apiRun) int { return b.CompletedAt.Compare(a.CompletedAt) })
	for _, r := range over {
		key := keyOfRun(q.repo, r)
		id := strconv.FormatInt(r.ID, 10)
		if key == q.known.run && q.before.Last != nil && q.before.Last.ID == id {
			out.Last = q.before.Last
			return renovateMemory{run: key}, nil
		}
		last, lasting, err := c.renovateRun(ctx, q, r)
		switch {
		case err != nil:
			return renovateMemory{}, err
		case last == nil:
			// Gitea calls it completed, but the job of Renovate goes on.
			if out.Running == nil {
				out.Running = r.renovate()
			}
			continue
		case !lasting:
			key = finishedKey{}
		}
		out.Last = last
		return renovateMemory{run: key}, nil
	}
	if !whole {
		return renovateMemory{}, fmt.Errorf("%w: no run of it that was looked through is over, and there are older ones", ErrIncomplete)
	}
	return renovateMemory{}, nil
}

// renovate converts a run without what its jobs tell.
func (r apiRun) renovate() *fact.RenovateRun {
	return &fact.RenovateRun{
		ID: strconv.FormatInt(r.ID, 10), URL: r.HTMLURL, Event: r.event(), Branch: r.HeadBranch, Commit: r.HeadSHA,
		Started: instant(r.StartedAt), Mode: fact.RenovateUnknown,
	}
}

// renovateRun reads a completed run. It is nil where its job goes on, and not
// lasting where another attempt may tell more.
func (c *Client) renovateRun(ctx context.Context, q renovateQuery, r apiRun) (out *fact.RenovateRun, lasting bool, err error) {
	jobs, err := c.jobs(ctx, q.repo, r)
	if err != nil {
		return nil, false, err
	}
	picked, sure, err := c.pickJobs(ctx, q, r, jobs)
	if err != nil {
		return nil, false, err
	}
	if !picked.over() {
		return nil, false, nil
	}
	out = r.renovate()
	if sure {
		describeJobs(out, picked)
		if held := q.before.Last; held != nil && held.LogProblem == "" && held.ID == out.ID && held.Job == out.Job &&
			held.Conclusion == out.Conclusion && held.Completed.Equal(out.Completed) {
			return held, true, nil
		}
	}
	logs, lasting, err := c.readLogs(ctx, q.repo, picked)
	if err != nil {
		return nil, false, err
	}
	if !sure {
		logs = slices.DeleteFunc(logs, func(l jobLog) bool { return len(l.report.Runs) == 0 && l.problem == "" })
		proven := slices.ContainsFunc(logs, func(l jobLog) bool { return len(l.report.Runs) > 0 })
		picked = nil
		for _, l := range logs {
			if proven == (len(l.report.Runs) > 0) {
				picked = append(picked, l.job)
			}
		}
		describeJobs(out, picked)
		if !proven {
			out.Job, out.Conclusion = "", r.Conclusion
			out.Started, out.Completed = instant(r.StartedAt), instant(r.CompletedAt)
		}
	}
	describeLogs(out, q.repo, logs)
	return out, lasting, nil
}
