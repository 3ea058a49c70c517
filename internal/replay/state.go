package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
	"signalbox/internal/recording"
)

// facts is what is true at a moment. It implements precondition.Facts.
type facts map[fact.Key]fact.Fact

// Lookup returns one fact.
func (m facts) Lookup(k fact.Key) (fact.Fact, bool) {
	f, ok := m[k]
	return f, ok
}

// Select returns the facts of a kind, sorted by key.
func (m facts) Select(source, scope, kind string) []fact.Fact {
	var out []fact.Fact
	for k, f := range m {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}

// state is what a recording tells up to a line.
type state struct {
	facts   facts
	ledger  decision.Ledger
	records map[pull.Ref]handlers.Record
}

// change is what a line changed; zero for nothing that a verdict rests on.
type change struct {
	fact fact.Key
	// ref is the pull request of a record or a decision. With ofRepo every one of the
	// repository is concerned.
	ref    pull.Ref
	ofRepo bool
}

// apply takes a line in.
func (s *state) apply(l recording.Line) (change, error) {
	switch l.Kind {
	case recording.Fact:
		k, err := fact.ParseKey(l.Key)
		if err != nil {
			return change{}, err
		}
		if l.Deleted {
			delete(s.facts, k)
			return change{fact: k}, nil
		}
		var f fact.Fact
		if err := json.Unmarshal(l.Value, &f); err != nil {
			return change{}, fmt.Errorf("the fact %s: %w", l.Key, err)
		}
		if f.Key != k {
			return change{}, fmt.Errorf("the fact %s says that it is %s", l.Key, f.Key)
		}
		s.facts[k] = f
		return change{fact: k}, nil
	case recording.Pull:
		return s.applyRecord(l)
	case recording.Decision:
		var e decision.Entry
		if err := json.Unmarshal(l.Value, &e); err != nil {
			return change{}, fmt.Errorf("the decision %s: %w", l.Key, err)
		}
		if err := e.Check(); err != nil {
			return change{}, err
		}
		e.Seq = l.Seq
		at, _ := slices.BinarySearchFunc(s.ledger, e.Seq, func(o decision.Entry, seq uint64) int { return cmp.Compare(o.Seq, seq) })
		s.ledger = slices.Insert(s.ledger, at, e)
		return change{ref: e.Ref(), ofRepo: e.OfRepo()}, nil
	default:
		return change{}, nil // Events and work only ask for a look.
	}
}

func (s *state) applyRecord(l recording.Line) (change, error) {
	ref, ok := pull.ParseRef(l.Key)
	if !ok {
		return change{}, fmt.Errorf("%q names no pull request", l.Key)
	}
	if l.Deleted {
		delete(s.records, ref)
		return change{ref: ref}, nil
	}
	var r handlers.Record
	if err := json.Unmarshal(l.Value, &r); err != nil {
		return change{}, fmt.Errorf("the record of %s: %w", l.Key, err)
	}
	if p := &r.Inputs.Snapshot.Pull; !r.EvaluatedAt.IsZero() && p.Ref() != ref {
		return change{}, fmt.Errorf("the record of %s is about %s", l.Key, p.Ref())
	}
	s.records[ref] = r
	return change{ref: ref}, nil
}

// concerned returns those of the pull requests with a verdict that a change may give
// another one, in a fixed order.
func (c change) concerned(verdicts map[pull.Ref]*Standing) []pull.Ref {
	var out []pull.Ref
	for ref, st := range verdicts {
		reads := func(k fact.Key) bool {
			return k == c.fact || k == fact.Key{Source: c.fact.Source, Scope: c.fact.Scope, Kind: c.fact.Kind}
		}
		switch {
		case c.fact != (fact.Key{}):
			if !slices.ContainsFunc(st.Verdict.Reads, reads) {
				continue
			}
		case c.ref == (pull.Ref{}), ref != c.ref && (!c.ofRepo || ref.RepoID != c.ref.RepoID):
			continue
		}
		out = append(out, ref)
	}
	sortRefs(out)
	return out
}

func sortRefs(refs []pull.Ref) {
	slices.SortFunc(refs, func(a, b pull.Ref) int {
		return cmp.Or(cmp.Compare(a.RepoID, b.RepoID), cmp.Compare(a.Number, b.Number))
	})
}
