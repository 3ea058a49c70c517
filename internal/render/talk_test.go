package render_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

const head = "f21e89d9d2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func change(title string) pull.Pull {
	return pull.Pull{
		Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Number: 12, Title: title,
		URL:    "https://gitea.example.org/ops/home-gitops/pulls/12",
		Author: pull.Person{ID: 3, Login: "bob"}, State: pull.Open,
		Head: pull.Branch{Name: "longhorn", SHA: head}, Base: pull.Branch{Name: "main"},
	}
}

func merged(title string) pull.Pull {
	p := change(title)
	p.State, p.MergedBy, p.MergeCommit = pull.Merged, pull.Person{ID: 1, Login: "alice"}, "0123456789abcdef0123456789abcdef01234567"
	return p
}

// decided is a verdict with everything that people can decide, and a text from
// outside wherever there is one.
func decided(text string) *policy.Verdict {
	v := waiting()
	alice := pull.Person{ID: 1, Login: "alice"}
	v.Results[0].Name, v.Results[0].Checks[1].Reason = text, text
	v.Results = append(v.Results, policy.Result{Name: "volumes are healthy", State: policy.Unknown, Reason: text, Brief: "the cluster prod is not heard from"})
	v.Approvals[0].Reason, v.Approvals[0].Voided[0].Why = text, text
	v.Approvals[0].By = []policy.Approval{{Person: alice, Commit: head, At: since, Place: "review"}}
	v.Approvals[0].CanApprove = []string{"alice", text}
	v.Base, v.Notes[0], v.Gaps = text, text, []string{text}
	v.Problems = []policy.Problem{{State: policy.Undecided, Text: text + "\n" + text}}
	v.Rejections = []policy.Rejection{{Person: pull.Person{Login: text}}}
	v.Holds = []decision.Entry{{Kind: decision.Hold, By: alice, At: since, Reason: text}}
	v.Overrides = []decision.Entry{override(text)}
	v.Freezes = []decision.Entry{{Kind: decision.Freeze, By: alice, At: since, Until: since.Add(time.Hour), Reason: text}}
	v.Merge = &decision.Entry{Kind: decision.Merge, By: pull.Person{ID: 2, Login: text}}
	v.Proposed = &policy.Proposed{}
	v.Preconditions.Reason, v.Approval.Reason = text, text
	return v
}

func override(text string) decision.Entry {
	return decision.Entry{
		Kind: decision.Override, By: pull.Person{ID: 1, Login: "alice"}, Head: head, Until: since.Add(4 * time.Hour), Reason: text, Passes: []string{text},
	}
}

// talks are all that is said in chats, with a text from outside in it.
func talks(text string) map[string]render.Talk {
	v, p := decided(text), change(text)
	p.Base.Name = text
	user := chat.User{Platform: chat.Matrix, ID: text}
	problem := &command.ChatProblem{Text: text, Suggest: command.Approve}
	sub := render.SubscriptionOf{Repo: text, Paths: []string{text, "clusters/**"}, Sensitive: true}
	all := map[string]render.Talk{
		"card":         render.Card(render.CardOf{Pull: p, Verdict: v, Note: text}),
		"card-new":     render.Card(render.CardOf{Pull: p}),
		"card-merged":  render.Card(render.CardOf{Pull: merged(text), Verdict: v}),
		"card-closed":  render.Card(render.CardOf{Pull: p, Verdict: v, State: pull.Closed}),
		"status":       render.Status(p, v),
		"details":      render.Details(p, v),
		"who":          render.Who(p, v),
		"list":         render.PullList(text, []render.Listed{{Pull: p, Verdict: v}, {Pull: p}, {Pull: p, Verdict: cleared()}}),
		"list-empty":   render.PullList(text, nil),
		"help":         render.ChatHelp("!signalbox "),
		"misread":      render.Misread(problem),
		"misused":      render.Misread(&command.ChatProblem{Text: text, Usages: []string{"approve PULL [SHA]"}}),
		"answer":       render.ChatAnswer{Pull: p, Head: head, Line: "/hold " + text}.Talk(),
		"answer-no":    render.ChatAnswer{Pull: p, Head: head, Line: "/approve", Refused: true, Text: "`/approve` was not carried out: only alice may."}.Talk(),
		"link":         render.LinkHow("/link ABCDEFGH23456727", since),
		"linked":       render.LinkedTo(user, pull.Person{Login: text}),
		"unlinked":     render.Unlinked(user),
		"not-linked":   render.NotLinked(user),
		"subscribed":   render.Subscribed(sub),
		"unsubscribed": render.Unsubscribed(text),
		"subscription": render.Subscriptions([]render.SubscriptionOf{sub, {Repo: "ops/apps"}}),
		"health": render.Health(render.HealthOf{
			Clusters: []render.ClusterHealth{{Name: "dev", Heard: true}, {Name: text, Since: since, Problem: text}},
			Counts:   []render.Count{{N: 3, What: "open pull requests"}, {N: 1, What: text}},
		}),
		"clear":      render.BecameClear(v),
		"blocked":    render.BecameBlocked(v),
		"merged":     render.WasMerged(merged(text)),
		"closed":     render.WasClosed(),
		"overridden": render.WasOverridden(override(text)),
		"everything": {
			render.Paragraph{render.Plain(text), render.Strong(text), render.Code(text), render.Link(text, "https://gitea.example.org/x?a=1&b=2")},
			render.Small{render.Plain(text)},
			render.Items{{Text: render.Line{render.Plain(text)}}, {Text: render.Line{render.Strong(text)}}},
			render.Items{{Sign: "✅", Text: render.Line{render.Plain(text)}, Under: render.Items{{Sign: "✅", Text: render.Line{render.Plain(text)}}}}},
			render.Fields{{Label: text, Value: render.Line{render.Plain(text)}}},
			render.Listing(text + "\nmore"),
			render.Divider{},
			render.Buttons{{Press: chat.ButtonHold, Label: "Hold", Value: "7.12@x", Command: "/hold", Confirm: &render.Confirm{Title: text, Text: text, Yes: "Yes", No: "No"}}},
		},
	}
	maps.Copy(all, digestTalks(text))
	return all
}

// golden are the talks that are kept as files: cards of every state, and each
// answer.
func golden() map[string]render.Talk {
	all := talks("longhorn: upgrade to 1.9")
	p := change("Upgrade Longhorn to 1.9 & move its settings")
	all["card"] = render.Card(render.CardOf{Pull: p, Verdict: waiting(), Note: "ops/home-gitops#11 changes the same files"})
	all["card-clear"] = render.Card(render.CardOf{Pull: p, Verdict: cleared()})
	all["card-blocked"] = render.Card(render.CardOf{Pull: p, Verdict: blocked()})
	all["card-decisions"] = render.Card(render.CardOf{Pull: p, Verdict: decided("etcd is being restored")})
	all["status"] = render.Status(p, waiting())
	all["details"] = render.Details(p, waiting())
	all["who"] = render.Who(p, waiting())
	all["who-nobody"] = render.Who(p, &policy.Verdict{Preconditions: policy.Gate{State: policy.Clear}, Approval: policy.Gate{State: policy.Clear}})
	return all
}

func TestTalkGolden(t *testing.T) {
	for name, talk := range golden() {
		slack, matrix := render.Slack(talk), render.Matrix(talk)
		for ext, got := range map[string]string{
			".slack.json": pretty(t, slack.Blocks), ".slack.txt": slack.Text + "\n", ".matrix.html": matrix.HTML + "\n", ".matrix.txt": matrix.Text,
			".md": render.Markdown(talk), ".txt": render.Text(talk),
		} {
			t.Run(name+ext, func(t *testing.T) { isGolden(t, filepath.Join("testdata", "talk", name+ext), got) })
		}
	}
}

func pretty(t *testing.T, blocks string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(blocks), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

func isGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCardButtons(t *testing.T) {
	for name, tt := range map[string]struct {
		card render.CardOf
		want bool
	}{
		"open":          {render.CardOf{Pull: change("x"), Verdict: waiting()}, true},
		"no verdict":    {render.CardOf{Pull: change("x")}, true},
		"merged":        {render.CardOf{Pull: merged("x"), Verdict: waiting()}, false},
		"closed before": {render.CardOf{Pull: change("x"), Verdict: waiting(), State: pull.Closed}, false},
	} {
		body := render.Slack(render.Card(tt.card))
		if got := strings.Contains(body.Blocks, `"actions"`); got != tt.want {
			t.Errorf("%s: buttons %t, want %t", name, got, tt.want)
		}
		if got := strings.Contains(render.Matrix(render.Card(tt.card)).Text, "Reactions: "); got != tt.want {
			t.Errorf("%s: reactions %t, want %t", name, got, tt.want)
		}
		if ref, sha, ok := chat.ParseButtonValue("7.12@" + head); tt.want && (!strings.Contains(body.Blocks, `"value":"`+chat.ButtonValue(ref, sha)+`"`) || !ok) {
			t.Errorf("%s: the buttons do not carry the head:\n%s", name, body.Blocks)
		}
	}
}

func TestSaidElsewhere(t *testing.T) {
	e := decision.Entry{
		Kind: decision.Approve, By: pull.Person{ID: 1, Login: "alice"}, Place: "slack", URL: "https://example.slack.com/archives/C1/p1",
		Command: "/approve", Head: head,
	}
	const want = "alice said `/approve` in [Slack](<https://example.slack.com/archives/C1/p1>), on `f21e89d9d2`.\n"
	if diff := cmp.Diff(want, render.SaidElsewhere(e)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFromMarkdown(t *testing.T) {
	const in = "It names `abc`, **not** `def`: [see](https://gitea.example.org/x), alice\\@\u2060b &lt;x&gt;.\n\n- one\n- two\n\n```text\na\n  b\n```\n\n<b>raw</b> *lean*\n"
	const want = "It names abc, not def: see (https://gitea.example.org/x), alice@b <x>.\n\n• one\n• two\n\na\n  b\n\n<b>raw</b> lean\n"
	if diff := cmp.Diff(want, render.Text(render.FromMarkdown(in))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
