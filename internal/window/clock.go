package window

import (
	"fmt"
	"time"
)

// Zone returns the zone of a name in the IANA database, such as
// "America/Chicago". "Local", which differs from one machine to the next, and an
// empty name are errors.
func Zone(name string) (*time.Location, error) {
	switch name {
	case "":
		return nil, fmt.Errorf("a time zone is missing; %s", zoneHint)
	case "Local":
		return nil, fmt.Errorf("the time zone \"Local\" is another one on every machine; %s", zoneHint)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q; %s", name, zoneHint)
	}
	return zone, nil
}

const zoneHint = "write a name of the IANA database, such as Europe/Berlin or UTC"

// side says which instant is meant where the clock shows a time twice.
type side bool

const (
	earlier side = false
	later   side = true
)

// sides are those of the ends of a span.
type sides struct{ start, end side }

var (
	denied  = sides{start: earlier, end: later}
	allowed = sides{start: later, end: earlier}
)

// around is more than the clock of any zone is away from UTC.
const around = 30 * time.Hour

// instant returns when the clock of a zone shows a time, in minutes since the
// midnight of a date. What it skips is the first instant after the gap.
//
// [time.Date] does not say which of several instants it returns, so the periods
// of the zone are gone through.
func instant(date, minutes int, zone *time.Location, side side) time.Time {
	wall := time.Unix(int64(date)*day*60+int64(minutes)*60, 0).UTC()
	var found, gap time.Time
	for t, last := wall.Add(-around).In(zone), wall.Add(around); ; {
		_, offset := t.Zone()
		start, end := t.ZoneBounds()
		at := wall.Add(-time.Duration(offset) * time.Second)
		switch {
		case !start.IsZero() && at.Before(start):
			// The period begins with a later time than this. If none before it
			// showed the time, it was skipped.
			if gap.IsZero() {
				gap = start
			}
		case end.IsZero() || at.Before(end):
			if found.IsZero() || side == later {
				found = at
			}
		}
		if end.IsZero() || end.After(last) {
			break
		}
		t = end
	}
	if found.IsZero() {
		found = gap
	}
	return found.In(zone)
}

// dateOf returns the date that a zone has, in days since 1970-01-01.
func dateOf(t time.Time, zone *time.Location) int {
	_, offset := t.In(zone).Zone()
	seconds := t.Unix() + int64(offset)
	date := seconds / (day * 60)
	if seconds%(day*60) < 0 {
		date--
	}
	return int(date)
}

// weekdayOf returns the weekday of a date. 1970-01-01 was a Thursday.
func weekdayOf(date int) time.Weekday {
	return time.Weekday(((date+int(time.Thursday))%7 + 7) % 7)
}

// Instant returns when the clock on a wall in a zone first shows the date and time
// that wall shows in UTC, to the minute. A time that the clock skips is the end of
// what it skips.
func Instant(wall time.Time, zone *time.Location) time.Time {
	wall = wall.UTC()
	return instant(dateOf(wall, time.UTC), wall.Hour()*60+wall.Minute(), zone, earlier)
}
