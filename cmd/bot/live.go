package main

import (
	"sync"

	"signalbox/internal/bus"
	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
	"signalbox/internal/web"
)

// live tells what changes to whoever wants to know.
type live struct {
	mu        sync.Mutex
	next      int
	followers map[int]func(web.Change)
}

func newLive() *live { return &live{followers: map[int]func(web.Change){}} }

// Follow implements [web.Changes].
func (l *live) Follow(f func(web.Change)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.next
	l.next++
	l.followers[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.followers, id)
	}
}

func (l *live) tell(c web.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.followers {
		f(c)
	}
}

// follow tells what changes in the views of this process.
func (l *live) follow(records *bus.Bucket[handlers.Record], facts *bus.Facts, ledger *bus.Ledger) {
	ledger.OnChange(func(e decision.Entry) { l.tell(web.Change{Ref: e.Ref()}) })
	records.OnChange(func(key string, _, _ *handlers.Record) {
		if ref, ok := pull.ParseRef(key); ok {
			l.tell(web.Change{Ref: ref})
		}
	})
	facts.OnChange(func(key string, _, _ *fact.Fact) {
		if k, err := fact.ParseKey(key); err == nil {
			l.tell(web.Change{Cluster: k.Scope})
		}
	})
}
