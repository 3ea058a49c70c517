//go:build e2e

package actions_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"signalbox/test/realserver/actions"
)

// TestLog reads a log at each moment of its life.
func TestLog(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{".gitea/workflows/simple.yaml": simpleWorkflow})
	owner, name, _ := strings.Cut(h.name, "/")
	const secret = "as-secret-as-can-be"
	_, err := h.api.CreateRepoActionSecret(owner, name, "SECRET", sdk.CreateOrUpdateSecretOption{Data: secret})
	must(t, err)
	id := h.dispatch(ctx, t, "simple.yaml", nil)
	job := h.jobs(t, id)[0].ID
	expect := func(when string, status int, part string) {
		t.Helper()
		if got, body := h.logOf(ctx, t, job); got != status || !strings.Contains(body, part) {
			t.Errorf("%s the log is answered with %d: %.300s", when, got, body)
		}
	}

	expect("before the job is taken,", http.StatusNotFound, "job not started")
	task := h.next(ctx, t)
	expect("before there is a line,", http.StatusInternalServerError, `"message":""`)
	must(t, task.Log(ctx, "at first", "with "+secret+" and "+task.Context["token"].(string), "", strings.Repeat("ä", 40000)))
	want := []string{"at first", "with *** and ***", "", strings.Repeat("ä", 32768)}
	if diff := cmp.Diff(want, log(ctx, t, h, id)); diff != "" {
		t.Errorf("while the job runs (-want +got):\n%.2000s", diff)
	}
	must(t, task.EndStep(ctx, actions.Success))
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprintf("line %d", i)
	}
	must(t, task.Log(ctx, many...))
	must(t, task.Finish(ctx, actions.Success))
	want = append(append(want, many...), "🏁  Job succeeded")
	if diff := cmp.Diff(want, log(ctx, t, h, id)); diff != "" {
		t.Errorf("at the end (-want +got):\n%.2000s", diff)
	}

	if status, body := h.ask(ctx, t, h.owner.Token, http.MethodDelete, fmt.Sprintf("/actions/runs/%d", id), ""); status != http.StatusNoContent {
		t.Fatalf("delete the run: %d %s", status, body)
	}
	expect("after the run was deleted,", http.StatusNotFound, "resource does not exist")
	if status, body := h.get(ctx, t, fmt.Sprintf("/actions/runs/%d", id)); status != http.StatusNotFound {
		t.Errorf("a deleted run: %d %s", status, body)
	}
	if status, body := h.get(ctx, t, fmt.Sprintf("/actions/runs/%d/jobs", id)); status != http.StatusOK || !strings.Contains(body, `"total_count":0`) {
		t.Errorf("jobs of a deleted run: %d %s", status, body)
	}
}

// TestLogOfSkippedJob shows that a job that a runner skips has no log and is answered as a failure of Gitea.
func TestLogOfSkippedJob(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{"README.md": "home\n"})
	_, id := h.pull(ctx, t)
	h.check(ctx, t)
	h.until(ctx, t, fmt.Sprintf("/actions/runs/%d/jobs?status=skipped", id), func(body string) bool { return strings.Contains(body, `"total_count":2`) })
	jobs := h.jobs(t, id)
	for i, want := range []int{http.StatusOK, http.StatusInternalServerError, http.StatusNotFound, http.StatusNotFound} {
		if status, body := h.logOf(ctx, t, jobs[i].ID); status != want {
			t.Errorf("the log of job %s is answered with %d: %s", jobs[i].Name, status, body)
		}
	}
}

// TestLogIsCleanedUp lets a job have ended two years ago, and Gitea clean up.
func TestLogIsCleanedUp(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{".gitea/workflows/simple.yaml": simpleWorkflow})
	id := h.dispatch(ctx, t, "simple.yaml", nil)
	task := h.next(ctx, t)
	must(t, task.Log(ctx, "long ago"))
	must(t, task.FinishAt(ctx, actions.Success, time.Now().AddDate(-2, 0, 0)))
	admin, err := gitea.Admin(ctx)
	must(t, err)
	_, err = admin.RunCronTasks("cleanup_actions")
	must(t, err)
	h.until(ctx, t, fmt.Sprintf("/actions/jobs/%d/logs", h.jobs(t, id)[0].ID), func(body string) bool {
		return strings.Contains(body, "logs have been cleaned up") && strings.Contains(body, `"message":"not found"`)
	})
	if run := h.run(t, id); run.Conclusion != "success" {
		t.Errorf("the run is %s, %s", run.Status, run.Conclusion)
	}
}
