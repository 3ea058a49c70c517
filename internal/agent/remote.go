package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"signalbox/internal/fact"
)

// Remote is where an agent tells what it sees: a mirror of the facts that the hub holds
// of the cluster, and the way to change them. Make one with [NewRemote] and load it before
// it is used.
type Remote struct {
	line    Line
	cluster string
	// name is that of this process.
	name string
	log  *slog.Logger
	now  func() time.Time

	// wake is sent to when the wishes may be others.
	wake chan struct{}
	// lost is closed when the hub has another store than the mirror is of.
	lost     chan struct{}
	lostOnce sync.Once

	// hearing is held from asking for the wishes until the watcher knows them, so that
	// an older answer does not come last.
	hearing sync.Mutex

	mu    sync.RWMutex
	facts map[fact.Key]mirrored
	store time.Time
	// mark is that of the wishes which the watcher was told last.
	mark string
	// heard is when the hub last answered a heartbeat.
	heard time.Time
}

// mirrored is what the hub holds under a key: a fact, or none that can be read, in which
// case there is only a revision.
type mirrored struct {
	fact     *fact.Fact
	revision uint64
}

// NewRemote makes the remote of a cluster for an agent of a name.
func NewRemote(line Line, cluster, name string, log *slog.Logger) *Remote {
	return &Remote{
		line: line, cluster: cluster, name: name, log: log, now: time.Now,
		wake: make(chan struct{}, 1), lost: make(chan struct{}), facts: map[fact.Key]mirrored{},
	}
}

// load reads what the hub holds.
func (r *Remote) load(ctx context.Context) error {
	all, err := listAll(ctx, r.line, r.cluster)
	if err != nil {
		return err
	}
	facts := make(map[fact.Key]mirrored, len(all.Facts))
	for i := range all.Facts {
		h := &all.Facts[i]
		facts[h.Fact.Key] = mirrored{&h.Fact, h.Revision}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts, r.store = facts, all.Store
	return nil
}

// Lookup returns a fact as it was last seen to be held.
func (r *Remote) Lookup(key fact.Key) (fact.Fact, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	m := r.facts[key]
	if m.fact == nil {
		return fact.Fact{}, false
	}
	return *m.fact, true
}

// Select returns the facts of a kind, sorted by key; of all kinds if that is empty.
func (r *Remote) Select(source, scope, kind string) []fact.Fact {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []fact.Fact
	for k, m := range r.facts {
		if m.fact != nil && k.Source == source && k.Scope == scope && (kind == "" || k.Kind == kind) {
			out = append(out, *m.fact)
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return out
}

// Put has the hub hold a fact if it says something else than the one that is held and is
// newer, and reports whether it does now.
func (r *Remote) Put(ctx context.Context, f fact.Fact) (changed bool, err error) {
	return r.put(ctx, f, f.Replaces)
}

// PutAfterList is Put for the first complete list; see [fact.Fact.ReplacesAfterList].
func (r *Remote) PutAfterList(ctx context.Context, f fact.Fact) (changed bool, err error) {
	return r.put(ctx, f, f.ReplacesAfterList)
}

// maxConflicts is how often a change is tried while other agents change the same fact.
const maxConflicts = 10

func (r *Remote) put(ctx context.Context, f fact.Fact, replaces func(old fact.Fact) bool) (bool, error) {
	for range maxConflicts {
		m := r.mirror(f.Key)
		if m.fact != nil && !replaces(*m.fact) {
			return false, nil
		}
		out, err := askHub[putAnswer](ctx, r.line, r.cluster, verbPut, put{f, m.revision})
		if err != nil {
			return false, err
		}
		if !out.Conflict {
			r.remember(f.Key, mirrored{&f, out.Revision})
			return true, nil
		}
		r.remember(f.Key, mirrored{out.Held, out.Revision})
	}
	return false, fmt.Errorf("put fact %s: other agents of the cluster changed it %d times meanwhile", f.Key, maxConflicts)
}

// Delete has the hub hold a fact no more.
func (r *Remote) Delete(ctx context.Context, key fact.Key) error {
	for range maxConflicts {
		m := r.mirror(key)
		if m == (mirrored{}) {
			return nil
		}
		out, err := askHub[putAnswer](ctx, r.line, r.cluster, verbDelete, remove{key, m.revision})
		if err != nil {
			return err
		}
		if !out.Conflict {
			r.remember(key, mirrored{})
			return nil
		}
		r.remember(key, mirrored{out.Held, out.Revision})
	}
	return fmt.Errorf("delete fact %s: other agents of the cluster changed it %d times meanwhile", key, maxConflicts)
}

func (r *Remote) mirror(key fact.Key) mirrored {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.facts[key]
}

func (r *Remote) remember(key fact.Key, m mirrored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == (mirrored{}) {
		delete(r.facts, key)
		return
	}
	r.facts[key] = m
}

// Beat tells the hub that the cluster is heard from. When it was by the clock here is
// told too, and the hub refuses a clock that is wrong.
func (r *Remote) Beat(ctx context.Context, _ string, at time.Time) error {
	out, err := askHub[beatAnswer](ctx, r.line, r.cluster, verbBeat, beat{r.name, at})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.heard = r.now()
	other, news := !out.Store.Equal(r.store), out.Wishes != r.mark
	r.mu.Unlock()
	if other {
		r.lostOnce.Do(func() { close(r.lost) })
	}
	if news {
		r.nudge()
	}
	return nil
}

// wished returns the mark of the wishes that the watcher knows.
func (r *Remote) wished() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.mark
}

func (r *Remote) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
