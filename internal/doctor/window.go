package doctor

import (
	"fmt"
	"time"

	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

// Windows tells what the clock says to the rules of a file now.
func Windows(subject string, f *policy.File, now time.Time) []Finding {
	a := &about{subject: subject}
	if f == nil {
		return nil
	}
	for i := range f.Preconditions {
		p := &f.Preconditions[i]
		if p.Window == nil {
			continue
		}
		e := &precondition.Evaluation{Snapshot: &pull.Snapshot{}, Now: now}
		for _, check := range p.Window.Evaluate(e, nil) {
			what := fmt.Sprintf("%s, by the clock of %s: %s", rulesText([]string{p.Name}), p.Window.Timezone, check.Reason)
			if check.State != precondition.Met && e.LookAgain().IsZero() {
				a.add(Finding{
					Check: "window", Severity: Warning, What: what, Why: "It is never met again.",
					Remedy: "Correct its spans in the policy, or take it out.",
				})
				continue
			}
			a.ok("window", "%s", what)
		}
	}
	return a.findings
}
