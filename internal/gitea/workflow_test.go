package gitea_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// recorded is an answer of a real Gitea 1.26 to a call for Actions.
func recorded(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "actions", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// serve makes a client of a server that answers by the end of the path, and
// counts the calls.
func serve(t *testing.T, answers map[string]http.HandlerFunc) (*gitea.Client, *int) {
	t.Helper()
	calls := 0
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		for end, answer := range answers {
			if strings.HasSuffix(r.URL.Path, end) {
				answer(w, r)
				return
			}
		}
		answer(404, `{"message":"not found"}`)(w, r)
	}, func(config *gitea.Config) { config.Attempts = 1 })
	return c, &calls
}

// at is the time in all recorded answers.
var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestRecordedRuns(t *testing.T) {
	c, calls := serve(t, map[string]http.HandlerFunc{
		"/actions/runs":        answer(200, recorded(t, "runs.json")),
		"/actions/runs/1/jobs": answer(200, recorded(t, "jobs.json")),
		"/actions/runs/2/jobs": answer(200, recorded(t, "jobs-cancelled.json")),
	})
	got, err := c.WorkflowRuns(t.Context(), repo, "renovate.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	const head = "a1b8a1e1376750cff3da89060ce971e202eb3988"
	const page = "https://gitea.example.org/alice/home/actions/runs/"
	want := fact.Runs{Runs: []fact.Run{
		{
			ID: 4, Number: 4, Workflow: "renovate.yaml", Title: "Change main", Event: "schedule", Branch: "main", Commit: head,
			Actor: "gitea-actions", URL: page + "4", Status: "queued",
		},
		{
			ID: 2, Number: 2, Attempt: 3, Workflow: "renovate.yaml", Title: "Change main", Event: "workflow_dispatch", Branch: "main", Commit: head,
			Actor: "alice", URL: page + "2", Status: "completed", Conclusion: "cancelled", Started: at, Completed: at,
			Jobs: []fact.Job{{ID: 2, Name: "renovate", Status: "completed", Conclusion: "cancelled", Started: at, Completed: at, Runner: "runner"}},
		},
		{
			ID: 1, Number: 1, Workflow: "renovate.yaml", Title: "Change main", Event: "workflow_dispatch", Branch: "main", Commit: head,
			Actor: "alice", URL: page + "1", Status: "completed", Conclusion: "success", Started: at, Completed: at,
		},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("runs (-want +got):\n%s", d)
	}
	if *calls != 2 {
		t.Errorf("%d calls, want 2", *calls)
	}
	if again, err := c.WorkflowRuns(t.Context(), repo, "renovate.yaml", ""); err != nil || *calls != 3 || !cmp.Equal(want, again) {
		t.Errorf("again: %+v, error %v, %d calls in all; want 3", again, err, *calls)
	}
	branch, err := c.WorkflowRuns(t.Context(), repo, "check.yaml@refs/pull/1/head", "")
	if err != nil || len(branch.Runs) != 1 || branch.Runs[0].Event != "pull_request" || branch.Runs[0].Jobs != nil {
		t.Errorf("runs of a pull request: %+v, error %v", branch, err)
	}
	if other, err := c.WorkflowRuns(t.Context(), repo, "check.yaml@refs/heads/main", ""); err != nil || len(other.Runs) != 0 {
		t.Errorf("runs on another branch: %+v, error %v", other, err)
	}
}

func TestRunsThatCannotBeTold(t *testing.T) {
	runs := recorded(t, "runs.json")
	const run1 = "/actions/runs/1/jobs"
	for name, tt := range map[string]struct {
		runs, jobs http.HandlerFunc
		want       error
	}{
		"forbidden":              {answer(403, recorded(t, "error-scope.json")), nil, gitea.ErrForbidden},
		"no such repository":     {answer(404, `{"message":"not found"}`), nil, gitea.ErrNotFound},
		"not JSON":               {answer(200, "<html>"), nil, nil},
		"another form":           {answer(200, `[]`), nil, nil},
		"without a total":        {answer(200, `{"workflow_runs":[]}`), nil, nil},
		"without a list":         {answer(200, `{"total_count":0}`), nil, nil},
		"of another repository":  {answer(200, strings.ReplaceAll(runs, `"repository":{"id":1,`, `"repository":{"id":9,`)), nil, gitea.ErrMoved},
		"Gitea fails":            {answer(500, recorded(t, "error-log-empty.json")), nil, nil},
		"breaks off":             {cut(`{"workflow_runs":[`), nil, nil},
		"jobs are gone":          {answer(200, runs), answer(200, recorded(t, "jobs-none.json")), gitea.ErrIncomplete},
		"jobs may not be read":   {answer(200, runs), answer(403, recorded(t, "error-scope.json")), gitea.ErrForbidden},
		"jobs are not JSON":      {answer(200, runs), answer(200, "{"), nil},
		"jobs that are not all":  {answer(200, runs), answer(200, strings.Replace(recorded(t, "jobs.json"), `"total_count":1`, `"total_count":2`, 1)), gitea.ErrIncomplete},
		"an answer that is huge": {answer(200, `{"workflow_runs":[`, "Content-Length", "99999999999"), nil, gitea.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, map[string]http.HandlerFunc{"/actions/runs": tt.runs, "/jobs": tt.jobs, run1: tt.jobs})
			got, err := c.WorkflowRuns(t.Context(), repo, "renovate.yaml", "")
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !cmp.Equal(got, fact.Runs{}) {
				t.Errorf("%+v, error %v; want error %v", got, err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), token) {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
	c, calls := serve(t, nil)
	for name, err := range map[string]error{
		"no workflow":    second(c.WorkflowRuns(t.Context(), repo, "", "")),
		"a short commit": second(c.WorkflowRuns(t.Context(), repo, "x.yaml", "abc123")),
	} {
		if err == nil || *calls != 0 {
			t.Errorf("%s: error %v, %d calls", name, err, *calls)
		}
	}
}

// start starts a run of a workflow with one job, by a push of alice.
func (w *world) start(workflow, branch string) int64 {
	w.t.Helper()
	id, err := w.Run(w.t.Context(), w.repo, giteatest.NewRun{
		Workflow: workflow, Event: "push", Branch: branch, As: "alice", Jobs: []giteatest.NewJob{{Name: "lint"}},
	})
	w.must(err)
	return id
}

// finish lets a runner do the jobs that wait.
func (w *world) finish(r giteatest.Runner, conclusions ...string) {
	w.t.Helper()
	for _, conclusion := range conclusions {
		_, err := r.Next(w.t.Context())
		w.must(err)
		w.must(r.Log(w.t.Context(), "done"))
		w.must(r.Finish(w.t.Context(), conclusion))
	}
}

func TestManyRuns(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	runner, err := w.Register(ctx, w.repo, "runner")
	w.must(err)
	first := w.start("rare.yaml", "main")
	w.finish(runner, "success")
	for range 120 {
		w.start("check.yaml", "main")
	}
	last := w.start("check.yaml", "change")
	w.finish(runner, "failure")
	read := func(workflow, commit string, calls int) fact.Runs {
		t.Helper()
		w.ResetCalls()
		got, err := w.client.WorkflowRuns(ctx, w.repo, workflow, commit)
		w.must(err)
		if n := w.TotalCalls(); n != calls {
			t.Errorf("%s on %q took %d calls, want %d: %v", workflow, commit, n, calls, w.Calls())
		}
		return got
	}
	// The one that failed is the oldest of 120, so none of the newest is completed.
	if got := read("check.yaml", "", 1); len(got.Runs) != fact.MaxRuns || !got.More || got.Runs[0].ID != last || got.Runs[0].Jobs != nil {
		t.Errorf("%d runs, more %v, the newest %+v", len(got.Runs), got.More, got.Runs[0])
	}
	if got := read("rare.yaml", "", 4); len(got.Runs) != 1 || got.More || got.Runs[0].ID != first || len(got.Runs[0].Jobs) != 1 {
		t.Errorf("the rare run: %+v", got)
	}
	read("rare.yaml", "", 3)
	if got := read("check.yaml", w.head, 2); len(got.Runs) != 1 || got.More || got.Runs[0].ID != last || len(got.Runs[0].Jobs) != 1 {
		t.Errorf("runs on the head: %+v", got)
	}
	if got := read("none.yaml", "", 3); len(got.Runs) != 0 || got.More {
		t.Errorf("runs of nothing: %+v", got)
	}
	for range 100 {
		w.start("check.yaml", "main")
	}
	if got := read("rare.yaml", "", 4); len(got.Runs) != 0 || !got.More {
		t.Errorf("runs beyond what is looked through: %+v", got)
	}
}

func TestRunsWhileTheyChange(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 3})
	ctx := t.Context()
	runner, err := w.Register(ctx, w.repo, "runner")
	w.must(err)
	for range 5 {
		w.start("check.yaml", "main")
	}
	w.finish(runner, "success", "success")
	w.during("/actions/runs", "2", func() { w.start("check.yaml", "main") })
	got, err := w.client.WorkflowRuns(ctx, w.repo, "check.yaml", "")
	if err != nil || len(got.Runs) != 5 {
		t.Errorf("%d runs, error %v; want the 5 of before", len(got.Runs), err)
	}
	w.during("/actions/runs", "2", func() { w.must(w.DeleteRun(ctx, w.repo, 1)) })
	if got, err := w.client.WorkflowRuns(ctx, w.repo, "check.yaml", ""); !errors.Is(err, gitea.ErrIncomplete) {
		t.Errorf("%d runs, error %v while one is deleted; want ErrIncomplete", len(got.Runs), err)
	}
}

// ticking is a clock that is one second later whenever it is read.
func ticking() func() time.Time {
	var seconds atomic.Int64
	return func() time.Time { return at.Add(time.Duration(seconds.Add(1)) * time.Second) }
}

func TestJobsDecide(t *testing.T) {
	// What happens within one second, Gitea cannot tell apart.
	w := newWorld(t, giteatest.Options{Clock: ticking()})
	ctx := t.Context()
	runner, err := w.Register(ctx, w.repo, "runner")
	w.must(err)
	id, err := w.Run(ctx, w.repo, giteatest.NewRun{
		Workflow: "gate.yaml", Event: "pull_request", Pull: w.number, As: "alice",
		Jobs: []giteatest.NewJob{{Name: "lint"}, {Name: "cluster", Labels: []string{"none"}}, {Name: "after", Needs: []string{"lint"}}},
	})
	w.must(err)
	read := func(calls int) fact.Run {
		t.Helper()
		w.ResetCalls()
		got, err := w.client.WorkflowRuns(ctx, w.repo, "gate.yaml", w.head)
		if err != nil || len(got.Runs) != 1 || w.TotalCalls() != calls {
			t.Fatalf("runs %+v, error %v, %d calls; want one, %d", got, err, w.TotalCalls(), calls)
		}
		return got.Runs[0]
	}
	w.finish(runner, "failure")
	w.must(w.Cancel(ctx, w.repo, id, "cluster"))
	r := read(2)
	states := map[string]string{}
	for _, j := range r.Jobs {
		states[j.Name] = j.Status + " " + j.Conclusion
	}
	want := map[string]string{"lint": "completed failure", "cluster": "completed cancelled", "after": "completed skipped"}
	if d := cmp.Diff(want, states); d != "" || r.Conclusion != "cancelled" || r.Attempt != 1 {
		t.Errorf("run %+v, jobs (-want +got):\n%s", r, d)
	}
	read(1) // It is over.
	w.must(w.Rerun(ctx, w.repo, id))
	if r := read(2); r.Status != "queued" || r.Attempt != 1 || r.Jobs[0].Status != "queued" {
		t.Errorf("started again: %+v", r)
	}
	w.must(w.Cancel(ctx, w.repo, id, "cluster"))
	// Gitea calls the run completed, but its jobs go on: they are read each time.
	if r := read(2); r.Status != "completed" || r.Jobs[0].Status != "queued" {
		t.Errorf("cancelled in part: %+v", r)
	}
	w.finish(runner, "success", "success")
	if r := read(2); r.Jobs[0].Conclusion != "success" || r.Jobs[2].Conclusion != "success" || r.Attempt != 2 {
		t.Errorf("after the rest: %+v", r)
	}
	read(1)
}

func TestManyStatuses(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 30})
	ctx := t.Context()
	for i := range 30 {
		w.must(w.SetStatus(ctx, w.repo, w.head, "bob", pull.Status{Context: fmt.Sprintf("ci / %02d", i), State: "success"}))
	}
	for _, s := range []pull.Status{
		{Context: "ci / 03", State: "failure", Description: "broken"}, {Context: "ci / 04", State: "bogus"},
		{Context: "ci / 05", State: "pending"}, {Context: "a", State: "skipped"}, {Context: "b", State: "warning"},
	} {
		w.must(w.SetStatus(ctx, w.repo, w.head, "", s))
	}
	w.ResetCalls()
	got, err := w.client.CommitStatuses(ctx, w.repo, w.head)
	w.must(err)
	if len(got.Statuses) != 32 || w.TotalCalls() != 2 {
		t.Fatalf("%d statuses after %d calls, want 32 after 2", len(got.Statuses), w.TotalCalls())
	}
	by := map[string]fact.Status{}
	for i, s := range got.Statuses {
		if i > 0 && got.Statuses[i-1].Context >= s.Context {
			t.Errorf("%q comes after %q", s.Context, got.Statuses[i-1].Context)
		}
		if s.At.IsZero() {
			t.Errorf("%q has no time", s.Context)
		}
		s.At = time.Time{}
		by[s.Context] = s
	}
	for _, want := range []fact.Status{
		{Context: "ci / 02", State: "success", Creator: "bob"}, {Context: "ci / 03", State: "failure", Description: "broken"},
		{Context: "ci / 04", State: "bogus"}, {Context: "ci / 05", State: "pending"}, {Context: "a", State: "skipped"}, {Context: "b", State: "warning"},
	} {
		if d := cmp.Diff(want, by[want.Context]); d != "" {
			t.Errorf("status (-want +got):\n%s", d)
		}
	}
	if _, err := w.client.CommitStatuses(ctx, w.repo, "main"); err == nil {
		t.Error("a branch was taken for a commit")
	}
}

func TestStatusesOfJobs(t *testing.T) {
	w := newWorld(t, giteatest.Options{SubPath: "/git"})
	id := w.start("check.yaml", "change")
	got, err := w.client.CommitStatuses(t.Context(), w.repo, w.head)
	if err != nil || len(got.Statuses) != 1 {
		t.Fatalf("statuses %+v, error %v", got, err)
	}
	// Gitea gives the address without its host.
	want := fmt.Sprintf("%s%s/actions/runs/%d/jobs/1", w.URL(), w.repo, id)
	if s := got.Statuses[0]; s.URL != want || s.Context != "check.yaml / lint (push)" || s.State != "pending" || s.Creator != "" {
		t.Errorf("status %+v, want one with address %s", s, want)
	}
}

func TestPullFact(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	long := "Depends-On: #1\n" + strings.Repeat("ä", fact.MaxBody)
	w.must(w.EditPull(ctx, w.repo, w.number, "alice", giteatest.Edit{Title: "Change", Body: long}))
	read := func() fact.Pull {
		t.Helper()
		w.ResetCalls()
		got, err := w.client.PullFact(ctx, strings.ToUpper(w.repo.Owner), w.repo.Name, w.number)
		if err != nil || w.TotalCalls() != 1 {
			t.Fatalf("error %v after %d calls, want 1", err, w.TotalCalls())
		}
		return got
	}
	want := fact.Pull{
		Repo: w.repo.String(), RepoID: w.repo.ID, Number: w.number, Title: "Change", State: fact.PullOpen, Base: "main",
		URL: fmt.Sprintf("%s%s/pulls/%d", w.URL(), w.repo, w.number),
	}
	got := read()
	if len(got.Body) > fact.MaxBody || !strings.HasPrefix(long, got.Body) || len(got.Body) < fact.MaxBody-4 {
		t.Errorf("body of %d bytes", len(got.Body))
	}
	got.Body = ""
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("open (-want +got):\n%s", d)
	}
	w.must(w.SetOpen(ctx, w.repo, w.number, "alice", false))
	if got := read(); got.State != fact.PullClosed || got.MergeCommit != "" || !got.MergedAt.IsZero() {
		t.Errorf("closed: %+v", got)
	}
	w.must(w.SetOpen(ctx, w.repo, w.number, "alice", true))
	sha, err := w.Merge(ctx, w.repo, w.number, "bot")
	w.must(err)
	if got := read(); got.State != fact.PullMerged || got.MergeCommit != sha || got.MergedAt.IsZero() {
		t.Errorf("merged: %+v, want commit %s", got, sha)
	}
	if _, err := w.client.PullFact(ctx, w.repo.Owner, w.repo.Name, 99); !errors.Is(err, gitea.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	w.must(w.SetPrivate(ctx, w.repo, true))
	_, carol, err := w.CreateUser(ctx, "carol")
	w.must(err)
	c, err := gitea.New(gitea.Config{URL: w.URL(), Token: secret.New(carol)}, nil, nil)
	w.must(err)
	if _, err := c.PullFact(ctx, w.repo.Owner, w.repo.Name, w.number); !errors.Is(err, gitea.ErrNotFound) {
		t.Errorf("error %v to a stranger, want ErrNotFound", err)
	}
}

func TestActionsOf(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 2})
	ctx := t.Context()
	busy, err := w.Register(ctx, w.repo, "b-runner", "ubuntu-latest", "arm")
	w.must(err)
	_, err = w.RegisterFor(ctx, "bot", "a-runner")
	w.must(err)
	_, err = w.RegisterFor(ctx, "alice", "not-ours")
	w.must(err)
	w.must(w.SetRunner(ctx, "a-runner", false, true))
	w.start("check.yaml", "main")
	_, err = busy.Next(ctx)
	w.must(err)
	for _, name := range []string{"renovate_token", "B", "A"} {
		w.must(w.SetSecret(ctx, w.repo, name, "hidden"))
	}
	w.must(w.SetVariable(ctx, w.repo, "dry_run", "full"))
	w.ResetCalls()
	got, err := w.client.ActionsOf(ctx, w.repo)
	w.must(err)
	want := fact.Actions{
		Runners: []fact.Runner{
			{Name: "a-runner", Labels: []string{"ubuntu-latest"}},
			{Name: "b-runner", Labels: []string{"arm", "ubuntu-latest"}, Online: true, Busy: true},
		},
		Secrets:   []string{"A", "B", "RENOVATE_TOKEN"},
		Variables: map[string]string{"DRY_RUN": "full"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
	// The three secrets take two pages.
	if n := w.TotalCalls(); n != 6 {
		t.Errorf("%d calls, want 6: %v", n, w.Calls())
	}
	w.must(w.SetRunner(ctx, "b-runner", true, false))
	if got, err := w.client.ActionsOf(ctx, w.repo); err != nil || !strings.Contains(got.RunnersProblem, "no runner") || len(got.Runners) != 2 {
		t.Errorf("without a runner that is ready: %+v, error %v", got, err)
	}
}

func TestActionsOfAnOrganisation(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	w.must(w.CreateOrg(ctx, "ops"))
	w.must(w.SetTeam(ctx, "ops", "Owners", "bot"))
	r, err := w.CreateRepo(ctx, "ops", "infra", map[string]string{"a": "b"})
	w.must(err)
	_, err = w.RegisterFor(ctx, "ops", "shared")
	w.must(err)
	w.ResetCalls()
	got, err := w.client.ActionsOf(ctx, r)
	if err != nil || len(got.Runners) != 1 || got.RunnersProblem != "" || w.TotalCalls() != 5 {
		t.Errorf("%+v, error %v, %d calls; want the runner of the organisation after 5", got, err, w.TotalCalls())
	}
}

func TestActionsWithoutTheRight(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	_, token, err := w.CreateUser(ctx, "helper")
	w.must(err)
	w.must(w.Grant(ctx, w.repo, "helper", giteatest.Admin))
	c, err := gitea.New(gitea.Config{URL: w.URL(), Token: secret.New(token)}, nil, nil)
	w.must(err)
	w.ResetCalls()
	got, err := c.ActionsOf(ctx, w.repo)
	if err != nil || w.TotalCalls() != 3 {
		t.Fatalf("error %v after %d calls, want 3", err, w.TotalCalls())
	}
	for what, problem := range map[string]string{
		"runners": got.RunnersProblem, "secrets": got.SecretsProblem, "variables": got.VariablesProblem,
	} {
		if !strings.Contains(problem, what) || !strings.Contains(problem, "owner") {
			t.Errorf("problem with the %s: %q", what, problem)
		}
	}
	bad, _ := serve(t, map[string]http.HandlerFunc{"/": answer(404, ""), "s": answer(403, recorded(t, "error-scope.json"))})
	if got, err := bad.ActionsOf(ctx, repo); err != nil || !strings.Contains(got.SecretsProblem, "write:repository") {
		t.Errorf("without the scope: %+v, error %v", got, err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"down": answer(502, ""), "not JSON": answer(200, "<html>", "X-Total-Count", "1"), "not accepted": answer(401, "{}"), "cut": cut("{"),
	} {
		broken, _ := serve(t, map[string]http.HandlerFunc{"s": answer})
		if got, err := broken.ActionsOf(ctx, repo); err == nil || !cmp.Equal(got, fact.Actions{}) {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
}

func TestRecordedActions(t *testing.T) {
	c, calls := serve(t, map[string]http.HandlerFunc{
		"/repos/ops/home.gitops/actions/runners": answer(200, recorded(t, "runners-busy.json")),
		"/user":                                  answer(200, `{"id":1,"login":"bot"}`),
		"/orgs/ops/actions/runners":              answer(403, `{"message":"Must be an organization owner"}`),
		"/actions/secrets":                       answer(200, recorded(t, "secrets.json"), "X-Total-Count", "1"),
		"/actions/variables":                     answer(200, recorded(t, "variables.json"), "X-Total-Count", "1"),
	})
	got, err := c.ActionsOf(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	want := fact.Actions{
		Runners:   []fact.Runner{{Name: "runner", Labels: []string{"ubuntu-latest"}, Online: true, Busy: true}},
		Secrets:   []string{"RENOVATE_TOKEN"},
		Variables: map[string]string{"LOG_FORMAT": "json"},
	}
	if d := cmp.Diff(want, got); d != "" || *calls != 5 {
		t.Errorf("%d calls, actions (-want +got):\n%s", *calls, d)
	}
}
