package conformance

import (
	"context"
	"fmt"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// OpenPull implements [Backend].
func (g *Gitea) OpenPull(ctx context.Context, repo pull.Repo, in giteatest.NewPull) (int64, error) {
	if in.Base == "" {
		in.Base = "main"
	}
	if in.Fork.ID != 0 {
		in.Head = in.Fork.Owner + ":" + in.Head
	}
	var out struct {
		Number int64 `json:"number"`
	}
	err := g.call(ctx, in.As, "POST "+repoPath(repo)+"/pulls", map[string]any{
		"title": in.Title, "body": in.Body, "head": in.Head, "base": in.Base,
	}, &out)
	return out.Number, err
}

// EditPull implements [Backend].
func (g *Gitea) EditPull(ctx context.Context, repo pull.Repo, number int64, as string, edit giteatest.Edit) error {
	return g.call(ctx, as, "PATCH "+pullPath(repo, number), map[string]any{"title": edit.Title, "body": edit.Body}, nil)
}

// SetLabels implements [Backend].
func (g *Gitea) SetLabels(ctx context.Context, repo pull.Repo, number int64, as string, labels ...string) error {
	ids := []int64{}
	for _, name := range labels {
		var out struct {
			ID int64 `json:"id"`
		}
		err := g.call(ctx, "", "POST "+repoPath(repo)+"/labels", map[string]any{"name": name, "color": "#ededed"}, &out)
		if err != nil {
			return err
		}
		ids = append(ids, out.ID)
	}
	return g.call(ctx, as, "PUT "+fmt.Sprintf("%s/issues/%d/labels", repoPath(repo), number), map[string]any{"labels": ids}, nil)
}

// Retarget implements [Backend].
func (g *Gitea) Retarget(ctx context.Context, repo pull.Repo, number int64, as, base string) error {
	return g.call(ctx, as, "PATCH "+pullPath(repo, number), map[string]any{"base": base}, nil)
}

// SetOpen implements [Backend].
func (g *Gitea) SetOpen(ctx context.Context, repo pull.Repo, number int64, as string, open bool) error {
	state := "closed"
	if open {
		state = "open"
	}
	return g.call(ctx, as, "PATCH "+pullPath(repo, number), map[string]any{"state": state}, nil)
}

// Merge implements [Backend].
func (g *Gitea) Merge(ctx context.Context, repo pull.Repo, number int64, as string) (string, error) {
	return g.merge(ctx, repo, number, as, map[string]any{"do": "merge"})
}

// Review implements [Backend].
func (g *Gitea) Review(ctx context.Context, repo pull.Repo, number int64, as, state, body string) (int64, error) {
	var out struct {
		ID int64 `json:"id"`
	}
	err := g.call(ctx, as, "POST "+pullPath(repo, number)+"/reviews", map[string]any{"event": state, "body": body}, &out)
	return out.ID, err
}

// BeginReview implements [Backend].
func (g *Gitea) BeginReview(ctx context.Context, repo pull.Repo, number int64, as string, remarks int) error {
	var files []struct {
		Filename string `json:"filename"`
	}
	if err := g.call(ctx, as, "GET "+pullPath(repo, number)+"/files", nil, &files); err != nil {
		return err
	}
	var list []any
	for range remarks {
		list = append(list, map[string]any{"path": files[0].Filename, "body": "remark", "new_position": 1})
	}
	return g.call(ctx, as, "POST "+pullPath(repo, number)+"/reviews", map[string]any{"event": "PENDING", "body": "begun", "comments": list}, nil)
}

// Dismiss implements [Backend]. Like the button on the page it dismisses the
// earlier reviews of the person too.
func (g *Gitea) Dismiss(ctx context.Context, repo pull.Repo, number, id int64, as string) error {
	return g.call(ctx, as, "POST "+fmt.Sprintf("%s/reviews/%d/dismissals", pullPath(repo, number), id),
		map[string]any{"message": "dismissed", "priors": true}, nil)
}

// Comment implements [Backend].
func (g *Gitea) Comment(ctx context.Context, repo pull.Repo, number int64, as, body string) (int64, error) {
	var out struct {
		ID int64 `json:"id"`
	}
	err := g.call(ctx, as, "POST "+fmt.Sprintf("%s/issues/%d/comments", repoPath(repo), number), map[string]any{"body": body}, &out)
	return out.ID, err
}

// EditComment implements [Backend].
func (g *Gitea) EditComment(ctx context.Context, repo pull.Repo, id int64, as, body string) error {
	return g.call(ctx, as, "PATCH "+fmt.Sprintf("%s/issues/comments/%d", repoPath(repo), id), map[string]any{"body": body}, nil)
}

// DeleteComment implements [Backend].
func (g *Gitea) DeleteComment(ctx context.Context, repo pull.Repo, id int64, as string) error {
	return g.call(ctx, as, "DELETE "+fmt.Sprintf("%s/issues/comments/%d", repoPath(repo), id), nil, nil)
}
