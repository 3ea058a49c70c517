package web_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/pull"
	"signalbox/internal/web"
	"signalbox/internal/web/webtest"
)

// stream is a client that follows.
type stream struct {
	mu      sync.Mutex
	header  http.Header
	code    int
	written bytes.Buffer
	broken  bool
	leave   context.CancelFunc
	done    chan struct{}
}

func (s *stream) Header() http.Header  { return s.header }
func (s *stream) WriteHeader(code int) { s.code = code }
func (s *stream) Flush()               {}
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return 0, errors.New("the client is too slow")
	}
	return s.written.Write(b)
}

// changes is how often it was told that something changed.
func (s *stream) changes() int { return s.count("event: changed\ndata: \n\n") }

func (s *stream) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.written.String(), text)
}

func (s *stream) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// open follows as a browser, in a bubble.
func open(t *testing.T, b *webtest.Browser, path string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &stream{header: http.Header{}, leave: cancel, done: make(chan struct{})}
	r := httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx)
	for _, c := range b.Cookies {
		r.AddCookie(c)
	}
	go func() {
		defer close(s.done)
		b.Handler.ServeHTTP(s, r)
	}()
	synctest.Wait()
	return s
}

// liveWorld is a world in a bubble, by its clock.
func liveWorld() *webtest.World {
	w := webtest.New()
	w.Clock = time.Now
	return w
}

// pass lets time pass in a bubble, and what is due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestLive(t *testing.T) {
	home, apps, secret := pull.Ref{RepoID: 7, Number: 12}, pull.Ref{RepoID: 8, Number: 3}, pull.Ref{RepoID: 9, Number: 1}
	tests := []struct {
		name, path string
		as         pull.Person
		change     web.Change
		want       int
	}{
		{"everything, of what is seen", "/live?all", webtest.Alice, web.Change{Ref: home}, 1},
		{"everything, of what is not seen", "/live?all", webtest.Alice, web.Change{Ref: secret}, 0},
		{"everything, to an operator", "/live?all", webtest.Root, web.Change{Ref: secret}, 1},
		{"everything, of a cluster", "/live?all", webtest.Alice, web.Change{Cluster: "prod"}, 1},
		{"everything, of a cluster that is not seen", "/live?all", webtest.Bob, web.Change{Cluster: "prod"}, 0},
		{"everything, of something else", "/live?all", webtest.Bob, web.Change{}, 0},
		{"a pull request", "/live?ref=7.12", webtest.Bob, web.Change{Ref: home}, 1},
		{"another pull request", "/live?ref=7.12", webtest.Alice, web.Change{Ref: apps}, 0},
		{"a cluster", "/live?cluster=prod", webtest.Alice, web.Change{Cluster: "prod"}, 1},
		{"another cluster", "/live?cluster=prod", webtest.Alice, web.Change{Cluster: "test"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := liveWorld()
				s := open(t, w.Browser(t, tt.as), tt.path)
				if got := s.header.Get("Content-Type"); got != "text/event-stream" || s.header.Get("Content-Encoding") != "" {
					t.Fatalf("answered with %v", s.header)
				}
				w.Changed(tt.change)
				synctest.Wait()
				if got := s.changes(); got != tt.want {
					t.Errorf("told %d changes, want %d", got, tt.want)
				}
				s.leave()
				<-s.done
				if w.Followers() != 0 {
					t.Error("who left is followed for")
				}
			})
		})
	}
}

// TestLiveGathers: many changes are told at most once a second, and none is lost.
func TestLiveGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := liveWorld()
		s := open(t, w.Browser(t, webtest.Alice), "/live?all")
		for n := range 5000 {
			w.Changed(web.Change{Ref: pull.Ref{RepoID: 7, Number: int64(n)}})
		}
		synctest.Wait()
		first := s.changes()
		w.Changed(web.Change{Ref: pull.Ref{RepoID: 7, Number: 12}})
		pass(999 * time.Millisecond)
		if got := s.changes(); first != 1 || got != 1 {
			t.Errorf("told %d at once and %d within a second, want 1", first, got)
		}
		pass(2 * time.Millisecond)
		if got := s.changes(); got != 2 {
			t.Errorf("told %d after a second, want 2", got)
		}
		s.leave()
		<-s.done
	})
}

func TestLiveBeatsAndEnds(t *testing.T) {
	ends := map[string]func(*webtest.World, *stream, *web.Server, *webtest.Browser){
		"the client leaves": func(_ *webtest.World, s *stream, _ *web.Server, _ *webtest.Browser) { s.leave() },
		"signalbox ends":    func(_ *webtest.World, _ *stream, server *web.Server, _ *webtest.Browser) { server.Close() },
		"the client is slow": func(_ *webtest.World, s *stream, _ *web.Server, _ *webtest.Browser) {
			s.mu.Lock()
			s.broken = true
			s.mu.Unlock()
			pass(20 * time.Second)
		},
		"the session is over": func(*webtest.World, *stream, *web.Server, *webtest.Browser) { pass(12 * time.Hour) },
		"the account is gone": func(w *webtest.World, _ *stream, _ *web.Server, _ *webtest.Browser) {
			w.SetPerson(1, "")
			w.Changed(web.Change{Cluster: "prod"})
		},
		"they sign out": func(w *webtest.World, _ *stream, _ *web.Server, b *webtest.Browser) {
			b.Post("/sign-out", nil)
			w.Changed(web.Change{Cluster: "prod"})
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := liveWorld()
				server, err := web.New(w.Config())
				if err != nil {
					t.Fatal(err)
				}
				defer server.Close()
				b := &webtest.Browser{Handler: server.Handler(), Cookies: []*http.Cookie{w.SignIn(t, w.Config().URL, webtest.Alice)}}
				s := open(t, b, "/live?all")
				pass(41 * time.Second)
				if got := s.count(": beat\n\n"); got != 2 || s.over() {
					t.Errorf("%d beats in 41 seconds, want 2", got)
				}
				end(w, s, server, b)
				synctest.Wait()
				if !s.over() {
					t.Error("it goes on")
				}
				s.leave()
			})
		})
	}
}

// TestLiveRightsAreTaken: who may not see a repository any more hears no more of it.
func TestLiveRightsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := liveWorld()
		s := open(t, w.Browser(t, webtest.Bob), "/live?ref=7.12")
		w.SetPermission("bob", webtest.Home, pull.PermissionNone)
		pass(time.Minute)
		w.Changed(web.Change{Ref: pull.Ref{RepoID: 7, Number: 12}})
		synctest.Wait()
		if got := s.changes(); got != 0 {
			t.Errorf("told %d changes", got)
		}
		s.leave()
		<-s.done
	})
}

func TestLiveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := liveWorld()
		c := w.Config()
		c.Public = true
		b := w.BrowserOf(t, c, webtest.Alice)
		var all []*stream
		for range 20 {
			all = append(all, open(t, b, "/live?all"))
		}
		if got := b.Get("/live?all"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
			t.Errorf("the twenty-first of a session: %d", got.Code)
		}
		again := &webtest.Browser{Handler: b.Handler, Cookies: []*http.Cookie{w.SignInAgain(t, c.URL, webtest.Alice)}}
		if got := again.Get("/live?all"); got.Code != http.StatusTooManyRequests {
			t.Errorf("the twenty-first of a person: %d", got.Code)
		}
		nobody := &webtest.Browser{Handler: b.Handler}
		for range 700 {
			all = append(all, open(t, nobody, "/live?all"))
		}
		if got := nobody.Get("/live?all"); got.Code != http.StatusServiceUnavailable {
			t.Errorf("the seven hundred and first of nobody: %d", got.Code)
		}
		bob := &webtest.Browser{Handler: b.Handler, Cookies: []*http.Cookie{w.SignIn(t, c.URL, webtest.Bob)}}
		s := open(t, bob, "/live?all")
		if s.over() {
			t.Errorf("bob after those of nobody: %d", s.code)
		}
		all = append(all, s)
		for _, s := range all {
			s.leave()
			<-s.done
		}
		s = open(t, b, "/live?all")
		if s.over() {
			t.Errorf("after all left: %d", s.code)
		}
		s.leave()
		<-s.done
	})
}

func TestLiveIsRefused(t *testing.T) {
	w := webtest.New()
	for path, want := range map[string]int{
		"/live": 404, "/live?ref=x": 404, "/live?ref=9.1": 404, "/live?ref=7": 404, "/live?cluster=dev": 404,
	} {
		if got := w.Browser(t, webtest.Alice).Get(path); got.Code != want {
			t.Errorf("%s: %d, want %d", path, got.Code, want)
		}
	}
	if got := w.Browser(t, webtest.Bob).Get("/live?cluster=prod"); got.Code != http.StatusNotFound {
		t.Errorf("a cluster for a reader: %d", got.Code)
	}
	if got := w.Browser(t, pull.Person{}).Get("/live?all"); got.Code != http.StatusUnauthorized {
		t.Errorf("to nobody: %d", got.Code)
	}
}
