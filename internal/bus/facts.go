package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/trace"
)

// bucketFacts is the name of the bucket of facts.
const bucketFacts = "facts"

// Facts holds what is true now, one value for each key.
type Facts struct {
	bucket *Bucket[fact.Fact]

	mu sync.RWMutex
	// values has the view of the bucket by key, so that Lookup need not spell the
	// key; groups has the keys by what Select asks for.
	values map[fact.Key]*fact.Fact
	groups map[group]map[fact.Key]struct{}
}

type group struct{ source, scope, kind string }

func openFacts(ctx context.Context, b *Bus) (*Facts, error) {
	bucket, err := OpenBucket[fact.Fact](ctx, b, bucketFacts)
	if err != nil {
		return nil, err
	}
	f := &Facts{bucket: bucket, values: map[fact.Key]*fact.Fact{}, groups: map[group]map[fact.Key]struct{}{}}
	bucket.OnChange(f.index)
	return f, nil
}

func (f *Facts) index(key string, _, now *fact.Fact) {
	k, err := fact.ParseKey(key)
	if err != nil {
		return // nobody can ask for it
	}
	g := group{k.Source, k.Scope, k.Kind}
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := f.groups[g]
	if now == nil {
		delete(f.values, k)
		delete(keys, k)
		if len(keys) == 0 {
			delete(f.groups, g)
		}
		return
	}
	f.values[k] = now
	if keys == nil {
		keys = map[fact.Key]struct{}{}
		f.groups[g] = keys
	}
	keys[k] = struct{}{}
}

// Put writes a fact if it says something else than the stored one and is newer
// ([fact.Fact.Newer]), and reports whether it did. Replicas may put the same
// fact at the same time.
func (f *Facts) Put(ctx context.Context, v fact.Fact) (changed bool, err error) {
	return f.put(ctx, v, v.Replaces)
}

// PutAfterList is Put for the first complete list that a source gives; see
// [fact.Fact.ReplacesAfterList].
func (f *Facts) PutAfterList(ctx context.Context, v fact.Fact) (changed bool, err error) {
	return f.put(ctx, v, v.ReplacesAfterList)
}

// maxConflicts is how often a write is tried while others write the same key.
const maxConflicts = 10

func (f *Facts) put(ctx context.Context, v fact.Fact, replaces func(old fact.Fact) bool) (bool, error) {
	key := v.Key.String()
	// Against a view that lags, a change could look like none.
	if err := f.bucket.Sync(ctx); err != nil {
		return false, fmt.Errorf("put fact %s: %w", key, err)
	}
	for range maxConflicts {
		old, revision, ok := f.bucket.Get(key)
		if ok && !replaces(old) {
			return false, nil
		}
		_, err := f.write(ctx, key, v, revision)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, ErrConflict) {
			return false, fmt.Errorf("put fact: %w", err)
		}
	}
	return false, fmt.Errorf("put fact %s: %w, %d times in a row", key, ErrConflict, maxConflicts)
}

// PutAt writes a fact if the stored one still has a revision, zero meaning that there
// is none, and returns the new one. It fails with [ErrConflict] otherwise: whoever read
// the former one elsewhere decides anew.
func (f *Facts) PutAt(ctx context.Context, v fact.Fact, revision uint64) (uint64, error) {
	return f.write(ctx, v.Key.String(), v, revision)
}

// DeleteAt is Delete for a fact that still has a revision, as with PutAt.
func (f *Facts) DeleteAt(ctx context.Context, key fact.Key, revision uint64) error {
	return f.bucket.DeleteAt(ctx, key.String(), revision)
}

// Made returns when the store of facts was made. One that is made anew has another
// time, and lacks what was in the former.
func (f *Facts) Made() time.Time { return f.bucket.view.birth() }

func (f *Facts) write(ctx context.Context, key string, v fact.Fact, revision uint64) (uint64, error) {
	ctx, span := f.bucket.b.cfg.Tracer.Begin(ctx, trace.Sends, "write fact",
		trace.Text("source", v.Key.Source), trace.Text("cluster", v.Key.Scope), trace.Text("kind", v.Key.Kind))
	revision, err := f.bucket.Put(ctx, key, v, revision)
	span.End(err)
	return revision, err
}

// Delete removes a fact, for one that nobody watches any more. What is gone
// from its source is an absent fact instead.
func (f *Facts) Delete(ctx context.Context, key fact.Key) error {
	return f.bucket.Delete(ctx, key.String())
}

// Lookup returns a fact from the view in memory.
func (f *Facts) Lookup(key fact.Key) (fact.Fact, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	v, ok := f.values[key]
	if !ok {
		return fact.Fact{}, false
	}
	return *v, true
}

// Held is Lookup with the revision of the fact. A fact that cannot be decoded has a
// revision and is not ok.
func (f *Facts) Held(key fact.Key) (v fact.Fact, revision uint64, ok bool) {
	return f.bucket.Get(key.String())
}

// Revision returns the revision of a fact, or 0 when there is none. It grows
// with every write.
func (f *Facts) Revision(key fact.Key) uint64 {
	_, revision, _ := f.bucket.Get(key.String())
	return revision
}

// Select returns the facts of a kind, sorted by key, absent ones included. An
// empty kind selects all kinds of the scope.
func (f *Facts) Select(source, scope, kind string) []fact.Fact {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var out []fact.Fact
	collect := func(g group) {
		for k := range f.groups[g] {
			out = append(out, *f.values[k])
		}
	}
	if kind != "" {
		collect(group{source, scope, kind})
	} else {
		for g := range f.groups {
			if g.source == source && g.scope == scope {
				collect(g)
			}
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int {
		return cmp.Or(
			cmp.Compare(a.Key.Kind, b.Key.Kind),
			cmp.Compare(a.Key.Namespace, b.Key.Namespace),
			cmp.Compare(a.Key.Name, b.Key.Name),
		)
	})
	return out
}

// OnChange is [Bucket.OnChange].
func (f *Facts) OnChange(h func(key string, old, now *fact.Fact)) { f.bucket.OnChange(h) }

// Sync is the barrier; see [Bucket.Sync].
func (f *Facts) Sync(ctx context.Context) error { return f.bucket.Sync(ctx) }

// Consume hands the key of each fact that was written or deleted to h until
// ctx ends, and then returns nil. When h runs, Lookup gives the fact as
// written or newer. The name is that of a durable consumer, as with
// [Bus.ConsumeEvents]; a new name starts with every fact that is stored. Facts
// that change faster than h runs are handed over once, as they are then.
func (f *Facts) Consume(ctx context.Context, name string, h func(context.Context, fact.Key) error) error {
	return f.bucket.consumeKeys(ctx, name, "", f.bucket.b.cfg.MaxDeliveries, func(ctx context.Context, key string) error {
		k, err := fact.ParseKey(key)
		if err != nil {
			return events.Permanent(err)
		}
		return h(ctx, k)
	})
}
