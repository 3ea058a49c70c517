package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"signalbox/internal/events"
)

// Consume hands each piece of work that is due to h until ctx ends, and then
// returns nil. One pull request is never in the hands of two calls at once,
// over all replicas. Of several pieces of one kind that wait for the same pull
// request, only the newest is handed over.
//
// When h fails, the pull request is scheduled again as [Retry] after a delay
// that grows with the attempts, without end, because the next one may succeed;
// meanwhile others go on. A permanent error makes a dead letter.
func (w *Work) Consume(ctx context.Context, h func(context.Context, Item) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for p := range w.b.cfg.Partitions {
		group.Go(func() error { return w.b.consume(ctx, w.consumer(p, h)) })
	}
	return group.Wait()
}

func (w *Work) consumer(p int, h func(context.Context, Item) error) consumer {
	name := "work-" + strconv.Itoa(p)
	return consumer{
		stream: streamWork,
		label:  "work",
		config: jetstream.ConsumerConfig{
			Durable:       name,
			FilterSubject: workRun + strconv.Itoa(p) + ".>",
			DeliverPolicy: jetstream.DeliverAllPolicy,
			// This is what keeps a pull request in one pair of hands.
			MaxAckPending: 1,
		},
		maxDeliveries: w.b.cfg.MaxDeliveries,
		superseded:    w.superseded,
		handle: func(ctx context.Context, d delivery) error {
			item, err := decodeItem(d.msg.Data())
			if err != nil {
				return err
			}
			return h(ctx, item)
		},
		again: w.again,
	}
}

func decodeItem(data []byte) (Item, error) {
	var item Item
	if err := json.Unmarshal(data, &item); err != nil {
		return item, events.Permanent(fmt.Errorf("decode work: %w", err))
	}
	return item, checkItem(item)
}

// superseded reports whether newer work of the same pull request and kind is
// due. It was stored before this one was looked at, so nothing is missed.
func (w *Work) superseded(ctx context.Context, d delivery) bool {
	last, err := w.b.streams[streamWork].GetLastMsgForSubject(ctx, d.msg.Subject())
	return err == nil && last.Sequence > d.seq
}

// again schedules failed work anew.
func (w *Work) again(ctx context.Context, d delivery, reason error) error {
	item, err := decodeItem(d.msg.Data())
	if err != nil {
		return errors.Join(reason, err)
	}
	item.Kind = Retry
	item.Attempt++
	delay := w.b.retryDelay(item.Attempt, reason)
	w.b.log.WarnContext(ctx, "work failed; it is tried again", "pull", w.pullName(item.Ref), "attempt", item.Attempt, "error", reason, "in", delay)
	return w.Schedule(context.WithoutCancel(ctx), item, time.Now().Add(delay))
}
