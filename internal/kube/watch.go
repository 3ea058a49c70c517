package kube

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/fact"
)

// watchedKind follows one kind on the cluster: its CustomResourceDefinition,
// and while that is established its objects.
type watchedKind struct {
	kind
	w *Watcher
	// wake makes run look again, and anew makes it start over.
	wake chan struct{}
	anew atomic.Bool

	mu  sync.Mutex
	now *objects
}

func newWatchedKind(w *Watcher, k kind) *watchedKind {
	return &watchedKind{kind: k, w: w, wake: make(chan struct{}, 1)}
}

func (k *watchedKind) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// restart makes the kind forget what it has seen and list everything anew.
func (k *watchedKind) restart() {
	k.anew.Store(true)
	k.nudge()
}

// newStream returns a stream that begins with the failure of the one that it
// replaces, if there is one: the kind is failing until it is listed.
func (k *watchedKind) newStream(resource string, before *stream) *stream {
	var f failure
	if before != nil {
		_, f = before.end()
	}
	return &stream{
		resource:  resource,
		failure:   f,
		limits:    k.w.limits,
		changed:   k.nudge,
		failed:    func(verb string) { k.w.metrics.failures.WithLabelValues(k.name(), verb).Inc() },
		downSince: time.Now(),
	}
}

// objects returns the informer on the objects that runs now, or nil.
func (k *watchedKind) objects() *objects {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

func (k *watchedKind) setObjects(o *objects) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = o
}

// stopObjects ends the informer on the objects, if there is one.
func (k *watchedKind) stopObjects() {
	if o := k.objects(); o != nil {
		k.setObjects(nil)
		o.stop()
	}
}

// run follows the kind until ctx ends, and returns when all that it started
// has ended.
func (k *watchedKind) run(ctx context.Context) {
	d := k.follow(ctx, nil)
	defer func() {
		k.stopObjects()
		d.stop()
	}()
	timer := stoppedTimer()
	defer timer.Stop()
	k.nudge()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		if outdated, _ := d.stream.end(); k.anew.Swap(false) || outdated {
			k.stopObjects()
			d.stop()
			d = k.follow(ctx, d.stream)
		}
		k.adjust(ctx, d)
		h := k.health(d, time.Now())
		k.w.setHealth(k.name(), h)
		timer.Stop()
		if h.again > 0 {
			timer.Reset(h.again)
		}
	}
}

// adjust starts and stops the informer on the objects as the definition says.
func (k *watchedKind) adjust(ctx context.Context, d *definition) {
	version, _, known := d.version()
	if !known {
		return
	}
	var before *stream
	if o := k.objects(); o != nil {
		if outdated, _ := o.stream.end(); o.resource.Version == version && !outdated {
			return
		}
		before = o.stream
		k.stopObjects()
	}
	if version != "" {
		k.start(ctx, schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.resource}, before)
	}
}

// health returns the state of the watch on the kind now. Of a kind that is not
// installed, the failure says why.
func (k *watchedKind) health(d *definition, now time.Time) health {
	definition := d.stream.health(now)
	if definition.state != fact.WatchSynced {
		return definition
	}
	_, why, known := d.version()
	o := k.objects()
	if why != "" {
		return health{fact.WatchNotInstalled, failure{failureMissing, why}, definition.again}
	}
	if !known || o == nil {
		return health{state: fact.WatchSyncing, again: definition.again}
	}
	h := o.stream.health(now)
	if h.state == fact.WatchSynced && !o.isSettled() {
		h.state = fact.WatchSyncing
	}
	h.again = earlier(definition.again, h.again)
	return h
}

// earlier returns the shorter of two times, where zero means never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// stoppedTimer returns a timer that fires once it is reset. Timers that are due
// when they are made crash the race detector of Go 1.26, if several goroutines
// look at theirs at once within a bubble of synctest.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
