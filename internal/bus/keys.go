package bus

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/trace"
)

// ConsumeKeys hands the key of each value of a bucket that was written or
// deleted to h until ctx ends, and then returns nil. When h runs, Get gives the
// value as written or newer. The name is that of a durable consumer, as with
// [Bus.ConsumeEvents]; a new name starts with every value that is stored. Values
// that change faster than h runs are handed over once, as they are then.
//
// Under narrows it to the keys that begin with some tokens, such as "slack"; empty
// means all.
//
// What fails is tried again for ever: h makes something true, and there is
// nothing to put aside. A permanent error ends it for this change.
func (k *Bucket[T]) ConsumeKeys(ctx context.Context, name, under string, h func(ctx context.Context, key string) error) error {
	return k.consumeKeys(ctx, name, under, math.MaxInt, h)
}

// keyWait bounds how long a message waits for the view to have what it says.
const keyWait = 10 * time.Second

func (k *Bucket[T]) consumeKeys(ctx context.Context, name, under string, maxDeliveries int, h func(ctx context.Context, key string) error) error {
	if under != "" {
		under += "."
	}
	return k.b.consume(ctx, consumer{
		stream: k.stream,
		label:  name,
		config: jetstream.ConsumerConfig{
			Durable:       name,
			FilterSubject: bucketPrefix(k.name) + under + ">",
			DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
			HeadersOnly:   true,
			MaxAckPending: 1000,
		},
		maxDeliveries: maxDeliveries,
		handle: func(ctx context.Context, d delivery) error {
			key := strings.TrimPrefix(d.msg.Subject(), bucketPrefix(k.name))
			wait, cancel := context.WithTimeout(ctx, keyWait)
			defer cancel()
			if err := k.view.wait(wait, d.seq); err != nil {
				return err
			}
			if _, revision, _ := k.Get(key); revision < d.seq { // deleted, or replaced before the view saw it
				if err := k.view.barrier(wait); err != nil {
					return err
				}
			}
			if trace.Event(ctx) == "" {
				// What changed is the event, such as an object of a cluster.
				ctx = trace.WithEvent(ctx, fmt.Sprintf("%s/%s@%d", k.name, key, d.seq))
			}
			return h(ctx, key)
		},
	})
}
