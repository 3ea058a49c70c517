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
		return Card(CardOf{Pull: p, Verdict: v})[:3]
	}
	t := append(title(stateSign(pull.Open, v), p), Paragraph{Strong(headline(v))})
	t = append(t, Fields{
		{"Preconditions", Line{Plain(gateSign[v.Preconditions.State] + " " + v.Preconditions.Reason)}},
		{"Approval", Line{Plain(gateSign[v.Approval.State] + " " + v.Approval.Reason)}},
	})
	for _, l := range inForce(v) {
		t = append(t, Paragraph(l))
	}
	return t
}

// Details are all that a verdict says of a pull request, each cluster by itself.
func Details(p pull.Pull, v *policy.Verdict) Talk {
	if v == nil {
		return Status(p, v)
	}
	t := append(title(stateSign(p.State, v), p), Paragraph{Strong(headline(v))})
	for _, problem := range v.Problems {
		first, rest, _ := strings.Cut(problem.Text, "\n")
		t = append(t, Paragraph{Plain(gateSign[problem.State] + " "), Strong(first)})
		if rest != "" {
			t = append(t, Listing(rest))
		}
	}
	for _, r := range v.Rejections {
		t = append(t, Paragraph{Plain("🔴 "), Strong(r.Person.Login), Plain(" asks for changes, until the review is changed or dismissed")})
	}
	for _, l := range inForce(v) {
		t = append(t, Paragraph(l))
	}
	if lines := resultLines(v.Results); len(lines) > 0 {
		t = append(t, Divider{}, Items(lines))
	}
	if lines := approvalLines(v.Approvals); len(lines) > 0 {
		t = append(t, Divider{}, Items(lines))
	}
	return append(t, afterwards(v)...)
}

func resultLines(results []policy.Result) []Line {
	var lines []Line
	for _, r := range results {
		if r.State == policy.NotApplicable {
			continue
		}
		if len(r.Checks) < 2 {
			lines = append(lines, Line{Plain(resultSign[r.State] + " "), Strong(r.Name), Plain(" – " + checkReason(r))})
			continue
		}
		lines = append(lines, Line{Plain(resultSign[r.State] + " "), Strong(r.Name)})
		for _, c := range r.Checks {
			where := c.Cluster
			if where != "" {
				where += ": "
			}
			lines = append(lines, Line{Plain("\u2003" + resultSign[c.State] + " " + where + c.Reason + sinceText(c))})
		}
	}
	return lines
}

func checkReason(r policy.Result) string {
	if len(r.Checks) == 1 {
		return r.Checks[0].Reason + sinceText(r.Checks[0])
	}
	return resultReason(r)
}

func approvalLines(approvals []policy.ApprovalResult) []Line {
	var lines []Line
	for _, a := range approvals {
		if a.State == policy.NotApplicable {
			continue
		}
		lines = append(lines, Line{Plain(resultSign[a.State] + " "), Strong(a.Name), Plain(" – " + a.Reason)})
		for _, w := range a.Voided {
			lines = append(lines, Line{Plain("🚫 " + w.Person.Login + ": " + w.Why)})
		}
	}
	return lines
}

// afterwards is what people should know beside the verdict.
func afterwards(v *policy.Verdict) Talk {
	var t Talk
	for _, n := range v.Notes {
		t = append(t, Small{Plain("⚠️ " + n)})
	}
	for _, g := range v.Gaps {
		t = append(t, Small{Plain("🔓 Gitea does not hold "), Code(v.Base), Plain(" to this: " + g)})
	}
	return t
}

// Who says who approved a pull request, and who still can.
func Who(p pull.Pull, v *policy.Verdict) Talk {
	if v == nil {
		return Status(p, v)
	}
	t := title(stateSign(p.State, v), p)
	var lines []Line
	for _, a := range v.Approvals {
		if a.State == policy.NotApplicable {
			continue
		}
		lines = append(lines, Line{Plain(resultSign[a.State] + " "), Strong(a.Name), Plain(" – " + a.Reason)})
		for _, by := range a.By {
			lines = append(lines, Line{Plain("✔️ " + by.Person.Login + " approved "), Code(short(by.Commit)), Plain(" at " + stamp(by.At))})
		}
		if len(a.CanApprove) > 0 {
			lines = append(lines, Line{Plain("👤 can approve: " + someOf(a.CanApprove, 20))})
		}
	}
	if len(lines) == 0 {
		return append(t, Paragraph{Plain("No rule asks for an approval of this change.")})
	}
	return append(t, Items(lines))
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
	said := Code(strings.TrimPrefix(a.Line, "/"))
	head := Paragraph{Plain("✅ "), said, Plain(" – done")}
	if a.Refused {
		head = Paragraph{Plain("❌ "), said, Plain(" – refused")}
	}
	t := append(Talk{head}, FromMarkdown(a.Text)...)
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
			items = append(items, Line{Code(u)})
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
		items = append(items, Line{Code(prefix + s.Chat), Plain(" – " + s.Does + " (" + s.Who + ")")})
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
	place := map[string]string{string(chat.Slack): "Slack", string(chat.Matrix): "Matrix"}[e.Place]
	if place == "" {
		place = e.Place
	}
	return Markdown(Talk{Paragraph{
		Plain(e.By.Login + " said "), Code(e.Command), Plain(" in "), Link(place, e.URL), Plain(", on "), Code(short(e.Head)), Plain("."),
	}})
}
