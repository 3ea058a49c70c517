package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"signalbox/internal/fact"
)

// labelWish stands for the kind in metrics of what is wished.
const labelWish = "wish"

// unknownAge is how old a fact must be that says that something is not known,
// before whoever knows it says so again.
const unknownAge = 30 * time.Second

// errNoQuery is of a wish that names a fact and does not say what it is made of.
var errNoQuery = errors.New("the wish does not say what is to be read")

// gather is how long changes wait for more of them before a fact is written.
const gather = 200 * time.Millisecond

// orphanAge is how old a fact must be that nobody wishes for and that this
// process did not write, before it is removed: another replica may know of the
// wish a moment earlier.
const orphanAge = 10 * time.Minute

// wishes collects what is wished of a cluster.
type wishes struct {
	w    *Watcher
	wake chan struct{}

	mu sync.Mutex
	// queue is nil until the watcher runs.
	queue  workqueue.TypedRateLimitingInterface[item]
	given  bool
	wanted map[fact.Key]*wished
	// dropped are the wishes whose facts are to be removed.
	dropped map[fact.Key]*wished
	sources map[target]*source
	readers map[target][]fact.Key
}

func newWishes(w *Watcher) *wishes {
	return &wishes{
		w: w, wake: make(chan struct{}, 1),
		wanted: map[fact.Key]*wished{}, dropped: map[fact.Key]*wished{},
		sources: map[target]*source{}, readers: map[target][]fact.Key{},
	}
}

// Wish sets everything that is wished of the cluster; wishes for others, and
// those whose key is not that of their query, are left out. What is new is collected from now on; its fact says first that it
// is not known yet, unless it is known at once. What is not wished any more is
// not collected any more, and its fact is removed. It may be called at any
// time, also before Run, and returns at once.
func (w *Watcher) Wish(list []fact.Wish) { w.wishes.set(list) }

// Await returns when each of the facts was written for the first time since it
// was wished, and the sink has acknowledged that, or when ctx ends. What is still
// not known after Limits.Start is written as such. What is not wished any more is
// waited for until its fact is removed; a key that was never wished is not.
//
// It reports false if ctx has ended: what the sink holds may be an answer of an
// earlier life then, and the caller has to take it for unknown.
func (w *Watcher) Await(ctx context.Context, keys []fact.Key) bool {
	for _, k := range keys {
		w.wishes.mu.Lock()
		x := w.wishes.wanted[k]
		if x == nil {
			x = w.wishes.dropped[k]
		}
		var settled <-chan struct{}
		if x != nil {
			settled = x.settled
		}
		w.wishes.mu.Unlock()
		if settled == nil {
			continue
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

func (m *wishes) set(list []fact.Wish) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.given = true
	keys := map[fact.Key]bool{}
	changed := false
	for _, wish := range list {
		if k := queryKey(m.w.cluster, wish); k == (fact.Key{}) || k != wish.Key {
			continue
		}
		keys[wish.Key] = true
		if m.wanted[wish.Key] == nil {
			m.add(wish)
			changed = true
		}
	}
	for k, x := range m.wanted {
		if !keys[k] {
			m.drop(k, x)
			changed = true
		}
	}
	if changed {
		m.nudge()
	}
}

// queryKey returns the key of what a wish asks of a cluster, so that no wish
// writes any other fact, or the zero key if it asks for nothing.
func queryKey(cluster string, wish fact.Wish) fact.Key {
	switch {
	case wish.Objects != nil:
		return fact.ObjectsKey(cluster, *wish.Objects)
	case wish.Kured != nil:
		return fact.KuredKey(cluster, *wish.Kured)
	case wish.Renovate != nil:
		return fact.RenovateCronJobKey(cluster, wish.Renovate.Namespace, wish.Renovate.Name)
	default:
		return fact.Key{}
	}
}

// add takes a wish. The lock is held.
func (m *wishes) add(wish fact.Wish) {
	now := time.Now()
	x := &wished{wish: wish, settled: make(chan struct{}), at: now, due: now.Add(m.w.limits.Start), start: m.queue == nil}
	var err error
	if x.collector, err = collectorOf(wish); err != nil {
		x.refused = oneLine(steady(err.Error()))
	}
	m.wanted[wish.Key] = x
	if before := m.dropped[wish.Key]; before != nil {
		x.settled = before.settled // Whoever waits for it waits for this one.
		delete(m.dropped, wish.Key)
	}
	if m.queue == nil {
		return
	}
	// An answer of an earlier life is taken back at once. Where there is none,
	// the first one may take a moment.
	if m.w.known(wish.Key) != nil || x.refused != "" {
		m.queue.Add(item{wish: wish.Key})
	} else {
		m.queue.AddAfter(item{wish: wish.Key}, gather)
	}
}

// drop ends a wish. The lock is held.
func (m *wishes) drop(k fact.Key, x *wished) {
	delete(m.wanted, k)
	if x.cancel != nil {
		x.cancel()
	}
	if x.done {
		x.done, x.settled = false, make(chan struct{})
	}
	m.dropped[k] = x
	if m.queue != nil {
		m.queue.Add(item{wish: k})
	}
}

func (m *wishes) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// begin is called when the watcher has a queue, before anything runs.
func (m *wishes) begin(q workqueue.TypedRateLimitingInterface[item]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = q
	for k, x := range m.wanted {
		x.due = time.Now().Add(m.w.limits.Start)
		q.Add(item{wish: k})
	}
	for k := range m.dropped {
		q.Add(item{wish: k})
	}
	m.nudge()
}

// run starts and stops sources until ctx ends, and returns when all of them
// have ended.
func (m *wishes) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(m.w.limits.ProbeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
			m.adjust(ctx, &running)
		case <-ticker.C:
			m.tidy()
		}
	}
}

// adjust starts the sources that somebody reads, and stops the others.
func (m *wishes) adjust(ctx context.Context, running *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	columns := map[target]map[string]column{}
	clear(m.readers)
	for k, x := range m.wanted {
		if x.refused != "" {
			continue
		}
		if p, ok := x.collector.(preparer); ok && x.cancel == nil {
			var beside context.Context
			beside, x.cancel = context.WithCancel(ctx)
			running.Go(func() { p.run(beside, m.w, func() { m.queue.Add(item{wish: k}) }) })
		}
		for _, r := range x.reads() {
			if columns[r.target] == nil {
				columns[r.target] = map[string]column{}
			}
			columns[r.target][r.id] = r.column
			m.readers[r.target] = append(m.readers[r.target], k)
		}
	}
	for t, s := range m.sources {
		if columns[t] == nil {
			s.cancel()
			delete(m.sources, t)
		}
	}
	for t, wanted := range columns {
		s := m.sources[t]
		if s == nil {
			s = newSource(m.w, t)
			s.news = func(f *feed) { m.news(s, f) }
			var sourceCtx context.Context
			sourceCtx, s.cancel = context.WithCancel(ctx)
			m.sources[t] = s
			running.Go(func() { s.run(sourceCtx) })
		}
		s.want(wanted)
	}
}

// news has the facts made again that read a source: at once if its health
// changed, after a moment if a feed has other rows.
func (m *wishes) news(s *source, f *feed) {
	after := time.Duration(0)
	if f != nil {
		m.w.metrics.events.WithLabelValues(labelWish, "update").Inc()
		after = gather
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sources[s.target] != s {
		return
	}
	for _, k := range m.readers[s.target] {
		m.queue.AddAfter(item{wish: k}, after)
	}
}

// views returns what is known of the readings of a wish. The lock is held.
func (m *wishes) views(x *wished, now time.Time) []view {
	var views []view
	for _, r := range x.reads() {
		views = append(views, m.sources[r.target].view(r.id, now))
	}
	return views
}

// restart makes every source list anew.
func (m *wishes) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sources {
		s.restart()
	}
}

// starting reports whether a wish of the start is not written yet.
func (m *wishes) starting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.wanted {
		if x.start && !x.done {
			return true
		}
	}
	return false
}

// held returns how many objects are kept in memory.
func (m *wishes) held() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sources {
		n += s.size()
	}
	return n
}

func (m *wishes) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.wanted)
}
