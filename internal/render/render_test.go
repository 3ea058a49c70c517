package render_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

var update = flag.Bool("update", false, "write the golden files")

var since = time.Date(2026, 9, 6, 21, 40, 0, 0, time.UTC)

// waiting is a verdict with a bit of everything.
func waiting() *policy.Verdict {
	return &policy.Verdict{
		Ref: pull.Ref{RepoID: 7, Number: 12}, Head: "f21e89d9d2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Base: "main",
		Preconditions: policy.Gate{State: policy.Waiting, Reason: "platform-config is Ready: it is not"},
		Approval:      policy.Gate{State: policy.Waiting, Reason: "owners: needs 1 approval by alice"},
		Policies:      []string{".gitea/signalbox.yaml@f21e89d9d2"},
		Results: []policy.Result{
			{Name: "platform-config is Ready", State: policy.Unmet, Checks: []policy.Check{
				{
					Cluster: "dev", State: policy.Met, Reason: "Kustomization flux-system/platform-config on dev is Ready at f21e89d9d2",
					Evidence: []policy.Evidence{{Label: "object", Value: "Kustomization flux-system/platform-config"}},
				},
				{
					Cluster: "prod", State: policy.Unmet, Since: since, ReadAt: since.Add(time.Second), Looked: "3 objects",
					Reason: `Kustomization flux-system/platform-config on prod is not Ready: ReconciliationFailed: no matches for kind "StorageProfile"`,
					Evidence: []policy.Evidence{
						{Label: "object", Value: "Kustomization flux-system/platform-config"},
						{Label: "message", Value: "StorageProfile/longhorn dry-run failed:\nno matches for kind \"StorageProfile\""},
						{Label: "do not pass", Value: "2", Parts: []policy.Evidence{{Label: "longhorn", Value: "two\nlines"}, {Label: "and more", Value: "1"}}},
					},
				},
			}},
			{Name: "apps are Ready", State: policy.Met, Checks: []policy.Check{{State: policy.Met, Reason: "Kustomization flux-system/apps on prod is Ready"}}},
			{Name: "no node is rebooting", State: policy.NotApplicable, Reason: "is not about this change"},
		},
		Approvals: []policy.ApprovalResult{
			{Name: "owners", State: policy.Unmet, Reason: "needs 1 approval by alice", Voided: []policy.Voided{
				{Person: pull.Person{Login: "carol"}, Why: "was given on 1111111111; f21e89d9d2 was pushed since"},
			}},
			{Name: "docs", State: policy.NotApplicable},
		},
		Notes: []string{`mallory posted the status "signalbox / preconditions (main)" as success. signalbox posted the true one again.`},
	}
}

func cleared() *policy.Verdict {
	v := waiting()
	v.Preconditions = policy.Gate{State: policy.Clear, Reason: "the one precondition is met"}
	v.Approval = policy.Gate{State: policy.Clear, Reason: "approved by alice"}
	v.Results, v.Notes = v.Results[1:], nil
	v.Approvals = []policy.ApprovalResult{{Name: "owners", State: policy.Met, Reason: "approved by alice"}}
	return v
}

func blocked() *policy.Verdict {
	v := cleared()
	v.Preconditions = policy.Gate{State: policy.Blocked, Reason: "the policy on main is not valid"}
	v.Approval = policy.Gate{State: policy.Blocked, Reason: "carol asks for changes"}
	v.Problems = []policy.Problem{{State: policy.Blocked, Text: "the policy on main is not valid\np.yaml:3: bad glob"}}
	v.Rejections = []policy.Rejection{{Person: pull.Person{Login: "carol"}}}
	v.Proposed = &policy.Proposed{Problems: []string{"p.yaml:4: unknown field"}}
	v.Policies = nil
	return v
}

func TestGolden(t *testing.T) {
	for name, v := range map[string]*policy.Verdict{"waiting": waiting(), "clear": cleared(), "blocked": blocked()} {
		for ext, got := range map[string]string{".md": render.Comment(v), ".txt": render.Terminal(v, false), ".explain.txt": render.Explain(v, false)} {
			t.Run(name+ext, func(t *testing.T) {
				path := filepath.Join("testdata", name+ext)
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
			})
		}
	}
}

// toHTML renders as Gitea does: GitHub's dialect, raw HTML kept.
func toHTML(t *testing.T, markdown string) string {
	t.Helper()
	var b strings.Builder
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(markdown), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostile holds texts that try to break out of where they are shown.
var hostile = []string{
	"@alice and @ops/owners", "see #12, ops/home-gitops#12 and !13", "<script>alert(1)</script>", "a | b | c",
	"`code` and ``more``", "**bold** _it_ ~~s~~ [x](https://evil.example)", "![x](https://evil.example/p.png)",
	"line\nbreak\r\n# heading", "</details><h1>x</h1>", "<!-- signalbox verdict 7.12 -->", "\u202egnp.exe", "``` \n@alice\n```",
	"www.evil.example", "x@evil.example", "| --- |", "\\| \\", "&lt;b&gt;", "$x^2$",
}

func TestNothingBreaksOut(t *testing.T) {
	for _, text := range hostile {
		t.Run(text, func(t *testing.T) {
			got := checkComment(t, text)
			if m := mentions(got); len(m) > 0 {
				t.Errorf("mentions or refers to %q", m)
			}
		})
	}
}

// checkComment checks that a comment with a text in every place where one from outside
// is shown has the markup of one with a harmless text, and returns it as HTML.
func checkComment(t *testing.T, text string) string {
	t.Helper()
	v := waiting()
	v.Results[0].Name, v.Results[0].Checks[1].Reason = text, text
	v.Results[0].Checks[1].Evidence[1].Value = text
	v.Approvals[0].Reason, v.Approvals[0].Voided[0].Why = text, text
	v.Base, v.Notes[0] = text, text
	v.Policies[0] = text
	v.Problems = []policy.Problem{{State: policy.Blocked, Text: text}}
	got := toHTML(t, render.Comment(v))
	plain := toHTML(t, render.Comment(replaced(v, "harmless")))
	for _, tag := range []string{"<script", "<h1", "<h2", "<a ", "<img", "<strong", "<em", "<del", "<td", "<tr", "<details", "</details", "<!--", "<ul", "<hr"} {
		a, b := strings.Count(got, tag), strings.Count(plain, tag)
		// A text that nobody sees has no style either.
		if a > b || a < b && tag != "<strong" && tag != "<em" {
			t.Errorf("%d of %s, a harmless text gives %d:\n%s", a, tag, b, got)
		}
	}
	if strings.Contains(got, "\u202e") {
		t.Error("the direction of writing can be turned")
	}
	return got
}

// FuzzComment: whatever a controller, a branch or a person calls itself, the comment
// has no markup and no comment marker of it.
func FuzzComment(f *testing.F) {
	for _, text := range hostileInChat {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 2000 {
			return // It comes from JSON, and what is long is cut, with another shape.
		}
		checkComment(t, text)
	})
}

func replaced(v *policy.Verdict, text string) *policy.Verdict {
	w := waiting()
	w.Results[0].Name, w.Results[0].Checks[1].Reason = text, text
	w.Results[0].Checks[1].Evidence[1].Value = text
	w.Approvals[0].Reason, w.Approvals[0].Voided[0].Why = text, text
	w.Base, w.Notes[0], w.Policies[0] = text, text, text
	w.Problems = []policy.Problem{{State: policy.Blocked, Text: text}}
	if strings.Contains(v.Problems[0].Text, "\n") {
		w.Problems[0].Text = text + "\n" + text
	}
	return w
}

// mentions finds what Gitea would read as a mention or a reference outside code.
func mentions(page string) []string {
	var out []string
	for {
		i := strings.Index(page, "<code")
		if i < 0 {
			break
		}
		j := strings.Index(page[i:], "</code>")
		page = page[:i] + page[i+j+len("</code>"):]
	}
	for _, word := range strings.FieldsFunc(page, func(r rune) bool { return strings.ContainsRune(" \n<>,.(", r) }) {
		for _, sign := range []string{"@a", "@o", "#1", "!1"} {
			if strings.Contains(word, sign) {
				out = append(out, word)
			}
		}
	}
	return out
}

func TestCommentIsBounded(t *testing.T) {
	long := strings.Repeat("a line of a message that the controller wrote\n", 5000)
	tests := map[string]func(*policy.Verdict){
		"long evidence": func(v *policy.Verdict) { v.Results[0].Checks[1].Evidence[1].Value = long },
		"one endless line": func(v *policy.Verdict) {
			v.Results[0].Checks[1].Evidence[1].Value = strings.ReplaceAll(long, "\n", " ")
		},
		"many preconditions": func(v *policy.Verdict) {
			for range 3000 {
				v.Results = append(v.Results, v.Results[0])
			}
		},
		"many problems": func(v *policy.Verdict) {
			for range 3000 {
				v.Problems = append(v.Problems, policy.Problem{State: policy.Blocked, Text: strings.Repeat("x", 200)})
			}
		},
		"long names": func(v *policy.Verdict) {
			v.Results[0].Checks[1].Reason = strings.ReplaceAll(long, "\n", " ")
			v.Approvals[0].Reason = strings.ReplaceAll(long, "\n", " ")
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			v := waiting()
			change(v)
			got := render.Comment(v)
			if len(got) > render.MaxComment {
				t.Errorf("%d bytes, the limit is %d", len(got), render.MaxComment)
			}
			if !strings.HasPrefix(got, render.Marker(v.Ref)) || !strings.Contains(got, "Waiting for") || !strings.Contains(got, "keeps this comment true") {
				t.Errorf("the head or the foot is missing:\n%.300s", got)
			}
			if !strings.Contains(got, "cut)") && !strings.Contains(got, "more") && !strings.Contains(got, "…") {
				t.Error("it does not say that something was left out")
			}
			page := toHTML(t, got)
			if strings.Count(page, "<details") != strings.Count(page, "</details") {
				t.Error("a fold is not closed")
			}
		})
	}
}

func TestStatus(t *testing.T) {
	for state, want := range map[policy.GateState]string{
		policy.Clear: "success", policy.Waiting: "pending", policy.Blocked: "failure", policy.Undecided: "error", "no such": "error", "": "error",
	} {
		if got := render.StatusState(state); got != want {
			t.Errorf("%q is posted as %s, want %s", state, got, want)
		}
	}
	if got := render.Description("a\nb\u202e" + strings.Repeat("ü", 300)); len([]rune(got)) != 140 || strings.ContainsAny(got, "\n\u202e") {
		t.Errorf("description %q", got)
	}
	if render.PreconditionsContext("main") != "signalbox / preconditions (main)" || render.ApprovalContext("a (b)") != "signalbox / approval (a (b))" {
		t.Error("a context has another name")
	}
	for name, want := range map[string]bool{
		"signalbox / approval (main)": true, "signalbox / preconditions (x)": true, "signalbox / other (main)": false, "ci / signalbox / approval (main)": false,
	} {
		if got := render.OwnContext(name); got != want {
			t.Errorf("OwnContext(%q) = %v", name, got)
		}
	}
}
