package gitea_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/fact"
)

func TestRenovateAgain(t *testing.T) {
	w := newRenovateWorld(t, workflowPath, plainWorkflow)
	ctx := t.Context()
	proof, live := renovateLog(t, "full-info.jsonl"), renovateLog(t, "live-empty.jsonl")
	// A page has five runs, so what is looked through ends after twenty.
	runs := make([]int64, 0, 22)
	for range 22 {
		runs = append(runs, w.dispatch("main"))
		w.work("success", proof...)
	}
	before := w.read(nil, 9)
	if before.Last.ID != "22" || before.Last.Mode != fact.RenovateFull {
		t.Errorf("the last run: %+v", before.Last)
	}
	w.read(before, 5)
	w.must(w.Rerun(ctx, w.repo, runs[4]))
	w.work("success", live...)
	again := w.read(before, 9)
	if again.Last.ID != "5" || again.Last.Mode != fact.RenovateLive {
		t.Errorf("after an old run was done again: %+v", again.Last)
	}
}

// TestRenovateConclusions: what is not known must not hide behind a success.
func TestRenovateConclusions(t *testing.T) {
	run := `{"total_count":1,"workflow_runs":[{"id":1,"path":"renovate.yaml@refs/heads/main","event":"schedule",` +
		`"head_branch":"main","head_sha":"` + sha + `","status":"completed","conclusion":"success","completed_at":"2026-01-02T03:04:05Z"}]}`
	for want, conclusions := range map[string][2]string{
		"timed_out": {"success", "timed_out"}, "odd": {"odd", "success"}, "new": {"failure", "new"}, "": {"success", ""},
		"failure": {"failure", "success"}, "cancelled": {"success", "cancelled"}, "success": {"skipped", "success"},
	} {
		job := `{"id":%d,"name":"renovate (%d)","status":"completed","conclusion":"%s","completed_at":"2026-01-02T03:04:05Z"}`
		jobs := fmt.Sprintf(`{"total_count":2,"jobs":[`+job+`,`+job+`]}`, 1, 1, conclusions[0], 2, 2, conclusions[1])
		c, _ := serve(t, map[string]http.HandlerFunc{
			"/actions/runs": answer(200, run), "/actions/runs/1/jobs": answer(200, jobs),
			"/logs": answer(200, strings.Join(renovateLog(t, "full-info.jsonl"), "\n")),
		})
		got, err := c.RenovateOf(t.Context(), repo, "main", "renovate.yaml", nil, nil)
		if err != nil || got.Last == nil || got.Last.Conclusion != want {
			t.Errorf("%q: %+v, error %v; want %q", conclusions, got.Last, err, want)
		}
	}
}
