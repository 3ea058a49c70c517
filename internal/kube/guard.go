package kube

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// proof is how long a watch must have been open to count. A client whose
// connection is lost at once takes that for a watch that has ended.
const proof = time.Second

// open starts a watch and guards it.
func (s *stream) open(ctx context.Context, resource dynamic.ResourceInterface, o metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(s.limits.Sync, func() { cancel(errNoAnswer) })
	w, err := resource.Watch(ctx, o)
	if !timer.Stop() {
		if err == nil {
			w.Stop()
		}
		err = errNoAnswer
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	g := &guard{
		stream:  s,
		inner:   w,
		cancel:  func() { cancel(nil) },
		initial: o.SendInitialEvents != nil && *o.SendInitialEvents,
		events:  make(chan watch.Event),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	go g.run()
	return g, nil
}

// guard passes the events of a watch on. It ends a watch on which nothing
// arrives for too long: an API server sends a bookmark about every minute, and
// whoever comes between may swallow events and keep the connection.
type guard struct {
	stream *stream
	inner  watch.Interface
	cancel func()
	// initial is set until the watch has delivered the state that it began
	// with.
	initial bool

	events chan watch.Event
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once
}

// Stop implements [watch.Interface]. It returns when the watch has ended.
func (g *guard) Stop() {
	g.once.Do(func() { close(g.stop) })
	<-g.done
}

// ResultChan implements [watch.Interface].
func (g *guard) ResultChan() <-chan watch.Event { return g.events }

func (g *guard) run() {
	defer close(g.done)
	defer close(g.events)
	defer g.stream.setDown()
	defer g.cancel()
	defer g.inner.Stop()
	idle := time.NewTimer(g.patience())
	defer idle.Stop()
	proven := time.NewTimer(proof)
	defer proven.Stop()
	for {
		select {
		case <-g.stop:
			return
		case e, ok := <-g.inner.ResultChan():
			if !ok || !g.pass(e) {
				return
			}
			idle.Reset(g.patience())
		case <-proven.C:
			if !g.initial {
				g.stream.setUp()
			}
		case <-idle.C:
			if g.initial {
				// The informer then falls back to a plain list.
				err := apierrors.NewTimeoutError("the watch did not deliver the present state in time", 0)
				g.pass(watch.Event{Type: watch.Error, Object: &err.ErrStatus})
			}
			return
		}
	}
}

func (g *guard) patience() time.Duration {
	if g.initial {
		return g.stream.limits.Sync
	}
	return g.stream.limits.Idle
}

// pass hands an event to the informer and reports whether it took it.
func (g *guard) pass(e watch.Event) bool {
	if e.Type == watch.Error {
		if err := apierrors.FromObject(e.Object); !outdated(err) {
			g.stream.fail("watch", err)
		}
	}
	// The informer may change the object once it has it.
	version, initial := "", false
	if m, ok := e.Object.(metav1.Object); ok && e.Type != watch.Error {
		version = m.GetResourceVersion()
		initial = e.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	}
	select {
	case <-g.stop:
		return false
	case g.events <- e:
	}
	switch {
	case e.Type == watch.Error:
	case !g.initial:
		g.stream.saw(version)
		g.stream.setUp()
	case initial:
		g.initial = false
		g.stream.at(version)
		g.stream.setUp()
	}
	return true
}
