package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"signalbox/internal/fact"
)

// watchedKind follows one kind on the cluster: its CustomResourceDefinition,
// and while that is established its objects.
type watchedKind struct {
	kind
	w *Watcher
	// wake makes run look again.
	wake chan struct{}

	crds      *stream
	crd       cache.SharedIndexInformer
	crdSynced cache.InformerSynced

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

func (k *watchedKind) newStream(resource string) *stream {
	return &stream{
		resource:  resource,
		limits:    k.w.limits,
		changed:   k.nudge,
		failed:    func(verb string) { k.w.metrics.failures.WithLabelValues(k.name(), verb).Inc() },
		downSince: time.Now(),
	}
}

// objects returns the informer that runs now, or nil.
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

// run follows the kind until ctx ends, and returns when all that it started
// has ended.
func (k *watchedKind) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	k.followCRD(ctx, &wg)
	defer func() {
		if o := k.objects(); o != nil {
			o.stop()
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		k.adjust(ctx)
		watch, again := k.state(time.Now())
		k.w.setState(k.name(), watch)
		timer.Stop()
		if again > 0 {
			timer.Reset(again)
		}
	}
}

// followCRD starts the informer on the one CustomResourceDefinition. It asks
// for that alone, by name: that is all a role needs to allow, and definitions
// are large.
func (k *watchedKind) followCRD(ctx context.Context, wg *sync.WaitGroup) {
	client := k.w.client
	k.crds = k.newStream(crdResource().GroupResource().String() + " " + k.kind.crd())
	selector := fields.OneTermEqualSelector("metadata.name", k.kind.crd()).String()
	k.crd = newInformer(k.crds.listWatch(client, client.Resource(crdResource()), selector), slimCRD)
	nudge := func(any) { k.nudge() }
	// It cannot fail: the informer was neither started nor stopped.
	registration, _ := k.crd.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    nudge,
		UpdateFunc: func(any, any) { k.nudge() },
		DeleteFunc: nudge,
	})
	k.crdSynced = registration.HasSynced
	wg.Go(func() { k.crd.RunWithContext(ctx) })
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			k.nudge()
		}
	})
}

// wanted returns the resource to watch now, or why there is none. Known is
// false until the definition was looked for.
func (k *watchedKind) wanted() (resource schema.GroupVersionResource, why string, known bool) {
	if !k.crdSynced() {
		return resource, "", false
	}
	obj, exists, err := k.crd.GetStore().GetByKey(k.kind.crd())
	crd, ok := obj.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return resource, "the cluster has no CustomResourceDefinition " + k.kind.crd(), true
	}
	v, why := servedVersion(crd)
	if v == "" {
		return resource, why, true
	}
	return schema.GroupVersionResource{Group: k.group, Version: v, Resource: k.resource}, "", true
}

// adjust starts and stops the informer on the objects.
func (k *watchedKind) adjust(ctx context.Context) {
	resource, _, known := k.wanted()
	if !known {
		return
	}
	if o := k.objects(); o != nil {
		if o.resource == resource && !o.stream.isRewound() {
			return
		}
		k.setObjects(nil)
		o.stop()
	}
	if resource.Version != "" {
		k.start(ctx, resource)
	}
}

// state returns the state of the watch on the kind and, if time alone can
// change it, when to ask again.
func (k *watchedKind) state(now time.Time) (fact.Watch, time.Duration) {
	crds, message, again := k.crds.state(now)
	_, why, known := k.wanted()
	o := k.objects()
	switch {
	case crds != fact.WatchSynced:
		return fact.Watch{State: crds, Message: message}, again
	case !known:
		return fact.Watch{State: fact.WatchSyncing}, 0
	case why != "":
		return fact.Watch{State: fact.WatchNotInstalled, Message: why}, again
	case o == nil:
		return fact.Watch{State: fact.WatchSyncing}, again
	}
	state, message, sooner := o.stream.state(now)
	if state == fact.WatchSynced && !o.isSettled() {
		state = fact.WatchSyncing
	}
	return fact.Watch{State: state, Message: message}, earlier(again, sooner)
}

// earlier returns the shorter of two times, where zero means never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
