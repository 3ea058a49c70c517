package handlers

import (
	"context"
	"log/slog"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

// Past decides anew about what was kept, with what it is given and nothing else: it
// asks no forge and no cluster, and keeps nothing.
type Past struct {
	Policies *Policies
	// Clusters are the names of all configured clusters. Bots are the accounts that
	// never count, signalbox's own among them.
	Clusters []string
	Bots     []pull.Person
	// Instead stands for the policy of the base branch, if it is set.
	Instead *Document
}

// Judge returns what would be decided of the inputs of a record with facts, with the
// whole ledger, at a time. A question of ancestry that was not answered then, and a
// team that was not read, is unknown; see [policy.Verdict.Asks].
func (p *Past) Judge(in Inputs, facts precondition.Facts, ledger decision.Ledger, now time.Time) policy.Verdict {
	if p.Instead != nil {
		in.Policy = p.Instead
	}
	ref := in.Snapshot.Pull.Ref()
	r := run{
		Evaluator: &Evaluator{
			Policies: p.Policies, Clusters: p.Clusters, Bots: p.Bots,
			Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		},
		ledger: ledger.Of(ref), freezes: ledger.OfRepo(ref.RepoID),
	}
	verdict := policy.Evaluate(r.input(&in, newFactLog(pastFacts{facts})))
	verdict.Notes = in.Notes
	return verdict
}

// pastFacts are facts that do not change while they are read.
type pastFacts struct{ precondition.Facts }

// Revision implements [FactReader].
func (pastFacts) Revision(fact.Key) uint64 { return 0 }

// Sync implements [FactReader].
func (pastFacts) Sync(context.Context) error { return nil }

// Differs reports whether two verdicts say something else to people.
func Differs(a, b policy.Verdict) bool { return !sameVerdict(a, b) }
