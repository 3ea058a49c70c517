package main

import (
	"context"
	"time"

	"signalbox/internal/bus"
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
