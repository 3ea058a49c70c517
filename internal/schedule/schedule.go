// Package schedule turns moments in time into events. Every replica runs the
// same schedule and publishes the same events; the id of a tick is made from
// its name and scheduled time, so the bus keeps one.
package schedule

import (
	"context"
	"log/slog"
	"time"

	"signalbox/internal/events"
)

// Source is the source of the events of this package.
const Source = "clock"

// Interval publishes a tick at every multiple of a time.
type Interval struct {
	Name  string
	Every time.Duration
	// Publish puts an event on the bus.
	Publish func(context.Context, events.Event) error
	Log     *slog.Logger
	// Now tells the time; nil means [time.Now].
	Now func() time.Time
}

// Run publishes a tick at once, for what was missed while no replica ran, and
// then at every multiple of the interval since the Unix epoch, until the
// context ends. A tick that cannot be published is reported and given up: the
// next one does the same.
func (i *Interval) Run(ctx context.Context) error {
	now := i.Now
	if now == nil {
		now = time.Now
	}
	at := now()
	for {
		if err := i.tick(ctx, at); err != nil && ctx.Err() == nil {
			i.Log.ErrorContext(ctx, "tick not published", "name", i.Name, "error", err)
		}
		at = now().Truncate(i.Every).Add(i.Every)
		timer := time.NewTimer(at.Sub(now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

func (i *Interval) tick(ctx context.Context, at time.Time) error {
	return publishTick(ctx, i.Publish, events.Tick{Name: i.Name, At: at})
}

func publishTick(ctx context.Context, publish func(context.Context, events.Event) error, tick events.Tick) error {
	e, err := events.New(tick.ID(), Source, tick.At, tick)
	if err != nil {
		return err
	}
	return publish(ctx, e)
}
