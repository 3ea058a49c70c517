package gitea_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/gitea/giteatest"
)

// startFor starts a run of a workflow for a pull request, as its label does too.
func (w *world) startFor(workflow string, number int64) int64 {
	w.t.Helper()
	id, err := w.Run(w.t.Context(), w.repo, giteatest.NewRun{
		Workflow: workflow, Event: "pull_request", Pull: number, As: "alice", Jobs: []giteatest.NewJob{{Name: "lint"}},
	})
	w.must(err)
	return id
}

func TestRunsOnAHead(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	runner, err := w.Register(ctx, w.repo, "runner")
	w.must(err)
	w.push("release", "release.yaml")
	other, err := w.OpenPull(ctx, w.repo, giteatest.NewPull{As: "bob", Title: "The same", Head: "change", Base: "release"})
	w.must(err)
	pushed := w.start("check.yaml", "change")
	w.finish(runner, "failure")
	first := w.startFor("check.yaml", other)
	w.finish(runner, "success")
	var last int64
	for range 3 * fact.MaxRuns {
		last = w.startFor("check.yaml", w.number)
		w.finish(runner, "success")
	}
	want := []string{
		fmt.Sprintf("%d pull_request on refs/pull/%d/head: success", last, w.number),
		fmt.Sprintf("%d pull_request on refs/pull/%d/head: success", first, other),
		fmt.Sprintf("%d push on refs/heads/change: failure", pushed),
	}
	// Two pages of runs, and the jobs of three.
	for _, calls := range []int{5, 2} {
		w.ResetCalls()
		got, err := w.client.WorkflowRuns(ctx, w.repo, "check.yaml", w.head)
		w.must(err)
		var lines []string
		for _, r := range got.Runs {
			if len(r.Jobs) != 1 {
				t.Errorf("run %d has %d jobs", r.ID, len(r.Jobs))
			}
			lines = append(lines, fmt.Sprintf("%d %s on %s: %s", r.ID, r.Event, r.Ref, r.Conclusion))
		}
		if d := cmp.Diff(want, lines); d != "" || got.More || w.TotalCalls() != calls {
			t.Errorf("%d calls, want %d; more %v; runs (-want +got):\n%s", w.TotalCalls(), calls, got.More, d)
		}
	}
}

func TestMoreRunsOnAHeadThanAreRead(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 3})
	ctx := t.Context()
	w.start("check.yaml", "change")
	for range 30 {
		w.startFor("check.yaml", w.number)
	}
	w.ResetCalls()
	got, err := w.client.WorkflowRuns(ctx, w.repo, "check.yaml", w.head)
	if err != nil || len(got.Runs) != 1 || !got.More || w.TotalCalls() != 11 {
		t.Errorf("%+v, error %v, %d calls; want one and that there are more after 11", got, err, w.TotalCalls())
	}
	c, _ := serve(t, map[string]http.HandlerFunc{"/actions/runs": answer(200, strings.ReplaceAll(recorded(t, "runs.json"), "@refs/heads/", "@"))})
	if got, err := c.WorkflowRuns(ctx, repo, "renovate.yaml@main", w.head); err == nil {
		t.Errorf("%+v of runs that do not say what they ran on", got)
	}
}

func TestRunsOnABranch(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	runner, err := w.Register(ctx, w.repo, "runner")
	w.must(err)
	id := w.start("check.yaml", "main")
	w.finish(runner, "success")
	// As many as are looked through, on another branch.
	for range 200 {
		w.start("check.yaml", "change")
	}
	w.ResetCalls()
	got, err := w.client.WorkflowRuns(ctx, w.repo, "check.yaml@refs/heads/main", "")
	if err != nil || len(got.Runs) != 1 || got.Runs[0].ID != id || len(got.Runs[0].Jobs) != 1 || got.More || w.TotalCalls() != 2 {
		t.Errorf("%+v, error %v, %d calls; want the one on main after 2", got, err, w.TotalCalls())
	}
}
