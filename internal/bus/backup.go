package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/backup"
)

// Kept is a bucket that a backup holds.
type Kept struct {
	Name string
	// MaxAge is the age after which its values vanish, or zero.
	MaxAge time.Duration
}

// Backup writes buckets and then the ledger. A bucket that was not made yet is
// left out. Where there is no ledger there is nothing to back up, which is an
// error, and so is a store that a newer signalbox laid out.
//
// Nothing stands still meanwhile, and so the order is what makes it whole. The
// ledger is the last: of what was still to be done when its bucket was read, it
// has what was done since, which is then not done again. The buckets are to be in
// such an order among themselves.
func (r *Reader) Backup(ctx context.Context, to *backup.Writer, buckets []Kept) error {
	ledger, err := r.b.js.Stream(ctx, ledgerStream().Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return errors.New("there is no ledger yet, and so nothing to back up: signalbox has not run on this store")
	}
	if err != nil {
		return fmt.Errorf("look at the ledger: %w", err)
	}
	for _, k := range buckets {
		if err := r.backUp(ctx, to, k.Name); err != nil {
			return fmt.Errorf("back up bucket %s: %w", k.Name, err)
		}
	}
	begun, err := ledgerBegun(ledger.CachedInfo())
	if err != nil {
		return err
	}
	if err := to.Bucket(backup.Bucket{Name: bucketDecisions, Begun: begun}); err != nil {
		return err
	}
	err = eachMessage(ctx, ledger, func(msg jetstream.Msg, md *jetstream.MsgMetadata) error {
		return to.Entry(backupEntry(bucketDecisions, msg, md))
	})
	if err != nil {
		return fmt.Errorf("back up the ledger: %w", err)
	}
	return nil
}

// Layout returns the layout of the store, or 0 for one that has no streams. It fails
// for one that a newer signalbox laid out, or that is being restored.
func (r *Reader) Layout(ctx context.Context) (int, error) { return r.b.storeLayout(ctx) }

func backupEntry(bucket string, msg jetstream.Msg, md *jetstream.MsgMetadata) backup.Entry {
	return backup.Entry{
		Seq: md.Sequence.Stream, At: md.Timestamp, Key: strings.TrimPrefix(msg.Subject(), bucketPrefix(bucket)), Value: msg.Data(),
	}
}

// backUp writes the last value of each key of a bucket, in their order. A key that
// changes meanwhile may come twice, of which the last counts, or not at all, and is
// asked for by its name then.
func (r *Reader) backUp(ctx context.Context, to *backup.Writer, name string) error {
	s, err := r.b.js.Stream(ctx, bucketStream(name, 0).Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	seen := map[string]backup.Entry{}
	err = eachMessage(ctx, s, func(msg jetstream.Msg, md *jetstream.MsgMetadata) error {
		e := backupEntry(name, msg, md)
		if deletes(msg.Headers()) {
			e.Value = nil
		}
		seen[e.Key] = e
		return nil
	})
	if err != nil {
		return err
	}
	if err := missed(ctx, s, name, seen); err != nil {
		return err
	}
	maps.DeleteFunc(seen, func(_ string, e backup.Entry) bool { return e.Value == nil })
	if err := to.Bucket(backup.Bucket{Name: name, Begun: s.CachedInfo().Created}); err != nil {
		return err
	}
	inOrder := slices.SortedFunc(maps.Values(seen), func(a, b backup.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range inOrder {
		if err := to.Entry(e); err != nil {
			return err
		}
	}
	return nil
}

// missed adds the keys of a bucket that are not among those that were seen.
func missed(ctx context.Context, s jetstream.Stream, name string, seen map[string]backup.Entry) error {
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(bucketPrefix(name)+">"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		key := strings.TrimPrefix(subject, bucketPrefix(name))
		if _, ok := seen[key]; ok {
			continue
		}
		msg, err := s.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // It has vanished by its age.
		}
		if err != nil {
			return err
		}
		if !deletes(msg.Header) {
			seen[key] = backup.Entry{Seq: msg.Sequence, At: msg.Time, Key: key, Value: msg.Data}
		}
	}
	return nil
}

// deletes reports whether a message marks a key as deleted.
func deletes(h nats.Header) bool {
	op := h.Get(headerOperation)
	return op == "DEL" || op == "PURGE"
}
