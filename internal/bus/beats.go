package bus

import (
	"context"
	"time"

	"signalbox/internal/fact"
)

// Beat says that a replica heard from a cluster.
type Beat struct {
	Cluster string    `json:"cluster"`
	Replica string    `json:"replica"`
	At      time.Time `json:"at"`
}

// beatsMaxAge is how long a heartbeat is remembered. It only keeps replicas
// that are long gone from piling up; who is silent is for the reader to say.
const beatsMaxAge = 7 * 24 * time.Hour

// Beats holds the last heartbeat of each cluster from each replica.
type Beats struct{ bucket *Bucket[Beat] }

func openBeats(ctx context.Context, b *Bus) (*Beats, error) {
	bucket, err := OpenBriefBucket[Beat](ctx, b, "beats", beatsMaxAge)
	if err != nil {
		return nil, err
	}
	return &Beats{bucket: bucket}, nil
}

// Send stores a heartbeat over the last one of the same cluster and replica.
func (b *Beats) Send(ctx context.Context, v Beat) error {
	key := fact.Key{Source: fact.SourceKube, Scope: v.Cluster, Kind: "beat", Name: v.Replica}
	_, err := b.bucket.Set(ctx, key.String(), v)
	return err
}

// Last returns when any replica last heard from a cluster.
func (b *Beats) Last(cluster string) (at time.Time, ok bool) {
	for _, v := range b.bucket.All() {
		if v.Cluster == cluster && (!ok || v.At.After(at)) {
			at, ok = v.At, true
		}
	}
	return at, ok
}

// Sync is the barrier; see [Bucket.Sync].
func (b *Beats) Sync(ctx context.Context) error { return b.bucket.Sync(ctx) }
