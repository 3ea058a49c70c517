package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"signalbox/internal/fact"
)

// item is a piece of work: an object that may have changed, by kind and key.
// Without a key it is the end of the first list of the kind; without a kind,
// what is wished; without that, the fact of the cluster.
type item struct {
	kind, key string
	wish      fact.Key
}

// about is what an item is about, for a log.
func (it item) about() (kind, object string) {
	if it.wish != (fact.Key{}) {
		return it.wish.Kind, it.wish.Object()
	}
	return it.kind, it.key
}

// workers is how many facts are written at once. A write waits for a disk, and
// the first list of a large cluster is long.
const workers = 4

// writeTimeout bounds one write.
const writeTimeout = 15 * time.Second

// Pauses between tries of a write that failed.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 15 * time.Second
)

func newQueue() workqueue.TypedRateLimitingInterface[item] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[item](firstRetry, lastRetry))
}

// work handles items until the queue is shut down.
func (w *Watcher) work(ctx context.Context) {
	for {
		it, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		w.handle(ctx, it)
	}
}

// handle handles one item and decides whether it comes back.
func (w *Watcher) handle(ctx context.Context, it item) {
	defer w.queue.Done(it)
	err := w.write(ctx, it)
	if err == nil {
		w.queue.Forget(it)
		return
	}
	if ctx.Err() != nil {
		return
	}
	w.metrics.writeFailures.Inc()
	if w.queue.NumRequeues(it) == 0 {
		kind, object := it.about()
		w.log.WarnContext(ctx, "a fact could not be written and is tried again", "kind", kind, "object", object, "error", err)
	}
	w.queue.AddRateLimited(it)
}

func (w *Watcher) write(ctx context.Context, it item) error {
	if it.wish != (fact.Key{}) {
		return w.wishes.write(ctx, it.wish)
	}
	if it.kind == "" {
		return w.writeCluster(ctx)
	}
	k := w.kinds[it.kind]
	o := k.objects()
	if o == nil {
		return nil
	}
	if it.key == "" {
		w.sweep(k, o)
		return nil
	}
	return w.writeObject(ctx, k, o, it.key)
}

// writeObject writes the fact of one object, if it says something new.
func (w *Watcher) writeObject(ctx context.Context, k *watchedKind, o *objects, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("key of a %s: %w", k.name(), err)
	}
	obj, exists, err := o.informer.GetStore().GetByKey(key)
	if err != nil {
		return fmt.Errorf("read %s %s from the cache: %w", k.name(), key, err)
	}
	fk := fact.Kube(w.cluster, k.name(), namespace, name)
	prev := w.known(fk)
	at := o.progress(key)
	now := time.Now()
	var f fact.Fact
	switch u, ok := obj.(*unstructured.Unstructured); {
	case ok && exists:
		var recheck time.Duration
		f, recheck = Project(fk, prev, u, Circumstances{Now: now, MinHold: w.limits.Hold, Ready: w.readyOf(k)})
		if recheck > 0 {
			w.queue.AddAfter(item{kind: k.name(), key: key}, recheck)
		}
	case at.listed || at.deleted != nil:
		if at.deleted == nil {
			at.deleted = &tombstone{version: o.version()}
		}
		f = absent(fk, prev, *at.deleted, now)
	default:
		return nil // Work of a former informer; the list of this one will tell.
	}
	if err := w.put(ctx, prev, f, at.first); err != nil {
		return err
	}
	if o.wrote(key, at) {
		w.queue.Add(item{kind: k.name()})
	}
	return nil
}

// readyOf reports of objects of a kind whether their facts say that they are
// ready.
func (w *Watcher) readyOf(k *watchedKind) func(fact.Ref) bool {
	return func(r fact.Ref) bool {
		f := w.known(fact.Kube(w.cluster, k.name(), r.Namespace, r.Name))
		return f != nil && f.Flux != nil && !f.Absent && !f.Flux.Suspended && !f.Flux.Deleting &&
			f.Flux.Ready.Status == fact.True && f.Flux.Generation == f.Flux.ObservedGeneration
	}
}

// absent returns the fact of an object that is not there.
func absent(fk fact.Key, prev *fact.Fact, deleted tombstone, now time.Time) fact.Fact {
	f := fact.Fact{Key: fk, UID: deleted.uid, Version: deleted.version, Absent: true, Since: now.UTC(), SeenAt: now.UTC()}
	if prev == nil {
		return f
	}
	f.UID = cmp.Or(f.UID, prev.UID)
	f.Version = cmp.Or(f.Version, prev.Version)
	if prev.Absent && prev.UID == f.UID {
		f.Since = prev.Since
	}
	return f
}

// put writes a fact that says something else than prev. The first complete
// list wins over whatever version is held: the API server may have been
// restored from a backup.
func (w *Watcher) put(ctx context.Context, prev *fact.Fact, f fact.Fact, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	same := prev != nil && f.Same(*prev)
	var changed bool
	var err error
	switch {
	case first && (!same || !f.Newer(*prev)):
		changed, err = w.sink.PutAfterList(ctx, f)
	case !first && !same:
		changed, err = w.sink.Put(ctx, f)
	}
	if err != nil {
		return fmt.Errorf("write fact %s: %w", f.Key, err)
	}
	if changed {
		w.mu.Lock()
		w.wrote[f.Key] = f
		w.mu.Unlock()
		w.metrics.written.WithLabelValues(f.Key.Kind).Inc()
	}
	return nil
}

// sweep comes after the first list of a kind is written: what is held and was
// not listed is to be absent. It comes again when that is written, too.
func (w *Watcher) sweep(k *watchedKind, o *objects) {
	var lacking []string
	for _, held := range w.sink.Select(fact.SourceKube, w.cluster, k.name()) {
		key := held.Key.Object()
		if _, exists, err := o.informer.GetStore().GetByKey(key); err == nil && !exists && !held.Absent {
			lacking = append(lacking, key)
		}
	}
	if o.sweep(lacking) {
		k.nudge()
		return
	}
	for _, key := range lacking {
		w.queue.Add(item{kind: k.name(), key: key})
	}
}

// setHealth takes the state of the watch on a kind; only a change is written.
// The same kind of failure with another message is no change: the definition
// of the kind fails as its objects do, and each a moment later.
func (w *Watcher) setHealth(kind string, h health) {
	w.mu.Lock()
	before, now := w.health[kind], time.Now().UTC()
	same := before.state == h.state && before.failure.kind == h.failure.kind
	if h.state == fact.WatchNotInstalled {
		same = same && before.failure == h.failure
	}
	if same {
		w.mu.Unlock()
		return
	}
	w.health[kind] = h
	watch := fact.Watch{State: h.state, Since: now, Message: h.failure.message}
	former, inherited := w.former[kind]
	switch {
	case before.state == h.state:
		watch.Since = w.states[kind].Since
	case inherited && h.state == fact.WatchSynced && now.Before(w.formerUntil):
		watch = former
	}
	delete(w.former, kind)
	w.states[kind] = watch
	w.mu.Unlock()
	w.metrics.state(kind, h.state)
	level := slog.LevelInfo
	if h.state == fact.WatchFailing {
		level = slog.LevelWarn
	}
	w.log.Log(context.Background(), level, "the watch on a kind changed", "kind", kind, "state", h.state, "reason", h.failure.message)
	w.queue.Add(item{})
}

// writeCluster writes the fact of the cluster.
func (w *Watcher) writeCluster(ctx context.Context) error {
	f := fact.Fact{Key: fact.ClusterKey(w.cluster), SeenAt: time.Now().UTC(), Cluster: &fact.Cluster{}}
	w.mu.Lock()
	f.Cluster.Kinds = maps.Clone(w.states)
	known := true
	for kind, state := range f.Cluster.Kinds {
		if state.State != fact.WatchSyncing {
			continue
		}
		known = false
		if former, ok := w.former[kind]; ok && f.SeenAt.Before(w.formerUntil) {
			f.Cluster.Kinds[kind] = former
		}
	}
	w.mu.Unlock()
	for _, s := range f.Cluster.Kinds {
		if s.Since.After(f.Since) {
			f.Since = s.Since
		}
	}
	if err := w.put(ctx, w.known(f.Key), f, false); err != nil {
		return err
	}
	if known {
		w.mu.Lock()
		w.clusterKnown = true
		w.mu.Unlock()
		w.settle()
	}
	return nil
}

// settle closes settled once nothing of the start is open.
func (w *Watcher) settle() {
	w.mu.Lock()
	known := w.clusterKnown
	w.mu.Unlock()
	if known && !w.wishes.starting() {
		w.once.Do(func() { close(w.settled) })
	}
}

// known returns the fact that is held of a key, or nil. The sink may show a
// write only a moment later, so what was written last is remembered until it
// does; a newer one, which somebody else wrote, goes before.
func (w *Watcher) known(key fact.Key) *fact.Fact {
	held, ok := w.sink.Lookup(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	mine, wrote := w.wrote[key]
	switch {
	case !wrote && !ok:
		return nil
	case !wrote:
		return &held
	case ok && (held.Same(mine) || !mine.Newer(held)):
		delete(w.wrote, key)
		return &held
	default:
		return &mine
	}
}

// forget makes known say what the sink says.
func (w *Watcher) forget(key fact.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wrote, key)
}
