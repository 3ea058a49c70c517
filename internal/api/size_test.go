package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/api"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// largeWorld has 5,000 pull requests with a verdict, 2,000 objects on a cluster, and a
// ledger of 50,000 entries.
func largeWorld(t testing.TB) *world {
	t.Helper()
	w := theWorld(t)
	one := w.pulls[pull.Ref{RepoID: home.ID, Number: 12}]
	for n := range int64(5000) {
		st := one
		st.Pull.Number = n + 1
		w.pulls[st.Pull.Ref()] = st
	}
	object := w.facts[fact.Kube("prod", "Kustomization", "flux-system", "platform-config")]
	for n := range 2000 {
		f := object
		f.Key = fact.Kube("prod", "Kustomization", fmt.Sprintf("team-%d", n%20), fmt.Sprintf("app-%d", n))
		w.facts[f.Key] = f
	}
	first := w.ledger
	for n := len(first); n < 50_000; n++ {
		e := first[n%len(first)]
		e.Seq = uint64(n + 1)
		w.ledger = append(w.ledger, e)
	}
	return w
}

// TestSizesAreBounded asks a large world for the largest pages.
func TestSizesAreBounded(t *testing.T) {
	h := largeWorld(t).handler(t)
	s := newSchemas(t, h)
	for target, tt := range map[string]struct {
		path         string
		items, total int
		bytes        int
	}{
		"/api/v1/pulls":                                  {"/api/v1/pulls", 100, 5002, 150 << 10},
		"/api/v1/pulls?limit=500":                        {"/api/v1/pulls", 500, 5002, 750 << 10},
		"/api/v1/clusters/prod/objects":                  {"/api/v1/clusters/{name}/objects", 100, 2005, 100 << 10},
		"/api/v1/clusters/prod/objects?limit=500":        {"/api/v1/clusters/{name}/objects", 500, 2005, 500 << 10},
		"/api/v1/audit?limit=500":                        {"/api/v1/audit", 500, 50_000, 300 << 10},
		"/api/v1/audit?limit=500&order=oldest&kind=hold": {"/api/v1/audit", 500, 8333, 350 << 10},
	} {
		r := get(t, h, target)
		s.check(t, tt.path, r)
		p := read[api.Page[any]](t, h, target)
		if len(p.Items) != tt.items || p.Total != tt.total || p.Next == "" {
			t.Errorf("%s: %d items of %d, next %q; want %d of %d", target, len(p.Items), p.Total, p.Next, tt.items, tt.total)
		}
		if r.Body.Len() > tt.bytes {
			t.Errorf("%s: %d bytes, want at most %d", target, r.Body.Len(), tt.bytes)
		}
	}
}

// TestLargePull: a pull request of which everything is long is told shortened.
func TestLargePull(t *testing.T) {
	w := theWorld(t)
	ref := pull.Ref{RepoID: home.ID, Number: 12}
	st := w.pulls[ref]
	for n := range 5000 {
		st.Files = append(st.Files, pull.File{Path: fmt.Sprintf("apps/%d.yaml", n), Change: pull.Modified})
		st.Verdict.Approvals[0].Files = append(st.Verdict.Approvals[0].Files, fmt.Sprintf("apps/%d.yaml", n))
		st.History = append(st.History, policy.Change{At: now, Because: "fact", Rules: []policy.RuleChange{{Name: "n", To: policy.Met}}})
	}
	st.Verdict.Results[0].Checks[0].Evidence[0].Value = strings.Repeat("long ", 100_000)
	w.pulls[ref] = st
	h := w.handler(t)
	r := get(t, h, "/api/v1/pulls/ops/home-gitops/12")
	newSchemas(t, h).check(t, "/api/v1/pulls/{owner}/{repo}/{number}", r)
	p := read[api.Pull](t, h, "/api/v1/pulls/ops/home-gitops/12")
	if len(p.Files) != 1000 || p.FilesTotal != 5002 || len(p.ApprovalRules[0].Files) != 1000 || p.ApprovalRules[0].FilesTotal != 5002 || len(p.History) != policy.MaxHistory {
		t.Errorf("files %d of %d, of the rule %d of %d, history %d", len(p.Files), p.FilesTotal, len(p.ApprovalRules[0].Files), p.ApprovalRules[0].FilesTotal, len(p.History))
	}
	if value := p.Rules[0].Checks[0].Evidence[0].Value; len(value) > 9<<10 || !strings.HasSuffix(value, "… (cut)") {
		t.Errorf("evidence of %d bytes", len(value))
	}
	if r.Body.Len() > 256<<10 {
		t.Errorf("%d bytes", r.Body.Len())
	}
}

func BenchmarkLists(b *testing.B) {
	h := largeWorld(b).handler(b)
	for _, target := range []string{
		"/api/v1/pulls", "/api/v1/pulls?limit=500", "/api/v1/pulls?state=clear", "/api/v1/pulls/ops/home-gitops/12",
		"/api/v1/clusters", "/api/v1/clusters/prod/objects", "/api/v1/clusters/prod/objects?limit=500", "/api/v1/audit", "/api/v1/audit?repo=ops/apps&person=alice",
	} {
		b.Run(strings.TrimPrefix(target, "/api/v1/"), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				r := get(b, h, target)
				if r.Code != http.StatusOK {
					b.Fatal(r.Code, r.Body)
				}
				size = r.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
}
