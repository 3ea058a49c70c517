package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/api"
	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// read asks for a resource and decodes it.
func read[T any](t testing.TB, h http.Handler, target string) T {
	t.Helper()
	r := get(t, h, target)
	if r.Code != http.StatusOK {
		t.Fatalf("%s answers %d %s", target, r.Code, r.Body)
	}
	var out T
	if err := json.Unmarshal(r.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// names reads a page and names its items, with the total before them.
func names[T any](name func(T) string) func(testing.TB, http.Handler, string) string {
	return func(t testing.TB, h http.Handler, target string) string {
		t.Helper()
		p := read[api.Page[T]](t, h, target)
		out := []string{strconv.Itoa(p.Total) + ":"}
		for _, item := range p.Items {
			out = append(out, name(item))
		}
		return strings.Join(out, " ")
	}
}

func TestFilters(t *testing.T) {
	w := theWorld(t)
	h := w.handler(t)
	pulls := names(func(p api.PullSummary) string { return fmt.Sprintf("%s#%d", p.Repository.Name, p.Number) })
	objects := names(func(o api.Object) string { return o.Kind + "/" + o.Name + "=" + o.State })
	digests := names(func(d api.DigestSummary) string { return d.Name + "@" + d.Scheduled.Format(time.DateOnly) })
	audit := names(func(d api.Decision) string { return strconv.FormatUint(d.Sequence, 10) })
	tests := []struct {
		ask    func(testing.TB, http.Handler, string) string
		target string
		want   string
	}{
		{pulls, "/api/v1/pulls", "3: home-gitops#12 apps#3 apps#5"},
		{pulls, "/api/v1/pulls?repo=OPS/apps", "2: apps#3 apps#5"},
		{pulls, "/api/v1/pulls?state=waiting", "2: home-gitops#12 apps#3"},
		{pulls, "/api/v1/pulls?state=unevaluated,clear", "1: apps#5"},
		{pulls, "/api/v1/pulls?state=blocked", "0:"},
		{pulls, "/api/v1/pulls?repo=ops/apps&state=waiting", "1: apps#3"},
		{objects, "/api/v1/clusters/prod/objects", "5: GitRepository/flux-system=ready HelmChart/grafana=unknown HelmRelease/grafana=suspended Kustomization/apps=ready Kustomization/platform-config=not-ready"},
		{objects, "/api/v1/clusters/prod/objects?kind=Kustomization,GitRepository&state=ready", "2: GitRepository/flux-system=ready Kustomization/apps=ready"},
		{objects, "/api/v1/clusters/prod/objects?namespace=apps", "0:"},
		{objects, "/api/v1/clusters/staging/objects", "1: Kustomization/apps=unknown"},
		{digests, "/api/v1/digests", "3: morning@2026-09-06 morning@2026-09-05 morning@2026-09-04"},
		{digests, "/api/v1/digests?name=evening", "0:"},
		{audit, "/api/v1/audit", "6: 6 5 4 3 2 1"},
		{audit, "/api/v1/audit?order=oldest&after=4", "2: 5 6"},
		// What was renamed is found by each name.
		{audit, "/api/v1/audit?repo=ops/homelab", "4: 4 3 2 1"},
		{audit, "/api/v1/audit?repo=OPS/Home-GitOps&number=12", "3: 4 3 2"},
		{audit, "/api/v1/audit?repo=ops/other", "0:"},
		{audit, "/api/v1/audit?person=Alicia", "3: 6 2 1"},
		{audit, "/api/v1/audit?person=@carol", "2: 5 3"},
		{audit, "/api/v1/audit?person=2", "1: 4"},
		{audit, "/api/v1/audit?kind=hold,freeze", "2: 6 3"},
		{audit, "/api/v1/audit?since=2026-09-07T01:17:00Z&until=2026-09-07T01:19:00Z", "2: 4 3"},
		{audit, "/api/v1/audit?since=" + url.QueryEscape("2026-09-07T03:17:00+02:00") + "&limit=1", "4: 6"},
	}
	for _, tt := range tests {
		if got := tt.ask(t, h, tt.target); got != tt.want {
			t.Errorf("%s gives\n%s, want\n%s", tt.target, got, tt.want)
		}
	}
	trend := read[api.Trend](t, h, "/api/v1/trend?since=2026-09-05T00:00:00Z")
	if trend.Total != 2 || len(trend.Samples) != 2 || !trend.Samples[0].At.Before(trend.Samples[1].At) || trend.Samples[0].Open["flux"] != 2 {
		t.Errorf("trend is %+v", trend)
	}
}

// TestBlindIsNotGood: where nothing can be seen, an empty list says so.
func TestBlindIsNotGood(t *testing.T) {
	w := theWorld(t)
	h := w.handler(t)
	blind := func(target string) string {
		var out []string
		for _, b := range read[api.ObjectPage](t, h, target).Blind {
			out = append(out, b.Kind+": "+b.Why)
		}
		return strings.Join(out, "\n")
	}
	if got, want := blind("/api/v1/clusters/prod/objects"), "HelmChart: it cannot be watched: missing right: watch helmcharts.source.toolkit.fluxcd.io"; got != want {
		t.Errorf("prod is blind for %q, want %q", got, want)
	}
	if got := blind("/api/v1/clusters/prod/objects?kind=Kustomization,Bucket"); got != "" {
		t.Errorf("what is seen, and what is not installed, is blind: %q", got)
	}
	if got, want := blind("/api/v1/clusters/staging/objects?kind=Bucket&state=ready"), "Bucket: nothing has been heard from it since 2026-09-07T01:44:00Z"; got != want {
		t.Errorf("staging is blind for %q, want %q", got, want)
	}
	beat := w.facts[fact.HeartbeatKey("prod")]
	for name, change := range map[string]func(){
		"no heartbeat":            func() { delete(w.facts, fact.HeartbeatKey("prod")) },
		"never heard":             func() { beat.Heartbeat = &fact.Heartbeat{Silent: true}; w.facts[beat.Key] = beat },
		"nothing known of kinds":  func() { delete(w.facts, fact.ClusterKey("prod")) },
		"kinds are a problem now": func() { w.facts[fact.ClusterKey("prod")] = fact.Fact{Key: fact.ClusterKey("prod"), Problem: "no"} },
	} {
		saved := w.facts
		w.facts = maps.Clone(saved)
		change()
		c := read[api.Cluster](t, h, "/api/v1/clusters/prod")
		if c.Objects.Ready != 0 || c.Objects.Unknown != c.Objects.Total || c.Objects.Total != 5 || c.Problem == "" || c.Blind != 7 {
			t.Errorf("%s: %+v", name, c.ClusterSummary)
		}
		w.facts = saved
	}
}

// TestStatesOfObjects are those that a precondition of Flux has.
func TestStatesOfObjects(t *testing.T) {
	ready := fact.Condition{Status: fact.True}
	for name, tt := range map[string]struct {
		f    fact.Fact
		want string
	}{
		"ready":               {fact.Fact{Flux: &fact.Flux{Ready: ready}}, "ready"},
		"a change is waiting": {fact.Fact{Flux: &fact.Flux{Ready: ready, Generation: 2, ObservedGeneration: 1}}, "not-ready"},
		"not ready":           {fact.Fact{Flux: &fact.Flux{Ready: fact.Condition{Status: fact.False}}}, "not-ready"},
		"never reconciled":    {fact.Fact{Flux: &fact.Flux{}}, "not-ready"},
		"too long to tell":    {fact.Fact{Flux: &fact.Flux{Ready: fact.Condition{Status: fact.Unknown}}}, "unknown"},
		"suspended":           {fact.Fact{Flux: &fact.Flux{Ready: ready, Suspended: true}}, "suspended"},
		"deleting":            {fact.Fact{Flux: &fact.Flux{Ready: ready, Suspended: true, Deleting: true}}, "deleting"},
		"cannot be read":      {fact.Fact{Flux: &fact.Flux{Ready: ready}, Problem: "no right"}, "unknown"},
		"nothing known":       {fact.Fact{}, "unknown"},
	} {
		w := theWorld(t)
		tt.f.Key = fact.Kube("prod", "Kustomization", "apps", "it")
		w.facts[tt.f.Key] = tt.f
		got := read[api.ObjectPage](t, w.handler(t), "/api/v1/clusters/prod/objects?namespace=apps")
		if len(got.Items) != 1 || got.Items[0].State != tt.want {
			t.Errorf("%s: %+v, want %s", name, got.Items, tt.want)
		}
	}
}

// TestPagingUnderChange turns pages while things come and go between them: what is
// there all the time is seen once, and nothing twice.
func TestPagingUnderChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := &world{pulls: map[pull.Ref]policy.Standing{}, facts: theFacts(), repos: []pull.Repo{home, apps}, clusters: []string{"prod"}}
	addPull := func(repo pull.Repo, n int64) {
		w.pulls[pull.Ref{RepoID: repo.ID, Number: n}] = policy.Standing{Pull: thePull(repo, n, "x")}
	}
	addObject := func(n int) {
		k := fact.Kube("prod", []string{"Kustomization", "HelmRelease"}[n%2], "ns-"+strconv.Itoa(n%7), "o"+strconv.Itoa(n))
		w.facts[k] = fact.Fact{Key: k, Flux: &fact.Flux{}}
	}
	addEntry := func() { w.ledger = append(w.ledger, entry(uint64(len(w.ledger)+1), decision.Approve, alice, home, 12)) }
	addReport := func(n int) {
		w.reports = append([]digest.Report{{Name: "morning", Scheduled: now.Add(time.Duration(n) * time.Hour)}}, w.reports...)
	}
	for n := range 120 {
		addPull([]pull.Repo{home, apps}[n%2], int64(n+1)*10)
		addObject(n * 10)
		addEntry()
		addReport(n)
	}
	h := w.handler(t)
	turn := func(name, target string, key func(json.RawMessage) string, change func(i int)) {
		t.Run(name, func(t *testing.T) {
			first := map[string]bool{}
			for _, item := range read[api.Page[json.RawMessage]](t, h, target+"limit=500").Items {
				first[key(item)] = true
			}
			if len(first) < 100 {
				t.Fatalf("%d items", len(first))
			}
			seen := map[string]bool{}
			next := ""
			for i := 0; ; i++ {
				p := read[api.Page[json.RawMessage]](t, h, target+"limit=7&cursor="+next)
				// Only the last page may be empty: what it had is gone.
				if p.Next != "" && len(p.Items) != 7 {
					t.Errorf("a page of %d, and there are more", len(p.Items))
				}
				for _, item := range p.Items {
					if seen[key(item)] {
						t.Errorf("%s was seen twice", item)
					}
					seen[key(item)] = true
				}
				change(i)
				if next = p.Next; next == "" {
					break
				}
				if i > 500 {
					t.Fatal("does not end")
				}
			}
			left := read[api.Page[json.RawMessage]](t, h, target+"limit=500")
			for _, item := range left.Items {
				if k := key(item); first[k] && !seen[k] {
					t.Errorf("%s was there all the time and was not seen", k)
				}
			}
		})
	}
	field := func(names ...string) func(json.RawMessage) string {
		return func(item json.RawMessage) string {
			var o map[string]json.RawMessage
			if err := json.Unmarshal(item, &o); err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, n := range names {
				out = append(out, string(o[n]))
			}
			return strings.Join(out, " ")
		}
	}
	// The first page has no cursor; an empty one would be an error.
	strip := func(target string) string { return strings.TrimSuffix(target, "&cursor=") }
	inner := h
	h = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = strip(r.URL.RawQuery)
		inner.ServeHTTP(rw, r)
	})
	turn("pulls", "/api/v1/pulls?", field("repository", "number"), func(int) {
		addPull(home, rng.Int64N(1200)*10+5)
		for ref := range w.pulls {
			delete(w.pulls, ref)
			break
		}
	})
	turn("objects", "/api/v1/clusters/prod/objects?", field("kind", "namespace", "name"), func(int) {
		addObject(int(rng.Int64N(1200)*10 + 5))
		for k, f := range w.facts {
			if f.Flux != nil {
				f.Absent = true
				w.facts[k] = f
				break
			}
		}
	})
	turn("audit newest", "/api/v1/audit?", field("sequence"), func(int) { addEntry() })
	turn("audit oldest", "/api/v1/audit?order=oldest&", field("sequence"), func(i int) {
		if i < 20 {
			addEntry()
		}
	})
	turn("digests", "/api/v1/digests?", field("scheduled", "name"), func(i int) {
		addReport(200 + i)
		w.reports = w.reports[:len(w.reports)-1]
	})
}

// TestVanishing: a pull request that is closed while its page is made is left out, and
// the page has the next one instead.
func TestVanishing(t *testing.T) {
	w := theWorld(t)
	c := w.config()
	c.Pulls = vanishing{source{w}, pull.Ref{RepoID: home.ID, Number: 12}}
	h, err := api.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := read[api.Page[api.PullSummary]](t, h, "/api/v1/pulls?limit=1")
	if len(p.Items) != 1 || p.Items[0].Number != 3 || p.Next == "" {
		t.Errorf("the page is %+v", p)
	}
}

type vanishing struct {
	source
	ref pull.Ref
}

func (v vanishing) Get(ref pull.Ref) (policy.Standing, bool) {
	if ref == v.ref {
		return policy.Standing{}, false
	}
	return v.source.Get(ref)
}

// TestBlockersSayWhatIsLeft holds them against the state: whatever is not clear has one,
// and what is clear has none.
func TestBlockersSayWhatIsLeft(t *testing.T) {
	hold := entry(3, decision.Hold, carol, home, 12)
	freeze := entry(6, decision.Freeze, alice, home, 12)
	freeze.Until = now.Add(time.Hour)
	good := policy.Gate{State: policy.Clear}
	waiting := policy.Gate{State: policy.Waiting}
	blocked := policy.Gate{State: policy.Blocked}
	tests := []struct {
		name string
		v    policy.Verdict
		want []api.Blocker
	}{
		{"clear", policy.Verdict{Preconditions: good, Approval: good, Results: []policy.Result{{Name: "a", State: policy.Overridden}}}, []api.Blocker{}},
		{
			"hold",
			policy.Verdict{Preconditions: good, Approval: waiting, Holds: []decision.Entry{hold}},
			[]api.Blocker{{Kind: "hold", Name: "carol", Reason: "carol holds it", Remedy: "carol or an approver writes /unhold", People: []string{"carol"}}},
		},
		{
			"freeze",
			policy.Verdict{Preconditions: waiting, Approval: good, Freezes: []decision.Entry{freeze}, Results: []policy.Result{{Name: policy.FreezeRule, Policy: policy.BuiltIn, State: policy.Unmet, Reason: "frozen"}}},
			[]api.Blocker{{Kind: "freeze", Name: policy.FreezeRule, Reason: "frozen", Remedy: "who froze, an approver or who may override writes /unfreeze", People: []string{"alice"}, Until: freeze.Until}},
		},
		{
			"a rule of a policy that is called like a freeze",
			policy.Verdict{Preconditions: waiting, Approval: good, Freezes: []decision.Entry{freeze}, Results: []policy.Result{{Name: policy.FreezeRule, Policy: "mine", State: policy.Unknown, Reason: "no"}}},
			[]api.Blocker{{Kind: "precondition", Name: policy.FreezeRule, Reason: "no"}},
		},
		{
			"approvals",
			policy.Verdict{Preconditions: good, Approval: waiting, Approvals: []policy.ApprovalResult{
				{Name: "one", State: policy.Unmet, Need: 1, CanApprove: []string{"alice"}},
				{Name: "two", State: policy.Unmet, Need: 3, By: []policy.Approval{{Person: alice}}, CanApprove: []string{"bob", "carol"}},
				{Name: "none", State: policy.Unmet, Need: 1, Unsatisfiable: true},
				{Name: "who knows", State: policy.Unknown, Need: 1},
				{Name: "met", State: policy.Met, Need: 1},
			}},
			[]api.Blocker{
				{Kind: "approval", Name: "one", Remedy: "one more of those who can approves", People: []string{"alice"}},
				{Kind: "approval", Name: "two", Remedy: "2 more of those who can approve", People: []string{"bob", "carol"}},
				{Kind: "approval", Name: "none", Remedy: "the policy or the rights change: too few people are entitled"},
				{Kind: "approval", Name: "who knows"},
			},
		},
		{
			"rejection",
			policy.Verdict{Preconditions: good, Approval: blocked, Rejections: []policy.Rejection{{Person: alice}}},
			[]api.Blocker{{Kind: "rejection", Name: "alice", Reason: "alice asks for changes", Remedy: "alice approves, or the review is dismissed", People: []string{"alice"}}},
		},
		{
			"problem",
			policy.Verdict{Preconditions: blocked, Approval: blocked, Problems: []policy.Problem{{State: policy.Blocked, Text: "the policy is not valid\nline 3"}}},
			[]api.Blocker{{Kind: "problem", Name: "problem", Reason: "the policy is not valid"}},
		},
		{
			"proposed policy",
			policy.Verdict{Preconditions: blocked, Approval: good, Proposed: &policy.Proposed{Problems: []string{"line 3"}}},
			[]api.Blocker{{Kind: "policy", Name: "policy", Reason: "the policy in this pull request is not valid: line 3", Remedy: "the author corrects the policy and pushes it", People: []string{"bob"}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := theWorld(t)
			ref := pull.Ref{RepoID: home.ID, Number: 12}
			w.pulls[ref] = policy.Standing{Pull: thePull(home, 12, "x"), Verdict: tt.v, EvaluatedAt: now}
			got := read[api.Pull](t, w.handler(t), "/api/v1/pulls/ops/home-gitops/12")
			if diff := cmp.Diff(tt.want, got.Blockers); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (got.State == "clear") != (len(got.Blockers) == 0) {
				t.Errorf("is %s with %d blockers", got.State, len(got.Blockers))
			}
		})
	}
	t.Run("states that nobody knows", func(t *testing.T) {
		w := theWorld(t)
		ref := pull.Ref{RepoID: home.ID, Number: 12}
		w.pulls[ref] = policy.Standing{Pull: thePull(home, 12, "x"), EvaluatedAt: now, Verdict: policy.Verdict{Results: []policy.Result{{Name: "a", State: "fine"}}}}
		got := read[api.Pull](t, w.handler(t), "/api/v1/pulls/ops/home-gitops/12")
		if got.State != "undecided" || got.Preconditions.State != "undecided" || got.Rules[0].State != "unknown" {
			t.Errorf("is %s, gate %s, rule %s", got.State, got.Preconditions.State, got.Rules[0].State)
		}
	})
}

// TestHostileTextStaysData puts texts from outside everywhere, and reads them back as
// they were.
func TestHostileTextStaysData(t *testing.T) {
	hostile := []string{
		`</script><script>alert(1)</script>`, `"},{"state":"clear`, "line\r\nSet-Cookie: a=b", "\x1b[2J\x00\x07", "\u202eevil\u2028", `\u003c`, "{{.}}", "%s%n",
	}
	w := theWorld(t)
	h := w.handler(t)
	s := newSchemas(t, h)
	ref := pull.Ref{RepoID: home.ID, Number: 12}
	for _, text := range hostile {
		st := w.pulls[ref]
		st.Pull.Title, st.Pull.Labels, st.Pull.Head.Name, st.Pull.Author.Login = text, []string{text}, text, text
		st.Files = []pull.File{{Path: text, Change: pull.Added}}
		st.Verdict.Results = []policy.Result{{Name: text, Reason: text, State: policy.Unmet, Checks: []policy.Check{{Evidence: []policy.Evidence{{Label: text, Value: text}}}}}}
		w.pulls[ref] = st
		k := fact.Kube("prod", "Kustomization", "hostile", text)
		w.facts = map[fact.Key]fact.Fact{k: {Key: k, Flux: &fact.Flux{Ready: fact.Condition{Status: fact.False, Message: text}, Applied: text, Path: text}}}
		w.ledger = theLedger()
		w.ledger[0].Reason, w.ledger[0].Command = text, text
		r := get(t, h, "/api/v1/pulls/ops/home-gitops/12")
		s.check(t, "/api/v1/pulls/{owner}/{repo}/{number}", r)
		if len(r.Header().Values("Set-Cookie")) > 0 {
			t.Errorf("%q made a header", text)
		}
		got := read[api.Pull](t, h, "/api/v1/pulls/ops/home-gitops/12")
		back := []string{got.Title, got.Labels[0], got.Head.Name, got.Author.Login, got.Files[0].Path, got.Rules[0].Name, got.Rules[0].Checks[0].Evidence[0].Value}
		o := read[api.ObjectPage](t, h, "/api/v1/clusters/prod/objects?namespace=hostile").Items[0]
		back = append(back, o.Name, o.Ready.Message, o.Applied, o.Path)
		d := read[api.Page[api.Decision]](t, h, "/api/v1/audit?order=oldest").Items[0]
		back = append(back, d.Reason, d.Command)
		if i := slices.IndexFunc(back, func(s string) bool { return s != text }); i >= 0 {
			t.Errorf("%q came back as %q (%d)", text, back[i], i)
		}
		// What a request says comes back in an error, as data too.
		e := get(t, h, "/api/v1/pulls?"+url.Values{text: {"x"}}.Encode())
		s.check(t, "/api/v1/pulls", e)
		s.check(t, "/api/v1/clusters/{name}", get(t, h, "/api/v1/clusters/x"+url.PathEscape(strings.ReplaceAll(text, "/", ""))))
	}
	long := strings.Repeat("ü", 8<<10)
	st := w.pulls[ref]
	st.Pull.Title, st.Pull.CreatedAt = long+"\xff", time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	st.Pull.Labels = []string{"\xff"}
	w.pulls[ref] = st
	got := read[api.Pull](t, h, "/api/v1/pulls/ops/home-gitops/12")
	if got.Title != long[:8<<10]+"… (cut)" || got.Labels[0] != "\ufffd" || !got.CreatedAt.IsZero() {
		t.Errorf("a text that is too long came as %d bytes ending with %q, a label as %q, a time as %s", len(got.Title), got.Title[len(got.Title)-12:], got.Labels[0], got.CreatedAt)
	}
}

// TestEnumsAreWhole compares what the description names with what there is.
func TestEnumsAreWhole(t *testing.T) {
	spec := served(t, theWorld(t).handler(t))
	enum := func(schema, field string) string {
		p := spec["components"].(map[string]any)["schemas"].(map[string]any)[schema].(map[string]any)["properties"].(map[string]any)[field].(map[string]any)
		return fmt.Sprint(p["enum"])
	}
	for name, pair := range map[string][2]string{
		"kinds of decisions": {enum("Decision", "kind"), fmt.Sprint(decision.Kinds())},
		"sections":           {enum("Finding", "section"), fmt.Sprint(digest.Sections())},
		"sections of a part": {enum("Section", "section"), fmt.Sprint(digest.Sections())},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: described as %s, there are %s", name, pair[0], pair[1])
		}
	}
	for _, p := range spec["paths"].(map[string]any)["/api/v1/audit"].(map[string]any)["get"].(map[string]any)["parameters"].([]any) {
		if p := p.(map[string]any); p["name"] == "kind" {
			if got := fmt.Sprint(p["schema"].(map[string]any)["items"].(map[string]any)["enum"]); got != fmt.Sprint(decision.Kinds()) {
				t.Errorf("the filter knows the kinds %s, there are %s", got, decision.Kinds())
			}
		}
	}
}
