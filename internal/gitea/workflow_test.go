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
			ID: 4, Number: 4, Workflow: "renovate.yaml", Title: "Change main", Event: "schedule", Ref: "refs/heads/main", Branch: "main", Commit: head,
			Actor: "gitea-actions", URL: page + "4", Status: "queued",
		},
		{
			ID: 2, Number: 2, Attempt: 3, Workflow: "renovate.yaml", Title: "Change main", Event: "workflow_dispatch", Ref: "refs/heads/main", Branch: "main", Commit: head,
			Actor: "alice", URL: page + "2", Status: "completed", Conclusion: "cancelled", Started: at, Completed: at,
			Jobs: []fact.Job{{ID: 2, Name: "renovate", Status: "completed", Conclusion: "cancelled", Started: at, Completed: at, Runner: "runner"}},
		},
		{
			ID: 1, Number: 1, Workflow: "renovate.yaml", Title: "Change main", Event: "workflow_dispatch", Ref: "refs/heads/main", Branch: "main", Commit: head,
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
	if err != nil || len(branch.Runs) != 1 || branch.Runs[0].Event != "pull_request" || branch.Runs[0].Ref != "refs/pull/1/head" || branch.Runs[0].Jobs != nil {
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
