package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"signalbox/internal/window"
)

// Times are moments that a cron expression names in a time zone.
//
// Where clocks are put forward, what falls into the hour that is skipped happens at
// its end; where they are put back, what falls into the hour that comes twice happens
// the first time. So what is daily happens once each day. An expression for every
// hour goes by the hours that pass instead, and happens in both.
type Times struct {
	text string
	zone *time.Location
	spec *cron.SpecSchedule
	// hourly says that every hour is named.
	hourly bool
}

// everyHour marks in a field of package cron that it was written "*".
const everyHour = 1 << 63

// cronParser takes the five fields of crontab(5) and words like @daily.
var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads a cron expression of five fields, or a word such as @daily. Zone is a
// name of the IANA database.
func Parse(text, zone string) (*Times, error) {
	loc, err := window.Zone(zone)
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	const hint = `write five fields as in crontab, such as "0 8 * * 1-5" for weekdays at eight`
	switch {
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		return nil, fmt.Errorf("schedule %q names a time zone; that has a field of its own", text)
	case strings.HasPrefix(text, "@every"):
		return nil, fmt.Errorf("schedule %q has no fixed times; %s", text, hint)
	}
	parsed, err := cronParser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("schedule %q cannot be read: %w; %s", text, err, hint)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("schedule %q has no fixed times; %s", text, hint)
	}
	t := &Times{text: text, zone: loc, spec: spec, hourly: spec.Hour&everyHour != 0}
	// It is asked about the clock on the wall, which has no zone. In a zone of its own
	// the library loses a day on which clocks are put forward at midnight.
	spec.Location = time.UTC
	if t.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("schedule %q names a day that never comes", text)
	}
	return t, nil
}

// String returns the expression and the zone.
func (t *Times) String() string { return t.text + " " + t.zone.String() }

// Zone is the time zone.
func (t *Times) Zone() *time.Location { return t.zone }

// shift is more than clocks are ever put forward or back.
const shift = 3 * time.Hour

// Next returns the first moment after another, in UTC, or the zero time if there is
// none in the next years.
func (t *Times) Next(after time.Time) time.Time {
	if t.hourly {
		return t.nextHourly(after)
	}
	_, offset := after.In(t.zone).Zone()
	wall := after.UTC().Add(time.Duration(offset)*time.Second - shift)
	for {
		if wall = t.spec.Next(wall); wall.IsZero() {
			return wall
		}
		if at := window.Instant(wall, t.zone); at.After(after) {
			return at.UTC()
		}
	}
}

// nextHourly goes by the hours that pass: within a time in which clocks are not put
// forward or back, and then in the one after it.
func (t *Times) nextHourly(after time.Time) time.Time {
	for in := after; ; {
		_, seconds := in.In(t.zone).Zone()
		_, end := in.In(t.zone).ZoneBounds()
		offset := time.Duration(seconds) * time.Second
		wall := t.spec.Next(after.UTC().Add(offset))
		if wall.IsZero() {
			return wall
		}
		if at := wall.Add(-offset); end.IsZero() || at.Before(end) {
			return at.UTC()
		}
		after, in = end.Add(-time.Nanosecond), end
	}
}

// Latest returns the last moment that is after one time and not after another; false
// if there is none.
func (t *Times) Latest(after, until time.Time) (time.Time, bool) {
	// What lies far back need not be gone through step by step.
	for back := time.Hour; ; back *= 4 {
		from := until.Add(-back)
		whole := !from.After(after)
		if whole {
			from = after
		}
		var last time.Time
		for at := t.Next(from); !at.IsZero() && !at.After(until); at = t.Next(at) {
			last = at
		}
		if !last.IsZero() || whole {
			return last, !last.IsZero()
		}
	}
}

// errNoTimes is of a [Clock] that was not given what it needs.
var errNoTimes = errors.New("a clock needs times, and what was dealt with")
