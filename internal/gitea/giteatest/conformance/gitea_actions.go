package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// Registrar registers a runner for a repository of an owner, with a token of
// the owner's.
type Registrar func(ctx context.Context, owner, token string, repo pull.Repo, name string, labels []string) (giteatest.Runner, error)

// Register implements [Backend].
func (g *Gitea) Register(ctx context.Context, repo pull.Repo, name string, labels ...string) (giteatest.Runner, error) {
	if g.Registrar == nil {
		return nil, errors.New("there is no registrar of runners")
	}
	return g.Registrar(ctx, repo.Owner, g.token(repo.Owner), repo, name, labels)
}

// Run implements [Backend].
func (g *Gitea) Run(ctx context.Context, repo pull.Repo, in giteatest.NewRun) (int64, error) {
	branch := in.Branch
	if branch == "" {
		branch = "main"
	}
	if in.Event == "workflow_dispatch" {
		var out struct {
			ID int64 `json:"workflow_run_id"`
		}
		err := g.call(ctx, in.As, "POST "+repoPath(repo)+"/actions/workflows/"+in.Workflow+"/dispatches?return_run_details=true",
			map[string]any{"ref": branch}, &out)
		return out.ID, err
	}
	sha, err := g.Tip(ctx, repo, branch)
	if in.Event == "pull_request" {
		sha, err = g.headOf(ctx, repo, in.Pull)
	}
	if err != nil {
		return 0, err
	}
	query := url.Values{"event": {in.Event}, "head_sha": {sha}}
	var id int64
	return id, poll(ctx, func() (bool, error) {
		var out struct {
			Runs []struct {
				ID   int64  `json:"id"`
				Path string `json:"path"`
			} `json:"workflow_runs"`
		}
		if err := g.call(ctx, "", "GET "+repoPath(repo)+"/actions/runs?"+query.Encode(), nil, &out); err != nil {
			return false, err
		}
		for _, r := range out.Runs {
			if strings.HasPrefix(r.Path, in.Workflow+"@") {
				id = r.ID
				return true, nil
			}
		}
		return false, nil
	})
}

func (g *Gitea) headOf(ctx context.Context, repo pull.Repo, number int64) (string, error) {
	var out struct {
		Head struct {
			SHA string `json:"sha"`
		} `json:"head"`
	}
	err := g.call(ctx, "", "GET "+pullPath(repo, number), nil, &out)
	return out.Head.SHA, err
}

// Rerun implements [Backend].
func (g *Gitea) Rerun(ctx context.Context, repo pull.Repo, id int64) error {
	return g.call(ctx, "", fmt.Sprintf("POST %s/actions/runs/%d/rerun", repoPath(repo), id), nil, nil)
}

// DeleteRun implements [Backend].
func (g *Gitea) DeleteRun(ctx context.Context, repo pull.Repo, id int64) error {
	return g.call(ctx, "", fmt.Sprintf("DELETE %s/actions/runs/%d", repoPath(repo), id), nil, nil)
}

// SetSecret implements [Backend].
func (g *Gitea) SetSecret(ctx context.Context, repo pull.Repo, name, value string) error {
	return g.call(ctx, "", "PUT "+repoPath(repo)+"/actions/secrets/"+name, map[string]any{"data": value}, nil)
}

// SetVariable implements [Backend].
func (g *Gitea) SetVariable(ctx context.Context, repo pull.Repo, name, value string) error {
	return g.call(ctx, "", "POST "+repoPath(repo)+"/actions/variables/"+name, map[string]any{"value": value}, nil)
}

// EditIssue implements [Backend].
func (g *Gitea) EditIssue(ctx context.Context, repo pull.Repo, number int64, body string, open bool) error {
	state := "closed"
	if open {
		state = "open"
	}
	return g.call(ctx, "", fmt.Sprintf("PATCH %s/issues/%d", repoPath(repo), number), map[string]any{"body": body, "state": state}, nil)
}

// OpenIssue implements [Backend].
func (g *Gitea) OpenIssue(ctx context.Context, repo pull.Repo, as, title, body string) (int64, error) {
	var out struct {
		Number int64 `json:"number"`
	}
	err := g.call(ctx, as, "POST "+repoPath(repo)+"/issues", map[string]any{"title": title, "body": body}, &out)
	return out.Number, err
}
