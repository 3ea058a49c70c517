package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
	"signalbox/internal/trace"
)

// deliver handles one message and settles what becomes of it. All rules of
// acknowledgement are here.
func (b *Bus) deliver(ctx context.Context, c consumer, msg jetstream.Msg) {
	log := b.log.With("consumer", c.label, "subject", msg.Subject())
	origin := trace.Read(msg.Headers().Get)
	ctx = trace.WithEvent(ctx, origin.Event)
	d := delivery{msg: msg, count: 1}
	if md, err := msg.Metadata(); err == nil {
		d.seq, d.count = md.Sequence.Stream, int(md.NumDelivered)
	}
	if only := msg.Headers().Get(headerConsumer); only != "" && only != c.config.Durable {
		// A dead letter of another consumer, tried again.
		b.settled(c, resultOK, msg.Ack())
		return
	}
	if c.superseded != nil && c.superseded(ctx, d) {
		b.settled(c, resultCollapsed, msg.Ack())
		return
	}
	// A message that ends the process each time never gets to return an error.
	if d.count > c.maxDeliveries {
		b.putAside(ctx, c, d, fmt.Errorf("it was delivered %d times without a result", d.count-1))
		return
	}
	ctx, span := b.cfg.Tracer.Resume(ctx, origin, "handle "+c.label, trace.Text("consumer", c.label), trace.Number("deliveries", int64(d.count)))
	err := b.run(ctx, c, d)
	span.End(err)
	switch {
	case err == nil:
		b.settled(c, resultOK, msg.Ack())
	case errors.Is(err, errLeaseLost):
		b.settled(c, resultCancelled, nil)
	case ctx.Err() != nil:
		// Not acknowledged, and free at once for another replica or the next start.
		b.settled(c, resultCancelled, msg.Nak())
	case events.IsPermanent(err), c.again == nil && d.count >= c.maxDeliveries:
		b.putAside(ctx, c, d, err)
	default:
		if c.again != nil {
			failed := c.again(ctx, d, err)
			if failed == nil {
				b.settled(c, resultRetry, msg.Ack())
				return
			}
			err = errors.Join(err, failed)
		}
		delay := b.retryDelay(d.count, err)
		log.WarnContext(ctx, "handler failed; the message is delivered again", "error", err, "deliveries", d.count, "in", delay)
		b.settled(c, resultRetry, msg.NakWithDelay(delay))
	}
}

// settled counts a result. An acknowledgement that could not be sent is no
// failure: the message is delivered again.
func (b *Bus) settled(c consumer, result string, err error) {
	b.metrics.handled.WithLabelValues(c.label, result).Inc()
	if err != nil {
		b.log.Warn("acknowledgement not sent; the message is delivered again", "consumer", c.label, "error", err)
	}
}

// putAside copies a message to the dead letters and only then takes it off its
// stream.
func (b *Bus) putAside(ctx context.Context, c consumer, d delivery, reason error) {
	log := b.log.With("consumer", c.label, "subject", d.msg.Subject(), "deliveries", d.count)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := b.dead.add(ctx, c, d, reason); err != nil {
		delay := b.retryDelay(d.count, err)
		log.ErrorContext(ctx, "dead letter not stored; the message is delivered again", "error", err, "reason", reason, "in", delay)
		b.settled(c, resultRetry, d.msg.NakWithDelay(delay))
		return
	}
	log.ErrorContext(ctx, "message put aside as a dead letter", "reason", reason)
	b.metrics.deadLetters.WithLabelValues(c.label).Inc()
	b.settled(c, resultDead, d.msg.Term())
}

// retryDelay grows with the number of deliveries. It is never shorter than
// what the other side asked for.
func (b *Bus) retryDelay(count int, err error) time.Duration {
	t := b.cfg.timing
	delay := t.retryMax
	if shift := count - 1; shift < 32 && t.retryMin<<shift < t.retryMax {
		delay = t.retryMin << shift
	}
	// Between three quarters and the whole: enough to spread what failed
	// together.
	delay -= rand.N(delay/4 + 1)
	if asked, ok := events.Delay(err); ok {
		// More than an hour is a mistake of the other side.
		delay = max(delay, min(asked, time.Hour))
	}
	return delay
}

// errLeaseLost ends a handler whose message may be delivered to somebody else,
// because the server has not heard from this process for too long.
var errLeaseLost = errors.New("the connection to NATS was lost while the message was in hand")

// run calls the handler, shows the server that the message is in hand, and
// turns a panic into an error.
func (b *Bus) run(ctx context.Context, c consumer, d delivery) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	alive := make(chan struct{})
	go func() {
		defer close(alive)
		b.keepAlive(ctx, d.msg, cancel)
	}()
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			b.metrics.panics.WithLabelValues(c.label).Inc()
			b.log.ErrorContext(ctx, "handler panicked", "consumer", c.label, "subject", d.msg.Subject(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("handler panicked: %v", p)
		}
		b.metrics.duration.WithLabelValues(c.label).Observe(time.Since(start).Seconds())
		lost := errors.Is(context.Cause(ctx), errLeaseLost)
		cancel(nil)
		<-alive
		if err != nil && lost {
			err = errors.Join(errLeaseLost, err)
		}
	}()
	return c.handle(ctx, d)
}

// keepAlive tells the server in time that the message is in hand. When that was
// not confirmed, it ends the handler before the server may deliver the message
// to somebody else.
func (b *Bus) keepAlive(ctx context.Context, msg jetstream.Msg, cancel context.CancelCauseFunc) {
	wait := b.cfg.timing.ackWait
	every := wait / 4
	deadline := time.Now().Add(wait - every)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		sent := time.Now()
		err := b.confirmInProgress(ctx, msg, deadline)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			deadline = sent.Add(wait - every)
			timer.Reset(every)
		case !time.Now().Before(deadline):
			b.log.ErrorContext(ctx, "message in hand for too long without NATS; its handler is ended", "subject", msg.Subject(), "error", err)
			cancel(errLeaseLost)
			return
		default:
			timer.Reset(every / 10)
		}
	}
}

// ackInProgress is what tells that a message is in hand.
var ackInProgress = []byte("+WPI")

// confirmInProgress says that a message is in hand, and waits until whoever
// would deliver it again has heard so. To have sent it is not enough: the
// server at the other end of the connection may be cut off from that one.
func (b *Bus) confirmInProgress(ctx context.Context, msg jetstream.Msg, deadline time.Time) error {
	if limit := time.Now().Add(tryTime); limit.Before(deadline) {
		deadline = limit
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	_, err := b.nc.RequestWithContext(ctx, msg.Reply(), ackInProgress)
	return err
}
