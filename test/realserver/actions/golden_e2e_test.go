//go:build e2e

package actions_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"signalbox/test/realserver"
	"signalbox/test/realserver/actions"
)

var update = flag.Bool("update", false, "write the answers of Gitea to where the client's tests read them")

// answers is where the tests of the client find what Gitea answers.
const answers = "../../../internal/gitea/testdata/actions"

// TestAnswers holds the answers that the tests of the client decode to those of the real Gitea: it plays a
// story in a Gitea of its own, so that all ids are the same each time, and compares each answer but for its
// times and its address.
func TestAnswers(t *testing.T) {
	ctx := limit(t, 3*time.Minute)
	own, err := realserver.StartGitea(ctx, options(t.TempDir()))
	must(t, err)
	defer own.Stop()
	alice, err := own.CreateUser(ctx, "alice")
	must(t, err)
	bob, err := own.CreateUser(ctx, "bob")
	must(t, err)
	h := build(ctx, t, own, alice)
	admin := sdk.AccessModeAdmin
	_, err = h.api.AddCollaborator("alice", "home", "bob", sdk.AddCollaboratorOption{Permission: &admin})
	must(t, err)
	issues, err := own.CreateToken(ctx, alice, "issues", "write:issue")
	must(t, err)

	keep := func(name, path string, status int) { h.keep(ctx, t, alice.Token, name, path, status) }
	keep("runners.json", "/actions/runners", 200)
	keep("secrets.json", "/actions/secrets", 200)
	keep("variables.json", "/actions/variables", 200)
	keep("workflows.json", "/actions/workflows", 200)
	keep("runs-none.json", "/actions/runs", 200)
	keep("error-no-run.json", "/actions/runs/99", 404)
	keep("jobs-none.json", "/actions/runs/99/jobs", 200)
	keep("error-status.json", "/actions/runs?status=unheard-of", 400)
	keep("error-actor.json", "/actions/runs?actor=nobody", 500)
	h.keep(ctx, t, bob.Token, "error-not-owner.json", "/actions/runners", 403)
	h.keep(ctx, t, issues, "error-scope.json", "/actions/runs", 403)

	// Run 1 is dispatched and succeeds.
	status, body := h.ask(ctx, t, alice.Token, http.MethodPost, "/actions/workflows/renovate.yaml/dispatches?return_run_details=true", `{"ref":"main"}`)
	h.compare(t, "dispatch.json", status, http.StatusOK, body)
	keep("run-queued.json", "/actions/runs/1", 200)
	keep("jobs-queued.json", "/actions/runs/1/jobs", 200)
	keep("error-log-not-started.json", "/actions/jobs/1/logs", 404)
	task := h.next(ctx, t)
	keep("error-log-empty.json", "/actions/jobs/1/logs", 500)
	must(t, task.Log(ctx, `{"level":30,"msg":"Repository started"}`, "with as-secret-as-can-be", "", "{\"level\":30,\"msg\":\"DRY-RUN: Would commit files to branch renovate/left-pad-1.x\"}"))
	keep("run-in-progress.json", "/actions/runs/1", 200)
	keep("jobs-in-progress.json", "/actions/runs/1/jobs", 200)
	keep("runners-busy.json", "/actions/runners", 200)
	must(t, task.Finish(ctx, actions.Success))
	keep("run.json", "/actions/runs/1", 200)
	keep("jobs.json", "/actions/runs/1/jobs", 200)
	keep("job.json", "/actions/jobs/1", 200)
	keep("log.txt", "/actions/jobs/1/logs", 200)

	// Run 2 fails, and once more.
	h.dispatch(ctx, t, "renovate.yaml", map[string]string{"dryRun": "lookup"})
	for range 2 {
		task = h.next(ctx, t)
		must(t, task.Log(ctx, "no"))
		must(t, task.Finish(ctx, actions.Failure))
		if status, body := h.ask(ctx, t, alice.Token, http.MethodPost, "/actions/runs/2/rerun", ""); status != http.StatusCreated {
			t.Fatalf("rerun: %d %s", status, body)
		}
	}
	keep("jobs-rerun-queued.json", "/actions/runs/2/jobs", 200)
	must(t, h.next(ctx, t).Finish(ctx, actions.Cancelled))
	keep("run-cancelled.json", "/actions/runs/2", 200)
	keep("jobs-cancelled.json", "/actions/runs/2/jobs", 200)

	// Run 3 is that of a pull request.
	h.pull(ctx, t)
	h.check(ctx, t)
	h.until(ctx, t, "/actions/runs/3/jobs?status=skipped", func(body string) bool { return strings.Contains(body, `"total_count":2`) })
	keep("run-pull-request.json", "/actions/runs/3", 200)
	keep("jobs-pull-request.json", "/actions/runs/3/jobs", 200)

	// Run 4 is scheduled, and does not say so.
	h.schedule(ctx, t)
	keep("runs-scheduled.json", "/actions/runs?event=schedule", 200)
	keep("runs.json", "/actions/runs", 200)
	keep("runs-page.json", "/actions/runs?limit=2&page=2", 200)
	must(t, h.next(ctx, t).FinishAt(ctx, actions.Success, time.Now().AddDate(-2, 0, 0)))
	server, err := own.Admin(ctx)
	must(t, err)
	_, err = server.RunCronTasks("cleanup_actions")
	must(t, err)
	h.until(ctx, t, "/actions/jobs/7/logs", func(body string) bool { return strings.Contains(body, "cleaned up") })
	keep("error-log-cleaned-up.json", "/actions/jobs/7/logs", 404)
	if status, body := h.ask(ctx, t, alice.Token, http.MethodDelete, "/actions/runs/1", ""); status != http.StatusNoContent {
		t.Fatalf("delete the run: %d %s", status, body)
	}
	keep("error-log-deleted.json", "/actions/jobs/1/logs", 404)
}

// build makes the repository of the story.
func build(ctx context.Context, t *testing.T, own *realserver.Gitea, alice realserver.User) home {
	t.Helper()
	api, err := own.API(ctx, alice.Token)
	must(t, err)
	_, _, err = api.CreateRepo(sdk.CreateRepoOption{Name: "home", Private: true, DefaultBranch: "main"})
	must(t, err)
	_, err = api.CreateRepoActionSecret("alice", "home", "RENOVATE_TOKEN", sdk.CreateOrUpdateSecretOption{
		Data: "as-secret-as-can-be", Description: "Token of the account renovate",
	})
	must(t, err)
	_, err = api.CreateRepoActionVariable("alice", "home", "LOG_FORMAT", "json")
	must(t, err)
	h := move(ctx, t, own, alice, "alice/home")
	h.push(ctx, t, "main", map[string]string{".gitea/workflows/renovate.yaml": renovateWorkflow})
	must(t, h.clone.Fetch(ctx))
	// Gitea takes in a first push later, and until then it answers a question for workflows with 500.
	h.until(ctx, t, "", func(body string) bool { return strings.Contains(body, `"empty":false`) })
	return h
}

// keep compares the answer to a question with the file, or writes it there.
func (h home) keep(ctx context.Context, t *testing.T, token, name, path string, want int) {
	t.Helper()
	status, body := h.ask(ctx, t, token, http.MethodGet, path, "")
	h.compare(t, name, status, want, body)
}

func (h home) compare(t *testing.T, name string, status, want int, body string) {
	t.Helper()
	if status != want {
		t.Errorf("%s is answered with %d, not with %d", name, status, want)
	}
	file, got := filepath.Join(answers, name), steady(h.gitea.URL(), body)
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(fmt.Errorf("%w; write the answers with go test -tags e2e ./test/realserver/actions -run TestAnswers -update", err))
	}
	if diff := cmp.Diff(string(before), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

var (
	moment = regexp.MustCompile(`(20\d\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{7})?(Z|[+-]\d\d:\d\d)`)
	size   = regexp.MustCompile(`"size":\d+`)
	ssh    = regexp.MustCompile(`"ssh_url":"[^"]*"`)
)

// steady replaces in an answer what differs from one time to the next: the address, the account that Gitea
// runs as, the size of the repository and the times, of which only what is not set stays.
func steady(address, body string) string {
	body = strings.ReplaceAll(body, address, "https://gitea.example.org/")
	body = moment.ReplaceAllStringFunc(body, func(found string) string {
		if strings.Contains(found, ".") {
			return "2026-01-02T03:04:05.1234567Z"
		}
		return "2026-01-02T03:04:05Z"
	})
	body = ssh.ReplaceAllString(body, `"ssh_url":"git@gitea.example.org:alice/home.git"`)
	return size.ReplaceAllString(body, `"size":25`)
}
