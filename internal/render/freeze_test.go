package render_test

import (
	"strings"
	"testing"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

const said = "https://gitea.example.org/ops/home-gitops/pulls/99#issuecomment-7"

// frozen is a verdict of a repository that is frozen.
func frozen(login, reason, url string) *policy.Verdict {
	text := "frozen by " + login + " until 2026-12-01 08:00 UTC: " + reason
	brief := "frozen until 2026-12-01 08:00 UTC by " + login
	v := cleared()
	v.Preconditions = policy.Gate{State: policy.Waiting, Reason: brief}
	v.Freezes = []decision.Entry{{
		ID: "comment/7/0", Kind: decision.Freeze, By: pull.Person{ID: 1, Login: login}, Number: 99, URL: url,
		At: since, Until: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Reason: reason,
	}}
	v.Results = []policy.Result{{
		Name: "the repository is not frozen", Policy: "built in", State: policy.Unmet, Reason: text, Brief: brief,
		Checks: []policy.Check{{State: policy.Unmet, Reason: text, Since: since, Evidence: []policy.Evidence{{Label: "where", Value: url}}}},
	}}
	return v
}

func TestFrozen(t *testing.T) {
	v := frozen("alice", "etcd is being restored", said)
	comment, text := render.Comment(v), render.Terminal(v, false)
	for _, want := range []string{
		"Waiting for 1 precondition\n",
		"🧊 **Frozen by alice** since 2026-09-06 21:40 UTC until 2026-12-01 08:00 UTC: etcd is being restored. alice, an approver, or who may override ends it with `/unfreeze`. Said on [pull request 99](<" + said + ">).\n\n",
		"| ❌ | **the repository is not frozen** | Frozen by alice until 2026-12-01 08:00 UTC: etcd is being restored *(since 2026-09-06 21:40 UTC)* |\n",
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q:\n%s", want, comment)
		}
	}
	if page := toHTML(t, comment); !strings.Contains(page, `<a href="`+said+`">pull request 99</a>`) {
		t.Errorf("no link leads to where it was said:\n%s", page)
	}
	for _, want := range []string{"frozen until 2026-12-01 08:00 UTC by alice\n", "the repository is not frozen\n", "frozen by alice until 2026-12-01 08:00 UTC: etcd is being restored (since 2026-09-06 21:40 UTC)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	v.Freezes[0].Reason, v.Freezes[0].URL = "", ""
	if got := render.Comment(v); !strings.Contains(got, "until 2026-12-01 08:00 UTC. alice, an approver, or who may override ends it with `/unfreeze`. Said on pull request 99.\n") {
		t.Errorf("without a reason and a link:\n%s", got)
	}
}

func TestNothingBreaksOutOfAFreeze(t *testing.T) {
	plain := toHTML(t, render.Comment(frozen("harmless", "harmless", "harmless")))
	addresses := []string{
		"javascript:alert(1)", "https://evil.example/>)<script>alert(1)</script>", "https://evil.example/|x", "https://evil.example/\n# x",
		"https://evil.example/`x`", "https://evil.example/a b", "https://evil.example/\\>", "https://evil.example/\u202e",
	}
	for _, text := range append(addresses, hostile...) {
		t.Run(text, func(t *testing.T) {
			got := toHTML(t, render.Comment(frozen(text, text, text)))
			for _, tag := range []string{"<script", "<h1", "<h2", "<a ", "<img", "<strong", "<em", "<del", "<td", "<tr", "<details", "</details", "<!--", "<ul", "<hr"} {
				if a, b := strings.Count(got, tag), strings.Count(plain, tag); a != b {
					t.Errorf("%d of %s, a harmless text gives %d:\n%s", a, tag, b, got)
				}
			}
			if m := mentions(got); len(m) > 0 {
				t.Errorf("mentions or refers to %q", m)
			}
			if text := render.Terminal(frozen(text, text+"\x1b[31m", text), false); strings.ContainsAny(text, "\x1b\u202e") {
				t.Error("the terminal can be steered")
			}
		})
	}
}

// TestManyFreezesFit: as many as a verdict names, each as long as can be.
func TestManyFreezesFit(t *testing.T) {
	v := frozen("alice", strings.Repeat("@", 1000), said)
	for range 9 {
		v.Freezes = append(v.Freezes, v.Freezes[0])
	}
	if n := len(render.Comment(v)); n > render.MaxComment {
		t.Errorf("%d bytes, the limit is %d", n, render.MaxComment)
	}
}
