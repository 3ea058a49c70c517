package main

import (
	"context"
	"time"

	"signalbox/internal/bus"
	"signalbox/internal/work"
)

// sink is where the watchers of clusters write to.
type sink struct {
	*bus.Facts
	beats   *bus.Beats
	replica string
}

func newSink(b *bus.Bus) sink { return sink{b.Facts(), b.Beats(), replica()} }

// Beat says that this replica heard from a cluster.
func (s sink) Beat(ctx context.Context, cluster string, at time.Time) error {
	return s.beats.Send(ctx, bus.Beat{Cluster: cluster, Replica: s.replica, At: at})
}

// workQueue is the queue of work as the handlers see it.
type workQueue struct{ *bus.Work }

func busItem(i work.Item) bus.Item {
	return bus.Item{Ref: i.Ref, Kind: bus.WorkKind(i.Kind), Reason: i.Reason, Attempt: i.Attempt}
}

// Soon implements [handlers.Queue].
func (q workQueue) Soon(ctx context.Context, i work.Item) error { return q.Work.Soon(ctx, busItem(i)) }

// Schedule implements [handlers.Queue].
func (q workQueue) Schedule(ctx context.Context, i work.Item, at time.Time) error {
	return q.Work.Schedule(ctx, busItem(i), at)
}

// work hands an item of the bus to the evaluator.
func (a *app) work(ctx context.Context, i bus.Item) error {
	return a.evaluator.Handle(ctx, work.Item{Ref: i.Ref, Kind: work.Kind(i.Kind), Reason: i.Reason, Attempt: i.Attempt})
}
