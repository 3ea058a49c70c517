package window_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"signalbox/internal/window"
)

// clock is what the clock on the wall shows, minute by minute: minutes since
// 1970-01-01 00:00 as it shows them, which jump where the clock is changed.
type clock struct {
	from   time.Time
	labels []int
}

func newClock(from, to time.Time, zone *time.Location) clock {
	c := clock{from: from}
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		l := t.In(zone)
		days := int(time.Date(l.Year(), l.Month(), l.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86400)
		c.labels = append(c.labels, days*1440+l.Hour()*60+l.Minute())
	}
	return c
}

// shows returns the minute in which the clock shows a label: of several the
// first or the last, and if it is skipped, the first that shows a later one.
func (c clock) shows(label int, last bool) int {
	// It is at most two days from where it would be without changes.
	around := max(0, min(label-c.labels[0]-2*1440, len(c.labels)))
	found, next := -1, -1
	for i := around; i < min(around+4*1440, len(c.labels)); i++ {
		if c.labels[i] == label && (found < 0 || last) {
			found = i
		}
		if c.labels[i] > label && next < 0 {
			next = i
		}
	}
	switch {
	case found >= 0:
		return found
	case next >= 0:
		return next
	default:
		return len(c.labels)
	}
}

// written is a span as it is drawn, with what it means in minutes.
type written struct {
	text       string
	days       map[time.Weekday]bool // On which it starts; nil if it comes once.
	date       int                   // On which it starts, if it comes once.
	start, end int                   // Since the midnight before its start.
}

// mark sets the minutes that the span holds.
func (w written) mark(c clock, holds []bool, deny bool) {
	for date := c.labels[0]/1440 + 1; date <= slices.Max(c.labels)/1440; date++ {
		weekday := time.Unix(int64(date)*86400, 0).UTC().Weekday()
		if w.days != nil && !w.days[weekday] || w.days == nil && date != w.date {
			continue
		}
		start := c.shows(date*1440+w.start, !deny)
		end := c.shows(date*1440+w.end, deny)
		for i := start; i < end; i++ {
			holds[i] = true
		}
	}
}

func drawSpan(t *rapid.T, today int) written {
	var w written
	// Hours around changes of the clock are drawn more often.
	minute := rapid.OneOf(rapid.IntRange(0, 1439), rapid.Map(rapid.IntRange(0, 14), func(n int) int { return n * 15 }))
	w.start = minute.Draw(t, "start")
	w.end = rapid.OneOf(minute, rapid.Just(1440)).Draw(t, "end")
	text := func(m int) string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }
	name := func(d int) string { return time.Weekday(d % 7).String()[:3] }
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0: // Across days.
		first, last := rapid.IntRange(0, 6).Draw(t, "first"), rapid.IntRange(0, 6).Draw(t, "last")
		if first == last && w.start == w.end || w.start == 0 && w.end == 1440 && (last+1)%7 == first {
			w.end = w.start + 1
		}
		w.text = fmt.Sprintf("%s %s-%s %s", name(first), text(w.start), name(last), text(w.end))
		w.days = map[time.Weekday]bool{time.Weekday(first): true}
		if w.end += (last - first + 7) % 7 * 1440; w.end < w.start {
			w.end += 7 * 1440
		}
		if w.end == w.start {
			w.end++
			w.text = fmt.Sprintf("%s %s-%s %s", name(first), text(w.start), name(first), text(w.end))
		}
	case 1: // Once.
		w.date = today + rapid.IntRange(-3, 3).Draw(t, "date")
		days := rapid.IntRange(0, 3).Draw(t, "days")
		if w.end += days * 1440; w.end <= w.start {
			w.end, days = w.start+1440, 1
		}
		date := func(d int) string { return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly) }
		w.text = fmt.Sprintf("%s %s-%s %s", date(w.date), text(w.start), date(w.date+days), text(w.end-days*1440))
	default: // On weekdays.
		days := rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID).Draw(t, "weekdays")
		var names []string
		w.days = map[time.Weekday]bool{}
		for _, d := range days {
			w.days[time.Weekday(d)] = true
			names = append(names, name(d))
		}
		if w.end == w.start {
			w.end = 1440
		}
		w.text = strings.Join(names, ",") + " " + text(w.start) + "-" + text(w.end)
		if w.end < w.start {
			w.end += 1440
		}
	}
	return w
}

var zones = []string{
	"America/Chicago", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana", "America/Sao_Paulo",
	"Pacific/Apia", "Africa/Casablanca", "Pacific/Chatham", "Asia/Kathmandu", "UTC",
}

// TestOracle holds the answers against a walk over the clock on the wall, near
// its changes.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, err := window.Zone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(1_230_000_000, 1_900_000_000).Draw(t, "about"), 0)
		if _, change := at.In(zone).ZoneBounds(); !change.IsZero() {
			minutes := rapid.OneOf(rapid.IntRange(-120, 180), rapid.IntRange(-7*1440, 7*1440)).Draw(t, "minutes from a change")
			at = change.Add(time.Duration(minutes) * time.Minute)
		}
		at = at.Truncate(time.Minute).Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)-1).Draw(t, "rest")))

		const before, after = 18 * 24 * time.Hour, 12 * 24 * time.Hour
		c := newClock(at.Truncate(time.Minute).Add(-before), at.Add(after), zone)
		now := int(before / time.Minute)
		s := window.Schedule{Location: zone}
		deny, allow := make([]bool, len(c.labels)), make([]bool, len(c.labels))
		draw := func(label string, holds []bool, denies bool) (out []window.Span) {
			for range rapid.IntRange(0, 2).Draw(t, label) {
				w := drawSpan(t, c.labels[now]/1440)
				span, err := window.Parse(w.text)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, span)
				w.mark(c, holds, denies)
			}
			return out
		}
		s.Deny = draw("denied", deny, true)
		s.Allow = draw("allowed", allow, false)
		open := func(i int) bool { return !deny[i] && (allow[i] || len(s.Allow) == 0) }

		got := s.At(at)
		if got.Open != open(now) {
			t.Fatalf("%v: open is %v (%s); the clock says %v", at.In(zone), got.Open, got.Reason, open(now))
		}
		if holds := got.Span != (window.Span{}); holds != (deny[now] || allow[now]) {
			t.Errorf("the span %q decides; denied %v, allowed %v", got.Span, deny[now], allow[now])
		}
		// What began before the walk, or ends after it, is not known well enough.
		const known = 9 * 1440
		until := now + 1
		for until < now+known && open(until) == open(now) {
			until++
		}
		if want := c.from.Add(time.Duration(until) * time.Minute); until < now+known && !got.Until.Equal(want) {
			t.Errorf("until %v; the clock says %v", got.Until, want.In(zone))
		} else if until == now+known && !got.Until.IsZero() && got.Until.Before(want) {
			t.Errorf("until %v; the clock says it is later than %v", got.Until, want.In(zone))
		}
		since := now
		for since > now-known && open(since-1) == open(now) {
			since--
		}
		if want := c.from.Add(time.Duration(since) * time.Minute); since > now-known && !got.Since.Equal(want) {
			t.Errorf("since %v; the clock says %v", got.Since, want.In(zone))
		} else if since == now-known && got.Since.After(want) {
			t.Errorf("since %v; the clock says it is earlier than %v", got.Since, want.In(zone))
		}
	})
}

// TestChanges looks at the instants at which something changes, at those beside
// them, and at some between.
func TestChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, err := window.Zone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(0, rapid.Int64Range(1_230_000_000_000_000_000, 1_900_000_000_000_000_000).Draw(t, "at"))
		s := window.Schedule{Location: zone}
		for _, list := range []*[]window.Span{&s.Deny, &s.Allow} {
			for range rapid.IntRange(0, 3).Draw(t, "spans") {
				span, err := window.Parse(drawSpan(t, int(at.Unix()/86400)).text)
				if err != nil {
					t.Fatal(err)
				}
				*list = append(*list, span)
			}
		}
		for range 5 {
			now := s.At(at)
			end := now.Until
			if end.IsZero() {
				end = at.Add(window.Horizon / 2)
			} else if before, after := s.At(end.Add(-1)), s.At(end); before.Open != now.Open || after.Open == now.Open || !after.Since.Equal(end) || !end.After(at) {
				t.Fatalf("at %v: %+v\nbefore its end: %+v\nat its end: %+v", at, now, before, after)
			}
			between := at.Add(time.Duration(rapid.Int64Range(0, int64(end.Sub(at))-1).Draw(t, "between")))
			if other := s.At(between); other.Open != now.Open ||
				!other.Until.Equal(now.Until) && !now.Until.IsZero() ||
				!other.Since.Equal(now.Since) && !now.Since.IsZero() && between.Sub(now.Since) < window.Horizon {
				t.Fatalf("at %v: %+v\nat %v: %+v", at, now, between, other)
			}
			at = end
		}
	})
}
