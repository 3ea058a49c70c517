package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
	"signalbox/internal/pull"
	"signalbox/internal/trace"
	"signalbox/internal/work"
)

// Subjects of the stream of work. A scheduled message waits on a subject of
// its own for each pull request and kind, so that the newest of a kind
// replaces the one before and no kind replaces another. When its time has come
// it moves to the run subject, which names the partition.
//
//	work.soon.<repository>.<number>.<kind>             waits for more of its kind
//	work.at.<repository>.<number>.<kind>               waits for its time
//	work.run.<partition>.<repository>.<number>.<kind>  is due
const (
	workRoot = "work"
	workSoon = workRoot + ".soon."
	workAt   = workRoot + ".at."
	workRun  = workRoot + ".run."
)

// Item is the work that is queued.
type Item = work.Item

// WorkKind says why a pull request must be looked at.
type WorkKind = work.Kind

// The kinds of work; see [work.Kind].
const (
	Full  = work.Full
	Fact  = work.Fact
	Wake  = work.Wake
	Retry = work.Retry
)

// checkItem refuses what could never be handled.
func checkItem(i Item) error {
	known := i.Kind == Full || i.Kind == Fact || i.Kind == Wake || i.Kind == Retry
	if i.Ref.RepoID <= 0 || i.Ref.Number <= 0 || !known {
		return events.Permanent(fmt.Errorf("work %q of kind %q names no pull request or an unknown kind", i.Ref, i.Kind))
	}
	return nil
}

// place is the end of the subjects of an item.
func place(i Item) string { return i.Ref.String() + "." + string(i.Kind) }

// Work is the queue of pull requests that must be looked at. What is in it is
// on disk like everything else; a restart loses none of it.
//
// An item asks to look at what is true then, so two of them may become one,
// and the one that stays may be the older: it runs after both were asked for.
type Work struct {
	b        *Bus
	debounce *debouncer
	// name says how a pull request is called; see NameBy.
	name func(pull.Ref) string
}

func newWork(b *Bus) *Work {
	w := &Work{b: b}
	w.debounce = newDebouncer(w)
	return w
}

// Schedule asks for work at a time, which may be past. It replaces what was
// scheduled for the same pull request and kind. The server looks at its
// schedules four times a second.
func (w *Work) Schedule(ctx context.Context, item Item, at time.Time) error {
	origin := trace.Of(ctx)
	if item.Kind == Wake {
		// Days may pass: a trace that is as long shows nothing.
		origin = origin.Later()
	}
	_, err := w.schedule(ctx, workAt+place(item), item, origin, at)
	return err
}

// NameBy sets how the log calls a pull request. It must be set before work is
// asked for; without it the log has the ids.
func (w *Work) NameBy(f func(pull.Ref) string) { w.name = f }

func (w *Work) pullName(ref pull.Ref) string {
	if w.name == nil {
		return ref.String()
	}
	return w.name(ref)
}

// CancelWake takes a scheduled [Wake] back. One that is due already still
// runs.
func (w *Work) CancelWake(ctx context.Context, ref pull.Ref) error {
	err := w.b.streams[streamWork].Purge(ctx, jetstream.WithPurgeSubject(workAt+place(Item{Ref: ref, Kind: Wake})))
	if err != nil {
		return fmt.Errorf("cancel the wake-up of %s: %w", ref, err)
	}
	return nil
}

// schedule stores a scheduled message and returns its sequence.
func (w *Work) schedule(ctx context.Context, subject string, item Item, origin trace.Origin, at time.Time) (uint64, error) {
	msg, err := w.message(subject, item, origin)
	if err != nil {
		return 0, err
	}
	// The option of the library for this cuts the time to whole seconds.
	msg.Header.Set(jetstream.ScheduleHeader, "@at "+at.UTC().Format(time.RFC3339Nano))
	seq, err := w.b.publish(ctx, streamWork, msg, jetstream.WithScheduleTarget(w.runSubject(item)))
	if err != nil {
		return 0, fmt.Errorf("schedule %s work for %s: %w", item.Kind, item.Ref, err)
	}
	return seq, nil
}

func (w *Work) message(subject string, item Item, origin trace.Origin) (*nats.Msg, error) {
	if err := checkItem(item); err != nil {
		return nil, err
	}
	data, err := json.Marshal(item)
	if err != nil {
		return nil, events.Permanent(fmt.Errorf("encode work for %s: %w", item.Ref, err))
	}
	msg := nats.NewMsg(subject)
	msg.Data = data
	setOrigin(msg, origin)
	return msg, nil
}

// runSubject names the partition here and not in a subject transform of the
// stream: the target of a schedule is then the subject that it is stored
// under, the stream stays plain, and the number of partitions is read and
// compared in one place.
func (w *Work) runSubject(item Item) string {
	return workRun + strconv.Itoa(partition(item.Ref, w.b.cfg.Partitions)) + "." + place(item)
}

// partition spreads pull requests evenly and never changes its mind: replicas
// of different versions must agree.
func partition(ref pull.Ref, n int) int {
	h := fnv.New64a()
	h.Write([]byte(ref.String()))
	return int(h.Sum64() % uint64(n))
}
