package realserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTap(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.RequestURI())
	}))
	defer server.Close()
	tap, err := NewTap(server.URL + "/git/")
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get(tap.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s%s", resp.StatusCode, resp.Header.Get("Retry-After"), body)
	}

	answers := []string{get("api?page=2")}
	tap.Intercept(func(r *http.Request) *Answer {
		if r.URL.Path == "/git/fine" {
			return nil
		}
		return &Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "7"}, Body: " slowly"}
	})
	answers = append(answers, get("a%2Fb"), get("fine"))
	tap.Intercept(nil)
	answers = append(answers, get("a%2Fb"))
	want := []string{"200 GET /git/api?page=2", "429 7 slowly", "200 GET /git/fine", "200 GET /git/a%2Fb"}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}

	var seen []string
	for _, r := range tap.Requests() {
		seen = append(seen, r.String())
	}
	want = []string{"GET /git/api?page=2: 200", "GET /git/a%2Fb: 429", "GET /git/fine: 200", "GET /git/a%2Fb: 200"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	tap.Reset()
	if left := tap.Requests(); len(left) != 0 {
		t.Errorf("after Reset there are %v", left)
	}
}
