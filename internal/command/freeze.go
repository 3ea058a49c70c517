package command

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// MaxFreeze is how long a freeze lasts at most. What shall last longer belongs in
// the policy, where it is reviewed.
const MaxFreeze = 14 * day

const day = 24 * time.Hour

// howToFreeze says how the command is written.
const howToFreeze = "write /freeze 2h REASON, with a time such as 30m, 2h, 1h30m or 3d, or /freeze until 2026-12-01T08:00Z REASON"

// freezeTime is the form of the time that a freeze lasts. The numbers of digits
// keep it far from any overflow.
var freezeTime = regexp.MustCompile(`^(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?$`)

// freezeEnd is the form of the end of a freeze: RFC 3339, where seconds may be
// left out.
const freezeEnd = "2006-01-02T15:04Z07:00"

func parseFreeze(c *Command, args string) string {
	first, rest := cutWord(args)
	if strings.EqualFold(first, "until") {
		end, rest := cutWord(rest)
		at, ok := parseEnd(end)
		if !ok {
			return "after until comes a time with its zone, such as 2026-12-01T08:00Z or 2026-12-01T09:00+01:00"
		}
		c.Until = at
		return parseText(c, rest)
	}
	lasts, ok := parseLasts(strings.ToLower(first))
	switch {
	case first == "":
		return "a freeze has an end: " + howToFreeze
	case !ok:
		return "it does not say for how long: " + howToFreeze
	case lasts > MaxFreeze:
		return "a freeze lasts 14 days at most"
	}
	c.Lasts = lasts
	return parseText(c, rest)
}

// isFreezeTime reports whether a word begins to say how long a freeze lasts.
func isFreezeTime(word string) bool {
	_, ok := parseLasts(strings.ToLower(word))
	return ok || strings.EqualFold(word, "until")
}

func parseLasts(s string) (time.Duration, bool) {
	m := freezeTime.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	var lasts time.Duration
	for i, unit := range []time.Duration{day, time.Hour, time.Minute} {
		// What does not match is empty, and counts as none.
		n, _ := strconv.Atoi(m[i+1])
		lasts += time.Duration(n) * unit
	}
	return lasts, lasts > 0
}

func parseEnd(s string) (time.Time, bool) {
	for _, layout := range []string{freezeEnd, time.RFC3339} {
		if at, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// cutWord cuts the first word off a text.
func cutWord(s string) (word, rest string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}
