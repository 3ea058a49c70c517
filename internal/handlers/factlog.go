package handlers

import (
	"context"
	"slices"

	"signalbox/internal/fact"
)

// FactReader reads facts.
type FactReader interface {
	Lookup(key fact.Key) (fact.Fact, bool)
	// Select returns the facts of a kind, sorted by key, absent ones included.
	Select(source, scope, kind string) []fact.Fact
	// Revision grows with every change of a fact; 0 for none.
	Revision(key fact.Key) uint64
	// Sync waits until every change made before the call can be read.
	Sync(ctx context.Context) error
}

// factLog looks facts up, each once, and remembers their revisions. It
// implements precondition.Facts.
type factLog struct {
	from      FactReader
	facts     map[fact.Key]looked
	revisions map[fact.Key]uint64
	kinds     map[factKind]selected
}

type looked struct {
	fact fact.Fact
	ok   bool
}

type factKind struct{ source, scope, kind string }

// selected are the facts of a kind and their revisions.
type selected struct {
	facts     []fact.Fact
	revisions map[fact.Key]uint64
}

func newFactLog(from FactReader) *factLog {
	return &factLog{from: from, facts: map[fact.Key]looked{}, revisions: map[fact.Key]uint64{}, kinds: map[factKind]selected{}}
}

// Lookup returns one fact.
func (l *factLog) Lookup(k fact.Key) (fact.Fact, bool) {
	if f, seen := l.facts[k]; seen {
		return f.fact, f.ok
	}
	// The revision first: if the fact changes in between, the difference is seen.
	l.revisions[k] = l.from.Revision(k)
	f, ok := l.from.Lookup(k)
	l.facts[k] = looked{f, ok}
	return f, ok
}

// Select returns the facts of a kind.
func (l *factLog) Select(source, scope, kind string) []fact.Fact {
	k := factKind{source, scope, kind}
	s, seen := l.kinds[k]
	if !seen {
		// The revisions first, as above.
		s.revisions = l.revisionsOf(k)
		s.facts = l.from.Select(source, scope, kind)
		l.kinds[k] = s
	}
	return slices.Clone(s.facts)
}

func (l *factLog) revisionsOf(k factKind) map[fact.Key]uint64 {
	revisions := map[fact.Key]uint64{}
	for _, f := range l.from.Select(k.source, k.scope, k.kind) {
		revisions[f.Key] = l.from.Revision(f.Key)
	}
	return revisions
}

// forget makes the next lookup of a fact read it again.
func (l *factLog) forget(k fact.Key) { delete(l.facts, k) }

// changed reports whether a fact that was looked up has changed since.
func (l *factLog) changed() bool {
	for k, revision := range l.revisions {
		if l.from.Revision(k) != revision {
			return true
		}
	}
	for k, s := range l.kinds {
		now := l.revisionsOf(k)
		if len(now) != len(s.revisions) {
			return true
		}
		for key, revision := range now {
			if before, ok := s.revisions[key]; !ok || before != revision {
				return true
			}
		}
	}
	return false
}
