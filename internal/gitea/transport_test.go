package gitea_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/events"
	"signalbox/internal/gitea"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

const token = "0123456789abcdef0123456789abcdef01234567"

var (
	repo   = pull.Repo{ID: 1, Owner: "ops", Name: "home.gitops"}
	status = pull.Status{Context: "signalbox / preconditions (main)", State: "pending"}
	sha    = strings.Repeat("a", 40)
)

// newClient makes a client of a server that answers with a function.
func newClient(t *testing.T, handler http.HandlerFunc, change func(*gitea.Config)) (*gitea.Client, *prometheus.Registry) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := gitea.Config{URL: server.URL, Token: secret.New(token), Pause: time.Millisecond}
	if change != nil {
		change(&config)
	}
	registry := prometheus.NewRegistry()
	c, err := gitea.New(config, nil, registry)
	if err != nil {
		t.Fatal(err)
	}
	return c, registry
}

// script answers the calls one after the other, and the rest as the last.
type script struct {
	calls   atomic.Int64
	answers []http.HandlerFunc
}

func (s *script) serve(w http.ResponseWriter, r *http.Request) {
	n := min(int(s.calls.Add(1)), len(s.answers))
	s.answers[n-1](w, r)
}

func answer(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// cut breaks the connection, after a part of the body if there is one.
func cut(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if part != "" {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

func TestRepeats(t *testing.T) {
	version := answer(200, `{"version":"1.26.0"}`)
	created := answer(201, `{"id":7}`)
	get := func(ctx context.Context, c *gitea.Client) error {
		_, err := c.Version(ctx)
		return err
	}
	postStatus := func(ctx context.Context, c *gitea.Client) error {
		return c.PostStatus(ctx, repo, sha, status, "")
	}
	postComment := func(ctx context.Context, c *gitea.Client) error {
		_, err := c.CreateComment(ctx, repo, 1, "hello")
		return err
	}
	editComment := func(ctx context.Context, c *gitea.Client) error {
		_, err := c.EditComment(ctx, repo, 7, "hello")
		return err
	}
	busy, broken, notFound := answer(429, ""), answer(502, "<html>bad gateway</html>", "Content-Type", "text/html"), answer(404, `{"message":"not found"}`)
	tests := []struct {
		name    string
		call    func(context.Context, *gitea.Client) error
		answers []http.HandlerFunc
		calls   int64
		wantErr string
	}{
		{"get after 429, 502 and a cut", get, []http.HandlerFunc{busy, broken, cut(""), version}, 4, ""},
		{"get after a torn body", get, []http.HandlerFunc{cut(`{"vers`), version}, 2, ""},
		{"get until the attempts end", get, []http.HandlerFunc{broken}, 4, "read the version of Gitea: HTTP 502 Bad Gateway"},
		{"get while every connection is cut", get, []http.HandlerFunc{cut("")}, 4, "EOF"},
		{"get not found", get, []http.HandlerFunc{notFound}, 1, "HTTP 404 Not Found: not found"},
		{"get of what is not implemented", get, []http.HandlerFunc{answer(501, "")}, 1, "HTTP 501"},
		{"status after 500", postStatus, []http.HandlerFunc{answer(500, ""), created}, 2, ""},
		{"status after a cut", postStatus, []http.HandlerFunc{cut(""), created}, 2, ""},
		{"comment after 429", postComment, []http.HandlerFunc{busy, created}, 2, ""},
		{"comment after 500", postComment, []http.HandlerFunc{answer(500, "")}, 1, "post comment on ops/home.gitops#1: HTTP 500"},
		{"comment after 503", postComment, []http.HandlerFunc{answer(503, "")}, 1, "HTTP 503"},
		{"comment after a cut", postComment, []http.HandlerFunc{cut("")}, 1, "EOF"},
		{"edit after a cut", editComment, []http.HandlerFunc{cut(""), answer(200, `{"id":7}`)}, 2, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := script{answers: tt.answers}
			c, _ := newClient(t, s.serve, nil)
			err := tt.call(t.Context(), c)
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
			if got := s.calls.Load(); got != tt.calls {
				t.Errorf("%d calls, want %d", got, tt.calls)
			}
		})
	}
}

func TestRepeatsSendTheWholeBody(t *testing.T) {
	var bodies []string
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		if r.Header.Get("Authorization") != "token "+token || r.Header.Get("User-Agent") != "signalbox" {
			t.Errorf("headers %v", r.Header)
		}
		code := 201
		if len(bodies) == 1 {
			code = 503
		}
		answer(code, "{}")(w, r)
	}, nil)
	if err := c.PostStatus(t.Context(), repo, sha, status, "https://example.org/"); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] || !strings.Contains(bodies[0], `"state":"pending"`) {
		t.Errorf("bodies %q", bodies)
	}
}

func TestConnectionRefusedIsSafeToRepeat(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := gitea.New(gitea.Config{
		URL: server.URL, Token: secret.New(token), Pause: time.Millisecond, Attempts: 3,
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			return http.DefaultTransport.RoundTrip(r)
		}),
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateComment(t.Context(), repo, 1, "hello"); err == nil || calls.Load() != 3 {
		t.Errorf("error %v after %d calls, want one after 3", err, calls.Load())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRetryAfter(t *testing.T) {
	t.Run("short", func(t *testing.T) {
		var at []time.Time
		c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
			at = append(at, time.Now())
			if len(at) == 1 {
				answer(503, "", "Retry-After", "1")(w, r)
				return
			}
			answer(200, `{"version":"1"}`)(w, r)
		}, nil)
		if _, err := c.Version(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(at) != 2 || at[1].Sub(at[0]) < time.Second {
			t.Errorf("calls at %v, want two with a second between", at)
		}
	})
	for _, header := range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		t.Run(header, func(t *testing.T) {
			s := script{answers: []http.HandlerFunc{answer(429, "", "Retry-After", header)}}
			c, _ := newClient(t, s.serve, nil)
			_, err := c.Version(t.Context())
			wait, ok := events.Delay(err)
			if !ok || wait < 59*time.Minute || wait > time.Hour {
				t.Errorf("error %v asks to wait %v (%v), want an hour", err, wait, ok)
			}
			if s.calls.Load() != 1 {
				t.Errorf("%d calls, want 1", s.calls.Load())
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	c, registry := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}, func(config *gitea.Config) { config.Timeout, config.Attempts = 30*time.Millisecond, 2 })
	_, err := c.Version(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no complete answer within 30ms") {
		t.Errorf("error %v", err)
	}
	want := map[string]float64{
		"signalbox_gitea_requests_total error GET /version": 2,
		"signalbox_gitea_retries_total GET /version":        1,
	}
	if d := cmp.Diff(want, counters(t, registry)); d != "" {
		t.Errorf("counters (-want +got):\n%s", d)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := script{answers: []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
	}}}
	c, _ := newClient(t, s.serve, nil)
	_, err := c.Version(ctx)
	if !errors.Is(err, context.Canceled) || s.calls.Load() != 1 {
		t.Errorf("error %v after %d calls, want a cancellation after one", err, s.calls.Load())
	}
}

func TestErrors(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	tests := []struct {
		name   string
		answer http.HandlerFunc
		is     error
		want   string // The whole text, if not empty.
	}{
		{"404", answer(404, `{"message":"not found"}`), gitea.ErrNotFound, "read pull request ops/home.gitops#12: HTTP 404 Not Found: not found"},
		{"403", answer(403, `{"message":"token does not have at least one of required scope(s)"}`), gitea.ErrForbidden, ""},
		{"401", answer(401, `{"message":"invalid username, password or token"}`), gitea.ErrUnauthorized, ""},
		{"a page of a proxy", answer(404, "<html>"+long, "Content-Type", "text/html"), gitea.ErrNotFound, "read pull request ops/home.gitops#12: HTTP 404 Not Found"},
		{"an answer that repeats the token", answer(403, `{"message":"bad `+token+`"}`), gitea.ErrForbidden, "read pull request ops/home.gitops#12: HTTP 403 Forbidden: bad [redacted]"},
		{"an answer of several lines", answer(403, `{"message":"a\u0000\nb\t\u001b[31mc"}`), gitea.ErrForbidden, "read pull request ops/home.gitops#12: HTTP 403 Forbidden: a b [31mc"},
		{"200 with null", answer(200, "null"), nil, ""},
		{"200 with another kind of thing", answer(200, `{"version":"1.26.0"}`), nil, ""},
		{"200 with a page", answer(200, "<html>sign in</html>"), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := newClient(t, tt.answer, nil)
			_, err := c.Pull(t.Context(), repo, 12)
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || tt.want != "" && err.Error() != tt.want {
				t.Fatalf("error %v, want %v with text %q", err, tt.is, tt.want)
			}
			if !strings.HasPrefix(err.Error(), "read pull request ops/home.gitops#12: ") || len(err.Error()) > 400 {
				t.Errorf("error of %d bytes: %v", len(err.Error()), err)
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
	t.Run("a plain answer of endless length", func(t *testing.T) {
		c, _ := newClient(t, answer(404, long), nil)
		if _, err := c.Diff(t.Context(), repo, 12); err == nil || len(err.Error()) > 400 {
			t.Errorf("error %v", err)
		}
	})
}

func TestBounds(t *testing.T) {
	endless := func(line string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			// Long lines are read fast.
			chunk := []byte(line + strings.Repeat(" ", 1<<20) + "\n")
			for range 70 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	c, _ := newClient(t, endless("diff --git a/x b/x\n"), nil)
	if _, err := c.Diff(t.Context(), repo, 1); !errors.Is(err, gitea.ErrTooLarge) {
		t.Errorf("diff: error %v, want ErrTooLarge", err)
	}
	c, _ = newClient(t, answer(200, "[", "Content-Length", fmt.Sprint(1<<27)), nil)
	if _, err := c.Comments(t.Context(), repo, 1); !errors.Is(err, gitea.ErrTooLarge) {
		t.Errorf("comments: error %v, want ErrTooLarge", err)
	}
	c, _ = newClient(t, answer(200, fmt.Sprintf(`{"type":"file","size":%d,"encoding":"base64","content":%q}`, 1<<21, strings.Repeat("A", 3<<20))), nil)
	if _, err := c.RawFile(t.Context(), repo, "main", "x"); !errors.Is(err, gitea.ErrTooLarge) {
		t.Errorf("file: error %v, want ErrTooLarge", err)
	}
}

func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked %s with %v", r.URL, r.Header)
	}))
	defer other.Close()
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusMovedPermanently)
	}, nil)
	if _, err := c.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "redirect to another server") {
		t.Errorf("error %v", err)
	}

	var methods []string
	c, _ = newClient(t, func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method)
		if len(methods) == 1 {
			http.Redirect(w, r, "/git"+r.URL.Path, http.StatusMovedPermanently)
			return
		}
		answer(200, `{"id":7}`)(w, r)
	}, nil)
	if _, err := c.EditComment(t.Context(), repo, 7, "x"); !errors.Is(err, gitea.ErrMoved) || len(methods) != 1 {
		t.Errorf("error %v after %v, want ErrMoved after one call", err, methods)
	}
}

func TestMetrics(t *testing.T) {
	s := script{answers: []http.HandlerFunc{answer(500, ""), answer(200, "[]", "X-Total-Count", "0")}}
	c, registry := newClient(t, s.serve, nil)
	if _, err := c.FilesAt(t.Context(), repo, 12, ""); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"signalbox_gitea_requests_total 500 GET /repos/:owner/:repo/pulls/:n/files": 1,
		"signalbox_gitea_requests_total 200 GET /repos/:owner/:repo/pulls/:n/files": 1,
		"signalbox_gitea_retries_total GET /repos/:owner/:repo/pulls/:n/files":      1,
	}
	if d := cmp.Diff(want, counters(t, registry)); d != "" {
		t.Errorf("counters (-want +got):\n%s", d)
	}
}

func TestNew(t *testing.T) {
	good := gitea.Config{URL: "https://example.org/git/", Token: secret.New(token)}
	if _, err := gitea.New(good, nil, nil); err != nil {
		t.Errorf("a client of a server that is not there: %v", err)
	}
	for name, change := range map[string]func(*gitea.Config){
		"no URL":         func(c *gitea.Config) { c.URL = "" },
		"no scheme":      func(c *gitea.Config) { c.URL = "example.org/git" },
		"another scheme": func(c *gitea.Config) { c.URL = "ssh://example.org" },
		"a password":     func(c *gitea.Config) { c.URL = "https://bot:hunter2@example.org" },
		"a query":        func(c *gitea.Config) { c.URL = "https://example.org/?x=1" },
		"control bytes":  func(c *gitea.Config) { c.URL = "https://bot:hunter2@exa\x00mple.org" },
		"no token":       func(c *gitea.Config) { c.Token = secret.New("") },
	} {
		config := good
		change(&config)
		if _, err := gitea.New(config, nil, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	registry := prometheus.NewRegistry()
	if _, err := gitea.New(good, nil, registry); err != nil {
		t.Fatal(err)
	}
	if _, err := gitea.New(good, nil, registry); err == nil {
		t.Error("two clients share a registry")
	}
}
