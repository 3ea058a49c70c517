package precondition_test

import (
	"testing"
	"time"

	"signalbox/internal/precondition"
)

// TestWindow is at 03:14 UTC on a Monday, which is Sunday 22:14 in Chicago.
func TestWindow(t *testing.T) {
	monday := func(hour, minute int) time.Time { return time.Date(2026, 9, 7, hour, minute, 0, 0, time.UTC) }
	runCases(t, nil, []kindCase{
		{
			name: "outside of what denies", text: `window: {deny: "03:00-06:00", timezone: America/Chicago}`, want: precondition.Met, again: monday(8, 0),
			reason: "it is outside of the denied 03:00-06:00 (America/Chicago); it closes at 2026-09-07 03:00 CDT (2026-09-07 08:00 UTC)",
		},
		{
			name: "within what denies", text: `window: {deny: ["12:00-13:00", "Fri 16:00-Mon 07:00"], timezone: America/Chicago}`, want: precondition.Unmet, again: monday(12, 0),
			reason: "it is within the denied Fri 16:00-Mon 07:00 (America/Chicago); it opens at 2026-09-07 07:00 CDT (2026-09-07 12:00 UTC)",
		},
		{
			name: "outside of what allows", text: `window: {allow: "Mon-Fri 09:00-17:00"}`, want: precondition.Unmet, again: monday(9, 0),
			reason: "it is outside of the allowed Mon-Fri 09:00-17:00 (UTC); it opens at 2026-09-07 09:00 UTC",
		},
		{
			name: "what denies wins", text: `window: {allow: "00:00-24:00", deny: "03:00-03:30"}`, want: precondition.Unmet, again: monday(3, 30),
			reason: "it is within the denied 03:00-03:30 (UTC); it opens at 2026-09-07 03:30 UTC",
		},
		{
			name: "over for good", text: `window: {deny: "2026-08-01 18:00-2026-08-03 08:00"}`, want: precondition.Met,
			reason: "it is outside of the denied 2026-08-01 18:00-2026-08-03 08:00 (UTC); nothing changes that",
		},
	})
	problemCases(t, map[string][]string{
		`window: {timezone: Europe/Berlin}`: {`p.yaml:1: window: names no span of time (give deny: "03:00-06:00", allow: "Mon-Fri 09:00-17:00", or both)`},
		`window: {deny: {a: b}}`:            {`p.yaml:1: window.deny: expected text or a list of texts, found a mapping`},
	})
	for text, field := range map[string]string{
		`window: {deny: "3-6"}`:                                         "window.deny[0]",
		`window: {deny: "03:00-06:00", allow: [ "09:00-09:00" ]}`:       "window.allow[0]",
		`window: {deny: "03:00-06:00", timezone: Local}`:                "window.timezone",
		`window: {deny: "03:00-06:00", timezone: "Europe/Springfield"}`: "window.timezone",
	} {
		if _, problems := load(text); len(problems) != 1 || problems[0].Path != field {
			t.Errorf("%s: the problems are %v, want one at %s", text, problems, field)
		}
	}
}
