package kubetest

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stream is an open watch. It never makes the cluster wait: what is not yet
// taken is kept.
type stream struct {
	from     resource
	resource schema.GroupResource
	filter   filter
	kind     string
	mute     bool
	// after is the version that the watch resumes from.
	after int64

	mu      sync.Mutex
	waiting []watch.Event
	ended   bool
	more    chan struct{}

	events chan watch.Event
	stop   chan struct{}
	once   sync.Once
}

func newStream(r resource, f filter, kind string, mute bool) *stream {
	return &stream{
		from:     r,
		resource: r.gvr.GroupResource(),
		filter:   f,
		kind:     kind,
		mute:     mute,
		more:     make(chan struct{}, 1),
		events:   make(chan watch.Event),
		stop:     make(chan struct{}),
	}
}

// Stop implements [watch.Interface].
func (s *stream) Stop() { s.once.Do(func() { close(s.stop) }) }

// ResultChan implements [watch.Interface].
func (s *stream) ResultChan() <-chan watch.Event { return s.events }

// send tells of an event, as whoever sees only a part of the objects sees it.
func (s *stream) send(e event) {
	if e.version != 0 && e.version <= s.after {
		return
	}
	kind, matches := e.kind, s.filter.match(e.object)
	if kind == watch.Modified && e.old != nil {
		switch did := s.filter.match(e.old); {
		case did && !matches:
			kind, matches = watch.Deleted, true
		case !did && matches:
			kind = watch.Added
		}
	}
	if matches {
		s.push(watch.Event{Type: kind, Object: s.from.view(e.object, s.kind)})
	}
}

// bookmark tells how far the watch has come, and whether the events so far are
// the state that it began with.
func (s *stream) bookmark(version int64, initial bool) {
	if s.mute {
		return
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(s.from.gvr.GroupVersion().WithKind(s.kind))
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	if initial {
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	s.push(watch.Event{Type: watch.Bookmark, Object: o})
}

func (s *stream) push(e watch.Event) {
	s.mu.Lock()
	s.waiting = append(s.waiting, e)
	s.mu.Unlock()
	s.wake()
}

// end closes the watch after what is waiting.
func (s *stream) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

func (s *stream) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *stream) run(ctx context.Context) {
	defer close(s.events)
	defer s.forget()
	for {
		s.mu.Lock()
		batch, ended := s.waiting, s.ended
		s.waiting = nil
		s.mu.Unlock()
		for _, e := range batch {
			select {
			case s.events <- e:
			case <-s.stop:
				return
			case <-ctx.Done():
				return
			}
		}
		if ended && len(batch) == 0 {
			return
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-s.more:
		case <-s.stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *stream) forget() {
	s.from.c.mu.Lock()
	defer s.from.c.mu.Unlock()
	delete(s.from.c.watches, s)
}
