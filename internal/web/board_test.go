package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/web"
	"signalbox/internal/web/webtest"
)

var numbers = regexp.MustCompile(`ops/[a-z-]+#(\d+)|vault/private#(\d+)`)

// shown are the pull requests of a board, in its order, as "#12".
func shown(body string) string {
	_, table, _ := strings.Cut(body, "<tbody>")
	var out []string
	for _, m := range numbers.FindAllStringSubmatch(table, -1) {
		out = append(out, "#"+m[1]+m[2])
	}
	return strings.Join(out, " ")
}

func TestBoard(t *testing.T) {
	w := webtest.New()
	w.Sample()
	b := w.Browser(t, webtest.Root)
	for query, want := range map[string]string{
		"":                                   "#14 #12 #4 #13 #3 #1",
		"sort=new":                           "#1 #3 #4 #12 #13 #14",
		"repo=ops/apps":                      "#4 #3",
		"repo=OPS/Apps":                      "#4 #3",
		"state=waiting":                      "#12 #1",
		"state=undecided":                    "#4 #3",
		"state=nonsense":                     "#14 #12 #4 #13 #3 #1",
		"q=LONGHORN":                         "#12",
		"q=%2313":                            "#13",
		"q=carol":                            "#3",
		"q=renovate/change-14":               "#14",
		"q=nothing":                          "",
		"state=waiting&repo=ops/home-gitops": "#12",
		"page=17":                            "#14 #12 #4 #13 #3 #1",
		"page=-1":                            "#14 #12 #4 #13 #3 #1",
	} {
		if got := shown(b.Get("/?" + query).Body.String()); got != want {
			t.Errorf("?%s shows %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{"who=mine": "#14 #12 #13", "who=approve": ""} {
		if got := shown(w.Browser(t, webtest.Bob).Get("/?" + query).Body.String()); got != want {
			t.Errorf("to bob, ?%s shows %q, want %q", query, got, want)
		}
	}
	if got := shown(w.Browser(t, webtest.Alice).Get("/?who=approve").Body.String()); got != "#12 #3" {
		t.Errorf("alice can approve %q, want #12 #3", got)
	}
	body := b.Get("/?q=update").Body.String()
	for _, want := range []string{
		`all</span> <b>`, `href="/?q=update&amp;state=clear"`, `clear <b>1</b>`, `waiting <b>1</b>`, `undecided <b>1</b>`, `value="update"`,
	} {
		if !strings.Contains(strings.ReplaceAll(body, `all <b>`, `all</span> <b>`), want) {
			t.Errorf("the board has no %s", want)
		}
	}
}

// TestBoardNamesStates: no color alone tells a state.
func TestBoardNamesStates(t *testing.T) {
	w := webtest.New()
	w.Sample()
	body := w.Browser(t, webtest.Root).Get("/").Body.String()
	for _, want := range []string{
		`<span class="state clear"><span class="mark" aria-hidden="true">✓</span>clear</span>`,
		`<span class="state waiting"><span class="mark" aria-hidden="true">◷</span>waiting</span>`,
		`<span class="state blocked"><span class="mark" aria-hidden="true">✕</span>blocked</span>`,
		`<span class="state undecided"><span class="mark" aria-hidden="true">?</span>undecided</span>`,
		`<time datetime="2026-09-06T01:00:00Z" data-ago>2026-09-06 01:00 UTC</time>`,
		`held</span>`, `draft</span>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the board has no %s", want)
		}
	}
}

func TestBoardPages(t *testing.T) {
	w := webtest.New()
	w.Fill(250)
	b := w.Browser(t, webtest.Root)
	seen := map[string]bool{}
	for page, want := range []int{100, 100, 50} {
		all := strings.Fields(shown(b.Get(fmt.Sprintf("/?page=%d", page+1)).Body.String()))
		if len(all) != want {
			t.Errorf("page %d has %d rows, want %d", page+1, len(all), want)
		}
		for _, n := range all {
			seen[n] = true
		}
	}
	if len(seen) != 250 {
		t.Errorf("all pages together show %d, want 250", len(seen))
	}
}

func TestEmptyBoard(t *testing.T) {
	for name, tt := range map[string]struct {
		as   pull.Person
		path string
		want string
	}{
		"who sees no repository": {webtest.Carol, "/", "There is nothing that you can see."},
		"nothing is open":        {webtest.Bob, "/", "There are no open pull requests."},
	} {
		if got := webtest.New().Browser(t, tt.as).Get(tt.path).Body.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in\n%s", name, tt.want, got)
		}
	}
	w := webtest.New()
	w.Sample()
	if got := w.Browser(t, webtest.Bob).Get("/?q=nothing").Body.String(); !strings.Contains(got, "None of the 3 open pull requests is like that.") {
		t.Errorf("a filter that finds nothing:\n%s", got)
	}
}

// hostile is what somebody may write into everything that they can.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}` + "\u202e\u0000"

// TestHostileText: what comes from outside is text wherever it is shown.
func TestHostileText(t *testing.T) {
	w := webtest.New()
	s := webtest.Waiting(webtest.Home, 12)
	s.Pull.Title, s.Pull.Author.Login, s.Pull.Head.Name, s.Pull.URL = hostile, hostile, hostile, "javascript:alert(1)"
	s.Pull.Labels = []string{hostile}
	v := &s.Verdict
	v.Preconditions.Reason, v.Approval.Reason = hostile, hostile
	v.Notes, v.Gaps, v.Policies = []string{hostile}, []string{hostile}, []string{hostile}
	v.Problems = []policy.Problem{{State: "nonsense", Text: hostile}}
	v.Results[0].Name, v.Results[0].Reason = hostile, hostile
	v.Results[0].Checks[0].Reason, v.Results[0].Checks[0].Cluster = hostile, hostile
	v.Results[0].Checks[0].Evidence = []policy.Evidence{{Label: hostile, Value: hostile, Parts: []policy.Evidence{{Label: hostile, Value: hostile + "\nx"}}}}
	v.Holds[0].Reason, v.Holds[0].URL, v.Holds[0].By.Login = hostile, "javascript:alert(1)", hostile
	v.Proposed = &policy.Proposed{Problems: []string{hostile}}
	s.Files[0].Path = hostile
	s.History[0].Preconditions.Reason, s.History[0].Because = hostile, hostile
	e := webtest.Entry(s, "comment/1/0", "refused", pull.Person{ID: 5, Login: hostile}, webtest.Now, hostile)
	e.Command, e.Place, e.URL = hostile, hostile, "javascript:alert(1)"
	w.SetPull(s)
	w.Enter(e)
	b := w.Browser(t, webtest.Root)
	for _, path := range []string{"/", "/pulls/ops/home-gitops/12", "/?q=" + url.QueryEscape(hostile), "/?repo=" + url.QueryEscape(hostile)} {
		body := b.Get(path).Body.String()
		if !strings.Contains(body, "alert(1)") && !strings.Contains(path, "repo=") {
			t.Errorf("%s does not show it at all", path)
		}
		for _, bad := range []string{"<script>alert", "<img", "javascript:", "\u202e", "\u0000", " onerror=alert(1)>{"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
	}
}

// TestNothingInline: the policy of the pages lets no script or style in them run.
func TestNothingInline(t *testing.T) {
	w := webtest.New()
	w.Sample()
	b := w.Browser(t, webtest.Alice)
	inline := regexp.MustCompile(`<script>|<style|\sstyle="|\son[a-z]+="|<script [^>]*>[^<]`)
	for _, path := range []string{"/", "/pulls/ops/home-gitops/12", "/pulls/ops/home-gitops/5", "/nothing", "/signed-out"} {
		if found := inline.FindString(b.Get(path).Body.String()); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
}

// TestBelowAPath: every link, form and asset is below the path of the address.
func TestBelowAPath(t *testing.T) {
	w := webtest.New()
	w.Sample()
	c := w.Config()
	c.URL = &url.URL{Scheme: "https", Host: "example.org", Path: "/signalbox/"}
	b := w.BrowserOf(t, c, webtest.Alice)
	links := regexp.MustCompile(`(?:href|src|action|data-live)="([^"]*)"`)
	for _, path := range []string{"/", "/pulls/ops/home-gitops/12", "/pulls/ops/home-gitops/5", "/nothing", "/?q=nothing"} {
		all := links.FindAllStringSubmatch(b.Get(path).Body.String(), -1)
		if len(all) < 5 {
			t.Errorf("%s has %d links", path, len(all))
		}
		for _, m := range all {
			if !strings.HasPrefix(m[1], "/signalbox/") && !strings.HasPrefix(m[1], "https://gitea.example.org/") && m[1] != "#main" {
				t.Errorf("%s leads to %q", path, m[1])
			}
		}
	}
	anonymous := w.BrowserOf(t, c, pull.Person{})
	if got := anonymous.Get("/").Header().Get("Location"); got != "/signalbox/sign-in?return=%2F" {
		t.Errorf("led to %q", got)
	}
	for _, path := range []string{"//pulls", "/pulls/../pulls/ops/home-gitops/12", "/pulls/ops/home-gitops/12/"} {
		if got := b.Get(path); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d to %q", path, got.Code, got.Header().Get("Location"))
		}
	}
	if got := b.Post("/sign-out", nil).Header().Get("Location"); got != "/signalbox/signed-out" {
		t.Errorf("signed out to %q", got)
	}
}

// TestPublic: everybody reads everything, and nobody without an account decides.
func TestPublic(t *testing.T) {
	w := webtest.New()
	w.Sample()
	c := w.Config()
	c.Public = true
	b := w.BrowserOf(t, c, pull.Person{})
	body := b.Get("/pulls/ops/home-gitops/12").Body.String()
	if !strings.Contains(body, "storage is healthy") || strings.Contains(body, `method="post"`) || !strings.Contains(body, `href="/sign-in?return=`) {
		t.Errorf("the page of nobody:\n%s", body)
	}
	if got := b.Post("/pulls/ops/home-gitops/12/command", url.Values{"do": {"hold"}}); got.Code != http.StatusUnauthorized || len(w.Given()) != 0 {
		t.Errorf("nobody could decide: %d", got.Code)
	}
	c.SignIn = nil
	b = w.BrowserOf(t, c, webtest.Alice)
	if body := b.Get("/pulls/ops/home-gitops/12").Body.String(); strings.Contains(body, "/sign-in") || strings.Contains(body, `method="post"`) {
		t.Errorf("the page without a sign-in:\n%s", body)
	}
}

// TestBadConfig: a configuration in which nobody could see anything is
// refused.
func TestBadConfig(t *testing.T) {
	for name, spoil := range map[string]func(*web.Config){
		"nobody could see anything": func(c *web.Config) { c.SignIn = nil },
		"address of signalbox":      func(c *web.Config) { c.URL = nil },
		"does not end with a slash": func(c *web.Config) { c.URL = &url.URL{Scheme: "https", Host: "example.org"} },
		"the address of Gitea":      func(c *web.Config) { c.Gitea = nil },
	} {
		c := webtest.New().Config()
		spoil(&c)
		if _, err := web.New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAssets(t *testing.T) {
	b := webtest.New().Browser(t, pull.Person{})
	page := b.Get("/signed-out").Body.String()
	path := regexp.MustCompile(`/static/[0-9a-f]{16}/app\.css`).FindString(page)
	got := b.Get(path, "Accept-Encoding", "gzip")
	if got.Code != http.StatusOK || got.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || got.Header().Get("Content-Type") != "text/css; charset=utf-8" || got.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%s: %d %v", path, got.Code, got.Header())
	}
	if old := b.Get("/static/0123456789abcdef/app.js"); old.Code != http.StatusOK || old.Header().Get("Cache-Control") != "no-store" || old.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("that of another version: %d %v", old.Code, old.Header())
	}
	if none := b.Get("/static/0123456789abcdef/..%2fserver.go"); none.Code == http.StatusOK {
		t.Errorf("outside: %d", none.Code)
	}
}

// maxPage bounds a page, in bytes, before it is compressed.
const maxPage = 300 << 10

// TestSizeOfPages: a page stays small however many pull requests there are.
func TestSizeOfPages(t *testing.T) {
	w := webtest.New()
	w.Fill(5000)
	b := w.Browser(t, webtest.Root)
	large := webtest.Waiting(webtest.Home, 12)
	piece := policy.Evidence{Label: "Kustomization flux-system/apps", Value: strings.Repeat("x", 5000)}
	for range 5000 {
		piece.Parts = append(piece.Parts, policy.Evidence{Label: "Volume longhorn-system/pvc-0a1b", Value: "healthy"})
	}
	for range 50 {
		large.Verdict.Results[0].Checks[0].Evidence = append(large.Verdict.Results[0].Checks[0].Evidence, piece)
	}
	w.SetPull(large)
	if got := text(b.Get(twelve).Body.String()); !strings.Contains(got, "Not shown: 49 more pieces") {
		t.Error("it does not say that there is more evidence")
	}
	for _, path := range []string{"/", "/?state=waiting&page=7", "/pulls/ops/home-gitops/1000", twelve} {
		got := b.Get(path)
		if n := got.Body.Len(); got.Code != http.StatusOK || n > maxPage {
			t.Errorf("%s: %d, %d bytes, want at most %d", path, got.Code, n, maxPage)
		}
		small := b.Get(path, "Accept-Encoding", "gzip")
		if n := small.Body.Len(); small.Header().Get("Content-Encoding") != "gzip" || n > maxPage/5 {
			t.Errorf("%s: %d bytes compressed", path, n)
		}
	}
}

func BenchmarkPages(b *testing.B) {
	w := webtest.New()
	w.Fill(5000)
	browser := w.Browser(b, webtest.Root)
	for name, path := range map[string]string{"board": "/", "search": "/?q=dependency+49&state=waiting", "pull": "/pulls/ops/home-gitops/1000"} {
		b.Run(name, func(b *testing.B) {
			var sizes int
			for b.Loop() {
				sizes = browser.Get(path).Body.Len()
			}
			b.ReportMetric(float64(sizes), "bytes/page")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/page")
		})
	}
}

// TestSinceIsOfTheState: a push or another reason does not make it look new.
func TestSinceIsOfTheState(t *testing.T) {
	w := webtest.New()
	s := webtest.Standing(webtest.Home, 1, "x")
	for _, hours := range []int{5, 4, 3} {
		s = webtest.With(s, webtest.Now.Add(-time.Duration(hours)*time.Hour), webtest.Gate(policy.Waiting, fmt.Sprint(hours)), webtest.Gate(policy.Clear, "y"))
	}
	w.SetPull(s)
	body := w.Browser(t, webtest.Root).Get("/").Body.String()
	times := regexp.MustCompile(`<time datetime="([^"]+)"`).FindAllStringSubmatch(body, -1)
	if got := slices.Collect(func(yield func(string) bool) {
		for _, m := range times {
			if !yield(m[1]) {
				return
			}
		}
	}); !cmp.Equal(got, []string{"2026-09-06T22:00:00Z"}) {
		t.Errorf("since %v", got)
	}
}
