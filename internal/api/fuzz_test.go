package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzQuery: whatever a query says, the answer is JSON, blames the request and not the
// server, shows no token, and is none without one.
func FuzzQuery(f *testing.F) {
	paths := []string{
		"/api/v1/pulls", "/api/v1/audit", "/api/v1/clusters", "/api/v1/clusters/prod/objects", "/api/v1/digests", "/api/v1/trend", "/api/v1/health",
	}
	for i, query := range []string{
		"limit=1&cursor=WyJwdWxscyIsIjEiXQ", "since=2026-09-07T03:00:00Z&person=@alice&order=oldest", "x=%zz", "state=ready,unknown&kind=Kustomization",
		"cursor=bnVsbA&name=morning", "since=now", "", "repo=ops/home-gitops&state=waiting", "repo=ops/home-gitops&number=12&kind=approve,hold&after=3",
		"limit=-1&limit=2", "number=99999999999999999999", "limit=0x1&repo=", "cursor=W10",
	} {
		f.Add(uint8(i), query)
	}
	h := theWorld(f).handler(f)
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		path := paths[int(which)%len(paths)]
		ask := func(header http.Header) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL = &url.URL{Path: path, RawQuery: query}
			r.Header = header
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		w := ask(http.Header{"Authorization": {"Bearer " + token}})
		if w.Code >= 500 || w.Code == http.StatusOK && !json.Valid(w.Body.Bytes()) || w.Code == http.StatusUnauthorized {
			t.Errorf("%s?%s: %d %s", path, query, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), token) {
			t.Errorf("%s?%s shows the token", path, query)
		}
		if w := ask(http.Header{}); w.Code != http.StatusUnauthorized {
			t.Errorf("%s?%s without a token: %d", path, query, w.Code)
		}
	})
}
