package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
)

// Publish stores an event and returns when the server has acknowledged it. An
// event whose id was published within the duplicate window is not stored
// again, which is no error. An event that can never be stored, because it is
// too large or malformed, gives a permanent error.
//
// While nobody takes the event, because the servers choose a new leader or the
// connection is made again, it is tried until ctx ends, or for ten seconds if
// that has no deadline.
func (b *Bus) Publish(ctx context.Context, e events.Event) error {
	if !strings.HasPrefix(e.Subject, events.SubjectRoot+".") || !validSubject(e.Subject) {
		return events.Permanent(fmt.Errorf("publish event %s: %q is not a subject for events", e.ID, e.Subject))
	}
	if e.ID == "" {
		return events.Permanent(errors.New("publish event: it has no id"))
	}
	data, err := json.Marshal(e)
	if err != nil {
		return events.Permanent(fmt.Errorf("publish event %s: %w", e.ID, err))
	}
	if limit := b.payloadLimit(); len(data) > limit {
		return events.Permanent(fmt.Errorf("publish event %s: it has %d bytes, the limit is %d", e.ID, len(data), limit))
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, publishTime)
		defer cancel()
	}
	if err := b.publishEvent(ctx, e.Subject, e.ID, data); err != nil {
		return fmt.Errorf("publish event %s: %w", e.ID, err)
	}
	return nil
}

const (
	// publishTime is how long an event is tried: servers take up to nine seconds
	// to miss a leader and choose another.
	publishTime = 10 * time.Second
	// tryTime is how long one try waits: an answer that a dead leader owes never
	// comes.
	tryTime = 2 * time.Second
	// tryAgain is the pause between two tries.
	tryAgain = 100 * time.Millisecond
)

// publishEvent tries until the event is stored, which the id makes safe to
// repeat.
func (b *Bus) publishEvent(ctx context.Context, subject, id string, data []byte) error {
	for {
		try, cancel := context.WithTimeout(ctx, tryTime)
		_, err := b.publish(try, streamEvents, &nats.Msg{Subject: subject, Data: data}, jetstream.WithMsgID(id))
		cancel()
		if err == nil || !passing(err) {
			return err
		}
		select {
		case <-time.After(tryAgain):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-b.closing:
			return errors.Join(errClosed, err)
		}
	}
}

// passing reports whether the same message may be taken a moment later. That
// another process has the same one in hand is of that kind: whether its message
// was stored is known only then.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == errDuplicateInProcess {
		return true
	}
	return !events.IsPermanent(err) && !refused(err) && !errors.Is(err, nats.ErrConnectionClosed)
}

// errDuplicateInProcess is of a replicated stream that has a message with the
// same id, which is not on a quorum yet (JSStreamDuplicateMessageConflict).
const errDuplicateInProcess = 10158

// publish stores a message and returns its sequence.
func (b *Bus) publish(ctx context.Context, stream string, msg *nats.Msg, opts ...jetstream.PublishOpt) (uint64, error) {
	ack, err := b.js.PublishMsg(ctx, msg, opts...)
	if err != nil {
		result := "error"
		if isConflict(err) {
			// Somebody else was first, which is how replicas agree.
			result = "conflict"
		}
		b.metrics.published.WithLabelValues(stream, result).Inc()
		if errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum) {
			return 0, events.Permanent(err)
		}
		return 0, err
	}
	result := "ok"
	if ack.Duplicate {
		result = "duplicate"
	}
	b.metrics.published.WithLabelValues(stream, result).Inc()
	return ack.Sequence, nil
}

// validSubject reports whether a subject can be published on: tokens of
// printable characters other than wildcards, separated by dots.
func validSubject(s string) bool {
	for tok := range strings.SplitSeq(s, ".") {
		if tok == "" || strings.ContainsFunc(tok, func(r rune) bool { return r <= ' ' || r == '*' || r == '>' || r == 0x7f }) {
			return false
		}
	}
	return true
}
