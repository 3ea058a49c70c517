package window

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Horizon is how far [Schedule.At] looks for a change, before and after.
const Horizon = 2 * 366 * 24 * time.Hour

// Schedule says when something is open. It is closed within every span of Deny,
// and, if there are any spans in Allow, outside of all of those; what is denied
// is denied even where it is allowed. The zero value is always open.
type Schedule struct {
	Deny, Allow []Span
	// Location is the zone of the clock; nil is UTC. See [Zone].
	Location *time.Location
}

// State is what a schedule says of one instant.
type State struct {
	Open bool
	// Span decides: one that denies, or else one that allows. It is the zero
	// value if there is none.
	Span Span
	// Reason says why, in words that begin in lower case, such as "within the
	// denied 03:00-06:00 (America/Chicago)". It is empty without any spans.
	Reason string
	// Since is the last instant at which Open changed, and Until the next at
	// which it will: both exact, in the zone of the schedule, and zero if there
	// is none within the [Horizon].
	Since, Until time.Time
}

// At returns what holds at an instant.
func (s Schedule) At(t time.Time) State {
	if s.Location == nil {
		s.Location = time.UTC
	}
	t = t.In(s.Location)
	state := State{Open: s.pieces(t, t.Add(1))[0].open}
	state.Span, state.Reason = s.reason(t)
	state.Until = s.until(t, state.Open)
	state.Since = s.since(t, state.Open)
	return state
}

// stride is how much is gone through in one step.
const stride = 8 * 24 * time.Hour

func (s Schedule) until(t time.Time, open bool) time.Time {
	if len(s.Deny)+len(s.Allow) == 0 {
		return time.Time{}
	}
	for from := t; from.Sub(t) < Horizon; from = from.Add(stride) {
		for _, p := range s.pieces(from, from.Add(stride)) {
			if p.open != open {
				return p.start
			}
		}
	}
	return time.Time{}
}

func (s Schedule) since(t time.Time, open bool) time.Time {
	if len(s.Deny)+len(s.Allow) == 0 {
		return time.Time{}
	}
	since := time.Time{}
	for to := t.Add(1); t.Sub(to) < Horizon; to = to.Add(-stride) {
		for _, p := range slices.Backward(s.pieces(to.Add(-stride), to)) {
			if p.open != open {
				return since
			}
			since = p.start
		}
	}
	return time.Time{}
}

// piece is a stretch in which nothing changes. It goes up to the next.
type piece struct {
	start time.Time
	open  bool
}

// pieces returns those of [from, to) in their order. No two neighbours are both
// open or both closed.
func (s Schedule) pieces(from, to time.Time) []piece {
	type edge struct {
		at          time.Time
		deny, allow int // How many spans begin, less those that end.
	}
	edges := []edge{{at: from}}
	for _, span := range s.Deny {
		for _, i := range span.between(from, to, s.Location, denied) {
			edges = append(edges, edge{at: i.start, deny: 1}, edge{at: i.end, deny: -1})
		}
	}
	for _, span := range s.Allow {
		for _, i := range span.between(from, to, s.Location, allowed) {
			edges = append(edges, edge{at: i.start, allow: 1}, edge{at: i.end, allow: -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	var out []piece
	deny, allow := 0, 0
	for i, e := range edges {
		deny, allow = deny+e.deny, allow+e.allow
		switch next := i + 1; {
		case e.at.Before(from), next < len(edges) && edges[next].at.Equal(e.at):
			continue // There is more to come at this instant, or it is before.
		case !e.at.Before(to):
			return out
		}
		open := deny == 0 && (allow > 0 || len(s.Allow) == 0)
		if len(out) == 0 || out[len(out)-1].open != open {
			out = append(out, piece{e.at, open})
		}
	}
	return out
}

// reason returns the span that decides and why, in words.
func (s Schedule) reason(t time.Time) (Span, string) {
	zone := " (" + s.Location.String() + ")"
	if span, ok := longest(s.Deny, t, s.Location, denied); ok {
		return span, fmt.Sprintf("within the denied %s%s", span, zone)
	}
	if span, ok := longest(s.Allow, t, s.Location, allowed); ok {
		return span, fmt.Sprintf("within the allowed %s%s", span, zone)
	}
	switch {
	case len(s.Allow) > 0:
		return Span{}, fmt.Sprintf("outside of the allowed %s%s", join(s.Allow), zone)
	case len(s.Deny) > 0:
		return Span{}, fmt.Sprintf("outside of the denied %s%s", join(s.Deny), zone)
	default:
		return Span{}, ""
	}
}

// longest returns the span that holds at an instant, and of several the one that
// goes on longest.
func longest(spans []Span, t time.Time, zone *time.Location, sides sides) (Span, bool) {
	var best Span
	var end time.Time
	for _, span := range spans {
		for _, i := range span.between(t, t.Add(1), zone, sides) {
			if end.Before(i.end) {
				best, end = span, i.end
			}
		}
	}
	return best, !end.IsZero()
}

func join(spans []Span) string {
	var out []string
	for _, s := range spans {
		out = append(out, s.String())
	}
	return strings.Join(out, " and ")
}
