package web_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/web"
	"signalbox/internal/web/webtest"
)

const twelve = "/pulls/ops/home-gitops/12"

var tags = regexp.MustCompile(`<[^>]*>`)

// text is a page as text, on one line.
func text(body string) string {
	_, main, _ := strings.Cut(body, "<main")
	for _, pair := range [][2]string{{"&#34;", `"`}, {"&#39;", "'"}, {"&gt;", ">"}, {"&#43;", "+"}} {
		main = strings.ReplaceAll(main, pair[0], pair[1])
	}
	return strings.Join(strings.Fields(tags.ReplaceAllString(main, " ")), " ")
}

// TestPullPage: who follows the link of a status finds everything there.
func TestPullPage(t *testing.T) {
	w := webtest.New()
	w.Sample()
	got := text(w.Browser(t, webtest.Alice).Get(twelve).Body.String())
	for _, want := range []string{
		"Update longhorn to v1.9.2", "waiting since 2026-09-06 01:00 UTC",
		"Preconditions ◷ waiting 1 of 14 volumes on prod is degraded", "Approval ◷ waiting needs 1 approval more by alice or carol",
		"Held by carol since 2026-09-07 01:00 UTC : wait for the backup of tonight",
		"carol, or an approver, lifts the hold.", "“storage is healthy” is met; signalbox sees that by itself.",
		"It becomes known whether “no reboot under way” is met.", "alice or carol can approve.",
		"signalbox looks again: 2026-09-07 06:00 UTC .", "who may override passes 3 open rules",
		"read 2026-09-07 02:59 UTC · looked at 14 volumes", "replicas: 2 of 3", "status.robustness != 'degraded'",
		"1 of 2 dave on 6a99b44c5c at 2026-09-07 00:00 UTC (review)", "Does not count carol approved",
		"First seen as clear", "Became waiting", "carol held this", "bob was refused", "2 changed files",
		"infrastructure/longhorn/config.yaml", "Decided at 2026-09-07 02:58 UTC", "Policies: platform, home-gitops",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q:\n%s", want, got)
		}
	}
	history := got[strings.Index(got, "History"):]
	order := []string{"carol held this", "dave approved", "bob was refused", "Became waiting", "First seen as clear"}
	for i, want := range order[1:] {
		if strings.Index(history, order[i]) > strings.Index(history, want) {
			t.Errorf("%q is not before %q", order[i], want)
		}
	}
	for path, want := range map[string]string{
		"/pulls/ops/home-gitops/13": "Nothing stands against it. It can be merged.",
		"/pulls/ops/home-gitops/14": "did you mean “flux”?",
		"/pulls/ops/apps/4":         "signalbox has not looked at it yet",
		"/pulls/OPS/Home-GitOps/12": "Update longhorn",
	} {
		if got := w.Browser(t, webtest.Alice).Get(path); got.Code != http.StatusOK || !strings.Contains(text(got.Body.String()), want) {
			t.Errorf("%s: %d, no %q", path, got.Code, want)
		}
	}
	for _, path := range []string{"/pulls/ops/home-gitops/0", "/pulls/ops/home-gitops/x", "/pulls/ops/home-gitops/99999999999999999999", "/pulls/ops/nothing/1"} {
		if got := w.Browser(t, webtest.Root).Get(path); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
}

func TestPullThatIsNotOpen(t *testing.T) {
	w := webtest.New()
	w.Sample()
	b := w.Browser(t, webtest.Bob)
	merged := b.Get("/pulls/ops/home-gitops/5")
	if got := text(merged.Body.String()); merged.Code != http.StatusOK || !strings.Contains(got, "Merged by signalbox") || !strings.Contains(got, "alice had it merged") || !strings.Contains(merged.Body.String(), "https://gitea.example.org/ops/home-gitops/pulls/5") {
		t.Errorf("%d: %s", merged.Code, got)
	}
	if none := b.Get("/pulls/ops/home-gitops/77"); none.Code != http.StatusNotFound || !strings.Contains(none.Body.String(), "https://gitea.example.org/ops/home-gitops/pulls/77") {
		t.Errorf("%d: %s", none.Code, none.Body)
	}
}

var offered = regexp.MustCompile(`name="do" value="([a-z-]+)"`)

// TestWhatIsOffered: what is plain to be refused is not offered, and says why.
func TestWhatIsOffered(t *testing.T) {
	waiting := webtest.Waiting(webtest.Home, 12)
	with := func(f func(*policy.Standing)) policy.Standing {
		s := webtest.Waiting(webtest.Home, 12)
		f(&s)
		return s
	}
	tests := []struct {
		name string
		s    policy.Standing
		as   pull.Person
		want string
		says string
	}{
		{"who can approve", waiting, webtest.Alice, "approve unhold recheck hold override", "It is held, so it cannot be merged."},
		{"the author", waiting, webtest.Bob, "unhold recheck hold", "You wrote this change, so others have to approve it."},
		{"who cannot approve", waiting, webtest.Root, "unhold recheck hold override", "You are not among those who can approve: alice or carol."},
		{"who approved", with(func(s *policy.Standing) {
			s.Verdict.Approvals[0].By[0].Person = webtest.Alice
			s.Verdict.Approvals[0].CanApprove = []string{"carol"}
			s.Verdict.Holds = nil
		}), webtest.Alice, "approve-cancel merge recheck hold override", ""},
		{"where a merge was asked for", with(func(s *policy.Standing) {
			e := webtest.Entry(*s, "x", decision.Merge, webtest.Bob, webtest.Now, "")
			s.Verdict.Holds, s.Verdict.Merge = nil, &e
		}), webtest.Alice, "approve merge-cancel recheck hold override", ""},
		{"where a team is not known", with(func(s *policy.Standing) {
			s.Verdict.Approvals[0].State, s.Verdict.Approvals[0].CanApprove = policy.Unknown, nil
		}), webtest.Root, "approve unhold recheck hold override", ""},
		{"where nothing is open", webtest.Standing(webtest.Home, 12, "x"), webtest.Alice, "merge recheck hold", "No rule asks for an approval of this change."},
		{"at a new head", with(func(s *policy.Standing) { s.Verdict.Head = webtest.Commit(77) }), webtest.Alice, "unhold recheck hold", "has not looked at 6a99b44c5c yet."},
		{"where signalbox only observes", with(func(s *policy.Standing) { s.Observed = true }), webtest.Alice, "", "Only observed."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := webtest.New()
			w.SetPull(tt.s)
			body := w.Browser(t, tt.as).Get(twelve).Body.String()
			var got []string
			for _, m := range offered.FindAllStringSubmatch(body, -1) {
				got = append(got, m[1])
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(text(body), tt.says) {
				t.Errorf("it does not say %q:\n%s", tt.says, text(body))
			}
			if strings.Count(body, `name="head" value="`+tt.s.Pull.Head.SHA+`"`) != len(got) {
				t.Error("a form is not bound to the head")
			}
		})
	}
}

func TestDeciding(t *testing.T) {
	s := webtest.Waiting(webtest.Home, 12)
	head := s.Pull.Head.SHA
	tests := []struct {
		name   string
		values url.Values
		header []string
		code   int
		line   string
	}{
		{"approve", url.Values{"do": {"approve"}}, nil, 303, "approve"},
		{"take back", url.Values{"do": {"approve-cancel"}}, nil, 303, "approve cancel"},
		{"hold", url.Values{"do": {"hold"}}, nil, 303, "hold"},
		{"hold with a reason", url.Values{"do": {"hold"}, "reason": {" wait\r\n/merge \u202e now "}}, nil, 303, "hold wait /merge now"},
		{"unhold", url.Values{"do": {"unhold"}}, nil, 303, "unhold"},
		{"merge", url.Values{"do": {"merge"}}, nil, 303, "merge"},
		{"do not merge", url.Values{"do": {"merge-cancel"}}, nil, 303, "merge cancel"},
		{"look again", url.Values{"do": {"recheck"}, "reason": {"x"}}, nil, 303, "recheck"},
		{"override", url.Values{"do": {"override"}, "reason": {"the volume is a spare"}}, nil, 303, "approve-override the volume is a spare"},
		{"override without a reason", url.Values{"do": {"override"}, "reason": {"  \u200b "}}, nil, 400, ""},
		{"override that would be another", url.Values{"do": {"override"}, "reason": {"Cancel"}}, nil, 400, ""},
		{"too long a reason", url.Values{"do": {"hold"}, "reason": {strings.Repeat("x", 901)}}, nil, 400, ""},
		{"something else", url.Values{"do": {"approve cancel"}}, nil, 400, ""},
		{"nothing", url.Values{}, nil, 400, ""},
		{"without a head", url.Values{"do": {"approve"}, "head": {""}}, nil, 400, ""},
		{"with the beginning of a head", url.Values{"do": {"approve"}, "head": {head[:10]}}, nil, 400, ""},
		{"without the token", url.Values{"do": {"approve"}, "form": {""}}, nil, 403, ""},
		{"with the token of another", url.Values{"do": {"approve"}, "form": {webtest.Form + "x"}}, nil, 403, ""},
		{"from another site", url.Values{"do": {"approve"}}, []string{"Origin", "https://example.net"}, 403, ""},
		{"from nowhere", url.Values{"do": {"approve"}}, []string{"Origin", "null"}, 403, ""},
		{"from another site, as the browser says", url.Values{"do": {"approve"}}, []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"from another host of the domain", url.Values{"do": {"approve"}}, []string{"Sec-Fetch-Site", "same-site"}, 403, ""},
		{"from here", url.Values{"do": {"approve"}}, []string{"Origin", "https://signalbox.example.org", "Sec-Fetch-Site", "same-origin"}, 303, "approve"},
		{"too much", url.Values{"do": {"hold"}, "reason": {strings.Repeat("x", 70_000)}}, nil, 413, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := webtest.New()
			w.SetPull(s)
			if !tt.values.Has("head") {
				tt.values.Set("head", head)
			}
			got := w.Browser(t, webtest.Alice).Post(twelve+"/command", tt.values, tt.header...)
			if got.Code != tt.code {
				t.Errorf("got %d, want %d: %s", got.Code, tt.code, text(got.Body.String()))
			}
			given := w.Given()
			if tt.line == "" {
				if len(given) != 0 {
					t.Errorf("a command was given: %+v", given)
				}
				return
			}
			if len(given) != 1 {
				t.Fatalf("%d commands were given", len(given))
			}
			cause := given[0].Cause
			if got := got.Header().Get("Location"); got != twelve+"?said="+url.QueryEscape(cause) || len(cause) != 36 {
				t.Errorf("led to %q after %q", got, cause)
			}
			want := web.Command{Cause: cause, By: webtest.Alice, Ref: s.Pull.Ref(), Line: tt.line, Head: head}
			if diff := cmp.Diff(want, given[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("by a link", func(t *testing.T) {
		w := webtest.New()
		w.SetPull(s)
		if got := w.Browser(t, webtest.Alice).Get(twelve + "/command?do=approve&form=" + webtest.Form + "&head=" + head); got.Code != http.StatusMethodNotAllowed || len(w.Given()) != 0 {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("with the fields in the address", func(t *testing.T) {
		w := webtest.New()
		w.SetPull(s)
		if got := w.Browser(t, webtest.Alice).Post(twelve+"/command?do=approve&form="+webtest.Form+"&head="+head, url.Values{"form": nil}); got.Code != http.StatusForbidden || len(w.Given()) != 0 {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("on what is not seen", func(t *testing.T) {
		w := webtest.New()
		w.SetPull(s)
		if got := w.Browser(t, webtest.Carol).Post(twelve+"/command", url.Values{"do": {"approve"}, "head": {head}}); got.Code != http.StatusNotFound || len(w.Given()) != 0 {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("where signalbox only observes", func(t *testing.T) {
		w := webtest.New()
		observed := s
		observed.Observed = true
		w.SetPull(observed)
		if got := w.Browser(t, webtest.Alice).Post(twelve+"/command", url.Values{"do": {"approve"}, "head": {head}}); got.Code != http.StatusConflict || len(w.Given()) != 0 {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("on what is not open", func(t *testing.T) {
		w := webtest.New()
		if got := w.Browser(t, webtest.Alice).Post(twelve+"/command", url.Values{"do": {"approve"}, "head": {head}}); got.Code != http.StatusConflict {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("without the bus", func(t *testing.T) {
		w := webtest.New()
		w.SetPull(s)
		w.RefuseCommands(errors.New("no bus"))
		if got := w.Browser(t, webtest.Alice).Post(twelve+"/command", url.Values{"do": {"approve"}, "head": {head}}); got.Code != http.StatusServiceUnavailable {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("all the time", func(t *testing.T) {
		w := webtest.New()
		w.SetPull(s)
		b := w.Browser(t, webtest.Alice)
		codes := map[int]int{}
		for range 30 {
			codes[b.Post(twelve+"/command", url.Values{"do": {"recheck"}, "head": {head}}).Code]++
		}
		if diff := cmp.Diff(map[int]int{303: 20, 429: 10}, codes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestWhatBecameOfACommand: the page shows it from the ledger.
func TestWhatBecameOfACommand(t *testing.T) {
	s := webtest.Waiting(webtest.Home, 12)
	cause := "web/" + strings.Repeat("0a", 16)
	entry := func(id string, kind decision.Kind, reason string) decision.Entry {
		return webtest.Entry(s, id, kind, webtest.Alice, webtest.Now.Add(-time.Second), reason)
	}
	for name, tt := range map[string]struct {
		said    string
		entries decision.Ledger
		want    string
	}{
		"not yet":           {cause, nil, "◷ Your command was taken, and is carried out in a moment."},
		"done":              {cause, decision.Ledger{entry(cause+"/0", decision.Approve, "")}, "✓ Carried out: alice approved."},
		"refused":           {cause, decision.Ledger{entry(cause+"/0", decision.Refused, "it was about another head.")}, "✕ Not carried out: it was about another head."},
		"a merge":           {cause, decision.Ledger{entry(cause+"/0", decision.Merge, "")}, "✓ signalbox merges this as soon as it is clear."},
		"looked again":      {cause, decision.Ledger{entry(cause+"/0", decision.Answered, "")}, "✓ signalbox looked again."},
		"another's":         {cause, decision.Ledger{entry(cause+"x/0", decision.Approve, "")}, "◷ Your command"},
		"not one of a page": {"comment/1", decision.Ledger{entry("comment/1/0", decision.Approve, "")}, ""},
		"something made up": {"web/<script>", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := webtest.New()
			w.SetPull(s)
			w.Enter(tt.entries...)
			body := w.Browser(t, webtest.Alice).Get(twelve + "?said=" + url.QueryEscape(tt.said)).Body.String()
			if got := strings.Contains(text(body), tt.want); !got {
				t.Errorf("no %q in %s", tt.want, text(body))
			}
			if tt.want == "" && strings.Contains(body, `role="status"`) {
				t.Error("it says something")
			}
		})
	}
}

// TestFragment: the script of a page gets what replaces its main part, and the very
// same.
func TestFragment(t *testing.T) {
	w := webtest.New()
	w.Sample()
	b := w.Browser(t, webtest.Alice)
	whole := b.Get(twelve).Body.String()
	part := b.Get(twelve, "X-Signalbox-Fragment", "main").Body.String()
	if !strings.HasPrefix(part, "<main ") || !strings.HasSuffix(part, "</main>") || !strings.Contains(whole, part) {
		t.Errorf("the part is not one of the whole:\n%s", part)
	}
	if got := w.Browser(t, pull.Person{}).Get(twelve, "X-Signalbox-Fragment", "main"); got.Code != http.StatusUnauthorized {
		t.Errorf("to nobody: %d", got.Code)
	}
}
