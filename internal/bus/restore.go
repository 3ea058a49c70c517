package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/backup"
)

// ErrNotEmpty is that there is a store already where one was to be restored.
var ErrNotEmpty = errors.New("there is a store already, and a restore never writes over one")

// Restore makes a store of what a backup holds: the buckets that are named, and the
// ledger. It does so where there is none yet, and else fails with [ErrNotEmpty]. It
// does all of it or nothing: what it began is gone when it fails, and is no store to
// anybody when it was killed; the next one begins anew.
//
// An entry of the ledger has the place that it had. Other buckets keep the order.
func Restore(ctx context.Context, cfg Config, buckets []Kept, from *backup.Reader, log *slog.Logger) error {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return fmt.Errorf("bus configuration: %w", err)
	}
	if layout := from.Head().Layout; layout < 1 || layout > LayoutVersion {
		return fmt.Errorf("%w: it is of signalbox %.50q and of a store of layout %d, and this one knows layouts up to %d; restore it with that version or a newer one",
			backup.ErrNewer, from.Head().Version, layout, LayoutVersion)
	}
	r := &restore{from: from, specs: map[string]jetstream.StreamConfig{bucketDecisions: ledgerStream()}}
	for _, k := range buckets {
		r.specs[k.Name] = bucketStream(k.Name, k.MaxAge)
	}
	if cfg.embedded() {
		return r.intoDir(ctx, cfg, log)
	}
	return r.intoAccount(ctx, cfg, log)
}

// entryTime is how long the server may take to store an entry.
const entryTime = 30 * time.Second

// restore is one restore under way.
type restore struct {
	b    *Bus
	js   jetstream.JetStream
	from *backup.Reader
	// specs are the streams that a backup may fill, by the names of the buckets.
	specs map[string]jetstream.StreamConfig
	// made are the streams that were made, in the form that they get in the end.
	made []jetstream.StreamConfig
}

// open connects to the bus that is restored into.
func (r *restore) open(ctx context.Context, cfg Config, log *slog.Logger) (err error) {
	r.b = &Bus{cfg: cfg, log: log, metrics: newMetrics(), reconnect: make(chan struct{})}
	if err := r.b.connect(); err != nil {
		return err
	}
	if err := r.b.checkServer(ctx); err != nil {
		return err
	}
	r.js, err = jetstream.New(r.b.nc, jetstream.WithPublishAsyncMaxPending(256), jetstream.WithPublishAsyncTimeout(entryTime))
	return err
}

func (r *restore) close(ctx context.Context) error {
	return (&Reader{b: r.b, own: true}).Close(ctx)
}

// intoAccount restores into an external NATS server.
func (r *restore) intoAccount(ctx context.Context, cfg Config, log *slog.Logger) (err error) {
	defer func() { err = errors.Join(err, r.close(context.WithoutCancel(ctx))) }()
	if err := r.open(ctx, cfg, log); err != nil {
		return err
	}
	own, err := ownStreams(ctx, r.js)
	if err != nil {
		return err
	}
	var left, there []string
	for _, s := range own {
		if _, restoring := s.Config.Metadata[metaRestoring]; restoring {
			left = append(left, s.Config.Name)
		} else {
			there = append(there, fmt.Sprintf("%s with %d messages", s.Config.Name, s.State.Msgs))
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("%w: the NATS account has the streams %s; give signalbox another account, or remove them if you are sure that you need none of it",
			ErrNotEmpty, strings.Join(there, ", "))
	}
	for _, name := range left {
		if err := r.js.DeleteStream(ctx, name); err != nil {
			return fmt.Errorf("remove stream %s, which a restore left that broke off: %w", name, err)
		}
	}
	if err := r.fill(ctx); err != nil {
		return errors.Join(err, r.undo(ctx))
	}
	return nil
}

// undo removes the streams that were made.
func (r *restore) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var errs []error
	for _, s := range r.made {
		if err := r.js.DeleteStream(ctx, s.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			errs = append(errs, fmt.Errorf("remove what was restored of %s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

// fill makes the streams and fills them. While it does, each has a mark with which no
// signalbox uses the store; the marks go when all is there.
func (r *restore) fill(ctx context.Context) error {
	since := time.Now().UTC().Format(time.RFC3339)
	var stream *filling
	for {
		bucket, entry, err := r.from.Next()
		if errors.Is(err, io.EOF) || err == nil && bucket != nil {
			if err := stream.end(ctx); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return r.finish(ctx)
		case err != nil:
			return err
		case bucket != nil:
			stream, err = r.begin(ctx, *bucket, since)
		default:
			err = stream.put(ctx, *entry)
		}
		if err != nil {
			return err
		}
	}
}

// begin makes the stream of a bucket. What forbids to delete is set in the end.
func (r *restore) begin(ctx context.Context, bucket backup.Bucket, since string) (*filling, error) {
	spec, ok := r.specs[bucket.Name]
	if !ok {
		return nil, fmt.Errorf("%w: it is of signalbox %.50q and has a bucket %.50q, which this one does not know; restore it with that version",
			backup.ErrNewer, r.from.Head().Version, bucket.Name)
	}
	spec = completed(spec, r.from.Head().Version)
	spec.Replicas = max(r.b.cfg.External.Replicas, 1)
	// What has to be done to a store of an older layout is done when it is opened.
	spec.Metadata[metaLayout] = strconv.Itoa(r.from.Head().Layout)
	if bucket.Name == bucketDecisions {
		spec.Metadata[metaBegun] = bucket.Begun.UTC().Format(time.RFC3339Nano)
	}
	unfinished := spec
	unfinished.DenyDelete, unfinished.DenyPurge = false, false
	unfinished.Metadata = maps.Clone(spec.Metadata)
	unfinished.Metadata[metaRestoring] = since
	s, err := r.js.CreateStream(ctx, unfinished)
	if err != nil {
		return nil, streamError("make", spec.Name, err)
	}
	r.made = append(r.made, spec)
	return &filling{js: r.js, stream: s, bucket: bucket.Name, places: bucket.Name == bucketDecisions}, nil
}

// finish makes a store of what was filled.
func (r *restore) finish(ctx context.Context) error {
	if len(r.made) == 0 || r.made[len(r.made)-1].Name != ledgerStream().Name {
		return fmt.Errorf("%w: the ledger is not in it", backup.ErrBroken)
	}
	for _, s := range r.made {
		if _, err := r.js.UpdateStream(ctx, s); err != nil {
			return streamError("finish", s.Name, err)
		}
	}
	return nil
}

// filling is a stream that is being filled.
type filling struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	bucket string
	// places says that entries keep their places, and gaps those in which none was.
	places  bool
	gaps    []uint64
	last    uint64
	entries uint64
	// pending are what the server has not acknowledged yet.
	pending []jetstream.PubAckFuture
}

// maxGaps bounds the places without an entry. A ledger has some only where servers of
// a cluster failed in the middle of a write.
const maxGaps = 10_000

// put adds an entry. Each names the one before, so that nobody else can write to the
// stream meanwhile.
func (f *filling) put(ctx context.Context, e backup.Entry) error {
	if f.places && e.Seq > f.last+1+maxGaps-uint64(len(f.gaps)) {
		return fmt.Errorf("%w: entry %d of %s comes after %d", backup.ErrBroken, e.Seq, f.bucket, f.last)
	}
	for f.places && f.last+1 < e.Seq {
		f.gaps = append(f.gaps, f.last+1)
		gap := backup.Entry{Key: "gap." + strconv.FormatUint(f.last+1, 10)}
		if err := f.publish(ctx, gap); err != nil {
			return err
		}
	}
	if !validKey.MatchString(e.Key) {
		return fmt.Errorf("%w: entry %d of %s has %.100q as its key", backup.ErrBroken, e.Seq, f.bucket, e.Key)
	}
	f.entries++
	return f.publish(ctx, e)
}

func (f *filling) publish(ctx context.Context, e backup.Entry) error {
	msg := &nats.Msg{Subject: bucketPrefix(f.bucket) + e.Key, Data: e.Value}
	future, err := f.js.PublishMsgAsync(msg, jetstream.WithExpectLastSequence(f.last))
	if err != nil {
		return fmt.Errorf("restore %s of %s: %w", e.Key, f.bucket, err)
	}
	f.last++
	if f.pending = append(f.pending, future); len(f.pending) >= 128 {
		return f.acknowledged(ctx)
	}
	return nil
}

// acknowledged waits until the server has all that was sent.
func (f *filling) acknowledged(ctx context.Context) error {
	for _, future := range f.pending {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return fmt.Errorf("restore bucket %s: %w", f.bucket, err)
		case <-ctx.Done():
			return fmt.Errorf("restore bucket %s: %w", f.bucket, context.Cause(ctx))
		}
	}
	f.pending = f.pending[:0]
	return nil
}

// end checks that all is there. It does nothing where no stream was begun.
func (f *filling) end(ctx context.Context) error {
	if f == nil {
		return nil
	}
	if err := f.acknowledged(ctx); err != nil {
		return err
	}
	for _, seq := range f.gaps {
		if err := f.stream.DeleteMsg(ctx, seq); err != nil {
			return fmt.Errorf("restore bucket %s: leave place %d empty: %w", f.bucket, seq, err)
		}
	}
	info, err := f.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("restore bucket %s: %w", f.bucket, err)
	}
	if info.State.Msgs != f.entries || info.State.LastSeq != f.last {
		return fmt.Errorf("restore bucket %s: the server has %d entries up to %d, and not %d up to %d",
			f.bucket, info.State.Msgs, info.State.LastSeq, f.entries, f.last)
	}
	return nil
}
