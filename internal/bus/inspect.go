package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/decision"
)

// lockFile is the file in the directory of an embedded bus that is locked by
// whoever uses it.
const lockFile = "lock"

// InUse reports whether a process uses the directory of an embedded bus now. It
// is false where there is no such directory.
func InUse(dir string) (bool, error) {
	path := filepath.Join(dir, lockFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	// A shared lock is refused while somebody has the exclusive one, and lets
	// others who only ask go on.
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		return false, fmt.Errorf("look at the lock of the bus %s: %w", dir, err)
	}
	if !free {
		return true, nil
	}
	return false, lock.Close()
}

// Reader reads what a bus holds. It makes no stream, no durable consumer and no
// entry, so it can look at a bus that others work with.
type Reader struct {
	b *Bus
	// own says that Close ends what OpenReader has started.
	own bool
}

// Reader returns a reader of an open bus, which is closed with it.
func (b *Bus) Reader() *Reader { return &Reader{b: b} }

// OpenReader connects to an external bus, or starts the server of an embedded
// one that nobody uses. An embedded bus that does not exist is not made: the
// error is then [fs.ErrNotExist].
func OpenReader(ctx context.Context, cfg Config, log *slog.Logger) (_ *Reader, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("bus configuration: %w", err)
	}
	if cfg.embedded() {
		if _, err := os.Stat(filepath.Join(cfg.Embedded.Dir, lockFile)); err != nil {
			return nil, fmt.Errorf("open the bus: %w", err)
		}
	}
	r := &Reader{own: true, b: &Bus{cfg: cfg, log: log, metrics: newMetrics(), reconnect: make(chan struct{})}}
	if err := r.b.connect(); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	if err := r.b.checkServer(ctx); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// Close ends the connection, and the server if OpenReader has started it.
func (r *Reader) Close(ctx context.Context) error {
	if !r.own {
		return nil
	}
	if r.b.nc != nil {
		r.b.nc.Close()
	}
	if r.b.server != nil {
		return r.b.server.stop(ctx)
	}
	return nil
}

// Decisions returns every entry of the ledger, in the order of the server, or
// none where there is no ledger yet.
func (r *Reader) Decisions(ctx context.Context) (decision.Ledger, error) {
	l, err := r.decisions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the ledger of decisions: %w", err)
	}
	return l, nil
}

func (r *Reader) decisions(ctx context.Context) (decision.Ledger, error) {
	s, err := r.b.js.Stream(ctx, ledgerStream().Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ledger := make(decision.Ledger, 0, s.CachedInfo().State.Msgs)
	err = eachMessage(ctx, s, func(msg jetstream.Msg, md *jetstream.MsgMetadata) error {
		var e decision.Entry
		if err := json.Unmarshal(msg.Data(), &e); err != nil {
			return fmt.Errorf("entry %d: %w", md.Sequence.Stream, err)
		}
		e.Seq = md.Sequence.Stream
		ledger = append(ledger, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ledger, nil
}

// lookAgain is how long eachMessage waits for a message before it looks whether
// one is still to come: they may have vanished by age.
const lookAgain = 2 * time.Second

// eachMessage calls f for every message of a stream in its order, until there is
// no more. What is written meanwhile may or may not be among them, and neither may what
// it replaces.
func eachMessage(ctx context.Context, s jetstream.Stream, f func(jetstream.Msg, *jetstream.MsgMetadata) error) (err error) {
	cons, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverAllPolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		// The server would do so itself after a while.
		_ = s.DeleteConsumer(end, cons.CachedInfo().Name)
	}()
	if cons.CachedInfo().NumPending == 0 {
		return nil
	}
	it, err := cons.Messages()
	if err != nil {
		return err
	}
	defer it.Stop()
	for next := uint64(1); ; next++ {
		wait, cancel := context.WithTimeout(ctx, lookAgain)
		msg, err := it.Next(jetstream.NextContext(wait))
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			info, err := cons.Info(ctx)
			if err != nil {
				return err
			}
			if info.NumPending == 0 && info.Delivered.Consumer < next {
				return nil
			}
			next--
			continue
		}
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
		if err := f(msg, md); err != nil {
			return err
		}
		if md.NumPending == 0 {
			return nil
		}
	}
}

// DeadLetters returns the newest dead letters, at most limit, and how many there
// are in all.
func (r *Reader) DeadLetters(ctx context.Context, limit int) (newest []DeadLetter, total int, err error) {
	s, err := r.b.js.Stream(ctx, streamDead)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read dead letters: %w", err)
	}
	newest, err = (&Dead{b: &Bus{js: r.b.js, streams: map[string]jetstream.Stream{streamDead: s}}}).List(ctx, limit)
	return newest, int(s.CachedInfo().State.Msgs), err
}

// LastEvent returns the place in the stream of the last event on a subject,
// which may have wildcards; zero means that there is none.
func (r *Reader) LastEvent(ctx context.Context, subject string) (seq uint64, err error) {
	last, err := r.b.lastMessage(ctx, streamEvents, subject)
	if err != nil {
		return 0, fmt.Errorf("look for the last event: %w", err)
	}
	return last.seq, nil
}

// Lag is what a durable consumer has before it.
type Lag struct {
	Stream, Consumer string
	// Waiting was not handed out yet. InHand was and is not done, and Again of those
	// were handed out before.
	Waiting, InHand, Again int
}

// Lags returns the lag of every durable consumer, in the order of streams and names.
func (r *Reader) Lags(ctx context.Context) ([]Lag, error) {
	var lags []Lag
	streams := r.b.js.ListStreams(ctx)
	for s := range streams.Info() {
		if s.State.Consumers == 0 {
			continue
		}
		stream, err := r.b.js.Stream(ctx, s.Config.Name)
		if err != nil {
			return nil, fmt.Errorf("look at stream %s: %w", s.Config.Name, err)
		}
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			if c.Config.Durable != "" {
				lags = append(lags, Lag{s.Config.Name, c.Name, int(c.NumPending), c.NumAckPending, c.NumRedelivered})
			}
		}
		if err := consumers.Err(); err != nil {
			return nil, fmt.Errorf("look at the consumers of %s: %w", s.Config.Name, err)
		}
	}
	if err := streams.Err(); err != nil {
		return nil, fmt.Errorf("look at the streams: %w", err)
	}
	slices.SortFunc(lags, func(a, b Lag) int {
		return cmp.Or(strings.Compare(a.Stream, b.Stream), strings.Compare(a.Consumer, b.Consumer))
	})
	return lags, nil
}

// Listening reports whether somebody waits for events now: a signalbox that
// runs.
func (r *Reader) Listening(ctx context.Context, consumer string) (bool, error) {
	c, err := r.b.js.Consumer(ctx, streamEvents, consumer)
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at consumer %s: %w", consumer, err)
	}
	return c.CachedInfo().NumWaiting > 0, nil
}

// StreamState is a stream as the server tells it.
type StreamState struct {
	Name     string
	Messages uint64
	Bytes    uint64
	// Replicas is how many servers shall hold it, and Current how many of them
	// have all of it. Leader is empty while it has none, and of a server that
	// stands alone.
	Replicas, Current int
	Leader            string
	Clustered         bool
}

// Streams returns the streams that a bus has, as far as they were made, and the
// names of those that were not.
func (r *Reader) Streams(ctx context.Context) (states []StreamState, missing []string, err error) {
	names := []string{ledgerStream().Name}
	for _, s := range streams(r.b.cfg) {
		names = append(names, s.Name)
	}
	for _, name := range names {
		s, err := r.b.js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			missing = append(missing, name)
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("look at stream %s: %w", name, err)
		}
		info := s.CachedInfo()
		state := StreamState{
			Name: name, Messages: info.State.Msgs, Bytes: info.State.Bytes,
			Replicas: max(info.Config.Replicas, 1), Current: 1,
		}
		if c := info.Cluster; c != nil && c.Name != "" {
			state.Clustered, state.Leader, state.Current = true, c.Leader, 0
			if c.Leader != "" {
				state.Current = 1
			}
			for _, peer := range c.Replicas {
				if peer.Current && !peer.Offline {
					state.Current++
				}
			}
		}
		states = append(states, state)
	}
	return states, missing, nil
}
