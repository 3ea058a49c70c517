package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
	"signalbox/internal/trace"
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
	ctx, span := b.cfg.Tracer.Begin(trace.WithEvent(ctx, e.ID), trace.Sends, "publish event", trace.Text("event", e.ID), trace.Text("type", string(e.Type)))
	result, err := b.publishEvent(ctx, e.Subject, e.ID, data)
	span.End(err)
	b.metrics.events.WithLabelValues(typeLabel(e.Type), result).Inc()
	if err != nil {
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
func (b *Bus) publishEvent(ctx context.Context, subject, id string, data []byte) (result string, err error) {
	for {
		try, cancel := context.WithTimeout(ctx, tryTime)
		result, _, err = b.store(try, streamEvents, &nats.Msg{Subject: subject, Data: data}, jetstream.WithMsgID(id))
		cancel()
		if err == nil || !passing(err) {
			return result, err
		}
		select {
		case <-time.After(tryAgain):
		case <-ctx.Done():
			return result, errors.Join(context.Cause(ctx), err)
		case <-b.closing:
			return result, errors.Join(errClosed, err)
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

// typeLabel is the type of an event as a label: only those that are known, so
// that there are not more and more of them.
func typeLabel(t events.Type) string {
	if slices.Contains(events.Types(), t) {
		return string(t)
	}
	return "other"
}

// Results of storing a message, as the label "result" has them.
const (
	storedOK        = "ok"
	storedDuplicate = "duplicate"
	storedConflict  = "conflict" // Somebody else was first, which is how replicas agree.
	storedError     = "error"
)

// publish stores a message and returns its sequence.
func (b *Bus) publish(ctx context.Context, stream string, msg *nats.Msg, opts ...jetstream.PublishOpt) (uint64, error) {
	_, seq, err := b.store(ctx, stream, msg, opts...)
	return seq, err
}

// store stores a message, with where it comes from unless it tells that already.
func (b *Bus) store(ctx context.Context, stream string, msg *nats.Msg, opts ...jetstream.PublishOpt) (result string, seq uint64, err error) {
	if msg.Header.Get(trace.HeaderEvent) == "" {
		setOrigin(msg, trace.Of(ctx))
	}
	ack, err := b.js.PublishMsg(ctx, msg, opts...)
	if err != nil {
		result = storedError
		if isConflict(err) {
			result = storedConflict
		}
		b.metrics.published.WithLabelValues(stream, result).Inc()
		if errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum) {
			return result, 0, events.Permanent(err)
		}
		return result, 0, err
	}
	result = storedOK
	if ack.Duplicate {
		result = storedDuplicate
	}
	b.metrics.published.WithLabelValues(stream, result).Inc()
	return result, ack.Sequence, nil
}

// setOrigin writes where a message comes from into its headers.
func setOrigin(msg *nats.Msg, o trace.Origin) {
	trace.Inject(o, func(key, value string) {
		if msg.Header == nil {
			msg.Header = nats.Header{}
		}
		msg.Header.Set(key, value)
	})
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
