package render

import (
	"strings"

	"signalbox/internal/chat"
	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Status is how a pull request stands, in short.
func Status(p pull.Pull, v *policy.Verdict) Talk {
	if p.State != pull.Open || v == nil {
		return summary(p.State, p, v)
	}
	t := append(title(stateSign(p.State, v), p), Paragraph{Strong(headline(v))}, Fields{
		{"Preconditions", Line{Plain(gateSignOf(v.Preconditions.State) + " " + v.Preconditions.Reason)}},
		{"Approval", Line{Plain(gateSignOf(v.Approval.State) + " " + v.Approval.Reason)}},
	})
	if items := inForce(v); len(items) > 0 {
		t = append(t, items)
	}
	return t
}

// detailRows bounds what details say beside the rules.
const detailRows = 5

// Details are all that a verdict says of a pull request, each cluster by itself.
func Details(p pull.Pull, v *policy.Verdict) Talk {
	if v == nil {
		return summary(p.State, p, v)
	}
	t := append(title(stateSign(p.State, v), p), Paragraph{Strong(headline(v))})
	for i, problem := range v.Problems {
		if i == detailRows {
			t = append(t, Paragraph{Plain("…and " + count(len(v.Problems)-i, "more problem"))})
			break
		}
		first, rest, _ := strings.Cut(problem.Text, "\n")
		t = append(t, Paragraph{Plain(gateSignOf(problem.State) + " "), Strong(first)})
		if rest != "" {
			t = append(t, Listing(rest))
		}
	}
	for _, r := range v.Rejections[:min(len(v.Rejections), 2*detailRows)] {
		t = append(t, Paragraph{Plain("🔴 "), Strong(r.Person.Login), Plain(" asks for changes, until the review is changed or dismissed")})
	}
	if items := inForce(v); len(items) > 0 {
		t = append(t, items)
	}
	if items := resultItems(v.Results); len(items) > 0 {
		t = append(t, Divider{}, items)
	}
	if items := approvalItems(v.Approvals, false); len(items) > 0 {
		t = append(t, Divider{}, items)
	}
	return append(t, afterwards(v)...)
}

// resultItems are the preconditions that are about the change, with what is
// found on each cluster under them.
func resultItems(results []policy.Result) Items {
	var items Items
	for _, r := range results {
		item := Item{Sign: resultSign[r.State], Text: Line{Strong(r.Name)}}
		switch {
		case r.State == policy.NotApplicable:
			continue
		case len(r.Checks) == 0:
			item.Text = append(item.Text, Plain(" – "+resultReason(r)))
		case len(r.Checks) == 1:
			item.Text = append(item.Text, Plain(" – "+r.Checks[0].Reason+sinceText(r.Checks[0])))
		default:
			for _, c := range r.Checks {
				where := c.Cluster
				if where != "" {
					where += ": "
				}
				item.Under = append(item.Under, Item{Sign: resultSign[c.State], Text: Line{Plain(where + c.Reason + sinceText(c))}})
			}
		}
		items = append(items, item)
	}
	return items
}

// approvalItems are the approval rules that are about the change, with what
// became of approvals under them, and if wanted with who still can.
func approvalItems(approvals []policy.ApprovalResult, who bool) Items {
	var items Items
	for _, a := range approvals {
		if a.State == policy.NotApplicable {
			continue
		}
		item := Item{Sign: resultSign[a.State], Text: Line{Strong(a.Name), Plain(" – " + a.Reason)}}
		for _, by := range a.By {
			item.Under = append(item.Under, Item{Sign: "✅", Text: Line{
				Strong(by.Person.Login), Plain(" approved "), Code(short(by.Commit)), Plain(" at " + stamp(by.At) + " (" + by.Place + ")"),
			}})
		}
		for _, w := range a.Voided {
			item.Under = append(item.Under, Item{Sign: "🚫", Text: Line{Strong(w.Person.Login), Plain(": " + w.Why)}})
		}
		if who && len(a.CanApprove) > 0 {
			item.Under = append(item.Under, Item{Sign: "👤", Text: Line{Plain("who can: " + someOf(a.CanApprove, 20))}})
		}
		items = append(items, item)
	}
	return items
}

// afterwards is what people should know beside the verdict.
func afterwards(v *policy.Verdict) Talk {
	var t Talk
	for _, n := range v.Notes[:min(len(v.Notes), detailRows)] {
		t = append(t, Small{Plain("⚠️ " + n)})
	}
	for _, g := range v.Gaps[:min(len(v.Gaps), detailRows)] {
		t = append(t, Small{Plain("🔓 Gitea does not hold "), Code(v.Base), Plain(" to this: " + g)})
	}
	return t
}

// Who says who approved a pull request, and who still can.
func Who(p pull.Pull, v *policy.Verdict) Talk {
	if v == nil {
		return summary(p.State, p, v)
	}
	t := title(stateSign(p.State, v), p)
	items := approvalItems(v.Approvals, true)
	if len(items) == 0 {
		return append(t, Paragraph{Plain("No rule asks for an approval of this change.")})
	}
	return append(t, items)
}

// ChatAnswer is what became of a command that was given in a chat.
type ChatAnswer struct {
	// Pull and Head are what the command was carried out on, or refused for.
	Pull pull.Pull
	Head string
	// Line is the command as it would stand in a comment.
	Line    string
	Refused bool
	// Text is what there is to say, in Markdown, or empty.
	Text string
}

// Talk is the answer, with the pull request and the commit that it is bound to.
func (a ChatAnswer) Talk() Talk {
	var t Talk
	if a.Refused {
		t = Refused(a.Text)
	} else {
		t = append(Talk{Paragraph{Plain("✅ "), Code(strings.TrimPrefix(a.Line, "/")), Plain(" is done.")}}, FromMarkdown(a.Text)...)
	}
	return append(t, Small{
		Link(fullName(a.Pull), a.Pull.URL), Plain(" · "), Code(short(a.Head)), Plain(" · " + a.Pull.Title),
	})
}

// Misread answers to what is no command.
func Misread(p *command.ChatProblem) Talk {
	t := Talk{Paragraph{Plain("❌ " + capital(p.Text) + ".")}}
	if p.Suggest != "" {
		t = append(t, Paragraph{Plain("Did you mean "), Code(string(p.Suggest)), Plain("?")})
	}
	if len(p.Usages) > 0 {
		var items Items
		for _, u := range p.Usages {
			items = append(items, Item{Text: Line{Code(u)}})
		}
		return append(t, Paragraph{Plain("It is written like this:")}, items)
	}
	return append(t, Small{Plain("Say "), Code(string(command.Help)), Plain(" for all commands.")})
}

// Refused answers to what cannot be done; why is signalbox's own sentence, in
// Markdown.
func Refused(why string) Talk {
	t := FromMarkdown(why)
	if len(t) > 0 {
		if p, ok := t[0].(Paragraph); ok {
			t[0] = append(Paragraph{Plain("❌ ")}, p...)
			return t
		}
	}
	return append(Talk{Paragraph{Plain("❌ This cannot be done.")}}, t...)
}

// ChatHelp lists the commands of chat. The prefix is what is written before a
// command there, such as "/signalbox ", or empty.
func ChatHelp(prefix string) Talk {
	var items Items
	for _, s := range command.ChatSpecs() {
		items = append(items, Item{Text: Line{Code(prefix + s.Chat), Plain(" – " + s.Does + " (" + s.Who + ")")}})
	}
	return Talk{
		Paragraph{Strong("What signalbox understands")},
		items,
		Small{
			Plain("PULL is "), Code("home-gitops#12"), Plain(", "), Code("ops/home-gitops#12"),
			Plain(" or an address, and may be left out in the thread of a card. REPO is "), Code("home-gitops"), Plain(" or "), Code("ops/home-gitops"), Plain("."),
		},
	}
}

// SaidElsewhere tells on a pull request, in Markdown, what somebody decided in a
// chat: who, what, where, and on which commit.
func SaidElsewhere(e decision.Entry) string {
	place := map[string]string{string(chat.Slack): "Slack", string(chat.Matrix): "Matrix", "web": "signalbox"}[e.Place]
	if place == "" {
		place = e.Place
	}
	return Markdown(Talk{Paragraph{
		Plain(e.By.Login + " said "), Code(e.Command), Plain(" in "), Link(place, e.URL), Plain(", on "), Code(short(e.Head)), Plain("."),
	}})
}
