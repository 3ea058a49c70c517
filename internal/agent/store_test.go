package agent_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	"signalbox/internal/agent"
	"signalbox/internal/fact"
)

var errConflict = errors.New("it has another revision")

// revised is a fact with its revision.
type revised struct {
	fact.Fact
	revision uint64
}

// store holds facts in memory.
type store struct {
	changed func(key string, old, now *fact.Fact)

	mu   sync.Mutex
	held map[fact.Key]revised
	last uint64
}

func (s *store) Held(key fact.Key) (fact.Fact, uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.held[key]
	return r.Fact, r.revision, ok
}

func (s *store) Select(source, scope, kind string) []fact.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []fact.Fact
	for k, r := range s.held {
		if k.Source == source && k.Scope == scope && cmp.Or(kind, k.Kind) == k.Kind {
			out = append(out, r.Fact)
		}
	}
	return out
}

func (s *store) PutAt(_ context.Context, f fact.Fact, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.held[f.Key]
	if old.revision != revision {
		return 0, errConflict
	}
	s.last++
	s.held[f.Key] = revised{f, s.last}
	if ok {
		s.changed(f.Key.String(), &old.Fact, &f)
	} else {
		s.changed(f.Key.String(), nil, &f)
	}
	return s.last, nil
}

func (s *store) DeleteAt(_ context.Context, key fact.Key, revision uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.held[key]
	if old.revision != revision {
		return errConflict
	}
	delete(s.held, key)
	s.changed(key.String(), &old.Fact, nil)
	return nil
}

// wishStore holds wishes in memory.
type wishStore struct {
	changed func(key string, old, now *agent.Wished)

	mu   sync.Mutex
	held map[string]agent.Wished
}

func (s *wishStore) Set(_ context.Context, key string, w agent.Wished) (uint64, error) {
	s.mu.Lock()
	s.held[key] = w
	s.mu.Unlock()
	s.changed(key, nil, &w)
	return 0, nil
}

func (s *wishStore) All() iter.Seq2[string, agent.Wished] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.All(maps.Clone(s.held))
}

func (*wishStore) Sync(context.Context) error { return nil }
