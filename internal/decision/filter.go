package decision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Filter says which entries of a ledger are wanted; what is zero does not limit.
type Filter struct {
	// Repo is "owner/name" in any letter case, and Number that of a pull request.
	Repo   string
	Number int64
	// Person is a login in any letter case, or an id as decimal number; an @ before it
	// is left out.
	Person string
	Kinds  []Kind
	// Since is the first moment that is wanted, and Until the first after it that is
	// not.
	Since, Until time.Time
}

// Apply returns the entries that are wanted, in the order of the ledger, which should
// be whole; see [Filter.Wanted].
func (f Filter) Apply(all Ledger) Ledger {
	wanted := f.Wanted(all)
	var out Ledger
	for i := range all {
		if wanted(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// Wanted returns what tells whether an entry is wanted. A repository or a person that
// was renamed is found by every name that the given ledger knows of it.
func (f Filter) Wanted(all Ledger) func(*Entry) bool {
	repos := map[int64]bool{}
	people := map[int64]bool{}
	login := strings.TrimPrefix(f.Person, "@")
	if id, err := strconv.ParseInt(login, 10, 64); err == nil {
		people[id] = true
	}
	for i := range all {
		e := &all[i]
		if f.Repo != "" && strings.EqualFold(e.Repo.String(), f.Repo) {
			repos[e.Repo.ID] = true
		}
		if f.Person != "" && strings.EqualFold(e.By.Login, login) {
			people[e.By.ID] = true
		}
	}
	return func(e *Entry) bool {
		return (f.Repo == "" || repos[e.Repo.ID]) &&
			(f.Number == 0 || e.Number == f.Number) &&
			(f.Person == "" || people[e.By.ID]) &&
			(len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) &&
			(f.Since.IsZero() || !e.At.Before(f.Since)) &&
			(f.Until.IsZero() || e.At.Before(f.Until))
	}
}

// maxDays bounds an age that is given in days: a century. Far more would overflow.
const maxDays = 36_600

// ParseSince reads where a [Filter] begins: a time as RFC 3339, a day in UTC, or an
// age such as "36h" or "7d" before now. An empty text is the zero time.
func ParseSince(text string, now time.Time) (time.Time, error) { return parseMoment(text, now, false) }

// ParseUntil reads where a [Filter] ends, as [ParseSince] does; a day counts whole.
func ParseUntil(text string, now time.Time) (time.Time, error) { return parseMoment(text, now, true) }

func parseMoment(text string, now time.Time, end bool) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		if end {
			day = day.AddDate(0, 0, 1)
		}
		return day, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; write 2026-09-07, 2026-09-07T03:00:00Z, or an age such as 36h or 7d", text)
}
