package render_test

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// huge is a verdict with a thousand of everything, and long texts in it.
func huge() *policy.Verdict {
	v := waiting()
	long := strings.Repeat("the controller says <that> & more, ", 40)
	for i := range 1000 {
		r := policy.Result{Name: fmt.Sprintf("precondition %d", i), State: policy.Unmet, Reason: long}
		if i%2 == 0 {
			r.Checks = []policy.Check{{Cluster: "dev", State: policy.Unmet, Reason: long}, {Cluster: "prod", State: policy.Unknown, Reason: long}}
		}
		v.Results = append(v.Results, r)
		v.Approvals = append(v.Approvals, policy.ApprovalResult{Name: fmt.Sprintf("rule %d", i), State: policy.Unmet, Reason: long, CanApprove: strings.Fields(long)})
		v.Problems = append(v.Problems, policy.Problem{State: policy.Blocked, Text: long + "\n" + long})
		v.Notes = append(v.Notes, long)
		v.Holds = append(v.Holds, override(long))
	}
	return v
}

func TestTalkIsBounded(t *testing.T) {
	v, p := huge(), change(strings.Repeat("a title & ", 200))
	pulls := make([]render.Listed, 200)
	health := render.HealthOf{}
	for i := range pulls {
		pulls[i] = render.Listed{Pull: p, Verdict: []*policy.Verdict{nil, v, cleared(), blocked()}[i%4]}
		health.Clusters = append(health.Clusters, render.ClusterHealth{Name: fmt.Sprintf("cluster-%d", i), Problem: p.Title})
		health.Counts = append(health.Counts, render.Count{N: i, What: p.Title})
	}
	for name, talk := range map[string]render.Talk{
		"card": render.Card(render.CardOf{Pull: p, Verdict: v, Note: p.Title}), "status": render.Status(p, v), "details": render.Details(p, v),
		"who": render.Who(p, v), "list": render.PullList("", pulls), "health": render.Health(health),
		"answer":  render.ChatAnswer{Pull: p, Head: head, Line: "/hold " + p.Title, Text: p.Title}.Talk(),
		"listing": {render.Listing(strings.Repeat("`<&", 100_000))},
		"line":    {render.Paragraph(manyRuns())},
	} {
		t.Run(name, func(t *testing.T) {
			slack, matrix := render.Slack(talk), render.Matrix(talk)
			texts := mrkdwnIn(t, slack.Blocks)
			if len(slack.Text) > 4000 || len(slack.Blocks) > 12_000 || slack.Text == "" {
				t.Errorf("Slack is given %d bytes of text and %d of blocks", len(slack.Text), len(slack.Blocks))
			}
			if n := len(matrix.Text) + len(matrix.HTML); n > 40<<10 || matrix.Text == "" {
				t.Errorf("Matrix is given %d bytes", n)
			}
			for place, shown := range map[string]string{"Slack": strings.Join(texts, "\n"), "Matrix": matrix.HTML, "plain text": matrix.Text} {
				if !strings.Contains(shown, "…") {
					t.Errorf("%s does not say that something was left out", place)
				}
			}
			if (name == "card") != strings.Contains(slack.Blocks, `"actions"`) || (name == "card") != strings.Contains(matrix.HTML, "Reactions: ") {
				t.Error("the buttons are lost")
			}
		})
	}
}

func manyRuns() render.Line {
	var l render.Line
	for range 200 {
		l = append(l, render.Link("x & y", "https://gitea.example.org/"+strings.Repeat("a&", 400)), render.Plain(" and "))
	}
	return l
}

func TestCardIsStable(t *testing.T) {
	p := pull.Pull{Repo: pull.Repo{ID: 7, Owner: "ops", Name: "x"}, Number: 1, Title: "x"}
	a, b := decided("x"), decided("x")
	// What was looked at and when changes all the time, and says nothing.
	b.Results[0].Checks[1].ReadAt, b.Results[0].Checks[1].Looked = since.AddDate(0, 0, 1), "4 objects"
	b.LookAgain = since
	if render.Slack(render.Card(render.CardOf{Pull: p, Verdict: a})) != render.Slack(render.Card(render.CardOf{Pull: p, Verdict: b})) {
		t.Error("the card changes although the verdict does not")
	}
}
