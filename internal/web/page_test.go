package web_test

import (
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/pull"
	"signalbox/internal/web/webtest"
)

func TestHeadersOfEveryAnswer(t *testing.T) {
	w := webtest.New()
	b := w.Browser(t, webtest.Alice)
	for _, path := range []string{"/", "/nothing", "/static/x/app.css", "/static/x/nothing", "/signed-out", "/sign-in", "/live?nothing"} {
		h := b.Get(path).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy":   "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":    "nosniff",
			"Referrer-Policy":           "same-origin",
			"Strict-Transport-Security": "max-age=31536000",
			"Cache-Control":             "no-store",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestWhatIsNotSeenIsLikeWhatIsNot(t *testing.T) {
	w := webtest.New()
	anonymous := w.Browser(t, pull.Person{}).Get("/?q=a")
	if got := anonymous.Header().Get("Location"); anonymous.Code != http.StatusSeeOther || got != "/sign-in?return=%2F%3Fq%3Da" {
		t.Errorf("anonymous: %d to %q", anonymous.Code, got)
	}
	got := w.Browser(t, webtest.Alice).Get("/nothing")
	if got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "There is nothing here") {
		t.Errorf("nothing: %d %s", got.Code, got.Body)
	}
	if got := w.Browser(t, webtest.Alice).Do(mustRequest(t, "DELETE", "/")); got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("DELETE /: %d, allowed %q", got.Code, got.Header().Get("Allow"))
	}
}

func mustRequest(t *testing.T, method, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
