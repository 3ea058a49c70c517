package conformance

import (
	"fmt"
	"testing"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

const renovateWorkflow = `on:
  workflow_dispatch:
  schedule: [{cron: "0 4 1 1 *"}]
jobs:
  preflight:
    runs-on: ubuntu-latest
    steps: [{run: echo ok}]
  renovate:
    runs-on: ubuntu-latest
    needs: preflight
    steps:
      - run: npx renovate
        env: {RENOVATE_DRY_RUN: full, RENOVATE_TOKEN: "${{ secrets.RENOVATE_TOKEN }}"}
`

// renovateLine is a line of Renovate's log.
func renovateLine(repo, message string) string {
	return fmt.Sprintf(`{"name":"renovate","hostname":"h","pid":7,"level":30,"logContext":"c","repository":%q,`+
		`"renovateVersion":"39.264.1","msg":%q,"time":"2026-01-02T03:04:05.000Z","v":0}`, repo, message)
}

// renovateRepo is a repository in whose workflow Renovate runs.
type renovateRepo struct {
	env

	t      *testing.T
	repo   pull.Repo
	runner giteatest.Runner
	before *fact.Renovate
}

// read reads the fact anew, and remembers it.
func (r *renovateRepo) read() *fact.Renovate {
	r.t.Helper()
	got, err := r.client.RenovateOf(r.ctx, r.repo, "main", "renovate.yaml", []string{r.prefix + "nobody", r.bot.Login}, r.before)
	must(r.t, err)
	r.before = &got
	return r.before
}

// start starts a run, of which the runner does all but Renovate's job.
func (r *renovateRepo) start() int64 {
	r.t.Helper()
	id, err := r.Run(r.ctx, r.repo, giteatest.NewRun{
		Workflow: "renovate.yaml", Event: "workflow_dispatch", As: r.alice.Login,
		Jobs: []giteatest.NewJob{{Name: "preflight"}, {Name: "renovate", Needs: []string{"preflight"}}},
	})
	must(r.t, err)
	r.take(r.t, r.runner, "preflight")
	must(r.t, r.runner.Log(r.ctx, "ok"))
	must(r.t, r.runner.Finish(r.ctx, "success"))
	return id
}

// renovate does Renovate's job.
func (r *renovateRepo) renovate(conclusion string, messages ...string) {
	r.t.Helper()
	r.take(r.t, r.runner, "renovate")
	for _, m := range messages {
		must(r.t, r.runner.Log(r.ctx, renovateLine(r.repo.String(), m)))
	}
	must(r.t, r.runner.Finish(r.ctx, conclusion))
}

// ended reads until a run is the last one.
func (r *renovateRepo) ended(id int64) fact.RenovateRun {
	r.t.Helper()
	r.eventually(r.t, fmt.Sprintf("run %d is the last", id), func() bool {
		last := r.read().Last
		return last != nil && last.ID == fmt.Sprint(id)
	})
	return *r.before.Last
}

func renovateRuns(t *testing.T, e env) {
	r := &renovateRepo{env: e, t: t, repo: e.repo(t, "renovate")}
	var err error
	r.runner, err = e.Register(e.ctx, r.repo, "runner")
	must(t, err)
	head := e.addWorkflow(t, r.repo, "renovate.yaml", renovateWorkflow)
	_, err = e.OpenIssue(e.ctx, r.repo, e.bot.Login, "Dependency Dashboard", "## Open\n\n - [ ] <!-- rebase-branch=renovate/a -->Update a\n")
	must(t, err)
	first := r.read()
	same(t, "what it is told", []string{"RENOVATE_TOKEN"}, first.Configured.MissingSecrets)
	same(t, "its dashboard", map[string]int{"open": 1}, first.Dashboard)
	if first.Last != nil || first.Missing || first.Configured.OnSchedule != fact.RenovateFull {
		t.Errorf("before it ran: %+v", first)
	}

	dry := r.start()
	if running := r.read().Running; running == nil || running.ID != fmt.Sprint(dry) || running.Event != "workflow_dispatch" {
		t.Errorf("while it runs: %+v", running)
	}
	r.renovate("success", "Repository started", "DRY-RUN: Would commit files to branch renovate/a", "Repository finished")
	got := r.ended(dry)
	if got.Started.IsZero() || got.Completed.IsZero() {
		t.Errorf("started at %v, completed at %v", got.Started, got.Completed)
	}
	got.Started, got.Completed = time.Time{}, time.Time{}
	same(t, "a dry run", fact.RenovateRun{
		ID: fmt.Sprint(dry), URL: e.runURL(r.repo, dry), Event: "workflow_dispatch", Branch: "main", Commit: head,
		Conclusion: "success", Job: "renovate", Mode: fact.RenovateFull, Version: "39.264.1",
		Proof:    []string{"line 2: DRY-RUN: Would commit files to branch renovate/a"},
		Branches: []string{"renovate/a"},
	}, got)

	// A run that says success, and did nothing.
	none := r.start()
	r.renovate("skipped")
	skipped := r.ended(none)
	same(t, "a run that was skipped", []string{"skipped", fact.RenovateUnknown, ""}, []string{skipped.Conclusion, skipped.Mode, skipped.LogProblem})

	// A log in which Renovate says nothing.
	silent := r.start()
	r.renovate("success")
	if last := r.ended(silent); last.Conclusion != "success" || last.Mode != fact.RenovateUnknown {
		t.Errorf("a run without a word: %+v", last)
	}
	must(t, e.DeleteRun(e.ctx, r.repo, silent))
	same(t, "the last run after another was deleted", skipped.Completed, r.ended(none).Completed)
}

func renovateFiles(t *testing.T, e env) {
	r := e.repo(t, "renovate-files")
	missing := func(what string, want bool) {
		t.Helper()
		got, err := e.client.RenovateOf(e.ctx, r, "main", "renovate.yaml", nil, nil)
		must(t, err)
		if got.Missing != want || (got.Configured.OnSchedule == fact.RenovateFull) == want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	missing("without a file", true)
	e.push(t, r, giteatest.Push{Branch: "main", Files: map[string]string{".github/workflows/renovate.yaml": renovateWorkflow}})
	missing("in the second folder", false)
	e.addWorkflow(t, r, "other.yaml", checkWorkflow)
	missing("in the second folder, beside the first", true)
	e.addWorkflow(t, r, "renovate.yaml", renovateWorkflow)
	missing("in the first folder", false)
}
