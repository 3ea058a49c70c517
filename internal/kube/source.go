package kube

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"signalbox/internal/fact"
)

// Pauses before a resource is looked for again.
const (
	// missingPause is how long it may go unnoticed that a kind was installed.
	missingPause = 15 * time.Second
	// gonePause is for a resource whose requests say that it is gone, while the
	// API server still lists it.
	gonePause = 5 * time.Second
)

// target names the objects that one feed reads: those of a resource in a
// namespace or in all, by name or label selector or all of them.
type target struct {
	resource                  fact.Resource
	namespace, name, selector string
}

// String is the target in the words of an error.
func (t target) String() string {
	s := t.resource.String()
	if t.name != "" {
		s += " " + t.name
	}
	if t.namespace != "" {
		s += " in " + t.namespace
	}
	return s
}

// narrow makes a request ask for no more.
func (t target) narrow(o *metav1.ListOptions) {
	o.LabelSelector = t.selector
	if t.name != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.name).String()
	}
}

// source finds a target's resource on the cluster and feeds on it, for all who
// wish for something of it.
type source struct {
	w      *Watcher
	target target
	// news is called when the rows of a feed, or without one the health, changed.
	news   func(*feed)
	cancel context.CancelFunc
	wake   chan struct{}
	anew   atomic.Bool

	// What follows belongs to run.
	at    served
	found bool
	renew bool
	// look is when to look for the resource again; zero for not. Looked is when
	// it was looked for last.
	look, looked time.Time
	pause        wait.Backoff
	told         [2]health
	toldFor      [2]*feed

	mu     sync.Mutex
	wanted map[string]column
	// now is the feed that is read. Next is one with more columns, until it has
	// listed.
	now, next *feed
	// lookup is what the last look has shown, if it did not find the resource.
	lookup health
}

func newSource(w *Watcher, t target) *source {
	return &source{
		w: w, target: t, wake: make(chan struct{}, 1), look: time.Now(),
		pause: lookPause(), lookup: health{state: fact.WatchSyncing}, wanted: map[string]column{},
	}
}

func lookPause() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 10, Cap: maxDeniedPause}
}

func (s *source) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// restart makes the source forget what it has seen.
func (s *source) restart() {
	s.anew.Store(true)
	s.nudge()
}

// want sets the columns that are read.
func (s *source) want(columns map[string]column) {
	s.mu.Lock()
	s.wanted = columns
	s.mu.Unlock()
	s.nudge()
}

// view is what is known of one column of a target now.
type view struct {
	health health
	// feed is nil while there is none that reads the column, and at is where
	// the column is in its rows.
	feed *feed
	at   int
}

// view returns what is known of a column now. A nil source is one that is about
// to start.
func (s *source) view(id string, now time.Time) view {
	if s == nil {
		return view{health: health{state: fact.WatchSyncing}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range []*feed{s.now, s.next} {
		if f == nil {
			continue
		}
		if at := f.rows.index(id); at >= 0 {
			return view{f.health(now), f, at}
		}
	}
	if s.now != nil {
		return view{health: health{state: fact.WatchSyncing}}
	}
	return view{health: s.lookup}
}

// size returns how many objects are kept.
func (s *source) size() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range []*feed{s.now, s.next} {
		if f != nil {
			n += f.rows.size()
		}
	}
	return n
}

// run follows the target until ctx ends, and returns when all that it started
// has ended.
func (s *source) run(ctx context.Context) {
	defer s.put(nil, nil)
	timer := stoppedTimer()
	defer timer.Stop()
	s.nudge()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
		again := s.step(ctx)
		timer.Stop()
		if again > 0 {
			timer.Reset(again)
		}
	}
}

// put sets the feeds and stops those that they replace.
func (s *source) put(now, next *feed) {
	s.mu.Lock()
	old := []*feed{s.now, s.next}
	s.now, s.next = now, next
	s.mu.Unlock()
	for _, f := range old {
		if f != nil && f != now && f != next {
			f.stop()
		}
	}
}

// step does what is to be done, and returns after what time to look again even
// if nothing happens; zero means never.
func (s *source) step(ctx context.Context) time.Duration {
	if s.anew.Swap(false) {
		s.renew, s.look = true, time.Now()
	}
	s.find(ctx)
	if ctx.Err() != nil {
		return 0
	}
	s.adjust(ctx)
	return s.tell()
}

// find looks for the resource if it is time, or if the feed says that it is
// gone.
func (s *source) find(ctx context.Context) {
	if f := s.now; s.look.IsZero() && f != nil {
		if _, failure := f.stream.end(); failure.kind == failureMissing {
			s.look = s.looked.Add(gonePause)
		}
	}
	if s.look.IsZero() || time.Now().Before(s.look) {
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.w.limits.Sync, errNoAnswer)
	defer cancel()
	at, h := lookup(limited, s.w.connection().discovery, s.target)
	if ctx.Err() != nil {
		return
	}
	s.looked = time.Now()
	s.mu.Lock()
	if s.lookup = h; h.state == fact.WatchSynced {
		s.lookup.state = fact.WatchSyncing // No feed has read anything yet.
	}
	s.mu.Unlock()
	switch {
	case h.state == fact.WatchSynced:
		s.pause = lookPause()
		s.at, s.found, s.look = at, true, time.Time{}
	case h.state == fact.WatchNotInstalled, h.failure.kind == failureUnfit:
		s.found, s.look = false, time.Now().Add(missingPause)
		s.put(nil, nil)
	default:
		s.w.metrics.failures.WithLabelValues(labelWish, "discover").Inc()
		s.look = time.Now().Add(s.pause.Step())
	}
}

// adjust starts and stops feeds.
func (s *source) adjust(ctx context.Context) {
	if !s.found {
		return
	}
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	columns := slices.SortedFunc(maps.Values(wanted), func(a, b column) int { return cmp.Compare(a.id, b.id) })
	now, next := s.now, s.next
	switch {
	case now == nil:
		now, next = s.open(ctx, s.at, columns, nil, nil), nil
	case s.renew || now.served != s.at || ended(now):
		now, next = s.open(ctx, s.at, columns, now.stream, now.rows), nil
	case now.rows.covers(wanted):
		next = nil
	case !now.rows.isComplete():
		now, next = s.open(ctx, s.at, columns, now.stream, nil), nil
	case next == nil || ended(next) || !next.rows.covers(wanted):
		// What is known goes on while the new columns are being listed.
		next = s.open(ctx, s.at, columns, nil, now.rows)
	case next.health(time.Now()).state == fact.WatchSynced:
		now, next = next, nil
	}
	s.renew = false
	if now != s.now || next != s.next {
		s.put(now, next)
	}
}

func ended(f *feed) bool {
	outdated, _ := f.stream.end()
	return outdated
}

// tell passes a change of the health on, and returns when time alone can change
// it.
func (s *source) tell() time.Duration {
	now := time.Now()
	var again time.Duration
	told, feeds := [2]health{s.lookup}, [2]*feed{s.now, s.next}
	for i, f := range feeds {
		if f != nil {
			told[i] = f.health(now)
			again = earlier(again, told[i].again)
			told[i].again = 0
		}
	}
	if told != s.told || feeds != s.toldFor {
		s.told, s.toldFor = told, feeds
		s.news(nil)
	}
	if !s.look.IsZero() {
		again = earlier(again, max(s.look.Sub(now), time.Millisecond))
	}
	return again
}
