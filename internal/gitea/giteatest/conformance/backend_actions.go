package conformance

import (
	"context"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// Workshop is what runs workflows, and what workflows work with. It is a part
// of [Backend].
type Workshop interface {
	// Run starts a run with the jobs that the workflow's file has. Where a push or
	// a pull request has started it already, it is that one.
	Run(ctx context.Context, repo pull.Repo, in giteatest.NewRun) (id int64, err error)
	Rerun(ctx context.Context, repo pull.Repo, id int64) error
	DeleteRun(ctx context.Context, repo pull.Repo, id int64) error
	Register(ctx context.Context, repo pull.Repo, name string, labels ...string) (giteatest.Runner, error)

	SetSecret(ctx context.Context, repo pull.Repo, name, value string) error
	SetVariable(ctx context.Context, repo pull.Repo, name, value string) error
	OpenIssue(ctx context.Context, repo pull.Repo, as, title, body string) (number int64, err error)
	// EditIssue writes an issue anew, and opens or closes it.
	EditIssue(ctx context.Context, repo pull.Repo, number int64, body string, open bool) error
}
