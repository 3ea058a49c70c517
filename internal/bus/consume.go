package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"signalbox/internal/events"
	"signalbox/internal/trace"
)

// ConsumeEvents hands each event on the subjects to h until ctx ends, and then
// returns nil. The name is that of a durable consumer: all replicas that use
// one name share its events, and it goes on after a restart where it was. A
// new name starts with the oldest event that is stored.
//
// Several events are handled at once, in no fixed order. See the package
// comment for what the error of h does. ConsumeEvents returns an error only
// when the consumer cannot be set up.
func (b *Bus) ConsumeEvents(ctx context.Context, name string, subjects []string, h func(context.Context, events.Event) error) error {
	for _, s := range subjects {
		// The server would take it, and never deliver anything.
		if !strings.HasPrefix(s, events.SubjectRoot+".") {
			return fmt.Errorf("consumer %s: %q is not a subject of events", name, s)
		}
	}
	return b.consume(ctx, consumer{
		stream:  streamEvents,
		label:   name,
		workers: b.cfg.Workers,
		config: jetstream.ConsumerConfig{
			Durable:        name,
			FilterSubjects: subjects,
			DeliverPolicy:  jetstream.DeliverAllPolicy,
			MaxAckPending:  1000,
		},
		maxDeliveries: b.cfg.MaxDeliveries,
		handle: func(ctx context.Context, d delivery) error {
			var e events.Event
			if err := json.Unmarshal(d.msg.Data(), &e); err != nil {
				return events.Permanent(fmt.Errorf("decode event: %w", err))
			}
			return h(trace.WithEvent(ctx, e.ID), e)
		},
	})
}

// consumer describes a durable consumer and what is done with its messages.
type consumer struct {
	stream  string
	label   string
	workers int
	config  jetstream.ConsumerConfig
	// maxDeliveries is how often a message is tried before it is put aside.
	maxDeliveries int
	handle        func(context.Context, delivery) error
	// again, if set, replaces the delayed redelivery of a failed message: it
	// arranges for another try, and the message is acknowledged.
	again func(context.Context, delivery, error) error
	// superseded, if set, reports that a newer message makes this one needless.
	superseded func(context.Context, delivery) bool
}

// delivery is one message in hand.
type delivery struct {
	msg jetstream.Msg
	// seq is its sequence in the stream, count how often it was delivered.
	seq   uint64
	count int
}

// consume runs a consumer until ctx ends or the bus closes.
func (b *Bus) consume(ctx context.Context, c consumer) error {
	if !validName.MatchString(c.config.Durable) {
		return fmt.Errorf("%q cannot be the name of a consumer: letters, digits, - and _ only", c.config.Durable)
	}
	leave, err := b.enter(&b.consumers)
	if err != nil {
		return err
	}
	defer leave()
	c.config.AckPolicy = jetstream.AckExplicitPolicy
	c.config.AckWait = b.cfg.timing.ackWait
	c.config.MaxDeliver = -1 // counted here, so that the message can be put aside
	handling, cancel := until(ctx, b.abort)
	defer cancel()
	taking, cancel := until(ctx, b.closing)
	defer cancel()

	trouble := b.newTrouble("consumer", c.label, "stream", c.stream)
	for {
		cons, err := b.setUp(taking, c)
		switch {
		case err == nil:
			err = b.takeAll(taking, handling, c, cons)
		case refused(err):
			return fmt.Errorf("set up consumer %s on stream %s: %w", c.config.Durable, c.stream, err)
		}
		if taking.Err() != nil {
			return nil
		}
		if errors.Is(err, errReconnected) {
			continue
		}
		b.metrics.recreated.WithLabelValues(c.label).Inc()
		trouble.wait(taking, err)
	}
}

// errReconnected says that the connection is a new one, so that no answer will
// come to what was asked on the old one.
var errReconnected = errors.New("the connection was made again")

// setUp makes the consumer or brings it to the wanted form.
func (b *Bus) setUp(taking context.Context, c consumer) (jetstream.Consumer, error) {
	b.connectedAgain(taking)
	ctx, cancel := until(taking, b.reconnected())
	defer cancel()
	cons, err := b.js.CreateOrUpdateConsumer(ctx, c.stream, c.config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, errReconnected
		}
		return nil, err
	}
	b.metrics.lag.add(c.stream+" "+c.config.Durable, lagSource{c.label, cons.Info, b.oldest(c)})
	return cons, nil
}

// oldest returns how the first message for a consumer is found that it is not done
// with; see [lagSource].
func (b *Bus) oldest(c consumer) func(context.Context, uint64) (time.Time, bool) {
	filters := c.config.FilterSubjects
	if len(filters) == 0 {
		filters = []string{c.config.FilterSubject}
	}
	return func(ctx context.Context, from uint64) (at time.Time, ok bool) {
		s, err := b.js.Stream(ctx, c.stream)
		if err != nil {
			return at, false
		}
		for _, subject := range filters {
			msg, err := s.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
			if err == nil && (!ok || msg.Time.Before(at)) {
				at, ok = msg.Time, true
			}
		}
		return at, ok
	}
}

// next waits for one message; nil means that it is to be asked for again.
//
// One at a time, because one that waits in a buffer here could be handled by
// another worker or replica. The iterator of the library is not used: with a
// buffer of one it may forget to ask for the next message.
func (b *Bus) next(taking context.Context, cons jetstream.Consumer) (jetstream.Msg, error) {
	ctx, cancel := until(taking, b.reconnected())
	defer cancel()
	msg, err := cons.Next(jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(b.cfg.timing.heartbeat))
	switch {
	case err == nil:
		return msg, nil
	case taking.Err() != nil:
		return nil, taking.Err()
	case errors.Is(err, nats.ErrTimeout), ctx.Err() != nil:
		return nil, nil // there was none for a while, or the connection is a new one
	}
	return nil, err
}

// validName is what NATS takes as the name of a consumer, narrowed to what is
// safe as a file name too.
var validName = regexp.MustCompile(`^[-_a-zA-Z0-9]{1,64}$`)

// refused reports whether the server understood a request and said no, so that
// a repeat cannot help.
func refused(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.Code >= 400 && api.Code < 500
}

// takeAll lets the workers take messages until taking ends, or until the
// consumer went missing, which it returns as an error.
func (b *Bus) takeAll(taking, handling context.Context, c consumer, cons jetstream.Consumer) error {
	group, taking := errgroup.WithContext(taking)
	for range max(c.workers, 1) {
		group.Go(func() error {
			for {
				msg, err := b.next(taking, cons)
				if err != nil {
					return err
				}
				if msg != nil {
					b.deliver(handling, c, msg)
				}
			}
		})
	}
	return group.Wait()
}
