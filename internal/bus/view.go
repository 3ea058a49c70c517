package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// view keeps the values of a bucket in memory. It follows the stream, and what
// this process writes is entered when it is acknowledged.
type view[T any] struct {
	b      *Bus
	name   string
	stream string
	maxAge time.Duration

	// hooksMu is held while a change is applied and told to the hooks, so that
	// the hooks see the changes in the order in which the entries do.
	hooksMu sync.Mutex
	hooks   []func(key string, old, new *T)

	mu      sync.RWMutex
	entries map[string]entry[T]
	// deleted holds the revisions of deletions by this process that the stream
	// has not shown yet, so that older values that it shows are not taken.
	deleted map[string]uint64
	// reached is the sequence up to which the stream was followed, and gapAt the
	// last one before which a message was missing, see sync. Zero means that
	// nothing is missing.
	reached, gapAt uint64
	waiters        []waiter
	// failing is why the stream cannot be followed now, or nil.
	failing error
	// made is when the stream was made. A stream made anew counts from 1.
	made time.Time
}

type entry[T any] struct {
	value    T
	revision uint64
	at       time.Time
	err      error
	gone     bool // a deletion, which is not kept
}

// ptr returns the value for a hook: nil when there is none that can be read.
func (e entry[T]) ptr(found bool) *T {
	if !found || e.err != nil {
		return nil
	}
	return &e.value
}

type waiter struct {
	seq  uint64
	done chan struct{}
}

func newView[T any](b *Bus, name, stream string, maxAge time.Duration) *view[T] {
	return &view[T]{b: b, name: name, stream: stream, maxAge: maxAge, entries: map[string]entry[T]{}, deleted: map[string]uint64{}}
}

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
	from, stale := v.resume(s.CachedInfo().Created)
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
		v.drop(stale)
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
		delete(stale, key)
		v.apply(key, msg, md)
		v.follows(md.Sequence.Stream)
		catchUp(md.NumPending)
	}
}

// resume returns the sequence to follow from. When the stream is another one
// than before, it starts anew, and returns the keys that are stale unless the
// new stream has them.
func (v *view[T]) resume(made time.Time) (from uint64, stale map[string]struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !made.Equal(v.made) {
		v.made, v.reached = made, 0
		clear(v.deleted)
		stale = make(map[string]struct{}, len(v.entries))
		for key, e := range v.entries {
			e.revision = 0
			v.entries[key] = e
			stale[key] = struct{}{}
		}
	}
	return v.reached + 1, stale
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
		v.b.log.Debug("consumer of a view not deleted", "bucket", v.name, "error", err)
	}
}

// apply takes one message of the stream into the view.
func (v *view[T]) apply(key string, msg jetstream.Msg, md *jetstream.MsgMetadata) {
	data := msg.Data()
	if op := msg.Headers().Get(headerOperation); op == "DEL" || op == "PURGE" {
		data = nil
	}
	v.change(key, v.decode(key, data, md.Sequence.Stream, md.Timestamp))
}

// wrote enters what this process has written; nil data means deleted.
func (v *view[T]) wrote(key string, seq uint64, data []byte) {
	e := v.decode(key, data, seq, time.Now())
	if e.gone {
		v.mu.Lock()
		if v.reached < seq {
			v.deleted[key] = seq
		}
		v.mu.Unlock()
	}
	v.change(key, e)
}

// decode makes an entry of the data of a message; nil data means deleted.
func (v *view[T]) decode(key string, data []byte, seq uint64, at time.Time) entry[T] {
	e := entry[T]{revision: seq, at: at, gone: data == nil}
	if e.gone {
		return e
	}
	if err := json.Unmarshal(data, &e.value); err != nil {
		var zero T
		e.value = zero
		e.err = fmt.Errorf("bucket %s, key %s, revision %d: %w", v.name, key, seq, err)
		v.b.log.Error("value in a bucket cannot be decoded; the key counts as absent", "bucket", v.name, "key", key, "error", e.err)
	}
	return e
}

// change sets or deletes an entry unless the view has a newer one, and tells
// the hooks.
func (v *view[T]) change(key string, e entry[T]) {
	v.hooksMu.Lock()
	defer v.hooksMu.Unlock()
	v.mu.Lock()
	old, found := v.entries[key]
	if found && old.revision >= e.revision || v.deleted[key] > e.revision {
		v.mu.Unlock()
		return
	}
	if e.gone {
		delete(v.entries, key)
	} else {
		v.entries[key] = e
	}
	v.mu.Unlock()
	before, after := old.ptr(found), e.ptr(!e.gone)
	if before == nil && after == nil {
		return
	}
	for _, f := range v.hooks {
		f(key, before, after)
	}
}

func (v *view[T]) drop(keys map[string]struct{}) {
	for key := range keys {
		v.change(key, entry[T]{revision: math.MaxUint64, gone: true})
	}
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

// reach says that there is nothing to apply up to a sequence.
func (v *view[T]) reach(seq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advance(seq)
}

// advance is called with the lock held.
func (v *view[T]) advance(seq uint64) {
	if seq <= v.reached {
		return
	}
	v.reached = seq
	if len(v.deleted) > 0 {
		maps.DeleteFunc(v.deleted, func(_ string, at uint64) bool { return at <= seq })
	}
	v.waiters = slices.DeleteFunc(v.waiters, func(w waiter) bool {
		if w.seq > seq {
			return false
		}
		close(w.done)
		return true
	})
}

// wait returns when the view has reached a sequence.
func (v *view[T]) wait(ctx context.Context, seq uint64) error {
	v.mu.Lock()
	if v.reached >= seq {
		v.mu.Unlock()
		return nil
	}
	w := waiter{seq: seq, done: make(chan struct{})}
	v.waiters = append(v.waiters, w)
	v.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		v.mu.Lock()
		defer v.mu.Unlock()
		v.waiters = slices.DeleteFunc(v.waiters, func(o waiter) bool { return o.done == w.done })
		return fmt.Errorf("bucket %s: wait for sequence %d, at %d: %w", v.name, seq, v.reached, context.Cause(ctx))
	}
}

// sync waits until the view holds what was acknowledged before the call. With
// the embedded server nobody else writes, and the view has what this process
// wrote.
func (v *view[T]) sync(ctx context.Context) error {
	if v.b.cfg.embedded() {
		return nil
	}
	return v.barrier(ctx)
}

// barrier asks the server for the last sequence and waits for it.
//
// That is not enough when a message was missing: the stream keeps the last of
// each key only, so a message that is replaced before it is delivered is never
// seen, and the one that replaced it may be beyond the last sequence. Then the
// view must have been level with the stream at one moment.
func (v *view[T]) barrier(ctx context.Context) error {
	for {
		before, gap := v.position()
		last, err := v.b.lastMessage(ctx, v.stream, bucketPrefix(v.name)+">")
		if err != nil {
			return fmt.Errorf("bucket %s: ask for the last sequence: %w", v.name, err)
		}
		if last.seq <= before {
			v.closeGap(gap)
			return nil
		}
		if err := v.wait(ctx, last.seq); err != nil {
			return err
		}
		if _, gap := v.position(); gap == 0 {
			return nil
		}
	}
}

func (v *view[T]) position() (reached, gapAt uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.reached, v.gapAt
}

// closeGap forgets a gap, unless another one came since.
func (v *view[T]) closeGap(at uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gapAt == at {
		v.gapAt = 0
	}
}

func (v *view[T]) get(key string) (entry[T], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, ok := v.entries[key]
	if ok && v.expired(e) {
		return entry[T]{}, false
	}
	return e, ok
}

// all returns a copy of the entries, so that the caller may take its time.
func (v *view[T]) all() iter.Seq2[string, entry[T]] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.maxAge > 0 {
		maps.DeleteFunc(v.entries, func(_ string, e entry[T]) bool { return v.expired(e) })
	}
	return maps.All(maps.Clone(v.entries))
}

// expired reports whether the server has dropped an entry by its age, which it
// does without a message.
func (v *view[T]) expired(e entry[T]) bool {
	return v.maxAge > 0 && time.Since(e.at) > v.maxAge
}

func (v *view[T]) onChange(f func(key string, old, new *T)) {
	v.hooksMu.Lock()
	defer v.hooksMu.Unlock()
	for key, e := range v.all() {
		if p := e.ptr(true); p != nil {
			f(key, nil, p)
		}
	}
	v.hooks = append(v.hooks, f)
}

func (v *view[T]) setFailing(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failing = err
}

// healthy returns why the view lags, or nil.
func (v *view[T]) healthy() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.failing != nil {
		return fmt.Errorf("bucket %s cannot be followed: %w", v.name, v.failing)
	}
	return nil
}

// lastMessage is the newest message of a stream that matches a subject.
type lastMessage struct {
	seq     uint64
	deleted bool
}

// lastMessage asks the leader of a stream for its newest message; a direct get
// may be answered by a replica that lags. A sequence of zero means that there
// is none.
func (b *Bus) lastMessage(ctx context.Context, stream, subject string) (lastMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return lastMessage{}, err
	}
	msg, err := b.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, req)
	if err != nil {
		return lastMessage{}, err
	}
	var resp struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Seq    uint64 `json:"seq"`
			Header []byte `json:"hdrs"`
		} `json:"message"`
	}
	if err := json.Unmarshal(msg.Data, &resp); err != nil {
		return lastMessage{}, err
	}
	if resp.Error != nil {
		if resp.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return lastMessage{}, nil
		}
		return lastMessage{}, resp.Error
	}
	last := lastMessage{seq: resp.Message.Seq}
	if len(resp.Message.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(resp.Message.Header)
		if err != nil {
			return lastMessage{}, err
		}
		last.deleted = header.Get(headerOperation) != ""
	}
	return last, nil
}
