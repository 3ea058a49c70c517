package kube

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"signalbox/internal/fact"
)

// Pauses between tries of a list or a watch that failed.
const (
	firstPause = 500 * time.Millisecond
	// maxPause bounds how long a recovered API server goes unnoticed.
	maxPause = 5 * time.Second
	// maxDeniedPause is for refused credentials and missing rights, which a
	// person mends.
	maxDeniedPause = 15 * time.Second
)

// stream is one list-and-watch of an informer. It hears what the informer
// itself does not tell: whether the watch stands now, since when not, and why.
type stream struct {
	resource string
	limits   Limits
	// changed is called, without the lock, after the health changed.
	changed func()
	// failed counts a failed request.
	failed func(verb string)

	mu        sync.Mutex
	up        bool
	wasUp     bool
	downSince time.Time
	failure   failure
	version   string
	// outdated says that the API server may have another history than the one
	// that was seen, so that everything has to be listed anew.
	outdated bool
}

// listWatch returns what an informer lists and watches with. A request that
// failed because the API server is away or denies it is tried again here, from
// where it was, since the pauses of the informer grow to a minute and begin
// with a new list.
func (s *stream) listWatch(client dynamic.Interface, resource dynamic.ResourceInterface, selector string) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			if o.ResourceVersion == "0" {
				// What is listed first wins over what is held, so it must not
				// come from the cache of an API server that lags.
				o.ResourceVersion = ""
			}
			l, err := retry(ctx, s, "list", func() (*unstructured.UnstructuredList, error) {
				ctx, cancel := context.WithTimeoutCause(ctx, s.limits.Sync, errNoAnswer)
				defer cancel()
				return resource.List(ctx, o)
			})
			if err != nil {
				return nil, err
			}
			s.at(l.GetResourceVersion())
			return l, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return retry(ctx, s, "watch", func() (watch.Interface, error) { return s.open(ctx, resource, o) })
		},
	}, client)
}

// retry calls until there is a result or an error that the informer has to
// deal with itself: the resource is gone, the version is too old.
func retry[T any](ctx context.Context, s *stream, verb string, call func() (T, error)) (T, error) {
	pause := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 10, Cap: maxPause}
	for {
		v, err := call()
		if err == nil || ctx.Err() != nil || outdated(err) {
			return v, err
		}
		f := s.fail(verb, err)
		switch f.kind {
		case failureUnreachable:
		case failureUnauthorized, failureForbidden:
			pause.Cap = maxDeniedPause
		default:
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-time.After(pause.Step()):
		}
	}
}

// setUp says that the watch stands. After an outage in which the API server may
// have been restored from a backup it is not continued: the versions that were
// seen may mean something else now.
func (s *stream) setUp() {
	s.mu.Lock()
	if s.up {
		s.mu.Unlock()
		return
	}
	if s.wasUp && time.Since(s.downSince) >= s.limits.Grace {
		s.outdated = true
	} else {
		s.up, s.wasUp, s.failure = true, true, failure{}
	}
	s.mu.Unlock()
	s.changed()
}

func (s *stream) setDown() {
	s.mu.Lock()
	if s.up {
		s.up, s.downSince = false, time.Now()
	}
	s.mu.Unlock()
	s.changed()
}

// fail records a failed request and returns what it is. The first message of
// its kind stands until the watch is up again.
func (s *stream) fail(verb string, err error) failure {
	f := explain(verb, s.resource, err)
	s.failed(verb)
	s.mu.Lock()
	if s.failure.kind != f.kind {
		s.failure = f
	}
	if s.up {
		s.up, s.downSince = false, time.Now()
	}
	s.mu.Unlock()
	s.changed()
	return f
}

// at records the version of a complete list. A version lower than one seen
// before is of another history.
func (s *stream) at(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outdated = s.outdated || older(version, s.version)
	s.version = version
}

// saw records the version of an event.
func (s *stream) saw(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if older(s.version, version) {
		s.version = version
	}
}

// older reports whether version a is before b. An empty version is before
// nothing and after everything.
func older(a, b string) bool {
	return !fact.Fact{Version: a}.Newer(fact.Fact{Version: b})
}

// end returns whether the stream has to be replaced by one that lists anew, and
// the failure that the new one begins with.
func (s *stream) end() (outdated bool, f failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outdated, s.failure
}

// health is the state of a watch, and why it is failing.
type health struct {
	state   fact.WatchState
	failure failure
	// again is when time alone can change it; zero means never.
	again time.Duration
}

// health returns the state of the watch now.
func (s *stream) health(now time.Time) health {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up {
		return health{state: fact.WatchSynced}
	}
	// A watch that stood is given some time to come back: what was seen last
	// is no older than that.
	before, patience := fact.WatchSyncing, s.limits.Sync
	switch {
	case s.wasUp:
		before, patience = fact.WatchSynced, s.limits.Grace
	case s.failure.kind != failureNone:
		patience = 0
	}
	if left := patience - now.Sub(s.downSince); left > 0 {
		return health{state: before, again: left}
	}
	if s.failure.kind == failureNone {
		s.failure = slow("watch", s.resource)
	}
	return health{state: fact.WatchFailing, failure: s.failure}
}
