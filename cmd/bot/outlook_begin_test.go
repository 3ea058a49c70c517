package main

import (
	"testing"
	"time"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/config"
	"signalbox/internal/schedule"
)

// A digest that is new, changed, or was away has missed nothing.
func TestScheduleBegins(t *testing.T) {
	store, err := bus.OpenBucket[begun](t.Context(), bustest.New(t), bucketSchedules)
	if err != nil {
		t.Fatal(err)
	}
	start := func(name, text string) (since time.Time) {
		t.Helper()
		times, err := schedule.Parse(text, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		d := config.Digest{Name: name, Times: times}
		if err := forgetSchedules(t.Context(), store, []config.Digest{d}); err != nil {
			t.Fatal(err)
		}
		if since, err = begin(t.Context(), store, d); err != nil {
			t.Fatal(err)
		}
		return since
	}
	first := start("morning", "0 8 * * *")
	if again := start("morning", "0 8 * * *"); !again.Equal(first) {
		t.Errorf("since %s, and after a start since %s", first, again)
	}
	changed := start("morning", "0 9 * * *")
	if !changed.After(first) {
		t.Error("another schedule is in force since before")
	}
	start("evening", "0 9 * * *")
	if back := start("morning", "0 9 * * *"); !back.After(changed) {
		t.Error("what was away has missed something")
	}
}

func TestDealtWith(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct{ last, since, want time.Time }{
		"the last report":  {now.AddDate(0, 0, -1), now.AddDate(0, 0, -9), now.AddDate(0, 0, -1)},
		"no report yet":    {time.Time{}, now.AddDate(0, 0, -9), now.AddDate(0, 0, -9)},
		"another schedule": {now.AddDate(0, 0, -9), now.AddDate(0, 0, -1), now.AddDate(0, 0, -1)},
		// Its report of half a year ago is forgotten, and is not made again.
		"once a year": {time.Time{}, now.AddDate(-2, 0, 0), now.AddDate(0, 0, -60)},
	} {
		if got := dealtWith(tt.last, tt.since, now); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
