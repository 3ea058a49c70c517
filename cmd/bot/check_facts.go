package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"signalbox/internal/agent"
	"signalbox/internal/bus"
	"signalbox/internal/fact"
)

// hear takes what the agents of clusters told signalbox, if it runs and they are heard
// from. What is not told is unknown.
func (k checker) hear(ctx context.Context, facts *memoryFacts) error {
	if len(k.agents) == 0 {
		return nil
	}
	line, err := bus.Dial(k.bus.External, "", slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer line.Close()
	for _, cluster := range k.agents {
		told, err := agent.Facts(ctx, line, cluster)
		if err != nil || agent.Answers(ctx, line, cluster) != nil {
			continue
		}
		for _, f := range told {
			_, _ = facts.Put(ctx, f) // It only keeps it in memory.
		}
		_ = facts.Beat(ctx, cluster, time.Now()) // As above.
	}
	return nil
}

// memoryFacts holds facts for as long as a command runs. It implements
// [kube.Sink] and [handlers.FactReader].
type memoryFacts struct {
	mu    sync.Mutex
	facts map[fact.Key]fact.Fact
}

// Lookup implements [kube.Reader].
func (m *memoryFacts) Lookup(k fact.Key) (fact.Fact, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.facts[k]
	return f, ok
}

// Select implements [kube.Reader].
func (m *memoryFacts) Select(source, scope, kind string) []fact.Fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []fact.Fact
	for k, f := range m.facts {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return out
}

// Put implements [kube.Writer]. There is one writer, so the last value wins.
func (m *memoryFacts) Put(_ context.Context, f fact.Fact) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := !m.facts[f.Key].Same(f)
	m.facts[f.Key] = f
	return changed, nil
}

// PutAfterList implements [kube.Writer].
func (m *memoryFacts) PutAfterList(ctx context.Context, f fact.Fact) (bool, error) {
	return m.Put(ctx, f)
}

// Delete implements [handlers.FactStore].
func (m *memoryFacts) Delete(_ context.Context, k fact.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.facts, k)
	return nil
}

// Beat implements [kube.Writer]: a cluster that was heard from is not silent.
func (m *memoryFacts) Beat(ctx context.Context, cluster string, at time.Time) error {
	_, err := m.Put(ctx, fact.Fact{Key: fact.HeartbeatKey(cluster), Since: at, SeenAt: at, Heartbeat: &fact.Heartbeat{}})
	return err
}

// Revision implements [handlers.FactReader]; nothing is written while a verdict
// is made.
func (*memoryFacts) Revision(fact.Key) uint64 { return 0 }

// Sync implements [handlers.FactReader].
func (*memoryFacts) Sync(context.Context) error { return nil }
