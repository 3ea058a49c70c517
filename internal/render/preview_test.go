package render_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// pictured is the card of the pictures in docs/images.
func pictured() render.Talk {
	p := change("Upgrade Longhorn to 1.9 and move its settings")
	return render.Card(render.CardOf{Pull: p, Verdict: &policy.Verdict{
		Ref: p.Ref(), Head: head, Base: "main",
		Preconditions: policy.Gate{State: policy.Waiting, Reason: "volumes are healthy: 1 of 14 volumes is degraded on prod"},
		Approval:      policy.Gate{State: policy.Waiting, Reason: "platform owners: needs 1 approval by alice or carol"},
		Results: []policy.Result{
			{Name: "platform-config is Ready", State: policy.Met, Reason: "it is Ready on prod"},
			{Name: "volumes are healthy", State: policy.Unmet, Reason: "1 of 14 volumes is degraded on prod: pvc-grafana"},
			{Name: "no node is rebooting", State: policy.Unknown, Reason: "prod is not heard from since 2026-09-06 21:52 UTC"},
		},
		Approvals: []policy.ApprovalResult{{Name: "platform owners", State: policy.Unmet, Reason: "needs 1 approval by alice or carol"}},
		Holds:     []decision.Entry{{Kind: decision.Hold, By: pull.Person{Login: "carol"}, At: since, Reason: "until the backup is through"}},
	}})
}

// TestPreview keeps pages that show a card about as the clients do, made of what
// the platforms are given. The pictures in docs/images are made of them:
//
//	chromium --headless --hide-scrollbars --force-device-scale-factor=2 --window-size=760,282 --screenshot=docs/images/slack-card.png internal/render/testdata/preview/slack-card.html
func TestPreview(t *testing.T) {
	for name, content := range map[string]string{
		"slack-card.html":  slackPage(t, render.Slack(pictured()).Blocks),
		"matrix-card.html": render.Matrix(pictured()).HTML,
	} {
		frame, err := os.ReadFile(filepath.Join("testdata", "preview", "frame", name))
		if err != nil {
			t.Fatal(err)
		}
		isGolden(t, filepath.Join("testdata", "preview", name), strings.Replace(string(frame), "CONTENT\n", strings.TrimSpace(content)+"\n", 1))
	}
}

// slackPage shows blocks as HTML.
func slackPage(t *testing.T, blocks string) string {
	t.Helper()
	type words struct{ Text string }
	var message []struct {
		Type     string
		Text     words
		Elements []struct {
			Text  json.RawMessage
			Style string
		}
	}
	if err := json.Unmarshal([]byte(blocks), &message); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, block := range message {
		b.WriteString(`<div class="` + block.Type + `">`)
		b.WriteString(mrkdwnPage(block.Text.Text))
		for _, e := range block.Elements {
			var text string
			var label words
			if json.Unmarshal(e.Text, &text) == nil {
				b.WriteString(mrkdwnPage(text))
			} else if json.Unmarshal(e.Text, &label) == nil {
				b.WriteString(`<span class="button ` + e.Style + `">` + label.Text + "</span>")
			}
		}
		b.WriteString("</div>\n")
	}
	return b.String()
}

var (
	mrkdwnLink   = regexp.MustCompile(`<([^|>]+)\|([^>]+)>`)
	mrkdwnCode   = regexp.MustCompile("`([^`]+)`")
	mrkdwnStrong = regexp.MustCompile(`\*([^*]+)\*`)
)

func mrkdwnPage(s string) string {
	s = mrkdwnLink.ReplaceAllString(s, `<a href="$1">$2</a>`)
	s = mrkdwnCode.ReplaceAllString(s, "<code>$1</code>")
	s = mrkdwnStrong.ReplaceAllString(s, "<strong>$1</strong>")
	return strings.ReplaceAll(s, "\n", "<br>\n")
}
