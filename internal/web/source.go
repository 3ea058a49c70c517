package web

import (
	"context"
	"iter"

	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/overview"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Pulls are the pull requests that signalbox looks after. What is read from them is
// shared and must not be changed.
type Pulls interface {
	// All returns every open pull request, in no order.
	All() iter.Seq[policy.Standing]
	Get(ref pull.Ref) (policy.Standing, bool)
	// Readers returns the open pull requests whose verdict read a fact.
	Readers(key fact.Key) []pull.Ref
	// Repositories returns those of the configuration that are known by now, sorted by
	// name.
	Repositories() []pull.Repo
}

// Facts are what is true now.
type Facts interface {
	Lookup(key fact.Key) (fact.Fact, bool)
	// Select returns the facts of a kind, sorted by key, absent ones included.
	Select(source, scope, kind string) []fact.Fact
}

// Decisions is the ledger.
type Decisions interface {
	// Entries returns those of a pull request, in the order of the ledger.
	Entries(ref pull.Ref) decision.Ledger
	All() decision.Ledger
}

// Digests are the reports that were made.
type Digests interface {
	// Reports returns them, the newest first.
	Reports() []digest.Report
	// Now returns what is found at this moment.
	Now() digest.Result
	// Trend returns the samples of the last 30 days, the oldest first.
	Trend() []digest.Sample
}

// Health is how signalbox itself stands.
type Health interface {
	Health(ctx context.Context) overview.Health
	// DeadLetters returns the newest, at most limit, and how many there are.
	DeadLetters(ctx context.Context, limit int) (newest []overview.DeadLetter, total int, err error)
	// Retry hands a dead letter out again and Drop deletes it; an error of
	// [ErrNoDeadLetter] says that it is not there any more.
	Retry(ctx context.Context, id uint64) error
	Drop(ctx context.Context, id uint64) error
}

// Rights tells what an account may do in a repository, as Gitea says.
// [pull.ErrForbidden] says that signalbox may not know, [pull.ErrNotFound] that there
// is no such account or repository; other errors pass.
type Rights interface {
	Permission(ctx context.Context, repo pull.Repo, login string) (pull.Permission, error)
}

// People tells how an account is called now; [pull.ErrNotFound] for one that is gone.
type People interface {
	ByID(ctx context.Context, id int64) (pull.Person, error)
}

// Command is what a person asks for on the page of a pull request.
type Command struct {
	// Cause names it for good; the same cause is carried out once.
	Cause string
	By    pull.Person
	Ref   pull.Ref
	// Line is the command without its slash, such as "approve", "hold", "merge" or
	// "approve-override REASON". It is read by the same rules as in a comment.
	Line string
	// Head is the full commit that the page showed.
	Head string
}

// Commands takes commands. What becomes of one shows in the ledger, as an entry whose
// id begins with its cause and a slash, also if it is refused.
type Commands interface {
	Give(ctx context.Context, c Command) error
}

// Changes tells what changes, so that pages can follow.
type Changes interface {
	// Follow calls f for everything that changes until stop is called. F must not
	// block.
	Follow(f func(Change)) (stop func())
}

// Change is something that changed: a pull request, the state of a cluster, or
// neither for anything else.
type Change struct {
	Ref     pull.Ref
	Cluster string
}
