package kube

import (
	"context"
	"slices"
	"sync"
	"time"

	"signalbox/internal/fact"
)

// fakeSink is a [Sink] in memory with the rules of the real one. It notes every
// write that changed something.
type fakeSink struct {
	mu    sync.Mutex
	facts map[fact.Key]fact.Fact
	log   []fact.Fact
	beats []time.Time
	// fail, if not nil, answers a write with an error.
	fail func(fact.Fact) error
}

func newFakeSink() *fakeSink { return &fakeSink{facts: map[fact.Key]fact.Fact{}} }

func (s *fakeSink) Lookup(k fact.Key) (fact.Fact, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.facts[k]
	return f, ok
}

func (s *fakeSink) Select(source, scope, kind string) []fact.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []fact.Fact
	for k, f := range s.facts {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			found = append(found, f)
		}
	}
	return found
}

func (s *fakeSink) Put(_ context.Context, f fact.Fact) (bool, error) {
	return s.put(f, func(old fact.Fact) bool { return f.Newer(old) && !f.Same(old) })
}

func (s *fakeSink) PutAfterList(_ context.Context, f fact.Fact) (bool, error) {
	return s.put(f, func(old fact.Fact) bool { return !f.Same(old) || f.Version != old.Version })
}

func (s *fakeSink) put(f fact.Fact, wins func(old fact.Fact) bool) (bool, error) {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if fail != nil {
		if err := fail(f); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.facts[f.Key]
	if ok && !wins(old) {
		return false, nil
	}
	s.facts[f.Key] = f
	changed := !ok || !f.Same(old)
	if changed {
		s.log = append(s.log, f)
	}
	return changed, nil
}

func (s *fakeSink) Delete(_ context.Context, k fact.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.facts, k)
	return nil
}

func (s *fakeSink) Beat(_ context.Context, _ string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats = append(s.beats, at)
	return nil
}

// object returns the fact of an object on the cluster "prod".
func (s *fakeSink) object(kind, namespace, name string) fact.Fact {
	f, _ := s.Lookup(fact.Kube("prod", kind, namespace, name))
	return f
}

// watch returns the state of the watch on a kind.
func (s *fakeSink) watch(kind string) fact.Watch {
	f, ok := s.Lookup(fact.ClusterKey("prod"))
	if !ok || f.Cluster == nil {
		return fact.Watch{}
	}
	return f.Cluster.Kinds[kind]
}

// written returns the writes so far of one key.
func (s *fakeSink) written(k fact.Key) []fact.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []fact.Fact
	for _, f := range s.log {
		if f.Key == k {
			found = append(found, f)
		}
	}
	return found
}

// writes is how many writes changed something.
func (s *fakeSink) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

// after returns the writes but for the first n.
func (s *fakeSink) after(n int) []fact.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log[n:])
}

// heard is how many heartbeats there were.
func (s *fakeSink) heard() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.beats)
}

func (s *fakeSink) setFail(f func(fact.Fact) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}
