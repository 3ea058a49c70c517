package web

import "signalbox/internal/policy"

// evidenceBudget is how much evidence a page still takes, in bytes. A finding may
// have looked at thousands of things.
type evidenceBudget int

// evidenceCost is what the page needs for a piece beside its text.
const evidenceCost = 100

// checks returns findings with as much of their evidence as there is room for. Those
// that were given are shared, and stay as they are.
func (b *evidenceBudget) checks(checks []policy.Check) []policy.Check {
	out := make([]policy.Check, len(checks))
	for i, c := range checks {
		c.Evidence = b.take(c.Evidence)
		out[i] = c
	}
	return out
}

func (b *evidenceBudget) take(evidence []policy.Evidence) []policy.Evidence {
	if len(evidence) == 0 {
		return nil
	}
	var out []policy.Evidence
	for i, e := range evidence {
		if *b -= evidenceBudget(evidenceCost + len(e.Label) + min(len(e.Value), maxValue)); *b < 0 {
			return append(out, policy.Evidence{Label: "Not shown", Value: plural(len(evidence)-i, "more piece")})
		}
		e.Parts = b.take(e.Parts)
		out = append(out, e)
	}
	return out
}
