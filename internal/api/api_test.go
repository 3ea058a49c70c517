package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"signalbox/internal/api"
	"signalbox/internal/overview"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

func TestTokens(t *testing.T) {
	h := theWorld(t).handler(t)
	tests := []struct {
		name   string
		header []string
		want   int
		says   string
	}{
		{"none", nil, http.StatusUnauthorized, "brings no token"},
		{"right", []string{"Bearer " + token}, http.StatusOK, `"items"`},
		{"the other one", []string{"Bearer " + otherToken}, http.StatusOK, `"items"`},
		{"scheme in another letter case", []string{"bearer " + token}, http.StatusOK, `"items"`},
		{"wrong", []string{"Bearer " + strings.Repeat("x", 64)}, http.StatusUnauthorized, "not one of those"},
		{"begins right", []string{"Bearer " + token[:63]}, http.StatusUnauthorized, "not one of those"},
		{"goes on after the right one", []string{"Bearer " + token + "0"}, http.StatusUnauthorized, "not one of those"},
		{"both at once", []string{"Bearer " + token + " " + otherToken}, http.StatusUnauthorized, "not one of those"},
		{"empty", []string{"Bearer "}, http.StatusUnauthorized, "not of the form"},
		{"no scheme", []string{token}, http.StatusUnauthorized, "not of the form"},
		{"another scheme", []string{"Basic " + token}, http.StatusUnauthorized, "not of the form"},
		{"twice", []string{"Bearer " + token, "Bearer " + token}, http.StatusUnauthorized, "more than once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/pulls", nil)
			r.Header["Authorization"] = tt.header
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.want || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("answers %d %s; want %d and %q", w.Code, w.Body, tt.want, tt.says)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (w.Code == http.StatusUnauthorized) != strings.HasPrefix(challenge, `Bearer realm="signalbox"`) {
				t.Errorf("WWW-Authenticate is %q", challenge)
			}
			if strings.Contains(w.Body.String(), token[:20]) {
				t.Errorf("shows the token: %s", w.Body)
			}
		})
	}
	t.Run("in the address", func(t *testing.T) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/pulls?access_token="+token, nil))
		if w.Code != http.StatusUnauthorized {
			t.Errorf("answers %d", w.Code)
		}
	})
}

func TestWithoutTokensItIsClosed(t *testing.T) {
	c := theWorld(t).config()
	c.Tokens = nil
	h, err := api.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, authorization := range []string{"", "Bearer ", "Bearer " + token} {
		w := get(t, h, "/api/v1/pulls", "Authorization", authorization)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "SIGNALBOX_API_TOKEN") {
			t.Errorf("%q: answers %d %s", authorization, w.Code, w.Body)
		}
	}
	if w := get(t, h, "/api/v1/openapi.json"); w.Code != http.StatusOK {
		t.Errorf("the description: %d", w.Code)
	}
}

func TestWeakTokensAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"none": "", "short": "hunter2-hunter2-hunter2-hunter2", "a space in it": strings.Repeat("hunter2 ", 8) + "x",
		"a line feed at its end": strings.Repeat("hunter2-", 8) + "\n", "not ASCII": strings.Repeat("hunter2ü", 8),
	} {
		c := theWorld(t).config()
		c.Tokens = []secret.Value{secret.New(token), secret.New(text)}
		_, err := api.New(c)
		if err == nil || !strings.Contains(err.Error(), "token 2 ") || !strings.Contains(err.Error(), "openssl rand -hex 32") {
			t.Errorf("%s: error = %v, want one that names the token by its place and says what to do", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

func TestNewSaysWhatItLacks(t *testing.T) {
	c := theWorld(t).config()
	c.Facts = nil
	if _, err := api.New(c); err == nil {
		t.Error("an API without facts was made")
	}
}

// TestWrongTokensAreLogged but seldom, and never told.
func TestWrongTokensAreLogged(t *testing.T) {
	var log bytes.Buffer
	at := now
	c := theWorld(t).config()
	c.Log, c.Now = slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return at }
	h, err := api.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		get(t, h, "/api/v1/pulls", "Authorization", "Bearer hunter2")
	}
	at = at.Add(time.Minute)
	get(t, h, "/api/v1/pulls", "Authorization", "Bearer hunter2")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "wrongSinceLast=1") || !strings.Contains(lines[1], "wrongSinceLast=5") || strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log is\n%s", &log)
	}
}

func TestEveryAnswerIsSafe(t *testing.T) {
	h := theWorld(t).handler(t)
	answers := map[string]*httptest.ResponseRecorder{
		"good":        get(t, h, "/api/v1/pulls"),
		"not found":   get(t, h, "/api/v1/nothing"),
		"no token":    get(t, h, "/api/v1/pulls", "Authorization", ""),
		"description": get(t, h, "/api/v1/openapi.yaml"),
		"wrong query": get(t, h, "/api/v1/pulls?limit=0"),
		"like a page": get(t, h, "/api/v1/pulls", "Accept", "text/html"),
	}
	for name, w := range answers {
		for header, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
			"Access-Control-Allow-Origin": "",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		if kind := w.Header().Get("Content-Type"); name != "description" && kind != "application/json" && kind != "application/problem+json" {
			t.Errorf("%s: is %q", name, kind)
		}
	}
}

func TestNothingElseIsServed(t *testing.T) {
	h := theWorld(t).handler(t)
	for target, want := range map[string]int{
		"/api/": http.StatusNotFound, "/api/v1/": http.StatusNotFound, "/api/v1/pulls/": http.StatusNotFound,
		"/api/v1//pulls": http.StatusNotFound, "/api/v1/../v1/pulls": http.StatusNotFound, "/api/v1/pulls/a%2F%2Fb/c/1": http.StatusNotFound,
		"/api/v1/docs": http.StatusNotFound, "/api/v1/schemas/Pull.json": http.StatusNotFound, "/docs": http.StatusNotFound,
		"/api/v1/openapi-3.0.json": http.StatusNotFound, "/api/v1/pulls?" + strings.Repeat("a", 5000): http.StatusRequestURITooLong,
		"/api/v1/" + strings.Repeat("a", 2000): http.StatusRequestURITooLong, "/api/v1/deadletters": http.StatusNotFound,
	} {
		w := get(t, h, target)
		if w.Code != want || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Location") != "" {
			t.Errorf("%.40s answers %d %v %s, want %d", target, w.Code, w.Header(), w.Body, want)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		r := httptest.NewRequest(method, "/api/v1/pulls/ops/apps/3", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s answers %d %v", method, w.Code, w.Header())
		}
	}
}

// TestQueriesAreRead as they are meant, or not at all.
func TestQueriesAreRead(t *testing.T) {
	h := theWorld(t).handler(t)
	for target, says := range map[string]string{
		"/api/v1/pulls?stat=clear":                                            "there is no such parameter; there are repo, state, limit, cursor",
		"/api/v1/clusters?limit=1":                                            "there is no such parameter; this resource has none",
		"/api/v1/pulls?limit=1&limit=2":                                       "is given more than once",
		"/api/v1/pulls?repo=":                                                 "is empty",
		"/api/v1/pulls?repo=%zz":                                              "cannot be read",
		"/api/v1/pulls?state=clear;limit=1":                                   "cannot be read",
		"/api/v1/pulls?limit=501":                                             "expected number <= 500",
		"/api/v1/pulls?limit=-1":                                              "expected number >= 1",
		"/api/v1/pulls?limit=many":                                            "invalid integer",
		"/api/v1/pulls?state=good":                                            `expected value to be one of \"clear, waiting, blocked, undecided, unevaluated\"`,
		"/api/v1/pulls?repo=ops/other":                                        "does not look after ops/other; it looks after ops/apps, ops/home-gitops",
		"/api/v1/pulls?cursor=nonsense":                                       "is no cursor of this list",
		"/api/v1/pulls?cursor=WyJwdWxscyIsIngiLCJ5Il0":                        "is no cursor of this list",
		"/api/v1/audit?number=12":                                             "give repo as well",
		"/api/v1/audit?number=0&repo=ops/apps":                                "expected number >= 1",
		"/api/v1/audit?kind=approved":                                         "expected value to be one of",
		"/api/v1/audit?since=2026-09-07":                                      "expected string to be RFC 3339 date-time",
		"/api/v1/audit?since=2026-09-07T00:00:00Z&until=2026-09-06T00:00:00Z": "is not after since",
		"/api/v1/audit?after=-1":                                              "invalid integer",
		"/api/v1/clusters/prod/objects?kind=Pod":                              "expected value to be one of",
	} {
		w := get(t, h, target)
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), says) || !strings.Contains(w.Body.String(), "errors says what is wrong where") {
			t.Errorf("%s answers %d %s, want 422 and %q", target, w.Code, w.Body, says)
		}
	}
}

func TestETag(t *testing.T) {
	w := theWorld(t)
	h := w.handler(t)
	first := get(t, h, "/api/v1/pulls")
	tag := first.Header().Get("ETag")
	for _, given := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if r := get(t, h, "/api/v1/pulls", "If-None-Match", given); r.Code != http.StatusNotModified || r.Body.Len() > 0 || r.Header().Get("ETag") != tag {
			t.Errorf("%s: answers %d with %d bytes", given, r.Code, r.Body.Len())
		}
	}
	if r := get(t, h, "/api/v1/pulls", "If-None-Match", tag, "Authorization", "Bearer wrong"); r.Code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", r.Code)
	}
	delete(w.pulls, pull.Ref{RepoID: apps.ID, Number: 5})
	if r := get(t, h, "/api/v1/pulls", "If-None-Match", tag); r.Code != http.StatusOK || r.Header().Get("ETag") == tag {
		t.Errorf("after a change: %d, %s", r.Code, r.Header().Get("ETag"))
	}
	if r := get(t, h, "/api/v1/nothing", "If-None-Match", "*"); r.Code != http.StatusNotFound || r.Header().Get("ETag") != "" {
		t.Errorf("of an error: %d, %s", r.Code, r.Header().Get("ETag"))
	}
}

// TestFailuresAreWhole: what fails half-way is told as a failure, and not as half.
func TestFailuresAreWhole(t *testing.T) {
	var log bytes.Buffer
	w := theWorld(t)
	c := w.config()
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	h, err := api.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w.onHealth = func(context.Context) { panic("a bug with hunter2 in it") }
	if r := get(t, h, "/api/v1/health"); r.Code != http.StatusInternalServerError || r.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(r.Body.String(), "hunter2") {
		t.Errorf("a panic: %d %s", r.Code, r.Body)
	}
	if !strings.Contains(log.String(), "a bug") {
		t.Errorf("the log does not say why: %s", &log)
	}
	ref := pull.Ref{RepoID: home.ID, Number: 12}
	st := w.pulls[ref]
	for range 200 {
		e := policy.Evidence{Label: "big", Value: strings.Repeat("x", 64<<10)}
		st.Verdict.Results = append(st.Verdict.Results, policy.Result{Checks: []policy.Check{{Evidence: []policy.Evidence{e, e, e, e, e, e}}}})
	}
	w.pulls[ref] = st
	r := get(t, h, "/api/v1/pulls/ops/home-gitops/12")
	if r.Code != http.StatusInternalServerError || !strings.Contains(r.Body.String(), "larger than 8 MiB") {
		t.Errorf("too large: %d %.200s", r.Code, r.Body)
	}
	w.onHealth, w.deadErr = nil, fmt.Errorf("no answer from nats://hunter2@nats.example.org")
	r = get(t, h, "/api/v1/health")
	if r.Code != http.StatusOK || !strings.Contains(r.Body.String(), `"deadLetters":{"problem":"They cannot be read now`) || strings.Contains(r.Body.String(), "hunter2") {
		t.Errorf("dead letters that cannot be read: %d %s", r.Code, r.Body)
	}
	w.health.Parts = []overview.Part{{Name: "bus", State: "splendid"}}
	if r := get(t, h, "/api/v1/health"); !strings.Contains(r.Body.String(), `"state":"unknown"`) {
		t.Errorf("a state that nobody knows: %s", r.Body)
	}
}

// TestManyAtOnce: with every place taken the next is told to come again, and with one
// free again it is answered.
func TestManyAtOnce(t *testing.T) {
	w := theWorld(t)
	arrived, leave := make(chan struct{}), make(chan struct{})
	w.onHealth = func(ctx context.Context) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a look at the health has no deadline")
		}
		arrived <- struct{}{}
		<-leave
	}
	h := w.handler(t)
	done := make(chan int)
	const places = 16
	for range places {
		go func() { done <- get(t, h, "/api/v1/health").Code }()
	}
	for range places {
		<-arrived
	}
	r := get(t, h, "/api/v1/pulls")
	if r.Code != http.StatusServiceUnavailable || r.Header().Get("Retry-After") != "1" {
		t.Errorf("one too many: %d %s", r.Code, r.Body)
	}
	if r := get(t, h, "/api/v1/pulls", "Authorization", "Bearer wrong"); r.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", r.Code)
	}
	close(leave)
	for range places {
		if code := <-done; code != http.StatusOK {
			t.Errorf("one of the first: %d", code)
		}
	}
	if r := get(t, h, "/api/v1/pulls"); r.Code != http.StatusOK {
		t.Errorf("afterwards: %d", r.Code)
	}
}

// TestBehindAProxy asks over a real connection, as a proxy does that took a path off.
func TestBehindAProxy(t *testing.T) {
	c := theWorld(t).config()
	c.URL = &url.URL{Scheme: "https", Host: "example.org", Path: "/signalbox/"}
	h, err := api.New(c)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/", h)
	inside := httptest.NewServer(mux)
	defer inside.Close()
	outside := httptest.NewServer(http.StripPrefix("/signalbox", mux))
	defer outside.Close()
	for _, address := range []string{inside.URL, outside.URL + "/signalbox"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, address+"/api/v1/pulls", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodGet} {
			r.Method = method
			w, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(w.Body)
			if err := w.Body.Close(); err != nil {
				t.Error(err)
			}
			if err != nil || w.StatusCode != http.StatusOK || (method == http.MethodHead) != (len(body) == 0) || w.ContentLength < 1000 {
				t.Errorf("%s %s: %d, %d bytes of %d, %v", method, address, w.StatusCode, len(body), w.ContentLength, err)
			}
		}
	}
	if servers := served(t, h)["servers"].([]any); servers[0].(map[string]any)["url"] != "https://example.org/signalbox" {
		t.Errorf("servers are %v", servers)
	}
}
