package bustest_test

import (
	"context"
	"testing"
	"time"

	"signalbox/internal/bus/bustest"
	"signalbox/internal/events"
)

func TestNew(t *testing.T) {
	b := bustest.New(t)
	sent, err := events.New("clock/1", "clock", time.Now(), events.Tick{Name: "reconcile"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got events.Event
	err = b.ConsumeEvents(ctx, "test", []string{"event.clock.>"}, func(_ context.Context, e events.Event) error {
		got = e
		cancel()
		return nil
	})
	if err != nil || got.ID != sent.ID {
		t.Errorf("got %q, %v; want %q", got.ID, err, sent.ID)
	}
}
