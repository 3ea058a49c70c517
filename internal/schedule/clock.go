package schedule

import (
	"context"
	"log/slog"
	"time"

	"signalbox/internal/events"
)

// Clock publishes a tick at each moment of [Times]. Of those that were missed, while
// nothing ran or the machine slept, it publishes the last.
type Clock struct {
	Name  string
	Times *Times
	// Done returns up to when ticks were dealt with: what came between that and now was
	// missed.
	Done func() time.Time
	// Publish puts an event on the bus.
	Publish func(context.Context, events.Event) error
	Log     *slog.Logger
	// Now tells the time; nil means [time.Now].
	Now func() time.Time
}

const (
	// glance is how long it goes at most without looking at the clock, which may be
	// put right, or have stood still while the machine slept.
	glance = time.Minute
	// again is the time until a tick is published again that the bus did not take.
	again = 5 * time.Second
)

// Run publishes until the context ends.
func (c *Clock) Run(ctx context.Context) error {
	if c.Times == nil || c.Done == nil {
		return errNoTimes
	}
	now := c.Now
	if now == nil {
		now = time.Now
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	sent := c.Done()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		at := now()
		wait := glance
		if sent.After(at) {
			sent = c.Done() // The clock was put back.
		}
		if due, ok := c.Times.Latest(sent, at); ok {
			if err := c.tick(ctx, due); err == nil {
				sent = due
			} else if ctx.Err() == nil {
				c.Log.ErrorContext(ctx, "tick not published", "name", c.Name, "at", due, "error", err)
				wait = again
			}
		}
		if next := c.Times.Next(at); !next.IsZero() {
			wait = min(wait, max(next.Sub(now()), 0))
		}
		timer.Reset(wait)
	}
}

func (c *Clock) tick(ctx context.Context, at time.Time) error {
	return publishTick(ctx, c.Publish, events.Tick{Name: c.Name, At: at.UTC()})
}
