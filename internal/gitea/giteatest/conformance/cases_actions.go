package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// checkWorkflow has the jobs of [checkJobs].
const checkWorkflow = `name: Check
on: [push, pull_request, workflow_dispatch]
jobs:
  lint:
    runs-on: ubuntu-latest
    steps: [{run: echo lint}]
  test:
    runs-on: ubuntu-latest
    needs: lint
    steps: [{run: echo test}]
`

var checkJobs = []giteatest.NewJob{{Name: "lint"}, {Name: "test", Needs: []string{"lint"}}}

// check is a run of [checkWorkflow].
func (e env) check(t *testing.T, r pull.Repo, in giteatest.NewRun) int64 {
	t.Helper()
	in.Workflow, in.Name, in.As, in.Jobs = "check.yaml", "Check", e.alice.Login, checkJobs
	id, err := e.Run(e.ctx, r, in)
	must(t, err)
	return id
}

// addWorkflow pushes a workflow's file to main.
func (e env) addWorkflow(t *testing.T, r pull.Repo, name, content string) string {
	t.Helper()
	return e.push(t, r, giteatest.Push{Branch: "main", Files: map[string]string{".gitea/workflows/" + name: content}})
}

// runs reads the runs of a workflow. Times are taken out, but for whether there
// is one where there should be.
func (e env) runs(t *testing.T, r pull.Repo, workflow, commit string) fact.Runs {
	t.Helper()
	got, err := e.client.WorkflowRuns(e.ctx, r, workflow, commit)
	must(t, err)
	for i := range got.Runs {
		run := &got.Runs[i]
		if run.Status == "queued" && !run.Completed.IsZero() || run.Status == "completed" && run.Completed.IsZero() {
			t.Errorf("run %d is %s and was completed at %v", run.ID, run.Status, run.Completed)
		}
		run.Started, run.Completed = time.Time{}, time.Time{}
		for n := range run.Jobs {
			job := &run.Jobs[n]
			if (job.Runner == "") != job.Started.IsZero() || (job.Runner == "" || job.Status != "completed") != job.Completed.IsZero() {
				t.Errorf("job %+v", job)
			}
			job.Started, job.Completed = time.Time{}, time.Time{}
		}
	}
	return got
}

func (e env) runURL(r pull.Repo, id int64) string {
	return fmt.Sprintf("%s%s/actions/runs/%d", e.URL(), r, id)
}

func waitingRuns(t *testing.T, e env) {
	r := e.repo(t, "waiting")
	same(t, "runs of nothing", fact.Runs{}, e.runs(t, r, "check.yaml", ""))
	sha := e.addWorkflow(t, r, "check.yaml", checkWorkflow)
	pushed := e.check(t, r, giteatest.NewRun{Event: "push"})
	got := e.runs(t, r, "check.yaml", sha)
	if len(got.Runs) != 1 || len(got.Runs[0].Jobs) != 2 {
		t.Fatalf("runs %+v, want one with two jobs", got)
	}
	jobs := got.Runs[0].Jobs
	main := fact.Run{
		ID: pushed, Number: 1, Workflow: "check.yaml", Title: "Change files", Event: "push", Ref: "refs/heads/main", Branch: "main", Commit: sha,
		Actor: e.alice.Login, URL: e.runURL(r, pushed), Status: "queued",
		Jobs: []fact.Job{{ID: jobs[0].ID, Name: "lint", Status: "queued"}, {ID: jobs[1].ID, Name: "test", Status: "waiting"}},
	}
	same(t, "runs of the commit", fact.Runs{Runs: []fact.Run{main}}, got)
	want := []fact.Status{
		{Context: "Check / lint (push)", State: "pending", Description: "Waiting to run", URL: fmt.Sprintf("%s/jobs/%d", e.runURL(r, pushed), jobs[0].ID)},
		{Context: "Check / test (push)", State: "pending", Description: "Blocked by required conditions", URL: fmt.Sprintf("%s/jobs/%d", e.runURL(r, pushed), jobs[1].ID)},
	}
	// Gitea posts the status of each job on its own.
	e.eventually(t, "each job has a status", func() bool { return len(e.statusFacts(t, r, sha)) == len(want) })
	same(t, "statuses of the jobs", want, e.statusFacts(t, r, sha))

	by := e.check(t, r, giteatest.NewRun{Event: "workflow_dispatch"})
	same(t, "statuses after a dispatch", want, e.statusFacts(t, r, sha))

	number, head := e.open(t, r, "change")
	onBranch := e.check(t, r, giteatest.NewRun{Event: "push", Branch: "change"})
	onPull := e.check(t, r, giteatest.NewRun{Event: "pull_request", Pull: number})
	got = e.runs(t, r, "check.yaml", head)
	var lines []string
	for _, run := range got.Runs {
		lines = append(lines, fmt.Sprintf("%d %s on %s: %s, %d jobs", run.ID, run.Event, run.Ref, run.Status, len(run.Jobs)))
	}
	// Gitea starts them beside each other, so either may be the newer one.
	both := []string{
		fmt.Sprintf("%d pull_request on refs/pull/%d/head: queued, 2 jobs", onPull, number), fmt.Sprintf("%d push on refs/heads/change: queued, 2 jobs", onBranch),
	}
	slices.Sort(both)
	slices.Sort(lines)
	same(t, "runs of the pull request", both, lines)

	dispatched := main
	dispatched.ID, dispatched.Number, dispatched.Event, dispatched.URL = by, 2, "workflow_dispatch", e.runURL(r, by)
	main.Jobs, dispatched.Jobs = nil, nil // One decides by completed runs.
	same(t, "runs on the branch", fact.Runs{Runs: []fact.Run{dispatched, main}}, e.runs(t, r, "check.yaml@refs/heads/main", ""))
	same(t, "number of all runs", 4, len(e.runs(t, r, "check.yaml", "").Runs))
	same(t, "runs of another workflow", fact.Runs{}, e.runs(t, r, "none.yaml", ""))

	must(t, e.SetPrivate(e.ctx, r, true))
	_, token, err := e.CreateUser(e.ctx, e.prefix+"passer-by")
	must(t, err)
	_, err = e.clientOf(t, token).WorkflowRuns(e.ctx, r, "check.yaml", "")
	wantError(t, "runs for a stranger", err, gitea.ErrNotFound)
}

// statusFacts reads statuses without their times, which all have.
func (e env) statusFacts(t *testing.T, r pull.Repo, sha string) []fact.Status {
	t.Helper()
	got, err := e.client.CommitStatuses(e.ctx, r, sha)
	must(t, err)
	for i := range got.Statuses {
		if at := &got.Statuses[i].At; at.IsZero() {
			t.Errorf("status %q has no time", got.Statuses[i].Context)
		} else {
			*at = time.Time{}
		}
	}
	return got.Statuses
}

func statusFacts(t *testing.T, e env) {
	r := e.repo(t, "status-facts")
	sha, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	// The oldest of 60 is on the second page.
	must(t, e.SetStatus(e.ctx, r, sha, e.bob.Login, pull.Status{Context: "z", State: "failure", Description: "broken"}))
	for i := range 59 {
		must(t, e.SetStatus(e.ctx, r, sha, e.alice.Login, pull.Status{Context: fmt.Sprint("ci/", i%2), State: "pending"}))
	}
	must(t, e.client.PostStatus(e.ctx, r, sha, pull.Status{Context: "ci/1", State: "success"}, "https://example.org/page"))
	same(t, "statuses", []fact.Status{
		{Context: "ci/0", State: "pending", Creator: e.alice.Login},
		{Context: "ci/1", State: "success", Creator: e.bot.Login, URL: "https://example.org/page"},
		{Context: "z", State: "failure", Description: "broken", Creator: e.bob.Login},
	}, e.statusFacts(t, r, sha))
	// Where there are too many, the newest must be those that are read.
	same(t, "the first by the least index", "ci/1", e.firstStatus(t, r, sha, "leastindex"))
	same(t, "the first by the highest index", "z", e.firstStatus(t, r, sha, "highestindex"))
}

// firstStatus is the context of the status that Gitea lists first.
func (e env) firstStatus(t *testing.T, r pull.Repo, sha, sort string) string {
	t.Helper()
	address := fmt.Sprintf("%sapi/v1/repos/%s/statuses/%s?limit=1&sort=%s", e.URL(), r, sha, sort)
	req, err := http.NewRequestWithContext(e.ctx, http.MethodGet, address, nil)
	must(t, err)
	req.Header.Set("Authorization", "token "+e.botToken)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	var list []struct {
		Context string `json:"context"`
	}
	must(t, json.NewDecoder(resp.Body).Decode(&list))
	if len(list) != 1 {
		t.Fatalf("statuses %+v, want one", list)
	}
	return list[0].Context
}

func endedRuns(t *testing.T, e env) {
	r := e.repo(t, "ended")
	runner, err := e.Register(e.ctx, r, "runner")
	must(t, err)
	sha := e.addWorkflow(t, r, "check.yaml", checkWorkflow)
	id := e.check(t, r, giteatest.NewRun{Event: "push"})
	other := e.repo(t, "other")
	forged, err := e.Tip(e.ctx, other, "main")
	must(t, err)
	told := func() string {
		t.Helper()
		got := e.runs(t, r, "check.yaml", sha)
		if len(got.Runs) != 1 {
			t.Fatalf("runs %+v, want one", got)
		}
		run := got.Runs[0]
		lines := []string{fmt.Sprintf("attempt %d: %s %s", run.Attempt, run.Status, run.Conclusion)}
		for _, j := range run.Jobs {
			lines = append(lines, fmt.Sprintf("%s on %q: %s %s", j.Name, j.Runner, j.Status, j.Conclusion))
		}
		for _, s := range e.statusFacts(t, r, sha) {
			text, _, _ := strings.Cut(s.Description, " in ")
			text, _, _ = strings.Cut(text, " after ")
			line := fmt.Sprintf("%s: %s, %s", s.Context, s.State, text)
			if i := slices.IndexFunc(run.Jobs, func(j fact.Job) bool { return j.ID == s.Job }); i >= 0 {
				line += ", borne out by " + run.Jobs[i].Name
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	// What a runner does shows in the jobs at once, and a moment later in the run,
	// in other jobs and in the statuses.
	becomes := func(what string, want ...string) {
		t.Helper()
		text := strings.Join(want, "\n")
		got := ""
		defer func() { same(t, what, text, got) }()
		e.eventually(t, what, func() bool { got = told(); return got == text })
	}
	e.take(t, runner, "lint")
	becomes("while a job runs", "attempt 1: in_progress ",
		`lint on "runner": in_progress `, `test on "": waiting `,
		"Check / lint (push): pending, Waiting to run", "Check / test (push): pending, Blocked by required conditions")
	must(t, runner.Log(e.ctx, "fine"))
	must(t, runner.Finish(e.ctx, "success"))
	e.take(t, runner, "test")
	must(t, runner.Finish(e.ctx, "skipped"))
	becomes("after success, and a job that the runner skipped", "attempt 1: completed success",
		`lint on "runner": completed success`, `test on "runner": completed skipped`,
		"Check / lint (push): success, Successful, borne out by lint", "Check / test (push): skipped, Has been skipped, borne out by test")
	// A run is one of its own repository, whatever a status of another one says.
	job := e.runs(t, r, "check.yaml", sha).Runs[0].Jobs[0].ID
	_, token, err := e.CreateUser(e.ctx, e.prefix+"forger")
	must(t, err)
	must(t, e.Grant(e.ctx, other, e.prefix+"forger", giteatest.Write))
	must(t, e.clientOf(t, token).PostStatus(e.ctx, other, forged, pull.Status{Context: "Check / lint (push)", State: "success"}, fmt.Sprintf("%s/jobs/%d", e.runURL(r, id), job)))
	must(t, e.DeleteUser(e.ctx, e.prefix+"forger"))
	same(t, "a forged status", int64(0), e.statusFacts(t, other, forged)[0].Job)

	must(t, e.Rerun(e.ctx, r, id))
	becomes("when started again", "attempt 1: queued ",
		`lint on "": queued `, `test on "": waiting `,
		"Check / lint (push): pending, Waiting to run", "Check / test (push): pending, Blocked by required conditions")
	e.take(t, runner, "lint")
	must(t, runner.Log(e.ctx, "broken"))
	must(t, runner.Finish(e.ctx, "failure"))
	becomes("after failure, and a job that Gitea skipped", "attempt 2: completed failure",
		`lint on "runner": completed failure`, `test on "": completed skipped`,
		"Check / lint (push): failure, Failing", "Check / test (push): skipped, Has been skipped, borne out by test")

	must(t, e.DeleteRun(e.ctx, r, id))
	same(t, "runs after the only one was deleted", fact.Runs{}, e.runs(t, r, "check.yaml", sha))
}

// take lets a runner take a job, which must be the one that is awaited.
func (e env) take(t *testing.T, runner giteatest.Runner, want string) {
	t.Helper()
	job, err := runner.Next(e.ctx)
	must(t, err)
	if job != want {
		t.Fatalf("the runner took job %q, want %q", job, want)
	}
}
