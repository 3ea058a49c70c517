package web_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/overview"
	"signalbox/internal/pull"
	"signalbox/internal/web/webtest"
)

// openPage is a page as the browser of somebody gets it.
func openPage(t *testing.T, b *webtest.Browser, path string) string {
	t.Helper()
	got := b.Get(path)
	if got.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, got.Code, got.Body)
	}
	checkPage(t, path, got.Body.String())
	return got.Body.String()
}

// checkPage checks what every page keeps to: no style or script in it, no id twice, a
// label for every field, a name for every link and button, and one first heading.
func checkPage(t *testing.T, path, body string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	ids, headings := map[string]bool{}, 0
	var walk func(n *html.Node, labelled bool)
	walk = func(n *html.Node, labelled bool) {
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
			if n.Type == html.ElementNode && (a.Key == "style" || strings.HasPrefix(a.Key, "on")) {
				t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
			}
		}
		if n.Type == html.ElementNode {
			if id, ok := attr["id"]; ok {
				if ids[id] {
					t.Errorf("%s: two elements have the id %q", path, id)
				}
				ids[id] = true
			}
			switch n.Data {
			case "h1":
				headings++
			case "style":
				t.Errorf("%s: there is a style in it", path)
			case "script":
				if n.FirstChild != nil {
					t.Errorf("%s: there is a script in it: %s", path, n.FirstChild.Data)
				}
			case "input", "select", "textarea":
				if attr["type"] != "hidden" && !labelled && attr["aria-label"] == "" {
					t.Errorf("%s: the field %q has no label", path, attr["name"])
				}
			case "a", "button":
				if strings.TrimSpace(textOf(n)) == "" && attr["aria-label"] == "" {
					t.Errorf("%s: a %s to %q has no name", path, n.Data, attr["href"])
				}
				if strings.HasPrefix(attr["href"], "javascript:") {
					t.Errorf("%s: a link runs a script", path)
				}
			case "time":
				if attr["datetime"] == "" {
					t.Errorf("%s: a time without its datetime", path)
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, labelled || n.Data == "label")
		}
	}
	walk(doc, false)
	if headings != 1 {
		t.Errorf("%s: %d first headings", path, headings)
	}
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return b.String()
}

func contains(t *testing.T, what, body string, all ...string) {
	t.Helper()
	for _, text := range all {
		if !strings.Contains(body, text) {
			t.Errorf("%s: no %q", what, text)
		}
	}
}

func lacks(t *testing.T, what, body string, all ...string) {
	t.Helper()
	for _, text := range all {
		if strings.Contains(body, text) {
			t.Errorf("%s: there is %q", what, text)
		}
	}
}

// overviewPaths are the pages about the whole installation.
var overviewPaths = []string{
	"/clusters", "/clusters/prod", "/clusters/test", "/digests", "/digests?name=morning", "/digests/now", "/digests/morning/2026-09-06T05:00:00Z", "/health",
}

// TestWhoSeesTheInstallation asks for every page as everybody.
func TestWhoSeesTheInstallation(t *testing.T) {
	w := house()
	for _, path := range overviewPaths {
		for who, sees := range map[pull.Person]bool{webtest.Alice: true, webtest.Bob: false, webtest.Carol: false, webtest.Root: true} {
			want := http.StatusNotFound
			if sees {
				want = http.StatusOK
			}
			if got := w.Browser(t, who).Get(path); got.Code != want {
				t.Errorf("%s as %s: %d, want %d", path, who.Login, got.Code, want)
			}
		}
		if got := w.Browser(t, pull.Person{}).Get(path); got.Code != http.StatusSeeOther {
			t.Errorf("%s as nobody: %d", path, got.Code)
		}
	}
	bob := openPage(t, w.Browser(t, webtest.Bob), "/audit")
	contains(t, "the menu of bob", bob, `href="/audit"`)
	lacks(t, "the menu of bob", bob, `href="/clusters"`, `href="/digests"`, `href="/health"`)
	contains(t, "the menu of alice", openPage(t, w.Browser(t, webtest.Alice), "/audit"), `href="/clusters"`, `href="/digests"`, `href="/health"`)
}

func TestPagesOfTheInstallation(t *testing.T) {
	w := house()
	b := w.Browser(t, webtest.Root)
	for _, path := range append(overviewPaths, "/audit", "/clusters/prod?object=kustomization/flux-system/infra-storage", "/clusters/prod?show=all&q=infra&state=ready&kind=kustomization&namespace=flux-system&tier=1&page=9") {
		body := openPage(t, b, path)
		lacks(t, path, body, "<script>alert", "<b>unexpected", "<i>wait")
	}
	for _, path := range []string{"/clusters/nothing", "/digests/morning/2026-09-06T05:00:01Z", "/digests/evening/2026-09-06T05:00:00Z", "/digests/morning/yesterday"} {
		if got := b.Get(path); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
}

func TestClusterPage(t *testing.T) {
	w := house()
	b := w.Browser(t, webtest.Alice)
	prod := openPage(t, b, "/clusters/prod")
	contains(t, "prod", prod, "25 objects of Flux", `<b>18</b> ready`, `<b>1</b> missing`, "6 in groups", `data-live="/live?cluster=prod"`, `role="group" aria-label="What depends on what: 25 objects, of which 19 stand for themselves"`)
	// What is worst stands first.
	if stalled, ready := strings.Index(prod, "flux-system/<strong>podinfo"), strings.Index(prod, "flux-system/<strong>apps"); stalled < 0 || stalled > ready {
		t.Errorf("stalled at %d, waiting at %d", stalled, ready)
	}
	object := openPage(t, b, "/clusters/prod?object=kustomization/flux-system/infra-storage")
	contains(t, "the object", object,
		"longhorn-manager status: &#39;InProgress&#39;]\nhealth check failed", "main@sha1:"+commit, "main@sha1:"+strings.Repeat("ab", 20), "./clusters/prod",
		"GitRepository flux-system/home-gitops", "Kustomization flux-system/infra-controllers", "Kustomization flux-system/databases",
		`<a href="/pulls/ops/home-gitops/12">ops/home-gitops#12</a> Update longhorn`)
	lacks(t, "the object as alice", object, "vault/private", "hidden keys")
	contains(t, "the object as root", openPage(t, w.Browser(t, webtest.Root), "/clusters/prod?object=kustomization/flux-system/infra-storage"), "vault/private#3")
	contains(t, "an object that is gone", openPage(t, b, "/clusters/prod?object=kustomization/flux-system/nothing"), "There is no <strong>kustomization/flux-system/nothing</strong>")
	contains(t, "an object that is only named", openPage(t, b, "/clusters/prod?object=helmrepository/flux-system/kubernetes-dashboard"), "HelmRelease flux-system/old-dashboard names it")
}

func TestClusterFilters(t *testing.T) {
	b := house().Browser(t, webtest.Alice)
	for query, want := range map[string]string{
		"state=waiting":                "2 objects of 25 fit",
		"kind=helmrelease":             "4 objects of 25 fit",
		"q=Infra+storage":              "1 object of 25 fits",
		"namespace=flux":               "0 objects",
		"show=problems":                "6 objects of 25 fit",
		"tier=0&state=ready":           "9 objects of 25 fit, in the sources",
		"state=nothing":                "25 objects, what is worst first",
		"kind=kustomization&q=storage": "1 object of 25 fits",
	} {
		body := openPage(t, b, "/clusters/prod?"+query)
		if want == "0 objects" {
			contains(t, query, body, "No object fits.")
			continue
		}
		contains(t, query, body, want)
	}
}

// TestSilentCluster checks that what was good before is not shown as good.
func TestSilentCluster(t *testing.T) {
	w := house()
	b := w.Browser(t, webtest.Alice)
	body := openPage(t, b, "/clusters/test")
	contains(t, "test", body, "Nothing is heard from this cluster", "2026-09-07 00:57 UTC", "HelmRelease: cannot be read: helmreleases.helm.toolkit.fluxcd.io is forbidden", "was ready", "<b>2</b> unknown")
	lacks(t, "test", body, `fg-node fg-ready`, `</b> ready`, `<span class="state clear">`)
	list := openPage(t, b, "/clusters")
	contains(t, "the list", list, "silent", "2 unknown", "18 ready")

	never := webtest.New().Browser(t, webtest.Alice)
	contains(t, "never heard from", openPage(t, never, "/clusters/prod"), "Nothing is heard from this cluster yet", "not heard from yet", "No object of Flux is known")
}

func TestCirclesAreTold(t *testing.T) {
	w := house()
	w.SetFact(fluxObject("prod", "Kustomization", "infra-crds", from("infra-configs")))
	body := openPage(t, w.Browser(t, webtest.Alice), "/clusters/prod")
	contains(t, "prod", body, "These wait for each other", "Kustomization flux-system/infra-crds", "closes a circle")
}

func TestLargeCluster(t *testing.T) {
	w := webtest.New()
	heard(w, "prod")
	for _, f := range bigFacts("prod", 2000) {
		w.SetFact(f)
	}
	b := w.Browser(t, webtest.Alice)
	for path, most := range map[string]int{"/clusters/prod": 110, "/clusters/prod?show=all": 300, "/clusters/prod?q=app-1": 200, "/clusters/prod?object=gitrepository/flux-system/home-gitops": 200} {
		if body := openPage(t, b, path); len(body) > most<<10 {
			t.Errorf("%s: %d KB, want fewer than %d", path, len(body)>>10, most)
		}
	}
	first := openPage(t, b, "/clusters/prod")
	contains(t, "the first page", first, "1 to 100 of 2001", `rel="next"`)
	last := openPage(t, b, "/clusters/prod?page=21")
	contains(t, "the last page", last, "2001 to 2001 of 2001")
	lacks(t, "the last page", last, `rel="next"`)
}

func BenchmarkLargeCluster(b *testing.B) {
	w := webtest.New()
	heard(w, "prod")
	for _, f := range bigFacts("prod", 2000) {
		w.SetFact(f)
	}
	browser := w.Browser(b, webtest.Alice)
	for b.Loop() {
		if got := browser.Get("/clusters/prod"); got.Code != http.StatusOK {
			b.Fatal(got.Code)
		}
	}
}

// hostileText is what would do harm if it were taken for anything but text.
const hostileText = `</title></text></script><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "\u202e"

func TestHostileOverview(t *testing.T) {
	w := webtest.New()
	heard(w, "prod")
	w.SetFact(kindsOf("prod", func(k map[string]fact.Watch) {
		k["bucket"] = fact.Watch{State: fact.WatchFailing, Message: hostileText}
	}))
	w.SetFact(fluxObject("prod", "Kustomization", hostileText, func(f *fact.Flux) {
		f.Applied, f.Attempted, f.Origin, f.Path = hostileText, hostileText+"2", hostileText, hostileText
		f.Ready = fact.Condition{Status: fact.False, Reason: hostileText, Message: hostileText}
		f.Source = &fact.Ref{Kind: hostileText, Namespace: hostileText, Name: hostileText}
		f.DependsOn = []fact.Ref{{Kind: "Kustomization", Namespace: "flux-system", Name: hostileText}, {Name: hostileText}}
	}))
	finding := digest.Finding{ID: hostileText, Section: digest.Flux, Cluster: hostileText, Severity: digest.Severity(hostileText), Subject: hostileText, Text: hostileText, URL: "javascript:alert(1)"}
	finding.Under = []digest.Finding{finding}
	report := digest.Report{
		Name: "a", Zone: hostileText, Scheduled: webtest.Now, Made: webtest.Now,
		Sections:  []digest.Part{{Section: digest.Section(hostileText), Summary: []digest.Summary{{Text: hostileText}}, Findings: []digest.Finding{finding}, Blind: []digest.Blind{{Cluster: hostileText, Why: hostileText}}}},
		Recovered: []digest.Finding{finding},
	}
	w.SetDigests([]digest.Report{report}, digest.Result{Findings: []digest.Finding{finding}, Summaries: map[digest.Section][]digest.Summary{digest.Flux: {{Text: hostileText}}}, Blind: []digest.Blind{{Section: digest.Flux, Why: hostileText}}}, nil)
	w.SetHealth(overview.Health{Version: hostileText, Parts: []overview.Part{{Name: hostileText, State: overview.State(hostileText), Detail: hostileText}}, Lag: []overview.Lag{{Consumer: hostileText}}},
		overview.DeadLetter{ID: 1, Stream: hostileText, Subject: hostileText, Consumer: hostileText, Reason: hostileText})
	w.Enter(decision.Entry{
		ID: hostileText, Kind: decision.Refused, By: pull.Person{ID: 5, Login: hostileText}, Place: hostileText, URL: "javascript:alert(1)", User: hostileText, Command: hostileText,
		Repo: pull.Repo{ID: webtest.Home.ID, Owner: hostileText, Name: hostileText}, Number: 1, Base: hostileText, Head: hostileText, Reason: hostileText, Passes: []string{hostileText}, At: webtest.Now,
	})
	b := w.Browser(t, webtest.Root)
	object := url.QueryEscape("kustomization/flux-system/" + hostileText)
	query := url.QueryEscape(hostileText)
	for _, path := range []string{
		"/clusters", "/clusters/prod", "/clusters/prod?object=" + object, "/clusters/prod?q=" + query + "&namespace=" + query + "&kind=" + query + "&state=" + query + "&show=" + query + "&object=" + query,
		"/digests", "/digests?name=" + query, "/digests/now", "/digests/a/2026-09-07T03:00:00Z", "/audit", "/audit?person=" + query, "/health", "/health?did=" + query + "&letter=1",
	} {
		lacks(t, path, openPage(t, b, path), "<script>alert", "<img src=x", "javascript:alert(1)\"", "\u202e")
	}
	for _, path := range []string{"/audit?kind=" + query, "/audit?repo=" + query, "/audit?since=" + query} {
		got := b.Get(path)
		checkPage(t, path, got.Body.String())
		lacks(t, path, got.Body.String(), "<script>alert", "<img src=x")
		if got.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
}

func TestDigestsShowWhatIsSeen(t *testing.T) {
	w := house()
	alice, root := w.Browser(t, webtest.Alice), w.Browser(t, webtest.Root)
	for _, path := range []string{"/digests/now", "/digests/morning/2026-09-06T05:00:00Z"} {
		lacks(t, path+" as alice", openPage(t, alice, path), "hidden reason", "vault/private")
		contains(t, path+" as alice", openPage(t, alice, path), "ops/home-gitops#12", "longhorn-manager", "2 that follow from it", "Kustomization flux-system/databases",
			"nothing is heard from it since", `href="/clusters/prod?object=kustomization%2Fflux-system%2Finfra-storage"`)
		contains(t, path+" as root", openPage(t, root, path), "hidden reason")
	}
	contains(t, "the report as alice", openPage(t, alice, "/digests/morning/2026-09-06T05:00:00Z"), "<b>2</b> new", "<b>3</b> still", "<b>1</b> recovered", "<b>2</b> unknown now", "Sunday 6 September 2026, 07:00 CEST", "has not run since Friday", "2 findings more were left out", "nothing found")
	contains(t, "the report as root", openPage(t, root, "/digests/morning/2026-09-06T05:00:00Z"), "<b>3</b> new")
	list := openPage(t, root, "/digests")
	contains(t, "the list", list, "4 more", "late", "14 of 19", "between 73.7% and 100%, now 73.7%", "Open findings in the last 30 days: between 0 and 6, now 5")
	if first, second := strings.Index(list, "6 September 2026, 07:00"), strings.Index(list, "5 September 2026, 07:00"); first < 0 || second < first {
		t.Errorf("the newest report is not the first: %d, %d", first, second)
	}
	contains(t, "the report that was late", openPage(t, root, "/digests/morning/2026-09-04T05:00:00Z"), "late: made", "2026-09-04 09:00 UTC")
}

// TestAChildOfWhatIsNotSeen checks that it is shown where its parent would be.
func TestAChildOfWhatIsNotSeen(t *testing.T) {
	w := webtest.New()
	child := digest.Finding{ID: "b", Section: digest.Gate, Repo: webtest.Home.ID, Severity: digest.Broken, Subject: "the child"}
	w.SetDigests(nil, digest.Result{Findings: []digest.Finding{{ID: "a", Section: digest.Gate, Repo: webtest.Secret.ID, Severity: digest.Broken, Subject: "the parent", Under: []digest.Finding{child}}}}, nil)
	body := openPage(t, w.Browser(t, webtest.Alice), "/digests/now")
	contains(t, "now", body, "the child", "1 broken")
	lacks(t, "now", body, "the parent")
}

// TestTrendHasGaps checks that what was not counted is not drawn.
func TestTrendHasGaps(t *testing.T) {
	w := webtest.New()
	sample := func(days int) digest.Sample {
		return digest.Sample{At: webtest.Now.AddDate(0, 0, -days), Counts: digest.Counts{Ready: 9, Total: 10}}
	}
	w.SetDigests(nil, digest.Result{}, []digest.Sample{sample(40), sample(20), sample(19), sample(3), sample(2), sample(1)})
	body := openPage(t, w.Browser(t, webtest.Alice), "/digests")
	if got := strings.Count(body, `class="trend-line"`); got != 4 {
		t.Errorf("%d lines, want two of each trend", got)
	}
	if got := strings.Count(body, `<tr><th scope="row">`); got != 5 {
		t.Errorf("%d days in the table, want 5", got)
	}
	contains(t, "the table", body, "90.0 %")
	w.SetDigests(nil, digest.Result{}, []digest.Sample{sample(1)})
	lacks(t, "one sample", openPage(t, w.Browser(t, webtest.Alice), "/digests"), "trend-line")
}

// auditSeqs are the numbers of the entries that an export has.
func auditSeqs(t *testing.T, b *webtest.Browser, query string) string {
	t.Helper()
	got := b.Get("/audit.jsonl?" + query)
	if got.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, got.Code, got.Body)
	}
	var out []string
	for lines := json.NewDecoder(got.Body); ; {
		var l decision.Line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			return strings.Join(out, " ")
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(l.Seq))
	}
}

func TestAuditFilters(t *testing.T) {
	w := house()
	root, alice := w.Browser(t, webtest.Root), w.Browser(t, webtest.Alice)
	for query, want := range map[string]string{
		"":                                  "1 2 3 4 5 6",
		"repo=OPS/home-gitops":              "1 2 3 4 5",
		"repo=ops/gitops":                   "1 2 3 4 5",
		"repo=ops/gitops%23012":             "1 2 3 4 5",
		"repo=vault/private&pull=3":         "6",
		"pull=%233":                         "6",
		"person=@Alice-Old":                 "1 2 5",
		"person=2":                          "3",
		"kind=hold&kind=override":           "3 5",
		"since=7d":                          "3 4 5 6",
		"until=2026-08-19":                  "1 2",
		"since=2026-09-05&until=2026-09-05": "4 5",
		"since=2026-09-05T02:00:00Z":        "5 6",
	} {
		if got := auditSeqs(t, root, query); got != want {
			t.Errorf("%q as root: %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{"": "1 2 3 4 5", "repo=vault/private": "", "person=root": "", "pull=3": ""} {
		if got := auditSeqs(t, alice, query); got != want {
			t.Errorf("%q as alice: %q, want %q", query, got, want)
		}
	}
	if got := auditSeqs(t, w.Browser(t, webtest.Carol), ""); got != "" {
		t.Errorf("carol, who may read nothing, got %q", got)
	}
	for _, path := range []string{"/audit", "/audit.csv"} {
		for query, want := range map[string]string{
			"repo=home-gitops": "owner/name", "pull=x": "number of a pull request", "kind=overide": "not known", "since=yesterday": "since: ", "until=-3d": "until: ",
		} {
			if got := root.Get(path + "?" + query); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s?%s: %d, want one that says %q", path, query, got.Code, want)
			}
		}
	}
}

func TestAuditPage(t *testing.T) {
	w := house()
	body := openPage(t, w.Browser(t, webtest.Alice), "/audit")
	lacks(t, "as alice", body, "hidden reason", "vault/private")
	contains(t, "as alice", body, "5 entries", "&lt;script&gt;alert(1)&lt;/script&gt; carol is not an approver", "passes precondition: apps, approval: owners", "until <time",
		`href="/pulls/ops/home-gitops/12"`, `href="/audit.csv"`, `href="/audit.jsonl"`)
	filtered := openPage(t, w.Browser(t, webtest.Alice), "/audit?kind=hold&person=alice")
	contains(t, "filtered", filtered, "1 of 5 entries", `href="/audit.csv?kind=hold&amp;person=alice"`, `value="hold" selected`, `value="alice"`)
	// Newest first.
	if hold, old := strings.Index(body, "wait for the weekend"), strings.Index(body, "alice-old"); hold < 0 || hold > old {
		t.Errorf("hold at %d, the oldest at %d", hold, old)
	}
	for range 210 {
		w.Enter(decision.Entry{ID: "x", Kind: decision.Answered, By: webtest.Bob, Repo: webtest.Apps, Number: 4, At: webtest.Now})
	}
	contains(t, "the third page", openPage(t, w.Browser(t, webtest.Alice), "/audit?page=3"), "201 to 215 of 215", "alice-old", "https://gitea.example.org/ops/apps/pulls/4", `href="/audit?page=2"`)
}

func TestAuditExport(t *testing.T) {
	w := house()
	got := w.Browser(t, webtest.Alice).Get("/audit.csv?kind=override")
	if kind, name := got.Header().Get("Content-Type"), got.Header().Get("Content-Disposition"); !strings.HasPrefix(kind, "text/csv") || name != `attachment; filename="signalbox-audit-2026-09-07.csv"` {
		t.Errorf("type %q, disposition %q", kind, name)
	}
	rows, err := csv.NewReader(got.Body).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
	if diff := cmp.Diff([]string{"3", "override", "bob", "ops/home-gitops", `'=HYPERLINK("https://example.org")`}, []string{rows[1][0], rows[1][3], rows[1][4], rows[1][6], rows[1][14]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHealthPage(t *testing.T) {
	w := house()
	alice := openPage(t, w.Browser(t, webtest.Alice), "/health")
	contains(t, "as alice", alice, "v0.5.0", "sync: 502 Bad Gateway", "14 messages before all consumers", "2 messages could not be handled")
	// A dead letter may be of a repository that she may not read.
	lacks(t, "as alice", alice, "#42", "decode the event", "/health/retry", "/health/drop", "Try again")
	root := openPage(t, w.Browser(t, webtest.Root), "/health")
	contains(t, "as root", root, `action="/health/retry"`, `action="/health/drop"`, "#42", "decode the event: &lt;b&gt;unexpected&lt;/b&gt;", "tried 5 times")
	if failing, ok := strings.Index(root, "Matrix"), strings.Index(root, "embedded, 14 MB"); failing > ok {
		t.Error("what fails does not come first")
	}
	if got := regexp.MustCompile(`state undecided"><span[^>]*>\?</span>unknown`).FindString(root); got == "" {
		t.Error("what is not known is not shown as unknown")
	}
}

func TestDeadLetters(t *testing.T) {
	w := house()
	alice, root := w.Browser(t, webtest.Alice), w.Browser(t, webtest.Root)
	form := func(id string) url.Values { return url.Values{"letter": {id}} }
	for name, tt := range map[string]struct {
		b    *webtest.Browser
		form url.Values
		site string
		want int
	}{
		"by who is no operator": {alice, form("42"), "same-origin", http.StatusNotFound},
		"by nobody":             {w.Browser(t, pull.Person{}), form("42"), "same-origin", http.StatusUnauthorized},
		"from elsewhere":        {root, form("42"), "cross-site", http.StatusForbidden},
		"with another form":     {root, url.Values{"letter": {"42"}, "form": {"x"}}, "same-origin", http.StatusForbidden},
		"without a number":      {root, form("x"), "same-origin", http.StatusBadRequest},
	} {
		for _, path := range []string{"/health/retry", "/health/drop"} {
			if got := tt.b.Post(path, tt.form, "Sec-Fetch-Site", tt.site); got.Code != tt.want {
				t.Errorf("%s %s: %d, want %d", path, name, got.Code, tt.want)
			}
		}
	}
	if got := root.Get("/health/retry"); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", got.Code)
	}
	for _, step := range []struct{ path, id, want string }{
		{"/health/retry", "42", "Dead letter 42 was handed out again"},
		{"/health/retry", "42", "Dead letter 42 is not there any more"},
		{"/health/drop", "41", "Dead letter 41 was dropped"},
	} {
		got := root.Post(step.path, form(step.id))
		if got.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", step.path, got.Code, got.Body)
		}
		contains(t, step.path, openPage(t, root, got.Header().Get("Location")), step.want)
	}
	contains(t, "at the end", openPage(t, root, "/health"), "None: everything could be handled.")
	if _, total, _ := w.DeadLetters(t.Context(), 1); total != 0 {
		t.Errorf("%d are left", total)
	}
}

// TestPublic checks that everybody sees everything then, and that nobody but an
// operator acts.
func TestPublicInstallation(t *testing.T) {
	w := house()
	c := w.Config()
	c.Public = true
	b := w.BrowserOf(t, c, pull.Person{})
	for _, path := range append(overviewPaths, "/audit") {
		openPage(t, b, path)
	}
	lacks(t, "health", openPage(t, b, "/health"), "/health/drop")
	if got := b.Post("/health/drop", url.Values{"letter": {"42"}}); got.Code != http.StatusNotFound {
		t.Errorf("dropped by nobody: %d", got.Code)
	}
}

// TestBelowAPath checks that every address has the path of the proxy.
func TestOverviewBelowAPath(t *testing.T) {
	w := house()
	c := w.Config()
	c.URL = &url.URL{Scheme: "https", Host: "example.org", Path: "/signalbox/"}
	b := w.BrowserOf(t, c, webtest.Root)
	address := regexp.MustCompile(`(?:href|action)="(/[^"]*)"`)
	for _, path := range append(overviewPaths, "/audit?kind=hold", "/clusters/prod?q=infra") {
		for _, m := range address.FindAllStringSubmatch(openPage(t, b, path), -1) {
			if !strings.HasPrefix(m[1], "/signalbox/") {
				t.Errorf("%s: %s", path, m[1])
			}
		}
	}
	if got := b.Post("/health/drop", url.Values{"letter": {"42"}}, "Origin", "https://example.org").Header().Get("Location"); got != "/signalbox/health?did=dropped&letter=42" {
		t.Errorf("led to %q", got)
	}
}

// TestOldSamples keeps what is older than the trend out of it.
func TestTimesOfSamples(t *testing.T) {
	w := webtest.New()
	w.SetDigests(nil, digest.Result{}, []digest.Sample{{At: webtest.Now.Add(time.Hour)}, {At: webtest.Now.AddDate(-1, 0, 0)}, {At: webtest.Now}})
	lacks(t, "one sample of the time", openPage(t, w.Browser(t, webtest.Alice), "/digests"), "trend-line")
}

// TestContrastOfLines: the lines of the graph can be seen, in light and in dark.
func TestContrastOfLines(t *testing.T) {
	color := map[string][]string{}
	for _, file := range []string{"static/app.css", "static/overview.css"} {
		css, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range colors.FindAllStringSubmatch(string(css), -1) {
			color[m[1]] = m[2:]
		}
	}
	for _, line := range []string{"edge", "edge-source"} {
		if color[line] == nil {
			t.Fatalf("the style has no %s", line)
		}
		for i, scheme := range []string{"light", "dark"} {
			a, b := luminance(t, color[line][i]), luminance(t, color["card"][i])
			if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < 3 {
				t.Errorf("%s in %s has a contrast of %.2f, want 3", line, scheme, got)
			}
		}
	}
}
