package precondition

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/window"
	"signalbox/internal/yamlfile"
)

// Window asks that the clock allows it: outside every span of time that denies,
// and, if spans are given that allow, within one of those.
//
// A span is "03:00-06:00" on every day, "Mon-Fri 09:00-17:00" on some, where one
// that ends before it begins runs across midnight and belongs to the day on which
// it begins, or "Fri 16:00-Mon 07:00" across days. A span once is
// "2026-12-24 18:00-2026-12-27 08:00". It begins with its first minute and ends
// before its last. Where daylight-saving time skips or repeats an hour, the safe
// side wins: what denies is as long as it can be, what allows as short.
//
// When it closes or opens, the verdict is made again by itself.
type Window struct {
	// Deny are spans in which nothing is merged.
	Deny yamlfile.Strings `yaml:"deny" json:"deny,omitempty"`
	// Allow are spans outside of which nothing is merged.
	Allow yamlfile.Strings `yaml:"allow" json:"allow,omitempty"`
	// Timezone is the IANA name of the time zone of the spans, such as
	// "America/Chicago"; "UTC" if not given.
	Timezone string `yaml:"timezone" json:"timezone,omitempty"`

	schedule *window.Schedule
}

// Validate implements [Kind].
func (c *Window) Validate(v *Validator, at yamlfile.Path) {
	if len(c.Deny)+len(c.Allow) == 0 {
		v.Add(at, `give deny: "03:00-06:00", allow: "Mon-Fri 09:00-17:00", or both`, "names no span of time")
	}
	if c.Timezone == "" {
		c.Timezone = "UTC"
	}
	location, err := window.Zone(c.Timezone)
	if err != nil {
		v.Add(at.At("timezone"), "", "%v", err)
	}
	c.schedule = &window.Schedule{
		Deny: v.spans(at.At("deny"), c.Deny), Allow: v.spans(at.At("allow"), c.Allow), Location: location,
	}
}

func (v *Validator) spans(at yamlfile.Path, texts []string) []window.Span {
	var spans []window.Span
	for i, text := range texts {
		span, err := window.Parse(text)
		if err != nil {
			v.Add(at.At(i), "", "%v", err)
			continue
		}
		spans = append(spans, span)
	}
	return spans
}

// Evaluate implements [Kind].
func (c *Window) Evaluate(e *Evaluation, _ []string) []Check {
	now := c.schedule.At(e.Now)
	e.Again(now.Until)
	finding := Check{State: Met, Since: now.Since, Reason: "it is " + now.Reason}
	var ev evidence
	ev.add("denied", strings.Join(c.Deny, "; "))
	ev.add("allowed", strings.Join(c.Allow, "; "))
	ev.add("time zone", c.Timezone)
	finding.Evidence = ev
	next := "it closes"
	if !now.Open {
		finding.State, next = Unmet, "it opens"
	}
	if now.Until.IsZero() {
		finding.Reason += "; nothing changes that"
	} else {
		finding.Reason += fmt.Sprintf("; %s at %s", next, c.local(now.Until))
	}
	return []Check{finding}
}

// local writes a time in the time zone of the spans, and in UTC if that is
// another.
func (c *Window) local(t time.Time) string {
	in := t.In(c.schedule.Location).Format("2006-01-02 15:04 MST")
	if utc := stamp(t); in != utc {
		in += " (" + utc + ")"
	}
	return in
}
