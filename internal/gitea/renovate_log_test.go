package gitea_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
)

// answerLog lets Gitea answer another way for logs.
func (w *renovateWorld) answerLog(answer *giteatest.Response) {
	w.Fail(func(r *http.Request) *giteatest.Response {
		if strings.HasSuffix(r.URL.Path, "/logs") {
			return answer
		}
		return nil
	})
}

func TestRenovateLogs(t *testing.T) {
	full := strings.Join(renovateLog(t, "full-info.jsonl"), "\n") + "\n"
	// Any kind of dry run says so; what only a full one says is left out.
	rest := strings.Join(slices.DeleteFunc(renovateLog(t, "full-info.jsonl"), func(line string) bool {
		return strings.Contains(line, "Would close") || strings.Contains(line, "Would save")
	}), "\n") + "\n"
	kindless := strings.Replace(rest, "Would commit files to branch", "Would update PR of", 1)
	// Nothing in a log that was not read whole proves a dry run.
	huge := full + strings.Repeat(strings.Repeat("x", 1<<20-1)+"\n", 65)
	live := strings.Join(renovateLog(t, "live-empty.jsonl"), "\n") + "\n"
	for name, tt := range map[string]struct {
		answer  *giteatest.Response
		mode    string
		problem string
		again   int
	}{
		"is there":             {nil, fact.RenovateFull, "", 2},
		"tells no kind":        {&giteatest.Response{Code: 200, Body: kindless}, fact.RenovateDryRun, "", 2},
		"is of something else": {&giteatest.Response{Code: 200, Body: "hello\n"}, fact.RenovateUnknown, "", 2},
		"quotes a proof":       {&giteatest.Response{Code: 200, Body: "echo DRY-RUN: Would commit files\n"}, fact.RenovateUnknown, "", 2},
		"is empty":             {&giteatest.Response{Code: 200}, fact.RenovateUnknown, "", 2},
		"is gone":              {&giteatest.Response{Code: 404, Body: recorded(t, "error-log-cleaned-up.json")}, fact.RenovateUnknown, "not any more", 2},
		"was deleted":          {&giteatest.Response{Code: 404, Body: recorded(t, "error-log-deleted.json")}, fact.RenovateUnknown, "not any more", 2},
		"is forbidden":         {&giteatest.Response{Code: 403, Body: recorded(t, "error-scope.json")}, fact.RenovateUnknown, "may not read", 3},
		"has no line":          {&giteatest.Response{Code: 500, Body: recorded(t, "error-log-empty.json")}, fact.RenovateUnknown, "fails to give", 3},
		"is huge":              {&giteatest.Response{Code: 200, Body: huge}, fact.RenovateUnknown, "64 MiB", 2},
		"is huge, and live":    {&giteatest.Response{Code: 200, Body: live + huge}, fact.RenovateLive, "64 MiB", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRenovateWorld(t, workflowPath, plainWorkflow)
			w.dispatch("main")
			w.work("success", renovateLog(t, "full-info.jsonl")...)
			w.answerLog(tt.answer)
			got := w.read(nil, 6)
			if got.Last.Mode != tt.mode || !strings.Contains(got.Last.LogProblem, tt.problem) || tt.problem == "" && got.Last.LogProblem != "" {
				t.Errorf("mode %s, problem %q; want %s, %q", got.Last.Mode, got.Last.LogProblem, tt.mode, tt.problem)
			}
			if got.Last.Conclusion != "success" || len(got.Last.Proof) == 0 {
				t.Errorf("run %+v", got.Last)
			}
			if again := w.read(got, tt.again); !cmp.Equal(got, again) {
				t.Errorf("again (-want +got):\n%s", cmp.Diff(got, again))
			}
		})
	}
}

func TestRenovateFailuresThatPass(t *testing.T) {
	for name, answer := range map[string]*giteatest.Response{
		"down":         {Code: 502, Body: "bad gateway"},
		"breaks off":   {Code: 200, Body: "{", Break: true},
		"not accepted": {Code: 401, Body: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRenovateWorld(t, workflowPath, fullWorkflow)
			w.must(w.SetVariable(t.Context(), w.repo, "DRY_RUN", "full"))
			w.dispatch("main", giteatest.NewJob{Name: "preflight"}, giteatest.NewJob{Name: "renovate"})
			w.work("success", "ok")
			w.work("success", renovateLog(t, "full-info.jsonl")...)
			before := w.read(nil, 10)
			w.dispatch("main", giteatest.NewJob{Name: "preflight"}, giteatest.NewJob{Name: "renovate"})
			w.work("success", "ok")
			w.work("success", renovateLog(t, "live-empty.jsonl")...)
			for _, end := range []string{"/runs", "/jobs", "/logs", "/renovate.yaml", "/variables", "/secrets", "/issues"} {
				w.Fail(func(r *http.Request) *giteatest.Response {
					if strings.HasSuffix(r.URL.Path, end) {
						return answer
					}
					return nil
				})
				got, err := w.client.RenovateOf(t.Context(), w.repo, "main", "renovate.yaml", []string{"renovate"}, before)
				if err == nil || !cmp.Equal(got, fact.Renovate{}) || errors.Is(err, gitea.ErrNotFound) || strings.Contains(err.Error(), w.token) {
					t.Errorf("%s: %+v, error %v", end, got, err)
				}
			}
			w.Fail(nil)
			// The jobs were read before the failures.
			if got := w.read(before, 9); got.Last.Mode != fact.RenovateLive {
				t.Errorf("after the failures: %+v", got.Last)
			}
		})
	}
}

func TestRenovateSlowLog(t *testing.T) {
	const allowed = 20 * time.Millisecond
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/actions/runs"):
			answer(200, recorded(t, "runs.json"))(w, r)
		case strings.HasSuffix(r.URL.Path, "/jobs"):
			answer(200, recorded(t, "jobs.json"))(w, r)
		default:
			_, _ = fmt.Fprintln(w, "one line")
			w.(http.Flusher).Flush()
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		}
	}, func(config *gitea.Config) { config.Attempts, config.Timeout = 1, allowed })
	if got, err := c.RenovateOf(t.Context(), repo, "main", "renovate.yaml", nil, nil); err == nil || !cmp.Equal(got, fact.Renovate{}) {
		t.Errorf("%+v, error %v from a log that does not end", got, err)
	}
}

func TestRenovateJobs(t *testing.T) {
	job := func(name string, needs ...string) giteatest.NewJob { return giteatest.NewJob{Name: name, Needs: needs} }
	proof, ok := renovateLog(t, "full-info.jsonl"), []string{"ok"}
	live := renovateLog(t, "live-empty.jsonl")
	type step struct {
		conclusion string
		lines      []string
	}
	const otherName = "\n  renovate:\n    name: Update everything"
	for name, tt := range map[string]struct {
		file       string
		jobs       []giteatest.NewJob
		steps      []step
		job        string
		conclusion string
		mode       string
		logs       int
	}{
		"the runner skips it": {
			fullWorkflow,
			[]giteatest.NewJob{job("preflight"), job("renovate")},
			[]step{{"success", ok}, {"skipped", nil}},
			"renovate", "skipped", fact.RenovateUnknown, 0,
		},
		"Gitea skips it": {
			fullWorkflow,
			[]giteatest.NewJob{job("preflight"), job("renovate", "preflight")},
			[]step{{"failure", proof}},
			"renovate", "skipped", fact.RenovateUnknown, 0,
		},
		"another job proves nothing": {
			fullWorkflow,
			[]giteatest.NewJob{job("preflight"), job("renovate")},
			[]step{{"success", proof}, {"success", ok}},
			"renovate", "success", fact.RenovateUnknown, 1,
		},
		"it fails": {
			fullWorkflow,
			[]giteatest.NewJob{job("preflight"), job("renovate")},
			[]step{{"success", ok}, {"failure", proof}},
			"renovate", "failure", fact.RenovateFull, 1,
		},
		"a matrix, one of it live": {
			fullWorkflow,
			[]giteatest.NewJob{job("preflight"), job("renovate (a)"), job("renovate (b)")},
			[]step{{"success", ok}, {"success", proof}, {"success", live}},
			"renovate (a), renovate (b)", "success", fact.RenovateLive, 2,
		},
		"the log tells": {
			strings.Replace(fullWorkflow, "\n  renovate:", otherName, 1),
			[]giteatest.NewJob{job("preflight"), job("Update everything")},
			[]step{{"success", ok}, {"success", proof}},
			"Update everything", "success", fact.RenovateFull, 2,
		},
		"no log tells": {
			strings.Replace(fullWorkflow, "\n  renovate:", otherName, 1),
			[]giteatest.NewJob{job("preflight"), job("Update everything")},
			[]step{{"success", ok}, {"skipped", nil}},
			"", "success", fact.RenovateUnknown, 1,
		},
		"a second place with a name of its own": {
			fullWorkflow + "  more:\n    name: More\n    runs-on: x\n    steps: [{run: npx renovate}]\n",
			[]giteatest.NewJob{job("preflight"), job("renovate"), job("More")},
			[]step{{"success", ok}, {"success", proof}, {"success", live}},
			"renovate, More", "success", fact.RenovateLive, 3,
		},
		"more than are read": {
			strings.Replace(fullWorkflow, "npx renovate", "./all.sh", 1),
			[]giteatest.NewJob{job("a"), job("b"), job("c"), job("d"), job("e")},
			[]step{{"success", proof}, {"success", ok}, {"success", ok}, {"success", ok}, {"success", live}},
			"a", "success", fact.RenovateUnknown, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRenovateWorld(t, workflowPath, tt.file)
			w.dispatch("main", tt.jobs...)
			for _, s := range tt.steps {
				w.work(s.conclusion, s.lines...)
			}
			w.ResetCalls()
			got, err := w.client.RenovateOf(t.Context(), w.repo, "main", "renovate.yaml", nil, nil)
			w.must(err)
			r := got.Last
			if r == nil || r.Job != tt.job || r.Conclusion != tt.conclusion || r.Mode != tt.mode || len(r.Proof) == 0 || r.Completed.IsZero() && tt.conclusion != "skipped" {
				t.Errorf("run %+v; want job %q, %s, %s", r, tt.job, tt.conclusion, tt.mode)
			}
			if n := w.Calls()["GET /repos/{owner}/{repo}/actions/jobs/{id}/logs"]; n != tt.logs {
				t.Errorf("%d logs were read, want %d", n, tt.logs)
			}
		})
	}
}

func TestRenovateRuns(t *testing.T) {
	w := newRenovateWorld(t, workflowPath, plainWorkflow)
	ctx := t.Context()
	proof, live := renovateLog(t, "full-info.jsonl"), renovateLog(t, "live-empty.jsonl")
	first := w.dispatch("main")
	w.work("success", proof...)
	second := w.dispatch("main")
	w.work("success", live...)
	fresh := w.read(nil, 6)
	if fresh.Last.ID != "2" || fresh.Last.Mode != fact.RenovateLive {
		t.Errorf("the last run: %+v", fresh.Last)
	}
	// On a branch of their own people write what they like into a log.
	w.push("change", workflowPath)
	w.dispatch("change")
	w.work("success", proof...)
	_, err := w.Run(ctx, w.repo, giteatest.NewRun{
		Workflow: "renovate.yaml", Event: "pull_request", Pull: w.number, As: "alice", Jobs: []giteatest.NewJob{{Name: "renovate"}},
	})
	w.must(err)
	if got := w.read(fresh, 2); !cmp.Equal(fresh, got) {
		t.Errorf("after runs elsewhere (-want +got):\n%s", cmp.Diff(fresh, got))
	}
	w.work("success", proof...)
	w.must(w.Rerun(ctx, w.repo, first))
	if got := w.read(fresh, 2); got.Last.ID != "2" || got.Running == nil || got.Running.ID != "1" {
		t.Errorf("while an old run is done again: %+v, last %+v", got.Running, got.Last)
	}
	w.work("success", proof...)
	old := w.read(fresh, 6)
	if old.Last.ID != "1" || old.Last.Mode != fact.RenovateFull {
		t.Errorf("an old run was done again: %+v", old.Last)
	}
	// Ten runs of something else are two pages.
	for range 10 {
		_, err := w.Run(ctx, w.repo, giteatest.NewRun{Workflow: "check.yaml", Event: "schedule", Jobs: []giteatest.NewJob{{Name: "lint"}}})
		w.must(err)
	}
	if got := w.read(old, 4); !cmp.Equal(old, got) {
		t.Errorf("after runs of something else (-want +got):\n%s", cmp.Diff(old, got))
	}
	w.must(w.DeleteRun(ctx, w.repo, first))
	w.must(w.DeleteRun(ctx, w.repo, second))
	if got := w.read(old, 5); got.Last != nil {
		t.Errorf("after all were deleted: %+v", got.Last)
	}
	// Of 20 pages nothing is over.
	for range 100 {
		w.dispatch("main")
	}
	w.ResetCalls()
	_, err = w.client.RenovateOf(ctx, w.repo, "main", "renovate.yaml", nil, old)
	if !errors.Is(err, gitea.ErrIncomplete) || w.TotalCalls() != 20 {
		t.Errorf("error %v after %d calls, want ErrIncomplete after 20", err, w.TotalCalls())
	}
}

func TestRenovateRefused(t *testing.T) {
	w := newRenovateWorld(t, workflowPath, plainWorkflow)
	w.ResetCalls()
	for _, ask := range [][2]string{{"", "renovate.yaml"}, {"main", ""}, {"main", "../renovate.yaml"}, {"main", ".gitea/workflows/renovate.yaml"}} {
		if _, err := w.client.RenovateOf(t.Context(), w.repo, ask[0], ask[1], nil, nil); err == nil || w.TotalCalls() != 0 {
			t.Errorf("%q: error %v, %d calls", ask, err, w.TotalCalls())
		}
	}
	w.must(w.DeleteRepo(t.Context(), w.repo))
	if _, err := w.client.RenovateOf(t.Context(), w.repo, "main", "renovate.yaml", nil, nil); !errors.Is(err, gitea.ErrNotFound) {
		t.Errorf("error %v without the repository, want ErrNotFound", err)
	}
	c, _ := serve(t, map[string]http.HandlerFunc{"/actions/runs": answer(403, recorded(t, "error-scope.json"))})
	if _, err := c.RenovateOf(t.Context(), repo, "main", "renovate.yaml", nil, nil); !errors.Is(err, gitea.ErrForbidden) {
		t.Errorf("error %v without the scope, want ErrForbidden", err)
	}
}
