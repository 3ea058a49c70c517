package render

import (
	"cmp"
	"fmt"
	"strings"

	"signalbox/internal/chat"
	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// CardOf is what a card shows.
type CardOf struct {
	Pull pull.Pull
	// Verdict is that of the head, or nil where there is none yet.
	Verdict *policy.Verdict
	// State is whether it is open; empty is that of Pull.
	State pull.State
	// Note is shown at the end, or is empty.
	Note string
}

// cardRows bounds the open rules that a card shows of each sort.
const cardRows = 5

// Card is one pull request in a room: how it stands, what it waits for, and
// while it is open the buttons. The same input gives the same talk.
func Card(c CardOf) Talk {
	state := cmp.Or(c.State, c.Pull.State, pull.Open)
	t := title(stateSign(state, c.Verdict), c.Pull)
	switch {
	case state == pull.Merged:
		t = append(t, Paragraph(mergedLine(c.Pull)))
	case state == pull.Closed:
		t = append(t, Paragraph{Strong("Closed"), Plain(" without a merge.")})
	case c.Verdict == nil:
		t = append(t, Paragraph{Plain("signalbox is looking at it.")})
	default:
		t = append(t, standing(c.Verdict)...)
	}
	if c.Note != "" {
		t = append(t, Small{Plain(c.Note)})
	}
	if state == pull.Open {
		t = append(t, buttons(c.Pull))
	}
	return t
}

// standing is how an open pull request stands, and what it waits for.
func standing(v *policy.Verdict) Talk {
	t := Talk{Paragraph{Strong(headline(v))}}
	if open := openLines(v, cardRows); len(open) > 0 {
		t = append(t, Items(open))
	}
	for _, l := range inForce(v) {
		t = append(t, Paragraph(l))
	}
	if v.Proposed != nil {
		t = append(t, Small{Plain("It changes the policy, and is judged by that of "), Code(v.Base), Plain(".")})
	}
	return t
}

func stateSign(state pull.State, v *policy.Verdict) string {
	switch {
	case state == pull.Merged:
		return "🟣"
	case state == pull.Closed:
		return "⚫"
	case v == nil:
		return "⚪"
	}
	return cmp.Or(gateSign[v.State()], gateSign[policy.Undecided])
}

// title names a pull request and what it would change.
func title(sign string, p pull.Pull) Talk {
	name := Link(cmp.Or(oneLine(p.Title), "(no title)"), p.URL)
	name.Style = StyleStrong
	draft := ""
	if p.Draft {
		draft = " · draft"
	}
	return Talk{
		Paragraph{Plain(sign + " "), name},
		Small{
			Plain(fullName(p) + " by " + p.Author.Login + " · "), Code(short(p.Head.SHA)), Plain(" into "), Code(p.Base.Name), Plain(draft),
		},
	}
}

// fullName is "owner/name#12", which commands of chat read.
func fullName(p pull.Pull) string { return fmt.Sprintf("%s#%d", p.Repo, p.Number) }

func mergedLine(p pull.Pull) Line {
	l := Line{Strong("Merged")}
	if p.MergedBy.Login != "" {
		l = append(l, Plain(" by "+p.MergedBy.Login))
	}
	if p.MergeCommit != "" {
		l = append(l, Plain(" as "), Code(short(p.MergeCommit)))
	}
	return l
}

func buttons(p pull.Pull) Buttons {
	head, value := short(p.Head.SHA), chat.ButtonValue(p.Ref(), p.Head.SHA)
	about := fmt.Sprintf("%s of %s: %s", head, fullName(p), p.Title)
	return Buttons{
		{
			Press: chat.ButtonApprove, Label: "Approve", Value: value, Command: "/approve " + head, Primary: true,
			Confirm: &Confirm{Title: "Approve this change?", Text: "You approve " + about, Yes: "Approve", No: "Go back"},
		},
		{
			Press: chat.ButtonHold, Label: "Hold", Value: value, Command: "/hold",
			Confirm: &Confirm{Title: "Hold this change?", Text: "You stop " + about, Yes: "Hold", No: "Go back"},
		},
		{Press: chat.ButtonDetails, Label: "Details", Value: value, Command: "/preconditions"},
	}
}

// openLines are what stands against a pull request: at most some of each sort,
// and the rest counted.
func openLines(v *policy.Verdict, most int) []Line {
	var problems, results, approvals []Line
	for _, p := range v.Problems {
		first, _, _ := strings.Cut(p.Text, "\n")
		problems = append(problems, Line{Plain(cmp.Or(gateSign[p.State], gateSign[policy.Undecided]) + " " + first)})
	}
	for _, r := range v.Rejections {
		problems = append(problems, Line{Plain("🔴 "), Strong(r.Person.Login), Plain(" asks for changes")})
	}
	for _, r := range v.Results {
		if r.State == policy.Unmet || r.State == policy.Unknown {
			results = append(results, Line{Plain(resultSign[r.State] + " "), Strong(r.Name), Plain(" – " + resultReason(r))})
		}
	}
	for _, a := range v.Approvals {
		if a.State == policy.Unmet || a.State == policy.Unknown {
			approvals = append(approvals, Line{Plain("👤 "), Strong(a.Name), Plain(" – " + a.Reason)})
		}
	}
	return append(append(atMost(problems, most, "problem"), atMost(results, most, "precondition")...), atMost(approvals, most, "approval rule")...)
}

func atMost(lines []Line, most int, noun string) []Line {
	if more := len(lines) - most; more > 0 {
		return append(lines[:most:most], Line{Plain("…and " + count(more, "more "+noun))})
	}
	return lines
}

// resultReason is why a precondition is in its state, in few words.
func resultReason(r policy.Result) string {
	if why := cmp.Or(r.Brief, r.Reason); why != "" {
		return why
	}
	for _, c := range r.Checks {
		if c.State == r.State {
			return cmp.Or(c.Brief, c.Reason)
		}
	}
	return string(r.State)
}

// inForce is what people decided and is in force, a line each.
func inForce(v *policy.Verdict) []Line {
	var lines []Line
	for _, f := range v.Freezes {
		lines = append(lines, Line{Plain("🧊 "), Strong("Frozen by " + f.By.Login), Plain(" until " + stamp(f.Until) + reasonText(f.Reason))})
	}
	for _, h := range v.Holds {
		lines = append(lines, Line{Plain("✋ "), Strong("Held by " + h.By.Login), Plain(" since " + stamp(h.At) + reasonText(h.Reason))})
	}
	for _, o := range v.Overrides {
		lines = append(lines, overriddenLine(o))
	}
	if v.Merge != nil {
		lines = append(lines, Line{Plain("🔀 "), Strong(v.Merge.By.Login), Plain(" asked to merge; signalbox does it as soon as this is clear")})
	}
	return atMost(lines, 2*cardRows, "decision")
}

func overriddenLine(o decision.Entry) Line {
	return Line{Plain("⏩ "), Strong("Overridden by " + o.By.Login), Plain(" until " + stamp(o.Until) + reasonText(o.Reason))}
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
