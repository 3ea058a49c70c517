package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/fact"
)

// collector makes the fact of one wish.
type collector interface {
	// reads returns what the fact is made of.
	reads() []reading
	// project returns the fact, whose key and times of reading are set by the
	// caller, and after what time it is to be made again even if nothing
	// happens; zero means never.
	project(c collected) (f fact.Fact, again time.Duration)
}

// preparer is a collector that reads more than what is watched.
type preparer interface {
	// prepare has what the views ask for read beside the watches, and reports
	// whether it was.
	prepare(prev *fact.Fact, views []view) bool
	// run reads until ctx ends, and calls told each time that it has.
	run(ctx context.Context, w *Watcher, told func())
}

// reading is one column of one target.
type reading struct {
	target
	column
}

// collected is what a collector makes its fact of.
type collected struct {
	// prev is the fact that is held, or nil.
	prev *fact.Fact
	// watch is the worst state of the readings.
	watch fact.Watch
	views []view
	now   time.Time
}

// since is when a state begins that is new.
func (c collected) since() time.Time { return wholeSeconds(c.now) }

// wholeSeconds returns a moment as a state begins at it: in whole seconds, so that two
// replicas that see the same a moment apart say the same.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// wished is a wish while it is wished.
type wished struct {
	wish fact.Wish
	collector
	// refused is why it can never be collected, or empty.
	refused string
	// due is when it is told that nothing is known yet, if that is so. A wish of
	// the start is not told so before; see Limits.Start.
	at, due time.Time
	start   bool
	// settled is closed when the fact was written for the first time, or removed
	// after the wish was dropped.
	settled chan struct{}
	done    bool
	// cancel ends what runs beside the watches; nil for nothing.
	cancel context.CancelFunc
	// Only the worker that has the wish in hand uses these: the health that was
	// written last, and the feeds whose first list was.
	health health
	listed []*feed
}

// write writes the fact of a wish, or removes that of what is not wished.
func (m *wishes) write(ctx context.Context, k fact.Key) error {
	m.mu.Lock()
	x := m.wanted[k]
	var views []view
	now := time.Now()
	if x != nil && x.refused == "" {
		views = m.views(x, now)
	}
	settled := x != nil && x.done
	m.mu.Unlock()
	if x == nil {
		return m.remove(ctx, k)
	}
	c := collected{prev: m.w.known(k), views: views, now: now.UTC()}
	h := worst(views)
	if x.refused != "" {
		h = unfit(x.refused)
	}
	if p, ok := x.collector.(preparer); ok && h.state == fact.WatchSynced && !p.prepare(c.prev, views) && !settled {
		h.state = fact.WatchSyncing // What the first answer needs is being read.
	}
	early := h.state == fact.WatchSyncing && now.Before(x.due)
	if early {
		tell := x.tell(c.prev)
		if now.Before(tell) {
			m.queue.AddAfter(item{wish: k}, tell.Sub(now))
			return nil
		}
		m.queue.AddAfter(item{wish: k}, x.due.Sub(now))
	}
	c.watch = x.watch(h, c)
	var f fact.Fact
	var again time.Duration
	if x.collector != nil {
		f, again = x.project(c)
	} else {
		f = x.bare(c)
	}
	f.Key, f.SeenAt = k, c.now
	if f.Version == "" && c.prev != nil {
		f.Version = c.prev.Version
	}
	feeds := x.news(h, views)
	held := c.prev
	if !settled {
		held = nil // The first answer is one only if the sink has acknowledged it.
	}
	if err := m.w.put(ctx, held, f, feeds != nil); err != nil {
		return err
	}
	x.health = h
	if feeds != nil {
		x.listed = feeds
	}
	if again = earlier(again, h.again); again > 0 {
		m.queue.AddAfter(item{wish: k}, again)
	}
	if !early {
		m.settle(x)
	}
	return nil
}

// tell returns when it is told that nothing is known yet: at the start when it
// is due, later at once, unless there is no fact that could be taken for an
// answer.
func (x *wished) tell(prev *fact.Fact) time.Time {
	switch {
	case x.start:
		return x.due
	case prev == nil:
		return x.at.Add(gather)
	default:
		return x.at
	}
}

// news returns the feeds that are synced if their first lists were not written
// yet, or nil.
func (x *wished) news(h health, views []view) []*feed {
	if h.state != fact.WatchSynced {
		return nil
	}
	feeds := make([]*feed, len(views))
	for i, v := range views {
		feeds[i] = v.feed
	}
	if slices.Equal(feeds, x.listed) {
		return nil
	}
	return feeds
}

// watch returns the state of the watch as a fact tells it. As with kinds, the
// first message of a failure stands.
func (x *wished) watch(h health, c collected) fact.Watch {
	w := fact.Watch{State: h.state, Since: c.since(), Message: h.failure.message}
	before := watchOf(c.prev)
	if before == nil || before.State != w.State {
		return w
	}
	w.Since = before.Since
	if h.state == fact.WatchFailing && x.health.state == h.state && x.health.failure.kind == h.failure.kind {
		w.Message = before.Message
	}
	return w
}

// watchOf returns the state of the watch that a fact tells, or nil.
func watchOf(f *fact.Fact) *fact.Watch {
	switch {
	case f == nil:
		return nil
	case f.Objects != nil:
		return &f.Objects.Watch
	case f.Kured != nil:
		return &f.Kured.Watch
	case f.Renovate != nil:
		return f.Renovate.Watch
	default:
		return nil
	}
}

// worst returns the worst health of the readings.
func worst(views []view) health {
	order := []fact.WatchState{fact.WatchSynced, fact.WatchSyncing, fact.WatchNotInstalled, fact.WatchFailing}
	out := health{state: fact.WatchSynced}
	var again time.Duration
	for _, v := range views {
		again = earlier(again, v.health.again)
		if slices.Index(order, v.health.state) > slices.Index(order, out.state) {
			out = v.health
		}
	}
	out.again = again
	return out
}

// settle says that a fact was written for the first time.
func (m *wishes) settle(x *wished) {
	m.mu.Lock()
	first := !x.done && m.wanted[x.wish.Key] == x
	if first {
		x.done = true
		close(x.settled)
	}
	m.mu.Unlock()
	if first && x.start {
		m.w.settle()
	}
}

// remove removes the fact of what is not wished any more.
func (m *wishes) remove(ctx context.Context, k fact.Key) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := m.w.sink.Delete(ctx, k); err != nil {
		return fmt.Errorf("remove fact %s: %w", k, err)
	}
	m.w.forget(k)
	m.mu.Lock()
	if x := m.dropped[k]; x != nil {
		close(x.settled)
		delete(m.dropped, k)
	}
	m.mu.Unlock()
	m.w.settle()
	return nil
}

// bare is the fact of a wish that is refused.
func (x *wished) bare(c collected) fact.Fact {
	f := fact.Fact{Since: c.watch.Since}
	switch {
	case x.wish.Objects != nil:
		f.Objects = &fact.Objects{Query: *x.wish.Objects, Watch: c.watch}
	case x.wish.Kured != nil:
		f.Kured = &fact.Kured{Watch: c.watch}
	case x.wish.Renovate != nil:
		f.Renovate = &fact.Renovate{Watch: &c.watch}
	}
	return f
}
