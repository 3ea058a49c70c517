package handlers

import (
	"context"

	"signalbox/internal/pull"
)

// Forge is all that an evaluation needs of the forge.
type Forge interface {
	PullReader
	ChangeReader
	ReviewReader
	PolicyReader
	AncestryReader
	CommentKeeper
	CommentWriter
	StatusKeeper
	Reactor
	PeopleReader
	Merger
}

// PullReader reads one pull request.
type PullReader interface {
	Pull(ctx context.Context, repo pull.Repo, number int64) (pull.Pull, error)
}

// ChangeReader reads what a pull request changes. Both are complete and of the
// head that is asked for, or [pull.ErrIncomplete]: the forge tells a new head a
// moment before it has made up its mind about what that changes.
type ChangeReader interface {
	FilesAt(ctx context.Context, repo pull.Repo, number int64, head string) ([]pull.File, error)
	DiffAt(ctx context.Context, p pull.Pull) (pull.Diff, error)
}

// ReviewReader reads reviews and what can void them.
type ReviewReader interface {
	Reviews(ctx context.Context, repo pull.Repo, number int64) ([]pull.Review, error)
	Timeline(ctx context.Context, repo pull.Repo, number int64) ([]pull.Moment, error)
}

// PolicyReader reads policy files and the people they name.
type PolicyReader interface {
	// RawFile is [pull.ErrNotFound] where there is no such file.
	RawFile(ctx context.Context, repo pull.Repo, ref, path string) ([]byte, error)
	// TeamMembers is [pull.ErrNotFound] where there is no such team.
	TeamMembers(ctx context.Context, org, team string) ([]pull.Person, error)
}

// AncestryReader answers whether the history of one commit contains another.
type AncestryReader interface {
	// Contains is [pull.ErrUnknownCommit] for an applied commit that the
	// repository does not have.
	Contains(ctx context.Context, repo pull.Repo, applied, needed string) (bool, error)
}

// CommentKeeper reads all comments of a pull request.
type CommentKeeper interface {
	Comments(ctx context.Context, repo pull.Repo, number int64) ([]pull.Comment, error)
}

// CommentWriter writes comments.
type CommentWriter interface {
	CreateComment(ctx context.Context, repo pull.Repo, number int64, body string) (pull.Comment, error)
	EditComment(ctx context.Context, repo pull.Repo, id int64, body string) (pull.Comment, error)
	DeleteComment(ctx context.Context, repo pull.Repo, id int64) error
}

// StatusKeeper reads and posts commit statuses.
type StatusKeeper interface {
	// Statuses returns the newest status of each context.
	Statuses(ctx context.Context, repo pull.Repo, sha string) ([]pull.Status, error)
	PostStatus(ctx context.Context, repo pull.Repo, sha string, status pull.Status, targetURL string) error
}
