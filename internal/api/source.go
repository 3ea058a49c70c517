package api

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

// Decisions is the ledger, each entry with its place.
type Decisions interface {
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
}
