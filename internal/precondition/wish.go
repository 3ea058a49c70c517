package precondition

import (
	"slices"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// WishesOn returns what a valid kind wishes for on a cluster, whatever the pull
// request. It is found by evaluating the kind where nothing is known but that the
// cluster is heard from.
func WishesOn(k Kind, cluster string) []fact.Wish {
	e := &Evaluation{
		Snapshot: &pull.Snapshot{}, Facts: heardOnly(cluster), Clusters: []string{cluster}, Now: time.Unix(0, 0).UTC(),
	}
	k.Evaluate(e, e.Clusters)
	return slices.DeleteFunc(e.Wishes(), func(w fact.Wish) bool { return w.Key.Source != fact.SourceKube })
}

// heardOnly knows of a cluster that it is heard from, and no more.
type heardOnly string

// Lookup implements [Facts].
func (c heardOnly) Lookup(k fact.Key) (fact.Fact, bool) {
	if k != fact.HeartbeatKey(string(c)) {
		return fact.Fact{}, false
	}
	return fact.Fact{Key: k, Heartbeat: &fact.Heartbeat{}}, true
}

// Select implements [Facts].
func (heardOnly) Select(_, _, _ string) []fact.Fact { return nil }
