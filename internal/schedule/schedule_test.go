package schedule_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/events"
	"signalbox/internal/schedule"
)

func TestIntervalTicksOnMultiples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		// The bubble's clock starts at 2000-01-01 00:00 UTC.
		time.Sleep(90 * time.Second) //nolint:forbidigo // The clock of a bubble jumps.
		var ids []string
		i := &schedule.Interval{
			Name: "reconcile", Every: 5 * time.Minute, Log: slog.New(slog.DiscardHandler),
			Publish: func(_ context.Context, e events.Event) error {
				ids = append(ids, e.ID)
				if len(ids) == 2 {
					return errors.New("the bus is away")
				}
				return nil
			},
		}
		done := make(chan error)
		go func() { done <- i.Run(ctx) }()
		time.Sleep(12 * time.Minute) //nolint:forbidigo // The clock of a bubble jumps.
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{
			"clock/reconcile/2000-01-01T00:01:30Z", "clock/reconcile/2000-01-01T00:05:00Z", "clock/reconcile/2000-01-01T00:10:00Z",
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
