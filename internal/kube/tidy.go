package kube

import (
	"time"

	"signalbox/internal/fact"
)

// tidy has the facts looked at again that somebody else has removed, such as a
// replica that does not know of a wish yet, or that one has called unknown that
// cannot read what this one can and may be gone. It removes what nobody wishes
// for.
func (m *wishes) tidy() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, x := range m.wanted {
		held, ok := m.w.sink.Lookup(k)
		if !ok {
			m.w.forget(k)
			m.queue.Add(item{wish: k})
			continue
		}
		// Only who knows it says so; two who do not agree would go on for ever.
		watch := watchOf(&held)
		if watch != nil && watch.State != fact.WatchSynced && time.Since(held.SeenAt) > unknownAge && m.knows(x) {
			m.queue.Add(item{wish: k})
		}
	}
	if !m.given {
		return
	}
	for _, kind := range []string{fact.KindObjects, fact.KindKured, fact.KindRenovate} {
		for _, f := range m.w.sink.Select(fact.SourceKube, m.w.cluster, kind) {
			if m.wanted[f.Key] == nil && time.Since(f.SeenAt) > orphanAge {
				m.queue.Add(item{wish: f.Key})
			}
		}
	}
}

// knows reports whether all that a wish is made of is known. The lock is held.
func (m *wishes) knows(x *wished) bool {
	return x.refused == "" && worst(m.views(x, time.Now())).state == fact.WatchSynced
}
