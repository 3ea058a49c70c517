package bus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// start follows the stream and returns when every value is loaded.
func (v *view[T]) start(ctx context.Context) error {
	if !v.b.addView(v.name, v) {
		return errors.New("it is open already")
	}
	leave, err := v.b.enter(&v.b.following)
	if err != nil {
		return err
	}
	loaded := make(chan struct{})
	follow, cancel := until(context.WithoutCancel(ctx), v.b.abort)
	go func() {
		defer leave()
		defer cancel()
		v.run(follow, sync.OnceFunc(func() { close(loaded) }))
	}()
	select {
	case <-loaded:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), v.healthy())
	}
}

// run follows the stream until ctx ends, through every interruption.
func (v *view[T]) run(ctx context.Context, loaded func()) {
	trouble := v.b.newTrouble("bucket", v.name)
	for {
		v.b.connectedAgain(ctx)
		connection, cancel := until(ctx, v.b.reconnected())
		err := v.follow(connection, func() {
			v.setFailing(nil)
			loaded()
		})
		renewed := connection.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		if renewed {
			continue // the server may not know the consumer any more
		}
		v.setFailing(err)
		trouble.wait(ctx, err)
	}
}

// errGap says that a message was missed.
var errGap = errors.New("messages were missed")

// follow reads the stream from where the view is. It calls current once the
// view has caught up with the state in which follow found the stream.
func (v *view[T]) follow(ctx context.Context, current func()) error {
	s, err := v.b.js.Stream(ctx, v.stream)
	if err != nil {
		return err
	}
	last := s.CachedInfo().State.LastSeq
	from := v.resume(s.CachedInfo().Created)
	cfg := jetstream.ConsumerConfig{
		AckPolicy:         jetstream.AckNonePolicy,
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		FilterSubject:     bucketPrefix(v.name) + ">",
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: 5 * time.Minute,
	}
	if from > 1 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, from
	}
	cons, err := s.CreateConsumer(ctx, cfg)
	if err != nil {
		return err
	}
	defer v.forget(ctx, cons)
	it, err := cons.Messages(jetstream.PullMaxMessages(512), jetstream.PullHeartbeat(v.b.cfg.timing.heartbeat),
		jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return err
	}
	defer it.Stop()

	caughtUp := false
	catchUp := func(pending uint64) {
		if caughtUp || pending > 0 {
			return
		}
		caughtUp = true
		v.dropStale()
		v.reach(last)
		current()
	}
	catchUp(cons.CachedInfo().NumPending)
	for next := uint64(1); ; next++ {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		md, err := msg.Metadata()
		if err != nil {
			return err
		}
		if md.Sequence.Consumer != next {
			return errGap
		}
		key := strings.TrimPrefix(msg.Subject(), bucketPrefix(v.name))
		v.apply(key, msg, md)
		v.follows(md.Sequence.Stream)
		catchUp(md.NumPending)
	}
}

// resume returns the sequence to follow from. When the stream is another one
// than before, it is followed from the start, and what the view has is stale
// until the new stream shows it again; see dropStale.
func (v *view[T]) resume(made time.Time) (from uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !made.Equal(v.made) {
		v.made, v.reached = made, 0
		for key, e := range v.entries {
			e.revision = 0
			v.entries[key] = e
		}
	}
	return v.reached + 1
}

// forget deletes a consumer that is not needed any more. The server would do
// so itself after a while.
func (v *view[T]) forget(ctx context.Context, cons jetstream.Consumer) {
	if !v.b.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := v.b.js.DeleteConsumer(ctx, v.stream, cons.CachedInfo().Name); err != nil {
		v.b.log.DebugContext(ctx, "consumer of a view not deleted", "bucket", v.name, "error", err)
	}
}

// apply takes one message of the stream into the view.
func (v *view[T]) apply(key string, msg jetstream.Msg, md *jetstream.MsgMetadata) {
	if deletes(msg.Headers()) {
		v.change(key, entry[T]{revision: md.Sequence.Stream, at: md.Timestamp, gone: true})
		return
	}
	if v.has(key, md.Sequence.Stream) {
		return // this process wrote it
	}
	v.change(key, v.decode(key, msg.Data(), md.Sequence.Stream, md.Timestamp))
}

// follows says that the message with a sequence was applied.
func (v *view[T]) follows(seq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seq != v.reached+1 {
		v.gapAt = seq
	}
	v.advance(seq)
}
