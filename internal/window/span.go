package window

import (
	"fmt"
	"strings"
	"time"
)

const (
	day  = 24 * 60 // In minutes, as the clock on the wall has them.
	week = 7 * day
)

// Span is a stretch of the clock on a wall that comes again every week, or once.
// It is made by [Parse]. Spans that are equal compare as equal; the zero value
// is no span and never holds.
type Span struct {
	// weekdays are those on which it starts; none, if it comes once.
	weekdays weekdays
	// date is the day on which it starts, if it comes once, in days since
	// 1970-01-01.
	date int
	// start and end are minutes since the midnight before the start.
	start, end int
}

// weekdays is a set: the bit 1<<d is for the day d of [time.Weekday].
type weekdays uint8

const everyDay weekdays = 1<<7 - 1

func (w weekdays) has(d time.Weekday) bool { return w&(1<<d) != 0 }

// String returns the span as [Parse] reads it, in the shortest form.
func (s Span) String() string {
	end := s.end - (s.end-1)/day*day // A midnight is the 24:00 of the day before.
	switch {
	case s.end == 0:
		return ""
	case s.weekdays == 0:
		return dateString(s.date) + " " + clockString(s.start) + "-" + dateString(s.date+(s.end-1)/day) + " " + clockString(end)
	}
	days := s.weekdays.String()
	if s.end <= day || s.end < day+s.start {
		return strings.TrimPrefix(days+" "+clockString(s.start)+"-"+clockString(end), " ")
	}
	// Longer than a day: it starts on one weekday.
	last := (s.weekdays.first() + time.Weekday((s.end-1)/day)) % 7
	return fmt.Sprintf("%s %s-%s %s", days, clockString(s.start), short(last), clockString(end))
}

// String returns "" for every day, a range for three days or more in a row, and
// a list for others.
func (w weekdays) String() string {
	if w == everyDay || w == 0 {
		return ""
	}
	var names []string
	first, last, runs := time.Sunday, time.Sunday, 0
	for i := range 7 {
		d := time.Weekday((i + 1) % 7) // From Monday.
		if !w.has(d) {
			continue
		}
		names = append(names, short(d))
		if !w.has((d + 6) % 7) {
			first, runs = d, runs+1
		}
		if !w.has((d + 1) % 7) {
			last = d
		}
	}
	if runs == 1 && len(names) > 2 {
		return short(first) + "-" + short(last)
	}
	return strings.Join(names, ",")
}

// first returns a day of the set.
func (w weekdays) first() time.Weekday {
	d := time.Sunday
	for d < time.Saturday && !w.has(d) {
		d++
	}
	return d
}

func short(d time.Weekday) string { return d.String()[:3] }

func clockString(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

func dateString(date int) string { return time.Unix(int64(date)*day*60, 0).UTC().Format(time.DateOnly) }

// interval is a stretch of time, without its end.
type interval struct {
	start, end time.Time
}

// between returns the intervals of a span that have a part in [from, to), in a
// zone.
func (s Span) between(from, to time.Time, zone *time.Location, sides sides) []interval {
	if s.end == 0 {
		return nil
	}
	// Two days more than the clock needs: zones have skipped a whole day.
	first, last := dateOf(from, zone)-s.end/day-2, dateOf(to, zone)+2
	if s.weekdays == 0 {
		first, last = max(first, s.date), min(last, s.date)
	}
	var out []interval
	for date := first; date <= last; date++ {
		if s.weekdays != 0 && !s.weekdays.has(weekdayOf(date)) {
			continue
		}
		start := instant(date, s.start, zone, sides.start)
		end := instant(date, s.end, zone, sides.end)
		if start.Before(end) && start.Before(to) && end.After(from) {
			out = append(out, interval{start, end})
		}
	}
	return out
}
