package bus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/trace"
)

// Headers with which a message takes the place of a schedule, as the server
// writes them itself when a schedule is due (ADR-51).
const (
	headerScheduler    = "Nats-Scheduler"
	headerScheduleNext = "Nats-Schedule-Next"
	schedulePurge      = "purge"
)

// debouncer gathers work that is wanted soon.
//
// The wish is stored as a scheduled message first, so that it outlives this
// process. But the server looks at its schedules only four times a second,
// which could double the wait; so this process starts the work itself at the
// exact moment, with a message that takes the place of the schedule, and the
// schedule is set late enough to stand by.
type debouncer struct {
	w *Work

	mu      sync.Mutex
	pending map[string]*gathering
	stopped bool
	firing  sync.WaitGroup
}

// gathering is work that waits for more of its kind.
type gathering struct {
	subject string
	item    Item
	// origin is what asked for it.
	origin trace.Origin
	// seq is the schedule that stands by.
	seq uint64
	// due is when to start; limit is the latest that due may be put off to.
	due, limit time.Time
	timer      *time.Timer
}

func newDebouncer(w *Work) *debouncer {
	return &debouncer{w: w, pending: map[string]*gathering{}}
}

// Soon asks for work after the debounce time. Each further call for the same
// pull request and kind puts it off again, up to the longest wait.
func (w *Work) Soon(ctx context.Context, item Item) error {
	d, cfg := w.debounce, w.b.cfg
	subject := workSoon + place(item)
	if w.b.log.Enabled(ctx, slog.LevelDebug) {
		w.b.log.DebugContext(ctx, "work asked for", "pull", w.pullName(item.Ref), "kind", string(item.Kind), "trigger", item.Reason)
	}
	now, origin := time.Now(), trace.Of(ctx)
	if cfg.embedded() && d.extend(subject, item, origin, now) {
		return nil
	}
	limit := now.Add(cfg.MaxWait)
	seq, err := w.schedule(ctx, subject, item, origin, limit.Add(cfg.timing.backstop))
	if err != nil {
		return err
	}
	d.gather(&gathering{subject: subject, item: item, origin: origin, seq: seq, due: now.Add(cfg.Debounce), limit: limit})
	return nil
}

// extend puts off what waits already. No other process can have touched the
// schedule that stands by for it, so nothing need be stored.
func (d *debouncer) extend(subject string, item Item, origin trace.Origin, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.pending[subject]
	// After the limit the schedule may have fired.
	if g == nil || !now.Before(g.limit) {
		return false
	}
	g.item, g.origin = item, g.origin.Join(origin)
	g.putOff(now.Add(d.w.b.cfg.Debounce))
	return true
}

// putOff moves the start, but not beyond the limit. The timer is left to fire
// early; it then waits for the rest.
func (g *gathering) putOff(due time.Time) {
	if due.After(g.limit) {
		due = g.limit
	}
	if due.After(g.due) {
		g.due = due
	}
}

func (d *debouncer) gather(n *gathering) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return // the schedule that stands by starts it
	}
	if g := d.pending[n.subject]; g != nil {
		g.item, g.origin = n.item, g.origin.Join(n.origin)
		g.seq = max(g.seq, n.seq)
		g.putOff(n.due)
		return
	}
	d.pending[n.subject] = n
	n.timer = time.AfterFunc(time.Until(n.due), func() { d.fire(n) })
}

// fire starts the work if it is due.
func (d *debouncer) fire(g *gathering) {
	d.mu.Lock()
	if d.stopped {
		d.mu.Unlock()
		return
	}
	if left := time.Until(g.due); left > 0 {
		g.timer.Reset(left)
		d.mu.Unlock()
		return
	}
	delete(d.pending, g.subject)
	d.firing.Add(1)
	d.mu.Unlock()
	defer d.firing.Done()

	ctx, cancel := context.WithTimeout(trace.WithEvent(context.Background(), g.origin.Event), 5*time.Second)
	defer cancel()
	err := d.w.begin(ctx, g)
	if err != nil {
		d.w.b.log.WarnContext(ctx, "work not started in time; its schedule starts it later", "pull", d.w.pullName(g.item.Ref), "error", err)
	}
}

// begin makes gathered work due, in place of the schedule that stands by.
func (w *Work) begin(ctx context.Context, g *gathering) error {
	msg, err := w.message(w.runSubject(g.item), g.item, g.origin)
	if err != nil {
		return err
	}
	msg.Header.Set(headerScheduler, g.subject)
	msg.Header.Set(headerScheduleNext, schedulePurge)
	mine := jetstream.WithExpectLastSequenceForSubject(g.seq, g.subject)
	if w.b.cfg.embedded() {
		_, err = w.b.publish(ctx, streamWork, msg, mine)
		if isConflict(err) {
			// A new schedule was stored at this moment, or this process stood
			// still for so long that the server was first. What was put off since
			// rests on this call alone.
			msg.Header = nil
			setOrigin(msg, g.origin)
			_, err = w.b.publish(ctx, streamWork, msg)
		}
		return err
	}
	if g.due.Before(g.limit) {
		// If another replica was asked meanwhile, it will start the work.
		if _, err = w.b.publish(ctx, streamWork, msg, mine); isConflict(err) {
			return nil
		}
		return err
	}
	// Under a steady stream to several replicas each would leave it to another,
	// so at the limit it is started whatever the others do.
	_, err = w.b.publish(ctx, streamWork, msg)
	return err
}

// stop ends the timers and waits for those that fire. The schedules that stand
// by are left for the next start.
func (d *debouncer) stop() {
	d.mu.Lock()
	d.stopped = true
	for _, g := range d.pending {
		g.timer.Stop()
	}
	clear(d.pending)
	d.mu.Unlock()
	d.firing.Wait()
}
