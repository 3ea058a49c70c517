//go:build e2e

package actions_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/actions"
)

var names atomic.Int64

// home is a repository of a person with a runner.
type home struct {
	gitea  *realserver.Gitea
	owner  realserver.User
	name   string // Written owner/name.
	api    *sdk.Client
	clone  *realserver.Clone
	runner *actions.Runner
}

func limit(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func user(ctx context.Context, t *testing.T) realserver.User {
	t.Helper()
	u, err := gitea.CreateUser(ctx, fmt.Sprintf("person-%d", names.Add(1)))
	must(t, err)
	return u
}

// settle makes a repository whose main branch has these files.
func settle(ctx context.Context, t *testing.T, files map[string]string) home {
	t.Helper()
	owner := user(ctx, t)
	api, err := gitea.API(ctx, owner.Token)
	must(t, err)
	_, _, err = api.CreateRepo(sdk.CreateRepoOption{Name: "home", Private: true, AutoInit: true, DefaultBranch: "main"})
	must(t, err)
	h := move(ctx, t, gitea, owner, owner.Name+"/home")
	h.push(ctx, t, "main", files)
	return h
}

// move clones a repository that exists and registers a runner for it.
func move(ctx context.Context, t *testing.T, g *realserver.Gitea, owner realserver.User, name string) home {
	t.Helper()
	api, err := g.API(ctx, owner.Token)
	must(t, err)
	clone, err := g.Clone(ctx, owner, name, t.TempDir())
	must(t, err)
	runner, err := actions.Register(ctx, g, actions.Options{Owner: owner, Repository: name})
	must(t, err)
	return home{gitea: g, owner: owner, name: name, api: api, clone: clone, runner: runner}
}

func (h home) push(ctx context.Context, t *testing.T, branch string, files map[string]string) string {
	t.Helper()
	head, err := h.clone.Commit(ctx, realserver.Change{Message: "Change " + branch, Write: files, Date: date})
	must(t, err)
	must(t, h.clone.Push(ctx, branch))
	return head
}

// date is that of every commit here, so that commits of the same content have the same id.
var date = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// dispatch starts a workflow and returns the id of its run.
func (h home) dispatch(ctx context.Context, t *testing.T, workflow string, inputs map[string]string) int64 {
	t.Helper()
	owner, name, _ := strings.Cut(h.name, "/")
	run, _, err := h.api.DispatchRepoActionWorkflow(owner, name, workflow, sdk.CreateActionWorkflowDispatchOption{Ref: "main", Inputs: inputs}, true)
	must(t, err)
	return run.WorkflowRunID
}

func (h home) next(ctx context.Context, t *testing.T) *actions.Task {
	t.Helper()
	task, err := h.runner.Next(ctx)
	must(t, err)
	return task
}

func (h home) run(t *testing.T, id int64) *sdk.ActionWorkflowRun {
	t.Helper()
	owner, name, _ := strings.Cut(h.name, "/")
	run, _, err := h.api.GetRepoActionRun(owner, name, id)
	must(t, err)
	return run
}

func (h home) jobs(t *testing.T, run int64) []*sdk.ActionWorkflowJob {
	t.Helper()
	owner, name, _ := strings.Cut(h.name, "/")
	jobs, _, err := h.api.ListRepoActionRunJobs(owner, name, run, sdk.ListRepoActionJobsOptions{})
	must(t, err)
	return jobs.Jobs
}

// ask sends a request below the repository and returns the status and the body of the answer.
func (h home) ask(ctx context.Context, t *testing.T, token, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, h.gitea.URL()+"api/v1/repos/"+h.name+path, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(answer)
}

func (h home) get(ctx context.Context, t *testing.T, path string) (int, string) {
	t.Helper()
	return h.ask(ctx, t, h.owner.Token, http.MethodGet, path, "")
}

func (h home) logOf(ctx context.Context, t *testing.T, job int64) (int, string) {
	t.Helper()
	return h.get(ctx, t, fmt.Sprintf("/actions/jobs/%d/logs", job))
}

// until asks until the answer is as awaited.
func (h home) until(ctx context.Context, t *testing.T, path string, met func(body string) bool) {
	t.Helper()
	for {
		_, body := h.get(ctx, t, path)
		if met(body) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is still %s", path, body)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// schedule lets Gitea start what is due, until there is a scheduled run.
func (h home) schedule(ctx context.Context, t *testing.T) {
	t.Helper()
	admin, err := h.gitea.Admin(ctx)
	must(t, err)
	h.until(ctx, t, "/actions/runs?event=schedule", func(body string) bool {
		if !strings.Contains(body, `"total_count":0`) {
			return true
		}
		_, err := admin.RunCronTasks("start_schedule_tasks")
		must(t, err)
		return false
	})
}
