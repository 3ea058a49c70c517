package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
)

// Publish stores an event and returns when the server has acknowledged it. An
// event whose id was published within the duplicate window is not stored
// again, which is no error. An event that can never be stored, because it is
// too large or malformed, gives a permanent error.
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
	_, err = b.publish(ctx, streamEvents, &nats.Msg{Subject: e.Subject, Data: data}, jetstream.WithMsgID(e.ID))
	if err != nil {
		return fmt.Errorf("publish event %s: %w", e.ID, err)
	}
	return nil
}

// publish stores a message and returns its sequence.
func (b *Bus) publish(ctx context.Context, stream string, msg *nats.Msg, opts ...jetstream.PublishOpt) (uint64, error) {
	ack, err := b.js.PublishMsg(ctx, msg, opts...)
	if err != nil {
		b.metrics.published.WithLabelValues(stream, "error").Inc()
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
