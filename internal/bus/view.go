package bus

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// view keeps the values of a bucket in memory. It follows the stream, and what
// this process writes is entered when it is acknowledged.
type view[T any] struct {
	b      *Bus
	name   string
	stream string
	maxAge time.Duration

	// hooksMu is held while a change is applied and told to the hooks, so that
	// the hooks see the changes in the order in which the entries do.
	hooksMu sync.Mutex
	hooks   []func(key string, old, now *T)

	mu sync.RWMutex
	// entries holds deletions too, as the stream does, so that an older value
	// that comes late does not bring a key back.
	entries map[string]entry[T]
	// reached is the sequence up to which the stream was followed, and gapAt the
	// last one before which a message was missing, see sync. Zero means that
	// nothing is missing.
	reached, gapAt uint64
	waiters        []waiter
	// failing is why the stream cannot be followed now, or nil.
	failing error
	// made is when the stream was made. A stream made anew counts from 1.
	made time.Time
}

type entry[T any] struct {
	value    T
	revision uint64
	at       time.Time
	err      error
	// readable is set when there is a value, gone when it was deleted; neither is
	// when err says why it cannot be decoded.
	readable, gone bool
}

// ptr returns the value for a hook: nil when there is none that can be read.
func (e entry[T]) ptr() *T {
	if !e.readable {
		return nil
	}
	return &e.value
}

type waiter struct {
	seq  uint64
	done chan struct{}
}

func newView[T any](b *Bus, name, stream string, maxAge time.Duration) *view[T] {
	return &view[T]{b: b, name: name, stream: stream, maxAge: maxAge, entries: map[string]entry[T]{}}
}

// decode makes the entry of a value.
func (v *view[T]) decode(key string, data []byte, seq uint64, at time.Time) entry[T] {
	e := entry[T]{revision: seq, at: at, readable: true}
	if err := json.Unmarshal(data, &e.value); err != nil {
		var zero T
		e.value, e.readable = zero, false
		e.err = fmt.Errorf("bucket %s, key %s, revision %d: %w", v.name, key, seq, err)
		v.b.log.Error("value in a bucket cannot be decoded; the key counts as absent", "bucket", v.name, "key", key, "error", e.err)
	}
	return e
}

// change enters a value or a deletion, from the stream or just written by this
// process, unless the view has a newer one, and tells the hooks.
func (v *view[T]) change(key string, e entry[T]) {
	v.hooksMu.Lock()
	defer v.hooksMu.Unlock()
	v.mu.Lock()
	old := v.entries[key]
	if old.revision >= e.revision {
		v.mu.Unlock()
		return
	}
	v.entries[key] = e
	v.mu.Unlock()
	v.tell(key, old, e)
}

// has reports whether the view has a revision of a key, or a newer one.
func (v *view[T]) has(key string, revision uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.entries[key].revision >= revision
}

// dropStale forgets what a stream that was made anew does not have.
func (v *view[T]) dropStale() {
	v.hooksMu.Lock()
	defer v.hooksMu.Unlock()
	v.mu.Lock()
	stale := map[string]entry[T]{}
	for key, e := range v.entries {
		if e.revision == 0 {
			stale[key] = e
			delete(v.entries, key)
		}
	}
	v.mu.Unlock()
	for key, old := range stale {
		v.tell(key, old, entry[T]{})
	}
}

// tell is called with hooksMu held.
func (v *view[T]) tell(key string, old, now entry[T]) {
	before, after := old.ptr(), now.ptr()
	if before == nil && after == nil {
		return
	}
	for _, f := range v.hooks {
		f(key, before, after)
	}
}

// reach says that there is nothing to apply up to a sequence.
func (v *view[T]) reach(seq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advance(seq)
}

// advance is called with the lock held.
func (v *view[T]) advance(seq uint64) {
	if seq <= v.reached {
		return
	}
	v.reached = seq
	v.waiters = slices.DeleteFunc(v.waiters, func(w waiter) bool {
		if w.seq > seq {
			return false
		}
		close(w.done)
		return true
	})
}

func (v *view[T]) get(key string) (entry[T], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, ok := v.entries[key]
	if !ok || e.gone || v.expired(e) {
		return entry[T]{}, false
	}
	return e, true
}

// all returns a copy of what is there, so that the caller may take its time.
func (v *view[T]) all() map[string]entry[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.maxAge > 0 {
		maps.DeleteFunc(v.entries, func(_ string, e entry[T]) bool { return v.expired(e) })
	}
	out := make(map[string]entry[T], len(v.entries))
	for key, e := range v.entries {
		if !e.gone {
			out[key] = e
		}
	}
	return out
}

// expired reports whether the server has dropped an entry by its age, which it
// does without a message.
func (v *view[T]) expired(e entry[T]) bool {
	return v.maxAge > 0 && time.Since(e.at) > v.maxAge
}

func (v *view[T]) onChange(f func(key string, old, now *T)) {
	v.hooksMu.Lock()
	defer v.hooksMu.Unlock()
	for key, e := range v.all() {
		if p := e.ptr(); p != nil {
			f(key, nil, p)
		}
	}
	v.hooks = append(v.hooks, f)
}

// birth returns when the stream was made.
func (v *view[T]) birth() time.Time {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.made
}

func (v *view[T]) setFailing(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failing = err
}

// healthy returns why the view lags, or nil.
func (v *view[T]) healthy() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.failing != nil {
		return fmt.Errorf("bucket %s cannot be followed: %w", v.name, v.failing)
	}
	return nil
}
