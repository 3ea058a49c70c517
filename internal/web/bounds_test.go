package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/internal/digest"
	"signalbox/internal/pull"
	"signalbox/internal/web/webtest"
)

// TestDigestsHideRepositories checks that no line, no reason and no number tells of a
// repository that the viewer may not read.
func TestDigestsHideRepositories(t *testing.T) {
	w := webtest.New()
	summary := []digest.Summary{{Text: "4321 open in vault/private", Repo: webtest.Secret.ID}, {Text: "8 open in ops/home-gitops", Repo: webtest.Home.ID}, {Text: "3 nodes on prod"}}
	blind := []digest.Blind{{Section: digest.Pipelines, Repo: webtest.Secret.ID, Why: "the runs of vault/private cannot be read"}, {Section: digest.Pipelines, Cluster: "prod", Why: "prod is not heard from"}}
	unseen := []digest.Finding{{ID: "x", Section: digest.Pipelines, Repo: webtest.Secret.ID, Subject: "vault/private"}}
	at := webtest.Now.Add(-time.Hour)
	report := digest.Report{
		Name: "morning", Scheduled: at, Made: at, Unseen: unseen, Unknown: 1,
		Sections: []digest.Part{{Section: digest.Pipelines, Summary: summary, Blind: blind}},
	}
	open := digest.Counts{Ready: 1, Total: 1, Open: map[digest.Section]int{digest.Flux: 2, digest.Pipelines: 30, digest.Gate: 500}}
	w.SetDigests([]digest.Report{report}, digest.Result{
		Blind: blind, Summaries: map[digest.Section][]digest.Summary{digest.Pipelines: summary},
	}, []digest.Sample{{At: webtest.Now.Add(-2 * time.Hour), Counts: open}, {At: at, Counts: open}})
	alice, root := w.Browser(t, webtest.Alice), w.Browser(t, webtest.Root)
	for _, path := range []string{"/digests/now", "/digests/morning/" + at.Format(time.RFC3339)} {
		body := openPage(t, alice, path)
		lacks(t, path, body, "vault/private", "4321", "unknown now")
		contains(t, path, body, "8 open in ops/home-gitops", "3 nodes on prod", "prod is not heard from")
		contains(t, path+" as root", openPage(t, root, path), "4321 open in vault/private", "the runs of vault/private cannot be read")
	}
	contains(t, "as alice", openPage(t, alice, "/digests"), "1 place cannot be looked at", "Open findings on the clusters in the last 30 days: between 2 and 2, now 2")
	contains(t, "as root", openPage(t, root, "/digests"), "2 places cannot be looked at", "Open findings in the last 30 days: between 532 and 532, now 532")
}

// TestLongAddresses checks that nobody gets a page that is many times as long as what
// they ask: links repeat the query.
func TestLongAddresses(t *testing.T) {
	w := webtest.New()
	heard(w, "prod")
	for _, f := range bigFacts("prod", 2000) {
		w.SetFact(f)
	}
	alice := w.Browser(t, webtest.Alice)
	for _, path := range []string{"/clusters/prod", "/", "/audit", "/digests", "/live", "/sign-in", "/nothing"} {
		if got := alice.Get(path + "?all&q=" + strings.Repeat("a", 5000)); got.Code != http.StatusRequestURITooLong || got.Body.Len() > 10_000 {
			t.Errorf("%s: %d, %d bytes", path, got.Code, got.Body.Len())
		}
	}
	if got := alice.Get("/clusters/prod?show=all&x=" + strings.Repeat("&", 4000)); got.Code != http.StatusOK || got.Body.Len() > 4<<20 {
		t.Errorf("the longest: %d, %d bytes", got.Code, got.Body.Len())
	}
	// Where somebody is led back to is told by an address as well.
	nobody := w.Browser(t, pull.Person{})
	for _, long := range []string{strings.Repeat("%C3%A9", 200), strings.Repeat("%C3%A9", 600)} {
		to := nobody.Get("/?q=" + long).Header().Get("Location")
		if !strings.HasPrefix(to, "/sign-in?return=") || len(to) > 4<<10 {
			t.Errorf("%d bytes lead to %d: %.60s", len(long), len(to), to)
		}
	}
}
