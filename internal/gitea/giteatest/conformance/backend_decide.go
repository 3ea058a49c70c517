package conformance

import (
	"context"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// Authority is what decides who may do what, and what people see of it. It is a
// part of [Backend].
type Authority interface {
	RenameUser(ctx context.Context, login, name string) error
	SetAdmin(ctx context.Context, login string, admin bool) error
	GrantTeam(ctx context.Context, org, name string, p giteatest.Permission) error

	Protect(ctx context.Context, repo pull.Repo, rule pull.Protection) error
	Unprotect(ctx context.Context, repo pull.Repo, name string) error
	Archive(ctx context.Context, repo pull.Repo, archived bool) error
	ForceMerge(ctx context.Context, repo pull.Repo, number int64, as string) (sha string, err error)

	Message(ctx context.Context, repo pull.Repo, sha string) (string, error)
	Reactions(ctx context.Context, repo pull.Repo, id int64) ([]giteatest.Reaction, error)
}
