package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"signalbox/internal/fact"
)

// Reader gives the facts that are held.
type Reader interface {
	// Lookup returns the fact of a key. It may show a write a moment later.
	Lookup(fact.Key) (fact.Fact, bool)
	// Select returns the facts of a source, a scope and a kind.
	Select(source, scope, kind string) []fact.Fact
}

// Writer takes facts and heartbeats. Each method may be called by several
// goroutines, but never by two for one key.
type Writer interface {
	// Put holds a fact unless a newer one is held ([fact.Fact.Newer]), and
	// reports whether what is held now says something else than before.
	Put(context.Context, fact.Fact) (changed bool, err error)
	// PutAfterList holds a fact that a complete list has shown, whatever
	// version is held, and also where only the version differs.
	PutAfterList(context.Context, fact.Fact) (changed bool, err error)
	// Delete removes the fact of what is not wished any more ([Watcher.Wish]).
	Delete(context.Context, fact.Key) error
	// Beat says that a cluster was heard from.
	Beat(ctx context.Context, cluster string, at time.Time) error
}

// Sink is where a [Watcher] writes to.
type Sink interface {
	Reader
	Writer
}

// Watcher keeps the facts of one cluster up to date. Make one with [New].
type Watcher struct {
	cfg     Config
	cluster string
	limits  Limits
	sink    Sink
	log     *slog.Logger
	metrics *metrics
	queue   workqueue.TypedRateLimitingInterface[item]
	kinds   map[string]*watchedKind
	wishes  *wishes
	settled chan struct{}
	once    sync.Once
	// refused is the content of the last kubeconfig that could not be used.
	refused []byte

	mu     sync.Mutex
	conn   *connection
	health map[string]health
	states map[string]fact.Watch
	// former holds the states that stand until formerUntil, while the first
	// lists arrive. ClusterKnown is set once they have, or failed.
	former       map[string]fact.Watch
	formerUntil  time.Time
	clusterKnown bool
	// wrote holds the facts that were written and may not yet be seen in the
	// sink; see known.
	wrote map[fact.Key]fact.Fact
}

// New makes a watcher. It reads the configuration, but does not connect; an
// error is one of the configuration or of the registerer, which may be nil.
func New(cfg Config, sink Sink, log *slog.Logger, reg prometheus.Registerer) (*Watcher, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w := &Watcher{
		cfg:     cfg,
		cluster: cfg.Cluster,
		limits:  cfg.Limits.withDefaults(),
		sink:    sink,
		log:     log.With("cluster", cfg.Cluster),
		kinds:   map[string]*watchedKind{},
		settled: make(chan struct{}),
		health:  map[string]health{},
		states:  map[string]fact.Watch{},
		wrote:   map[fact.Key]fact.Fact{},
	}
	w.wishes = newWishes(w)
	var err error
	if w.conn, err = cfg.connect(); err != nil {
		return nil, err
	}
	if w.metrics, err = newMetrics(cfg.Cluster, reg, w.wishes); err != nil {
		return nil, err
	}
	for _, k := range kinds() {
		w.kinds[k.name()] = newWatchedKind(w, k)
	}
	return w, nil
}

// Run watches until ctx ends; it returns nil then, after everything that it
// started has ended. It may be called once. Nothing that the cluster does
// makes it return.
func (w *Watcher) Run(ctx context.Context) error {
	w.queue = newQueue()
	now := time.Now().UTC()
	for name := range w.kinds {
		w.health[name] = health{state: fact.WatchSyncing}
		w.states[name] = fact.Watch{State: fact.WatchSyncing, Since: now}
		w.metrics.state(name, fact.WatchSyncing)
	}
	w.inherit(now)
	w.queue.Add(item{})
	w.wishes.begin(w.queue)

	// What client-go logs of itself is for whoever debugs it.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(w.log.Handler()).V(4))
	var producers, consumers sync.WaitGroup
	for range workers {
		consumers.Go(func() { w.work(ctx) })
	}
	for _, k := range w.kinds {
		producers.Go(func() { k.run(ctx) })
	}
	producers.Go(func() { w.wishes.run(ctx) })
	producers.Go(func() { w.beat(ctx) })
	<-ctx.Done()
	producers.Wait()
	w.queue.ShutDown()
	consumers.Wait()
	return nil
}

// inherit takes over what an earlier life or another replica says of the kinds
// that it knew, for as long as Limits.Start; a restart by itself is no news.
func (w *Watcher) inherit(now time.Time) {
	w.former = map[string]fact.Watch{}
	w.formerUntil = now.Add(w.limits.Start)
	held := w.known(fact.ClusterKey(w.cluster))
	if held == nil || held.Cluster == nil {
		return
	}
	for name, s := range held.Cluster.Kinds {
		if _, watched := w.kinds[name]; watched && s.State == fact.WatchSynced {
			w.former[name] = s
		}
	}
	w.queue.AddAfter(item{}, w.limits.Start)
}

// Settled is closed once each kind and each wish of before Run is known,
// missing or failing for the first time and the facts say so, or that a wish is
// still not known after Limits.Start. Until then verdicts that rest on the
// cluster may be unknown.
func (w *Watcher) Settled() <-chan struct{} { return w.settled }
