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

// pageSize is how many objects are asked for at once, where they are listed and
// not streamed. Of several kinds at once, what is decoded and dropped again is
// most of what is in memory.
const pageSize = 50

// feed reads the objects of one resource into rows, from its start until it is
// stopped.
type feed struct {
	served
	target target
	stream *stream
	rows   *rows
	client dynamic.Interface
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// open starts a feed, in the place of a former one if before is given. Rows of
// which since when they are so is taken over may be nil.
func (s *source) open(ctx context.Context, at served, columns []column, before *stream, former *rows) *feed {
	ctx, cancel := context.WithCancel(ctx)
	metrics := s.w.metrics
	f := &feed{
		served: at,
		target: s.target,
		stream: &stream{
			resource:  s.target.String(),
			limits:    s.w.limits,
			changed:   s.nudge,
			failed:    func(verb string) { metrics.failures.WithLabelValues(labelWish, verb).Inc() },
			downSince: time.Now(),
		},
		client: s.w.connection().client,
		cancel: cancel,
		rows: &rows{
			columns: columns, rows: map[objectName]*row{}, former: former,
			listed:  s.nudge,
			counted: func() { metrics.evaluations.Add(float64(len(columns))) },
		},
	}
	f.rows.changed = func() { s.news(f) }
	if before != nil {
		_, f.stream.failure = before.end()
	}
	f.wg.Go(func() { f.run(ctx) })
	return f
}

// stop ends the feed and waits for it.
func (f *feed) stop() {
	f.cancel()
	f.wg.Wait()
}

// run lists and watches until ctx ends. A reflector's own loop waits for up to
// half a minute after what went wrong once.
func (f *feed) run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(f.listWatch(), nil, f.rows, cache.ReflectorOptions{
		Name: f.stream.resource, TypeDescription: f.String(),
	})
	first := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 10, Cap: maxPause}
	pause := first
	for {
		begin := time.Now()
		// A failed request is known to the stream already.
		_ = reflector.ListAndWatchWithContext(ctx)
		if time.Since(begin) > time.Minute {
			pause = first
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause.Step()):
		}
	}
}

// health is the state of the feed now.
func (f *feed) health(now time.Time) health {
	h := f.stream.health(now)
	if h.state == fact.WatchSynced && !f.rows.isComplete() {
		h.state = fact.WatchSyncing
	}
	return h
}

// listWatch is [stream.listWatch] of a part of the objects, kept as rows.
func (f *feed) listWatch() cache.ListerWatcher {
	var resource dynamic.ResourceInterface = f.client.Resource(f.GroupVersionResource)
	if f.target.namespace != "" {
		resource = f.client.Resource(f.GroupVersionResource).Namespace(f.target.namespace)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return f.list(ctx, resource, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			f.target.narrow(&o)
			return retry(ctx, f.stream, "watch", func() (watch.Interface, error) { return f.stream.open(ctx, resource, o) })
		},
	}, f.client)
}

// list lists page by page, whatever page was asked for, so that never more than
// one is in memory. What is listed first wins over what is held, so it must not
// come from the cache of an API server that lags.
func (f *feed) list(ctx context.Context, resource dynamic.ResourceInterface, o metav1.ListOptions) (runtime.Object, error) {
	f.target.narrow(&o)
	o.ResourceVersion, o.ResourceVersionMatch, o.Limit, o.Continue = "", "", pageSize, ""
	all := &rowList{}
	for {
		page, err := retry(ctx, f.stream, "list", func() (*unstructured.UnstructuredList, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, f.stream.limits.Sync, errNoAnswer)
			defer cancel()
			return resource.List(ctx, o)
		})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			all.Items = append(all.Items, f.rows.read(&page.Items[i]))
		}
		if all.ResourceVersion == "" {
			all.ResourceVersion = page.GetResourceVersion()
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			f.stream.at(all.ResourceVersion)
			return all, nil
		}
	}
}
