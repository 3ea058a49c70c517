package actions

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	runnerv1 "code.gitea.io/actions-proto-go/runner/v1"
	"code.gitea.io/actions-proto-go/runner/v1/runnerv1connect"
	sdk "code.gitea.io/sdk/gitea"
	"connectrpc.com/connect"
	"github.com/cenkalti/backoff/v5"

	"signalbox/test/realserver"
)

// version is what the runner says of itself.
const version = "signalbox-test"

// Options say which jobs a runner takes.
type Options struct {
	// Owner is the account whose token registers the runner: an owner of the repository.
	Owner realserver.User
	// Repository is written owner/name. The runner takes the jobs of no other. Empty means all of Owner's.
	Repository string
	// Name is the runner's name; empty means runner.
	Name string
	// Labels are those that runs-on of a workflow names; none means ubuntu-latest.
	Labels []string
}

// Runner is a registered runner. Its methods must not be called concurrently, but its tasks may be worked
// on while it waits for the next.
type Runner struct {
	// ID is the runner's id in Gitea's API.
	ID   int64
	Name string

	gitea   *realserver.Gitea
	options Options
	client  runnerv1connect.RunnerServiceClient
	seen    int64 // Version of the list of tasks, as of the last answer that had no task.
}

// Register registers a runner for a repository and declares its labels. From here on Gitea shows it as idle.
func Register(ctx context.Context, g *realserver.Gitea, o Options) (*Runner, error) {
	if o.Name == "" {
		o.Name = "runner"
	}
	if len(o.Labels) == 0 {
		o.Labels = []string{"ubuntu-latest"}
	}
	fail := func(err error) (*Runner, error) {
		return nil, fmt.Errorf("register runner %s of %s: %w", o.Name, o.Owner.Name, err)
	}
	token, err := registrationToken(ctx, g, o)
	if err != nil {
		return fail(err)
	}
	answer, err := connectTo(g, nil).Register(ctx, connect.NewRequest(&runnerv1.RegisterRequest{
		Name: o.Name, Token: token, Version: version, Labels: o.Labels,
	}))
	if err != nil {
		return fail(err)
	}
	registered := answer.Msg.GetRunner()
	r := &Runner{
		ID: registered.GetId(), Name: registered.GetName(), gitea: g, options: o,
		client: connectTo(g, http.Header{"X-Runner-Uuid": {registered.GetUuid()}, "X-Runner-Token": {registered.GetToken()}}),
	}
	if _, err := r.client.Declare(ctx, connect.NewRequest(&runnerv1.DeclareRequest{Version: version, Labels: o.Labels})); err != nil {
		return fail(err)
	}
	return r, nil
}

func registrationToken(ctx context.Context, g *realserver.Gitea, o Options) (string, error) {
	api, err := g.API(ctx, o.Owner.Token)
	if err != nil {
		return "", err
	}
	var token *sdk.RegistrationToken
	if o.Repository == "" {
		token, _, err = api.CreateUserActionRunnerRegistrationToken()
	} else {
		owner, name, _ := strings.Cut(o.Repository, "/")
		token, _, err = api.CreateRepoActionRunnerRegistrationToken(owner, name)
	}
	if err != nil {
		return "", err
	}
	return token.Token, nil
}

// Next waits for a job that the runner may take, takes it and returns it. It asks as the protocol has it:
// an answer carries the version of the list of tasks, and as long as that is the same, asking costs nothing.
// Between two questions it waits for 50 ms up to a second.
func (r *Runner) Next(ctx context.Context) (*Task, error) {
	wait := &backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, Multiplier: 1.5, MaxInterval: time.Second}
	wait.Reset()
	for {
		answer, err := r.client.FetchTask(ctx, connect.NewRequest(&runnerv1.FetchTaskRequest{TasksVersion: r.seen}))
		if err != nil {
			return nil, fmt.Errorf("fetch a task as runner %s: %w", r.Name, err)
		}
		if t := answer.Msg.GetTask(); t != nil {
			r.seen = 0 // There may be more in the list.
			return r.take(t)
		}
		r.seen = answer.Msg.GetTasksVersion()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a task as runner %s: %w", r.Name, ctx.Err())
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// Close removes the runner from Gitea. A runner that is not closed and does not ask any more is shown as
// offline after a minute.
func (r *Runner) Close(ctx context.Context) error {
	api, err := r.gitea.API(ctx, r.options.Owner.Token)
	if err != nil {
		return fmt.Errorf("remove runner %s: %w", r.Name, err)
	}
	if r.options.Repository == "" {
		_, err = api.DeleteUserActionRunner(r.ID)
	} else {
		owner, name, _ := strings.Cut(r.options.Repository, "/")
		_, err = api.DeleteRepoActionRunner(owner, name, r.ID)
	}
	if err != nil {
		return fmt.Errorf("remove runner %s: %w", r.Name, err)
	}
	return nil
}

// connectTo returns a client of the runner protocol that sends the header with every request.
func connectTo(g *realserver.Gitea, header http.Header) runnerv1connect.RunnerServiceClient {
	identify := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			maps.Copy(req.Header(), header)
			return next(ctx, req)
		}
	})
	return runnerv1connect.NewRunnerServiceClient(http.DefaultClient, g.URL()+"api/actions", connect.WithInterceptors(identify))
}
