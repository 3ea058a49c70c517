package kube

import (
	"context"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// tombstone is what is known of a deleted object.
type tombstone struct{ uid, version string }

// objects is the informer of one kind, from its start until its
// CustomResourceDefinition goes or changes.
type objects struct {
	resource schema.GroupVersionResource
	stream   *stream
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu sync.Mutex
	// first holds the keys of the first list that are not yet written. Listed
	// says that it has held all of them, swept that it has held also those of
	// facts whose objects the list lacks, and settled that all are written.
	first                  map[string]struct{}
	listed, swept, settled bool
	deleted                map[string]tombstone
}

// start starts the informer on the objects of a kind, in the place of a former
// one if before is given. The kind has it before it runs, so that no work of it
// is taken for that of the former one.
func (k *watchedKind) start(ctx context.Context, resource schema.GroupVersionResource, before *stream) {
	ctx, cancel := context.WithCancel(ctx)
	o := &objects{
		resource: resource,
		stream:   k.newStream(resource.GroupResource().String(), before),
		cancel:   cancel,
		first:    map[string]struct{}{},
		deleted:  map[string]tombstone{},
	}
	client := k.w.connection().client
	o.informer = newInformer(o.stream.listWatch(client, client.Resource(resource), ""), slim)
	// It cannot fail: the informer was neither started nor stopped.
	registration, _ := o.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, first bool) { k.added(o, obj, first) },
		UpdateFunc: func(_, obj any) { k.updated(obj) },
		DeleteFunc: func(obj any) { k.removed(o, obj) },
	})
	k.setObjects(o)
	o.wg.Go(func() { o.informer.RunWithContext(ctx) })
	o.wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			k.listed(o)
		}
	})
}

// stop ends the informer and waits for it.
func (o *objects) stop() {
	o.cancel()
	o.wg.Wait()
}

func (k *watchedKind) added(o *objects, obj any, first bool) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	if first {
		o.mu.Lock()
		o.first[key] = struct{}{}
		o.mu.Unlock()
	} else {
		o.mu.Lock()
		delete(o.deleted, key)
		o.mu.Unlock()
		k.w.metrics.events.WithLabelValues(k.name(), "add").Inc()
	}
	k.w.queue.Add(item{kind: k.name(), key: key})
}

func (k *watchedKind) updated(obj any) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	k.w.metrics.events.WithLabelValues(k.name(), "update").Inc()
	k.w.queue.Add(item{kind: k.name(), key: key})
}

func (k *watchedKind) removed(o *objects, obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	m := obj.(metav1.Object)
	o.mu.Lock()
	o.deleted[key] = tombstone{string(m.GetUID()), m.GetResourceVersion()}
	o.mu.Unlock()
	k.w.metrics.events.WithLabelValues(k.name(), "delete").Inc()
	k.w.queue.Add(item{kind: k.name(), key: key})
}

// listed says that all keys of the first list are known.
func (k *watchedKind) listed(o *objects) {
	o.mu.Lock()
	o.listed = true
	done := len(o.first) == 0
	o.mu.Unlock()
	if done {
		k.w.queue.Add(item{kind: k.name()})
	}
}

// progress is how far the first list is with one key.
type progress struct {
	// first says that the key is of the first list and not yet written.
	first bool
	// listed says that the first list is complete.
	listed bool
	// deleted is set when the object was seen to be deleted.
	deleted *tombstone
}

func (o *objects) progress(key string) progress {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, first := o.first[key]
	p := progress{first: first, listed: o.listed}
	if t, ok := o.deleted[key]; ok {
		p.deleted = &t
	}
	return p
}

// wrote says that a key is written as it was at p, and reports whether it was
// the last of the first list.
func (o *objects) wrote(key string, p progress) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.deleted[key]; ok && p.deleted != nil && t == *p.deleted {
		delete(o.deleted, key)
	}
	if _, ok := o.first[key]; !ok {
		return false
	}
	delete(o.first, key)
	return o.listed && len(o.first) == 0
}

// sweep takes the keys of facts whose objects the first list lacks, once, and
// reports whether the first list is settled.
func (o *objects) sweep(lacking []string) (settled bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.swept {
		o.swept = true
		for _, key := range lacking {
			o.first[key] = struct{}{}
		}
	}
	o.settled = len(o.first) == 0
	return o.settled
}

func (o *objects) isSettled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.settled
}

// slim drops from an object what [Project] does not read, before it is kept in
// memory: managed fields, inventories and annotations are most of it.
func slim(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	o := u.Object
	keep(o, "apiVersion", "kind", "metadata", "spec", "status")
	keep(field(o, "metadata"), "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
	keep(field(o, "spec"), "suspend", "timeout", "interval", "path", "sourceRef", "chartRef", "chart", "dependsOn")
	keep(field(o, "spec", "chart"), "spec")
	keep(field(o, "spec", "chart", "spec"), "sourceRef")
	keep(field(o, "status"), "conditions", "observedGeneration", "lastAppliedRevision", "lastAttemptedRevision",
		"lastAppliedOriginRevision", "artifact", "history")
	keep(field(o, "status", "artifact"), "revision", "metadata")
	for _, entry := range list(o, "status", "history") {
		keep(entry, "version", "status", "chartVersion")
	}
	return u, nil
}

// slimCRD does the same for a CustomResourceDefinition, which is mostly schema.
func slimCRD(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	o := u.Object
	keep(o, "apiVersion", "kind", "metadata", "spec", "status")
	keep(field(o, "metadata"), "name", "uid", "resourceVersion")
	keep(field(o, "spec"), "versions")
	for _, v := range list(o, "spec", "versions") {
		keep(v, "name", "served", "storage")
	}
	keep(field(o, "status"), "conditions")
	return u, nil
}

// keep deletes all other fields of v, if it is an object.
func keep(v any, names ...string) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	for n := range m {
		if !wanted[n] {
			delete(m, n)
		}
	}
}

// newInformer returns an informer of unstructured objects.
func newInformer(lw cache.ListerWatcher, transform cache.TransformFunc) cache.SharedIndexInformer {
	i := cache.NewSharedIndexInformerWithOptions(lw, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{})
	// The setters cannot fail: the informer was not started. A failed request
	// is known to the stream already, so what is left is for a debugger.
	_ = i.SetTransform(transform)
	_ = i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).Info("an informer lists anew", "error", err.Error())
	})
	return i
}

// version returns the version of the last list or event, or "".
func (o *objects) version() string {
	v := o.informer.LastSyncResourceVersion()
	if strings.Trim(v, "0123456789") != "" {
		return ""
	}
	return v
}
