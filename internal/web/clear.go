package web

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/policy"
)

// step is one thing that has to happen until a pull request is clear.
type step struct {
	Sign sign
	// Text is a sentence without its point; Why is what it is about, or empty.
	Text, Why string
	// At is when it happens by itself; zero if that is not known.
	At time.Time
}

// clears says what has to happen until a pull request is clear, from what keeps it
// from that. Nothing means that it is.
func clears(s *policy.Standing) []step {
	v := &s.Verdict
	var steps []step
	for _, p := range v.Problems {
		first, _, _ := strings.Cut(p.Text, "\n")
		steps = append(steps, step{Sign: signOf(p.State), Text: "This has to be mended", Why: first})
	}
	for _, f := range v.Freezes {
		steps = append(steps, step{Sign: signWaiting, Text: fmt.Sprintf("The freeze by %s ends by itself, or is lifted by %s, an approver or who may override, with /unfreeze", f.By.Login, f.By.Login), Why: f.Reason, At: f.Until})
	}
	for _, h := range v.Holds {
		steps = append(steps, step{Sign: signWaiting, Text: fmt.Sprintf("%s, or an approver, lifts the hold", h.By.Login), Why: h.Reason})
	}
	for _, r := range v.Rejections {
		steps = append(steps, step{Sign: signBlocked, Text: fmt.Sprintf("%s, who asked for changes, approves them, or the review is dismissed", r.Person.Login)})
	}
	open := 0
	for _, r := range v.Results {
		if !r.State.Open() {
			continue
		}
		open++
		text := fmt.Sprintf("“%s” is met; signalbox sees that by itself", r.Name)
		if r.State == policy.Unknown {
			text = fmt.Sprintf("It becomes known whether “%s” is met", r.Name)
		}
		steps = append(steps, step{Sign: signOf(r.State), Text: text, Why: reasonOf(r)})
	}
	for _, a := range v.Approvals {
		if a.State.Open() {
			open++
			steps = append(steps, step{Sign: signOf(a.State), Text: approvalStep(a, s.Pull.Author.Login), Why: "rule “" + a.Name + "”"})
		}
	}
	if len(steps) > 0 && !v.LookAgain.IsZero() {
		steps = append(steps, step{Sign: signWaiting, Text: "Time alone may change something: signalbox looks again", At: v.LookAgain})
	}
	if open > 0 {
		steps = append(steps, step{Sign: signOf(policy.Overridden), Text: fmt.Sprintf("Or: who may override passes %s, with a reason", plural(open, "open rule"))})
	}
	return steps
}

// approvalStep says who can give what an open approval rule waits for.
func approvalStep(a policy.ApprovalResult, author string) string {
	missing := max(1, a.Need-len(a.By))
	switch {
	case a.Unsatisfiable:
		return fmt.Sprintf("%s is missing, and too few people may give it besides %s: the policy has to name more", plural(missing, "approval"), author)
	case len(a.CanApprove) == 0:
		return "It becomes known who may approve: " + a.Reason
	case missing > 1:
		return fmt.Sprintf("%d of these approve: %s", missing, strings.Join(some(a.CanApprove, maxNames), ", "))
	}
	return either(a.CanApprove) + " can approve"
}

// maxNames bounds the people that are named in one sentence.
const maxNames = 12

// some returns the first of some names, and how many more there are.
func some(names []string, most int) []string {
	if len(names) <= most {
		return names
	}
	return append(append([]string(nil), names[:most]...), fmt.Sprintf("%d more", len(names)-most))
}

// either joins names with "or".
func either(names []string) string {
	names = some(names, maxNames)
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// reasonOf is why a precondition is in its state: its own reason, or that of the
// first finding in the same state.
func reasonOf(r policy.Result) string {
	if r.Reason != "" {
		return r.Reason
	}
	for _, c := range r.Checks {
		if c.State == r.State {
			return c.Reason
		}
	}
	return ""
}
