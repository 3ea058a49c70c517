package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
)

// headerOperation marks the deletion of a key (ADR-8).
const headerOperation = "KV-Operation"

// ErrConflict is returned when a key was written by somebody else since it was
// read. The view then has what was written: read it again and decide anew.
var ErrConflict = errors.New("written by somebody else meanwhile")

// isConflict reports whether the server refused a write because the last
// sequence was another one. Replicated streams have a code of their own.
func isConflict(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// Bucket holds the last value of each key as JSON, and a view of all of them
// in memory that follows the server. Values read from it are shared and must
// not be changed.
type Bucket[T any] struct {
	b      *Bus
	name   string
	stream string
	view   *view[T]
}

// OpenBucket makes the bucket if it is missing and returns when its view holds
// every value. The view follows until the bus closes. A bucket is opened once
// and shared; to open it again is an error.
func OpenBucket[T any](ctx context.Context, b *Bus, name string) (*Bucket[T], error) {
	return OpenBriefBucket[T](ctx, b, name, 0)
}

// OpenBriefBucket opens a bucket whose values, and whose marks of what was deleted,
// vanish after an age.
func OpenBriefBucket[T any](ctx context.Context, b *Bus, name string, maxAge time.Duration) (*Bucket[T], error) {
	spec := bucketStream(name, maxAge)
	if _, err := b.ensureStream(ctx, spec); err != nil {
		return nil, err
	}
	v := newView[T](b, name, spec.Name, maxAge)
	if err := v.start(ctx); err != nil {
		return nil, fmt.Errorf("load bucket %s: %w", name, err)
	}
	return &Bucket[T]{b: b, name: name, stream: spec.Name, view: v}, nil
}

// Get returns the value of a key and its revision from the view. A key that is
// absent has revision 0. A key whose value cannot be decoded has a revision
// but is not ok, so that it can be written over; see [Bucket.Broken].
func (k *Bucket[T]) Get(key string) (value T, revision uint64, ok bool) {
	e, found := k.view.get(key)
	if !found {
		return value, 0, false
	}
	return e.value, e.revision, e.readable
}

// Broken returns why the value of a key cannot be decoded, or nil.
func (k *Bucket[T]) Broken(key string) error {
	e, _ := k.view.get(key)
	return e.err
}

// All returns every key that has a readable value, in no order. What changes
// meanwhile may or may not be seen.
func (k *Bucket[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for key, e := range k.view.all() {
			if e.readable && !yield(key, e.value) {
				return
			}
		}
	}
}

// OnChange calls f for every value that is there and then for every change. The
// old value is nil for a new key, the one now is nil for a deleted key; a value
// that cannot be decoded counts as absent. The changes of one key come in the
// order of the writes; of several in quick succession by others, only the last
// may be told. What this process writes is told before the write returns, and
// Sync waits for f too, so an index that f keeps is as current as the view.
//
// f must be quick, must not use the bucket except for Get, and must not need a
// lock that is held during a write. Values that vanish by age are not told.
func (k *Bucket[T]) OnChange(f func(key string, old, now *T)) { k.view.onChange(f) }

// Sync is a barrier: when it returns nil, the view holds every write that was
// acknowledged, to anybody, before Sync was called. It costs nothing with the
// embedded server and a round trip with an external one.
func (k *Bucket[T]) Sync(ctx context.Context) error { return k.view.sync(ctx) }

// Put writes a value if the key still has the given revision, zero meaning
// that it must be absent, and returns the new revision. It fails with
// [ErrConflict] otherwise. The view has the value when Put returns.
func (k *Bucket[T]) Put(ctx context.Context, key string, value T, revision uint64) (uint64, error) {
	seq, err := k.write(ctx, key, value, jetstream.WithExpectLastSequencePerSubject(revision))
	if !isConflict(err) {
		return seq, err
	}
	last, lookErr := k.b.lastMessage(ctx, k.stream, bucketPrefix(k.name)+key)
	if lookErr != nil {
		return 0, fmt.Errorf("read %s of bucket %s: %w", key, k.name, lookErr)
	}
	if revision == 0 && last.deleted {
		// A deleted key leaves a marker, which has a revision of its own.
		seq, err = k.write(ctx, key, value, jetstream.WithExpectLastSequencePerSubject(last.seq))
		if !isConflict(err) {
			return seq, err
		}
	}
	if err := k.view.wait(ctx, last.seq); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("write %s to bucket %s: %w", key, k.name, ErrConflict)
}

// Create writes a value if the key is absent. It fails with [ErrConflict]
// otherwise.
func (k *Bucket[T]) Create(ctx context.Context, key string, value T) (uint64, error) {
	return k.Put(ctx, key, value, 0)
}

// Set writes a value whatever the key had before.
func (k *Bucket[T]) Set(ctx context.Context, key string, value T) (uint64, error) {
	return k.write(ctx, key, value)
}

// Delete removes a key. To remove an absent one is no error.
func (k *Bucket[T]) Delete(ctx context.Context, key string) error { return k.remove(ctx, key) }

// DeleteAt removes a key if it still has the given revision. It fails with
// [ErrConflict] otherwise.
func (k *Bucket[T]) DeleteAt(ctx context.Context, key string, revision uint64) error {
	err := k.remove(ctx, key, jetstream.WithExpectLastSequencePerSubject(revision))
	if isConflict(err) {
		return fmt.Errorf("delete %s from bucket %s: %w", key, k.name, ErrConflict)
	}
	return err
}

func (k *Bucket[T]) remove(ctx context.Context, key string, opts ...jetstream.PublishOpt) error {
	if !validKey.MatchString(key) {
		return events.Permanent(fmt.Errorf("delete from bucket %s: %q is not a key", k.name, key))
	}
	msg := nats.NewMsg(bucketPrefix(k.name) + key)
	msg.Header.Set(headerOperation, "DEL")
	seq, err := k.b.publish(ctx, k.stream, msg, opts...)
	if err != nil {
		return fmt.Errorf("delete %s from bucket %s: %w", key, k.name, err)
	}
	k.view.change(key, entry[T]{revision: seq, at: time.Now(), gone: true})
	return nil
}

// validKey is what NATS takes as a key.
var validKey = regexp.MustCompile(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`)

func (k *Bucket[T]) write(ctx context.Context, key string, value T, opts ...jetstream.PublishOpt) (uint64, error) {
	if !validKey.MatchString(key) {
		return 0, events.Permanent(fmt.Errorf("write to bucket %s: %q is not a key", k.name, key))
	}
	data, err := json.Marshal(value)
	if err != nil {
		return 0, events.Permanent(fmt.Errorf("write %s to bucket %s: %w", key, k.name, err))
	}
	if limit := k.b.payloadLimit(); len(data) > limit {
		return 0, events.Permanent(fmt.Errorf("write %s to bucket %s: it has %d bytes, the limit is %d", key, k.name, len(data), limit))
	}
	seq, err := k.b.publish(ctx, k.stream, &nats.Msg{Subject: bucketPrefix(k.name) + key, Data: data}, opts...)
	if err != nil {
		return 0, fmt.Errorf("write %s to bucket %s: %w", key, k.name, err)
	}
	k.view.change(key, k.view.decode(key, data, seq, time.Now()))
	return seq, nil
}
