package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// view keeps the values of a bucket in memory and follows its stream.
type view[T any] struct {
	b      *Bus
	name   string
	stream string
	maxAge time.Duration

	// hooksMu is held while a change is applied and told to the hooks, so that
	// a hook that is added sees each change once.
	hooksMu sync.Mutex
	hooks   []func(key string, old, new *T)

	mu      sync.RWMutex
	entries map[string]entry[T]
	// reached is the sequence up to which entries and hooks are current.
	reached uint64
	waiters []waiter
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
	return &view[T]{b: b, name: name, stream: stream, maxAge: maxAge, entries: map[string]entry[T]{}}
}

// start follows the stream and returns when every value is loaded.
func (v *view[T]) start(ctx context.Context) error {
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
	v.b.mu.Lock()
	v.b.views[v.name] = v
	v.b.mu.Unlock()
	select {
	case <-loaded:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), v.healthy())
	}
}

// run follows the stream until ctx ends, through every interruption.
func (v *view[T]) run(ctx context.Context, loaded func()) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, 5*time.Second
	for {
		err := v.follow(ctx, func() {
			wait.Reset()
			v.setFailing(nil)
			loaded()
		})
		if ctx.Err() != nil {
			return
		}
		v.setFailing(err)
		delay := wait.NextBackOff()
		v.b.interrupted("view of a bucket interrupted; it is followed again", "bucket", v.name, "error", err, "in", delay)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
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
		stale = make(map[string]struct{}, len(v.entries))
		for key := range v.entries {
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

// apply takes one message into the view.
func (v *view[T]) apply(key string, msg jetstream.Msg, md *jetstream.MsgMetadata) {
	if op := msg.Headers().Get(headerOperation); op == "DEL" || op == "PURGE" {
		v.change(key, nil)
	} else {
		e := entry[T]{revision: md.Sequence.Stream, at: md.Timestamp}
		if err := json.Unmarshal(msg.Data(), &e.value); err != nil {
			e.err = fmt.Errorf("bucket %s, key %s, revision %d: %w", v.name, key, e.revision, err)
			var zero T
			e.value = zero
			v.b.log.Error("value in a bucket cannot be decoded; the key counts as absent", "bucket", v.name, "key", key, "error", e.err)
		}
		v.change(key, &e)
	}
	v.reach(md.Sequence.Stream)
}

// change sets or deletes an entry and tells the hooks.
func (v *view[T]) change(key string, e *entry[T]) {
	v.hooksMu.Lock()
	defer v.hooksMu.Unlock()
	v.mu.Lock()
	old, found := v.entries[key]
	var now entry[T]
	if e == nil {
		delete(v.entries, key)
	} else {
		now = *e
		v.entries[key] = now
	}
	v.mu.Unlock()
	before, after := old.ptr(found), now.ptr(e != nil)
	if before == nil && after == nil {
		return
	}
	for _, f := range v.hooks {
		f(key, before, after)
	}
}

func (v *view[T]) drop(keys map[string]struct{}) {
	for key := range keys {
		v.change(key, nil)
	}
}

// reach says that the view is current up to a sequence.
func (v *view[T]) reach(seq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reached = max(v.reached, seq)
	rest := v.waiters[:0]
	for _, w := range v.waiters {
		if w.seq <= v.reached {
			close(w.done)
		} else {
			rest = append(rest, w)
		}
	}
	clear(v.waiters[len(rest):])
	v.waiters = rest
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
		for i := range v.waiters {
			if v.waiters[i].done == w.done {
				v.waiters = append(v.waiters[:i], v.waiters[i+1:]...)
				break
			}
		}
		return fmt.Errorf("bucket %s: wait for sequence %d, at %d: %w", v.name, seq, v.reached, context.Cause(ctx))
	}
}

// sync waits until the view holds what was acknowledged before the call. With
// the embedded server every write passes through this process, so there is
// nobody to ask.
func (v *view[T]) sync(ctx context.Context) error {
	if v.b.cfg.embedded() {
		return v.wait(ctx, v.b.lastAcked(v.stream).Load())
	}
	last, err := v.b.lastMessage(ctx, v.stream, bucketPrefix(v.name)+">")
	if err != nil {
		return fmt.Errorf("bucket %s: ask for the last sequence: %w", v.name, err)
	}
	return v.wait(ctx, last.seq)
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
