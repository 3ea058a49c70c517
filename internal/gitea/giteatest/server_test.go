package giteatest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// setup starts a server with alice and a repository of hers.
func setup(t *testing.T, options giteatest.Options) (s *giteatest.Server, repo pull.Repo, token string) {
	t.Helper()
	s, err := giteatest.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	_, token, err = s.CreateUser(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	repo, err = s.CreateRepo(t.Context(), "alice", "home", map[string]string{"README.md": "Home\n"})
	if err != nil {
		t.Fatal(err)
	}
	return s, repo, token
}

// call sends a request with a token and returns code and body.
func call(t *testing.T, s *giteatest.Server, token, method, path, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"api/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestCallsAreCountedByRoute(t *testing.T) {
	s, _, token := setup(t, giteatest.Options{SubPath: "/git"})
	for _, path := range []string{
		"/version", "/repos/alice/home", "/repos/alice/home/pulls/1", "/repos/alice/home/pulls/1.diff",
		"/repos/alice/home/issues/1/timeline", "/repos/alice/home/issues/comments/1", "/none",
	} {
		if _, _, err := call(t, s, token, "GET", path, ""); err != nil {
			t.Error(err)
		}
	}
	want := map[string]int{
		"GET /version": 1, "GET /repos/{owner}/{repo}": 1, "GET /repos/{owner}/{repo}/pulls/{index}": 1,
		"GET /repos/{owner}/{repo}/pulls/{index}.diff": 1, "GET /repos/{owner}/{repo}/issues/{index}/timeline": 1,
		"GET /repos/{owner}/{repo}/issues/comments/{id}": 1, "GET /git/api/v1/none": 1,
	}
	if d := cmp.Diff(want, s.Calls()); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if s.TotalCalls() != 7 {
		t.Errorf("%d calls, want 7", s.TotalCalls())
	}
	s.ResetCalls()
	if s.TotalCalls() != 0 {
		t.Error("the counters stand after a reset")
	}
}

func TestFail(t *testing.T) {
	s, _, token := setup(t, giteatest.Options{})
	s.Fail(func(r *http.Request) *giteatest.Response {
		switch {
		case r.Method == http.MethodPost:
			return &giteatest.Response{Code: 503, Header: http.Header{"Retry-After": {"1"}}, Body: "busy"}
		case strings.HasSuffix(r.URL.Path, "/user"):
			return &giteatest.Response{Code: 200, Body: `{"id":`, Break: true}
		}
		return nil
	})
	if code, body, err := call(t, s, token, "POST", "/repos/alice/home/hooks", "{}"); code != 503 || body != "busy" || err != nil {
		t.Errorf("answer %d %q, error %v", code, body, err)
	}
	if _, _, err := call(t, s, token, "GET", "/user", ""); err == nil {
		t.Error("a broken answer was read to its end")
	}
	if code, _, err := call(t, s, token, "GET", "/repos/alice/home", ""); code != 200 || err != nil {
		t.Errorf("answer %d, error %v, of what should not fail", code, err)
	}
	s.Fail(nil)
	if code, _, err := call(t, s, token, "GET", "/user", ""); code != 200 || err != nil {
		t.Errorf("answer %d, error %v, after the failures", code, err)
	}
}

func TestDownAndSlow(t *testing.T) {
	s, _, token := setup(t, giteatest.Options{})
	s.Down(true)
	if _, _, err := call(t, s, token, "GET", "/user", ""); err == nil {
		t.Error("a server that is down answered")
	}
	s.Down(false)
	const slow = 50 * time.Millisecond
	s.Slow(slow)
	start := time.Now()
	if code, _, err := call(t, s, token, "GET", "/user", ""); code != 200 || err != nil || time.Since(start) < slow {
		t.Errorf("answer %d, error %v, after %v", code, err, time.Since(start))
	}
	s.Slow(time.Hour)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = call(t, s, token, "GET", "/user", "")
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.TotalCalls() < 3 {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the call does not arrive")
		}
	}
	s.Close()
	<-done
}

// receiver keeps what a webhook delivers.
type receiver struct {
	mu     sync.Mutex
	header []http.Header
	bodies []string
	answer int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header = append(r.header, req.Header)
	r.bodies = append(r.bodies, string(body))
	w.WriteHeader(r.answer)
}

// hook registers a webhook for an address.
func hook(t *testing.T, s *giteatest.Server, token, address, events string) {
	t.Helper()
	code, body, err := call(t, s, token, "POST", "/repos/alice/home/hooks",
		`{"type":"gitea","active":true,"events":[`+events+`],"config":{"url":"`+address+`","content_type":"json","secret":"s"}}`)
	if code != 201 || err != nil {
		t.Fatalf("answer %d %s, error %v", code, body, err)
	}
}

func TestWebhooksAreDeliveredOnceWhateverTheAnswer(t *testing.T) {
	s, repo, token := setup(t, giteatest.Options{})
	good, bad := &receiver{answer: 204}, &receiver{answer: 500}
	for _, r := range []*receiver{good, bad} {
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		hook(t, s, token, server.URL, `"push"`)
	}
	hook(t, s, token, "http://127.0.0.1:9/nobody", `"push"`)
	hook(t, s, token, "http://127.0.0.1:9/other", `"status"`)
	for _, file := range []string{"a", "b"} {
		if _, err := s.Push(t.Context(), repo, giteatest.Push{As: "alice", Branch: "main", Files: map[string]string{file: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*receiver{good, bad} {
		if len(r.bodies) != 2 {
			t.Fatalf("%d deliveries, want 2", len(r.bodies))
		}
		if r.header[0].Get("X-Gitea-Delivery") == r.header[1].Get("X-Gitea-Delivery") {
			t.Error("two deliveries have one id")
		}
		var push struct {
			Ref    string `json:"ref"`
			Before string `json:"before"`
			After  string `json:"after"`
		}
		if err := json.Unmarshal([]byte(r.bodies[1]), &push); err != nil || push.Ref != "refs/heads/main" || push.Before == push.After {
			t.Errorf("push %+v, error %v", push, err)
		}
	}
}

func TestSettleAndCloseDoNotWaitForever(t *testing.T) {
	s, repo, token := setup(t, giteatest.Options{})
	arrived, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	hook(t, s, token, server.URL, `"push"`)
	if _, err := s.Push(t.Context(), repo, giteatest.Push{As: "alice", Branch: "main", Files: map[string]string{"a": "x"}}); err != nil {
		t.Fatal(err)
	}
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v while a webhook is on its way", err)
	}
	s.Close()
	s.Close()
}

func TestPeopleMakeMistakes(t *testing.T) {
	s, repo, _ := setup(t, giteatest.Options{})
	ctx := t.Context()
	for name, err := range map[string]error{
		"an account twice":                 third(s.CreateUser(ctx, "Alice")),
		"a repository twice":               second(s.CreateRepo(ctx, "alice", "Home", nil)),
		"a repository of nobody":           second(s.CreateRepo(ctx, "nobody", "x", nil)),
		"a push by nobody":                 second(s.Push(ctx, repo, giteatest.Push{As: "nobody", Branch: "main"})),
		"a branch from nowhere":            second(s.Push(ctx, repo, giteatest.Push{As: "alice", Branch: "x", From: "none"})),
		"a start for an existing branch":   second(s.Push(ctx, repo, giteatest.Push{As: "alice", Branch: "main", From: "main"})),
		"the rename of a missing file":     second(s.Push(ctx, repo, giteatest.Push{As: "alice", Branch: "main", Rename: map[string]string{"x": "y"}})),
		"a pull request from nowhere":      second(s.OpenPull(ctx, repo, giteatest.NewPull{As: "alice", Head: "none"})),
		"a review of no pull request":      second(s.Review(ctx, repo, 1, "alice", giteatest.Approve, "")),
		"a comment on no pull request":     second(s.Comment(ctx, repo, 1, "alice", "x")),
		"a status on an unknown commit":    s.SetStatus(ctx, repo, "none", "alice", pull.Status{Context: "x"}),
		"a team of a person":               s.SetTeam(ctx, "alice", "x"),
		"a missing repository":             second(s.Push(ctx, pull.Repo{ID: 99}, giteatest.Push{As: "alice", Branch: "main"})),
		"the deletion of a missing branch": s.DeleteBranch(ctx, repo, "none"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }
