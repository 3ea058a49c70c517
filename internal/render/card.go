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
	t := summary(state, c.Pull, c.Verdict)
	if c.Note != "" {
		t = append(t, Small{Plain(c.Note)})
	}
	if state == pull.Open {
		t = append(t, buttons(c.Pull))
	}
	return t
}

// summary names a pull request and says how it stands.
func summary(state pull.State, p pull.Pull, v *policy.Verdict) Talk {
	t := title(stateSign(state, v), p)
	switch {
	case state == pull.Merged:
		return append(t, Paragraph(mergedLine(p)))
	case state == pull.Closed:
		return append(t, Paragraph{Strong("Closed"), Plain(" without a merge")})
	case v == nil:
		return append(t, Paragraph{Plain("signalbox has not looked at it yet")})
	}
	return append(t, standing(v)...)
}

// standing is how an open pull request stands, and what it waits for.
func standing(v *policy.Verdict) Talk {
	t := Talk{Paragraph{Strong(headline(v))}}
	if open := openItems(v, cardRows); len(open) > 0 {
		t = append(t, open)
	}
	if v.State() == policy.Clear {
		t = append(t, Items{
			{Sign: "✅", Text: Line{Plain(v.Preconditions.Reason)}},
			{Sign: "👤", Text: Line{Plain(v.Approval.Reason)}},
		})
	}
	if items := inForce(v); len(items) > 0 {
		t = append(t, items)
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
	return gateSignOf(v.State())
}

// gateSignOf is the sign of a state; one that is not known is not decided.
func gateSignOf(s policy.GateState) string { return cmp.Or(gateSign[s], gateSign[policy.Undecided]) }

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

// openItems are what stands against a pull request: at most some of each sort,
// and the rest counted.
func openItems(v *policy.Verdict, most int) Items {
	var problems, results, approvals Items
	for _, p := range v.Problems {
		first, _, _ := strings.Cut(p.Text, "\n")
		problems = append(problems, Item{Sign: gateSignOf(p.State), Text: Line{Plain(first)}})
	}
	for _, r := range v.Rejections {
		problems = append(problems, Item{Sign: "🔴", Text: Line{Strong(r.Person.Login), Plain(" asks for changes")}})
	}
	for _, r := range v.Results {
		if r.State == policy.Unmet || r.State == policy.Unknown {
			results = append(results, Item{Sign: resultSign[r.State], Text: Line{Strong(r.Name), Plain(" – " + resultReason(r))}})
		}
	}
	for _, a := range v.Approvals {
		if a.State == policy.Unmet || a.State == policy.Unknown {
			approvals = append(approvals, Item{Sign: "👤", Text: Line{Strong(a.Name), Plain(" – " + a.Reason)}})
		}
	}
	return append(append(atMost(problems, most, "problem"), atMost(results, most, "precondition")...), atMost(approvals, most, "approval rule")...)
}

func atMost(items Items, most int, noun string) Items {
	if more := len(items) - most; more > 0 {
		return append(items[:most:most], rest(items, count(more, "more "+noun)))
	}
	return items
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

// inForce is what people decided and is in force.
func inForce(v *policy.Verdict) Items {
	var items Items
	for _, f := range v.Freezes {
		items = append(items, Item{Sign: "🧊", Text: Line{Strong("Frozen by " + f.By.Login), Plain(" until " + stamp(f.Until) + reasonText(f.Reason))}})
	}
	for _, h := range v.Holds {
		items = append(items, Item{Sign: "✋", Text: Line{Strong("Held by " + h.By.Login), Plain(" since " + stamp(h.At) + reasonText(h.Reason))}})
	}
	for _, o := range v.Overrides {
		items = append(items, Item{Sign: "⏩", Text: overriddenLine(o)})
	}
	if v.Merge != nil {
		items = append(items, Item{Sign: "🔀", Text: Line{Strong(v.Merge.By.Login), Plain(" asked to merge; signalbox does it as soon as this is clear")}})
	}
	return atMost(items, 2*cardRows, "decision")
}

func overriddenLine(o decision.Entry) Line {
	return Line{Strong("Overridden by " + o.By.Login), Plain(" until " + stamp(o.Until) + reasonText(o.Reason))}
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
