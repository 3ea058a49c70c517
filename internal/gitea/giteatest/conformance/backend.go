// Package conformance is one suite of tests for two servers: the stand-in of
// package giteatest, in every run of the tests, and a real Gitea, where one is
// at hand. It says what package gitea relies on, and keeps the stand-in honest.
//
// [Run] takes a [Backend]: the stand-in is one by itself, [NewGitea] makes one
// of a real server.
package conformance

import (
	"context"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// Backend is a Gitea and the people who use it. A method that changes
// something returns when the change can be read. It is as wide as what people
// do; the suite is its only user.
type Backend interface {
	Authority
	Workshop

	URL() string

	CreateUser(ctx context.Context, login string) (who pull.Person, token string, err error)
	DeleteUser(ctx context.Context, login string) error
	CreateOrg(ctx context.Context, name string) error
	SetTeam(ctx context.Context, org, name string, members ...string) error

	CreateRepo(ctx context.Context, owner, name string, files map[string]string) (pull.Repo, error)
	RenameRepo(ctx context.Context, repo pull.Repo, name string) (pull.Repo, error)
	DeleteRepo(ctx context.Context, repo pull.Repo) error
	Fork(ctx context.Context, repo pull.Repo, owner string) (pull.Repo, error)
	SetPrivate(ctx context.Context, repo pull.Repo, private bool) error
	Grant(ctx context.Context, repo pull.Repo, login string, p giteatest.Permission) error

	Push(ctx context.Context, repo pull.Repo, push giteatest.Push) (sha string, err error)
	Tip(ctx context.Context, repo pull.Repo, branch string) (sha string, err error)
	DeleteBranch(ctx context.Context, repo pull.Repo, branch string) error
	SetStatus(ctx context.Context, repo pull.Repo, sha, as string, status pull.Status) error

	OpenPull(ctx context.Context, repo pull.Repo, in giteatest.NewPull) (number int64, err error)
	EditPull(ctx context.Context, repo pull.Repo, number int64, as string, edit giteatest.Edit) error
	SetLabels(ctx context.Context, repo pull.Repo, number int64, as string, labels ...string) error
	Retarget(ctx context.Context, repo pull.Repo, number int64, as, base string) error
	SetOpen(ctx context.Context, repo pull.Repo, number int64, as string, open bool) error
	Merge(ctx context.Context, repo pull.Repo, number int64, as string) (sha string, err error)

	Review(ctx context.Context, repo pull.Repo, number int64, as, state, body string) (id int64, err error)
	BeginReview(ctx context.Context, repo pull.Repo, number int64, as string, remarks int) error
	Dismiss(ctx context.Context, repo pull.Repo, number, id int64, as string) error

	Comment(ctx context.Context, repo pull.Repo, number int64, as, body string) (id int64, err error)
	EditComment(ctx context.Context, repo pull.Repo, id int64, as, body string) error
	DeleteComment(ctx context.Context, repo pull.Repo, id int64, as string) error
}

var (
	_ Backend = (*giteatest.Server)(nil)
	_ Backend = (*Gitea)(nil)
)
