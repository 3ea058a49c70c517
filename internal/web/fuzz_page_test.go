package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"signalbox/internal/pull"
	"signalbox/internal/web/webtest"
)

// FuzzPages: whatever an address or a cookie says, the pages do not fail over it, what
// is in it is text and no markup, and nobody is signed in by a token that was guessed.
func FuzzPages(f *testing.F) {
	const marker = "<fuzzed"
	paths := []string{"/", "/audit", "/audit.csv", "/audit.jsonl", "/digests", "/clusters", "/health", "/sign-in/back"}
	for i, query := range []string{
		"", "repo=ops/home-gitops&pull=12&person=@alice&kind=hold&since=7d&until=2026-09-07", "since=<script>&page=2", "page=-1", "page=99999999999999999999",
		"kind=x&kind=approve", "%zz=1", "return=//example.net", "state=x&code=y&error=<b>",
	} {
		f.Add(uint8(i), query, strings.Repeat("a", 43))
	}
	world := webtest.New()
	world.SetPull(webtest.Standing(webtest.Home, 12, "Profile the storage"))
	config := world.Config()
	config.Public = false
	b := world.BrowserOf(f, config, pull.Person{ID: 1, Login: "alice"})
	f.Fuzz(func(t *testing.T, which uint8, query, cookie string) {
		path := paths[int(which)%len(paths)]
		ask := func(cookies ...*http.Cookie) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL = &url.URL{Path: path, RawQuery: query + "&x=" + url.QueryEscape(marker)}
			for _, c := range cookies {
				r.AddCookie(c)
			}
			w := httptest.NewRecorder()
			b.Handler.ServeHTTP(w, r)
			return w
		}
		signedIn := ask(b.Cookies...)
		if signedIn.Code >= 500 {
			t.Errorf("%s?%s: %d %s", path, query, signedIn.Code, signedIn.Body)
		}
		if strings.Contains(signedIn.Body.String(), marker) {
			t.Errorf("%s?%s shows markup of its address", path, query)
		}
		if cookie == b.Cookies[0].Value {
			return
		}
		guessed := ask(&http.Cookie{Name: b.Cookies[0].Name, Value: cookie, Quoted: true})
		if nobody := ask(); guessed.Code != nobody.Code || strings.Contains(guessed.Body.String(), "alice") && !strings.Contains(query, "alice") {
			t.Errorf("%s?%s with the cookie %q: %d, without it %d", path, query, cookie, guessed.Code, nobody.Code)
		}
	})
}
