package web_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"signalbox/internal/pull"
	"signalbox/internal/web"
	"signalbox/internal/web/webtest"
)

// TestLiveOverHTTP: what changes arrives through a server, at once, and not
// compressed, also for who would take that.
func TestLiveOverHTTP(t *testing.T) {
	w := webtest.New()
	c := w.Config()
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	defer server.Close()
	u, err := url.Parse(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	c.URL = u
	pages, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
	// Before the server, which waits for those who follow.
	defer pages.Close()
	handler = pages.Handler()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live?ref=7.12", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	r.AddCookie(w.SignIn(t, c.URL, webtest.Bob))
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Encoding") != "" || got.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("answered %d %v", got.StatusCode, got.Header)
	}
	lines := bufio.NewScanner(got.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "retry:") {
		t.Fatalf("begins with %q: %v", lines.Text(), lines.Err())
	}
	w.Changed(web.Change{Ref: pull.Ref{RepoID: 7, Number: 12}})
	for lines.Scan() {
		if lines.Text() == "event: changed" {
			return
		}
	}
	t.Errorf("it ended without the change: %v", lines.Err())
}
