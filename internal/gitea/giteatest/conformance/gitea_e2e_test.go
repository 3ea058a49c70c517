//go:build e2e

package conformance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/gitea/giteatest/conformance"
	"signalbox/internal/pull"
	"signalbox/test/realserver"
	"signalbox/test/realserver/actions"
)

func TestGitea(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	server, err := realserver.StartGitea(ctx, realserver.GiteaOptions{
		Options: realserver.Options{Dir: t.TempDir()}, SubPath: "git",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	// The suite acts as people by the right of an administrator.
	admin, err := server.CreateUser(ctx, "conformance")
	if err != nil {
		t.Fatal(err)
	}
	api, err := server.Admin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	if _, err := api.AdminEditUser(admin.Name, sdk.EditUserOption{LoginName: admin.Name, Admin: &yes}); err != nil {
		t.Fatal(err)
	}
	backend := conformance.NewGitea(server.URL(), admin.Token)
	backend.Registrar = func(ctx context.Context, owner, token string, repo pull.Repo, name string, labels []string) (giteatest.Runner, error) {
		r, err := actions.Register(ctx, server, actions.Options{
			Owner: realserver.User{Name: owner, Token: token}, Repository: repo.String(), Name: name, Labels: labels,
		})
		return &runner{runner: r}, err
	}
	conformance.Run(t, backend)
}

// runner is a runner of the real Gitea.
type runner struct {
	runner *actions.Runner
	task   *actions.Task
}

func (r *runner) Next(ctx context.Context) (string, error) {
	task, err := r.runner.Next(ctx)
	if err != nil {
		return "", err
	}
	r.task = task
	return task.Job.ID, nil
}

func (r *runner) Log(ctx context.Context, lines ...string) error { return r.task.Log(ctx, lines...) }

func (r *runner) Finish(ctx context.Context, conclusion string) error {
	result, ok := map[string]actions.Result{
		"success": actions.Success, "failure": actions.Failure, "skipped": actions.Skipped,
	}[conclusion]
	if !ok {
		return fmt.Errorf("a runner does not finish a job as %q", conclusion)
	}
	return r.task.Finish(ctx, result)
}
