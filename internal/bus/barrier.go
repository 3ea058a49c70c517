package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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
