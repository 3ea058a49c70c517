package schedule_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/events"
	"signalbox/internal/schedule"
)

func parse(t testing.TB, text, zone string) *schedule.Times {
	t.Helper()
	s, err := schedule.Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Clocks in Berlin go forward on 2026-03-29 at 02:00 and back on 2026-10-25 at 03:00;
// those of Lord Howe by half an hour, back on 2026-04-05 at 02:00.
func TestNext(t *testing.T) {
	tests := []struct {
		name, text, zone, from string
		want                   []string
	}{
		{"weekdays", "0 8 * * 1-5", "Europe/Berlin", "2026-12-04T06:00:00Z", []string{"2026-12-04T07:00:00Z", "2026-12-07T07:00:00Z"}},
		{"a word", "@daily", "UTC", "2026-12-04T06:00:00Z", []string{"2026-12-05T00:00:00Z"}},
		{"what the clock skips comes at the end of that", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"what it skips twice comes once", "10,50 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:10:00Z"}},
		{"what it shows twice comes the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"asked between the two", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"every hour, back", "0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"every hour, forward", "0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z", []string{"2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{"half an hour back", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"a leap day", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{"exactly then is not after", "0 8 * * *", "UTC", "2026-12-04T08:00:00Z", []string{"2026-12-05T08:00:00Z"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := parse(t, tt.text, tt.zone)
			at, err := time.Parse(time.RFC3339, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range tt.want {
				at = s.Next(at)
				got = append(got, at.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ text, zone, want string }{
		{"", "UTC", "cannot be read"},
		{"0 8 * *", "UTC", "five fields"},
		{"0 25 * * *", "UTC", "cannot be read"},
		{"0 0 8 * * *", "UTC", "cannot be read"},
		{"0 0 30 2 *", "UTC", "never comes"},
		{"@every 1h", "UTC", "no fixed times"},
		{"TZ=UTC 0 8 * * *", "UTC", "field of its own"},
		{"0 8 * * *", "", "time zone is missing"},
		{"0 8 * * *", "Local", "every machine"},
		{"0 8 * * *", "Europe/Bern", "unknown time zone"},
	}
	for _, tt := range tests {
		t.Run(tt.text+tt.zone, func(t *testing.T) {
			_, err := schedule.Parse(tt.text, tt.zone)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// A daily schedule comes once each day, whatever the clocks do.
func TestDailyComesOnceEachDay(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo", "America/Havana"}
	rapid.Check(t, func(rt *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(rt, "zone")
		hour, minute := rapid.IntRange(0, 23).Draw(rt, "hour"), rapid.IntRange(0, 59).Draw(rt, "minute")
		s := parse(t, strings.Join([]string{strconv.Itoa(minute), strconv.Itoa(hour), "* * *"}, " "), zone)
		at := s.Next(time.Date(2024+rapid.IntRange(0, 4).Draw(rt, "year"), 1, 1, 12, 0, 0, 0, time.UTC))
		for range 370 {
			next := s.Next(at)
			if apart := next.Sub(at); apart < 22*time.Hour || apart > 26*time.Hour {
				rt.Fatalf("%s follows %s", next, at)
			}
			if again := s.Next(next.Add(-time.Nanosecond)); again != next {
				rt.Fatalf("%s, and %s from shortly before", next, again)
			}
			at = next
		}
	})
}

func TestLatest(t *testing.T) {
	s := parse(t, "0 8 * * 1", "UTC") // Mondays
	day := func(d int) time.Time { return time.Date(2026, 12, d, 9, 0, 0, 0, time.UTC) }
	if at, ok := s.Latest(day(1).AddDate(-3, 0, 0), day(10)); !ok || at.Format(time.RFC3339) != "2026-12-07T08:00:00Z" {
		t.Errorf("got %v, %v", at, ok)
	}
	if at, ok := s.Latest(day(7), day(10)); ok {
		t.Errorf("got %v, which was dealt with", at)
	}
	if at, ok := s.Latest(day(10), day(7)); ok {
		t.Errorf("got %v, though the clock was put back", at)
	}
}

// clockOf runs a clock in a bubble, whose time starts at 2000-01-01 00:00 UTC, and
// returns the times of its ticks with when they came.
func clockOf(t *testing.T, text string, done time.Time, run time.Duration, fail int) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var ticks []string
	c := &schedule.Clock{
		Name: "digest", Times: parse(t, text, "UTC"), Done: func() time.Time { return done }, Log: slog.New(slog.DiscardHandler),
		Publish: func(_ context.Context, e events.Event) error {
			if fail > 0 {
				fail--
				return errors.New("the bus is away")
			}
			ticks = append(ticks, strings.TrimPrefix(e.ID, "clock/digest/")+" at "+time.Now().UTC().Format("15:04:05"))
			return nil
		},
	}
	end := make(chan error)
	go func() { end <- c.Run(ctx) }()
	time.Sleep(run) //nolint:forbidigo // The clock of a bubble jumps.
	cancel()
	if err := <-end; err != nil {
		t.Error(err)
	}
	return ticks
}

func TestClock(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name, text string
		done       time.Time
		run        time.Duration
		fail       int
		want       []string
	}{
		{"on time", "0 8 * * *", start, 33 * time.Hour, 0, []string{"2000-01-01T08:00:00Z at 08:00:00", "2000-01-02T08:00:00Z at 08:00:00"}},
		{"the last of those that were missed", "0 8 * * *", start.AddDate(0, 0, -5), time.Hour, 0, []string{"1999-12-31T08:00:00Z at 00:00:00"}},
		{"nothing was missed", "0 8 * * *", start.Add(-16 * time.Hour), time.Hour, 0, nil},
		{"tried until the bus takes it", "0 8 * * *", start, 9 * time.Hour, 3, []string{"2000-01-01T08:00:00Z at 08:00:15"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(tt.want, clockOf(t, tt.text, tt.done, tt.run, tt.fail)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestClockThatIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		// For a minute it is ten years later.
		now := func() time.Time {
			if time.Since(start) < time.Minute {
				return time.Now().AddDate(10, 0, 0)
			}
			return time.Now()
		}
		var ticks []string
		c := &schedule.Clock{
			Name: "digest", Times: parse(t, "0 8 * * *", "UTC"), Done: func() time.Time { return start }, Log: slog.New(slog.DiscardHandler), Now: now,
			Publish: func(_ context.Context, e events.Event) error {
				ticks = append(ticks, strings.TrimPrefix(e.ID, "clock/digest/"))
				return nil
			},
		}
		end := make(chan error)
		go func() { end <- c.Run(ctx) }()
		time.Sleep(9 * time.Hour) //nolint:forbidigo // The clock of a bubble jumps.
		cancel()
		if err := <-end; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"2009-12-31T08:00:00Z", "2000-01-01T08:00:00Z"}, ticks); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// What is hourly comes in every hour of its days, however and when clocks are put forward
// or back there.
func TestHourlyComesInEveryHour(t *testing.T) {
	for _, zone := range []string{"Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe", "America/Havana", "Europe/Berlin", "Antarctica/Troll", "UTC"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for text, named := range map[string]func(time.Time) bool{
			"0 * * * *":   func(at time.Time) bool { return at.Minute() == 0 },
			"30 * * * 5":  func(at time.Time) bool { return at.Minute() == 30 && at.Weekday() == time.Friday },
			"0 * 1-7 4 *": func(at time.Time) bool { return at.Minute() == 0 && at.Day() <= 7 && at.Month() == time.April },
		} {
			s := parse(t, text, zone)
			at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
			next := s.Next(at)
			for end := at.AddDate(1, 0, 0); at.Before(end); {
				at = at.Add(30 * time.Minute)
				if !named(at.In(loc)) {
					continue
				}
				if !next.Equal(at) {
					t.Fatalf("%s in %s: %s, want %s", text, zone, next.In(loc), at.In(loc))
				}
				next = s.Next(at)
			}
		}
	}
}

// FuzzParse: what is taken has a next time, which is after the one before, and what
// lies between two of them is told by Latest.
func FuzzParse(f *testing.F) {
	for _, s := range [][2]string{
		{"0 8 * * 1-5", "Europe/Berlin"},
		{"@daily", "UTC"},
		{"*/7 2 29 2 *", "America/Sao_Paulo"},
		{"0 0 30 2 *", "UTC"},
		{"@every 1s", "UTC"},
		{"TZ=UTC 0 0 * * *", "UTC"},
		{"30 * * * *", "Australia/Lord_Howe"},
		{"0-59/61 * * * *", "Local"},
		{"* * * * 7", "../etc/passwd"},
	} {
		f.Add(s[0], s[1], int64(0))
	}
	f.Fuzz(func(t *testing.T, text, zone string, seconds int64) {
		times, err := schedule.Parse(text, zone)
		if err != nil {
			if times != nil || err.Error() == "" {
				t.Errorf("%q in %q: %v with the error %q", text, zone, times, err)
			}
			return
		}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds%(4*365*86400)) * time.Second)
		first := times.Next(from)
		second := times.Next(first)
		if !first.After(from) || !second.After(first) || first.Location() != time.UTC {
			t.Fatalf("%q in %q: after %v come %v and %v", text, zone, from, first, second)
		}
		if last, ok := times.Latest(from, second.Add(-time.Nanosecond)); !ok || !last.Equal(first) {
			t.Errorf("%q in %q: the last before %v is %v, %t; want %v", text, zone, second, last, ok, first)
		}
	})
}
