package bus

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// trouble paces what must be set up again. It warns only of what repeats:
// servers pass their duties on now and then, and a lost connection is logged
// where it is noticed.
type trouble struct {
	b     *Bus
	log   *slog.Logger
	delay *backoff.ExponentialBackOff
	last  time.Time
}

// quiet is how long after trouble the next counts as the first again.
const quiet = 30 * time.Second

// newTrouble returns what logs with the arguments.
func (b *Bus) newTrouble(args ...any) *trouble {
	delay := backoff.NewExponentialBackOff()
	delay.InitialInterval, delay.MaxInterval = 50*time.Millisecond, 5*time.Second
	return &trouble{b: b, log: b.log.With(args...), delay: delay}
}

// wait waits longer each time, or until ctx ends.
func (t *trouble) wait(ctx context.Context, err error) {
	level := slog.LevelWarn
	if time.Since(t.last) > quiet {
		t.delay.Reset()
		level = slog.LevelDebug
	}
	if !t.b.nc.IsConnected() {
		level = slog.LevelDebug
	}
	t.last = time.Now()
	delay := t.delay.NextBackOff()
	t.log.Log(ctx, level, "interrupted; it is set up again", "error", err, "in", delay)
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
}
