package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
)

// deadRoot is the first token of the subjects of dead letters.
const deadRoot = "dead"

// Headers of a dead letter, and of a message that is tried again.
const (
	headerConsumer   = "Signalbox-Consumer"
	headerStream     = "Signalbox-Stream"
	headerSubject    = "Signalbox-Subject"
	headerReason     = "Signalbox-Reason"
	headerDeliveries = "Signalbox-Deliveries"
	headerTooLarge   = "Signalbox-Data-Left-Out"
)

// maxReason is the length in bytes after which the reason is cut.
const maxReason = 4096

// Dead holds what could not be handled.
type Dead struct{ b *Bus }

// DeadLetter is a message that was put aside.
type DeadLetter struct {
	ID uint64
	// Time is when it was put aside, in UTC.
	Time time.Time
	// Stream and Subject are where the message was; Consumer is who could not
	// handle it.
	Stream, Subject, Consumer string
	// Data is the message as it was, except for a fact, which is not kept.
	Data   []byte
	Reason string
	// Deliveries is how often it was tried.
	Deliveries int
}

// add stores a copy of a message. To add one twice is harmless.
func (q *Dead) add(ctx context.Context, c consumer, d delivery, reason error) error {
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' ' // a header is one line
		}
		return r
	}, strings.ToValidUTF8(reason.Error(), "?"))
	msg := nats.NewMsg(deadRoot + "." + c.stream)
	msg.Header.Set(headerConsumer, c.config.Durable)
	msg.Header.Set(headerStream, c.stream)
	msg.Header.Set(headerSubject, d.msg.Subject())
	msg.Header.Set(headerReason, strings.ToValidUTF8(text[:min(len(text), maxReason)], ""))
	msg.Header.Set(headerDeliveries, strconv.Itoa(d.count))
	msg.Data = d.msg.Data()
	id := jetstream.WithMsgID(fmt.Sprintf("%s/%d/%s", c.stream, d.seq, c.config.Durable))
	_, err := q.b.publish(ctx, streamDead, msg, id)
	if events.IsPermanent(err) {
		// Better the reason without the message than neither.
		msg.Header.Set(headerTooLarge, strconv.Itoa(len(msg.Data)))
		msg.Data = nil
		_, err = q.b.publish(ctx, streamDead, msg, id)
	}
	return err
}

// Count returns how many dead letters there are.
func (q *Dead) Count(ctx context.Context) (int, error) {
	info, err := q.stream().Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return int(info.State.Msgs), nil
}

func (q *Dead) stream() jetstream.Stream { return q.b.streams[streamDead] }

// List returns the newest dead letters, the newest first, at most limit.
func (q *Dead) List(ctx context.Context, limit int) ([]DeadLetter, error) {
	info, err := q.stream().Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	gone := make(map[uint64]bool, len(info.State.Deleted))
	for _, seq := range info.State.Deleted {
		gone[seq] = true
	}
	var out []DeadLetter
	for seq := info.State.LastSeq; seq >= max(info.State.FirstSeq, 1) && len(out) < limit; seq-- {
		if gone[seq] {
			continue
		}
		l, err := q.get(ctx, seq)
		if errors.Is(err, ErrNoDeadLetter) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		out = append(out, l)
	}
	return out, nil
}

func (q *Dead) get(ctx context.Context, id uint64) (DeadLetter, error) {
	msg, err := q.stream().GetMsg(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return DeadLetter{}, ErrNoDeadLetter
	}
	if err != nil {
		return DeadLetter{}, err
	}
	count, _ := strconv.Atoi(msg.Header.Get(headerDeliveries)) // absent counts as none
	l := DeadLetter{
		ID:         msg.Sequence,
		Time:       msg.Time.UTC(),
		Stream:     msg.Header.Get(headerStream),
		Subject:    msg.Header.Get(headerSubject),
		Consumer:   msg.Header.Get(headerConsumer),
		Data:       msg.Data,
		Reason:     msg.Header.Get(headerReason),
		Deliveries: count,
	}
	if size := msg.Header.Get(headerTooLarge); size != "" {
		l.Data = nil
		l.Reason += " (the message of " + size + " bytes was too large to keep)"
	}
	return l, nil
}

// Retry gives a dead letter back to the consumer that could not handle it, and
// drops it. To retry one twice is an error the second time.
func (q *Dead) Retry(ctx context.Context, id uint64) error {
	l, err := q.get(ctx, id)
	if err != nil {
		return fmt.Errorf("retry dead letter %d: %w", id, err)
	}
	if bucket, ok := strings.CutPrefix(l.Stream, "KV_"); ok {
		err = q.touch(ctx, bucket, strings.TrimPrefix(l.Subject, bucketPrefix(bucket)))
	} else if len(l.Data) == 0 {
		err = errors.New("its data was not kept; drop it")
	} else {
		msg := &nats.Msg{Subject: l.Subject, Data: l.Data, Header: nats.Header{}}
		msg.Header.Set(headerConsumer, l.Consumer)
		// An id of its own: that of the first delivery is remembered still.
		_, err = q.b.publish(ctx, l.Stream, msg, jetstream.WithMsgID("dead/"+strconv.FormatUint(id, 10)+"/"+l.Time.Format(time.RFC3339Nano)))
	}
	if err != nil {
		return fmt.Errorf("retry dead letter %d: %w", id, err)
	}
	return q.Drop(ctx, id)
}

// touch writes the current value of a key again, so that its consumers see it
// as changed. A value that is gone or replaced meanwhile needs no retry.
func (q *Dead) touch(ctx context.Context, bucket, key string) error {
	s, err := q.b.js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return err
	}
	last, err := s.GetLastMsgForSubject(ctx, bucketPrefix(bucket)+key)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: last.Subject, Data: last.Data, Header: nats.Header{}}
	if op := last.Header.Get(headerOperation); op != "" {
		msg.Header.Set(headerOperation, op)
	}
	_, err = q.b.publish(ctx, "KV_"+bucket, msg, jetstream.WithExpectLastSequencePerSubject(last.Sequence))
	if isConflict(err) {
		return nil
	}
	return err
}

// Drop deletes a dead letter.
func (q *Dead) Drop(ctx context.Context, id uint64) error {
	err := q.stream().DeleteMsg(ctx, id)
	if err == nil {
		return nil
	}
	// The server does not say by a code of its own that there is none.
	if _, missing := q.get(ctx, id); errors.Is(missing, ErrNoDeadLetter) {
		err = missing
	}
	return fmt.Errorf("drop dead letter %d: %w", id, err)
}

// ErrNoDeadLetter is returned for a dead letter that is not there, or not any
// more.
var ErrNoDeadLetter = errors.New("there is no such dead letter")
