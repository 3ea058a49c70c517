package realserver

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Tap is a reverse proxy that remembers the requests that pass through it and can answer some itself: for
// counting calls, and for the answers that a healthy server does not give. Its methods may be called from
// several goroutines.
type Tap struct {
	server *http.Server
	port   port
	url    string

	mu     sync.Mutex
	seen   []Request
	answer func(*http.Request) *Answer
	work   sync.WaitGroup
}

// Request is a request that a [Tap] has answered.
type Request struct {
	Method string
	Path   string // Below the server's root, with the query.
	Status int    // 0 if the client went away.
	At     time.Time
	Took   time.Duration
}

func (r Request) String() string { return fmt.Sprintf("%s %s: %d", r.Method, r.Path, r.Status) }

// Answer is what a [Tap] answers instead of the server.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	// Wait holds the answer back, or until the client goes away.
	Wait time.Duration
}

// NewTap starts a tap in front of an HTTP server, of which target is the URL as a client would use it.
// Close ends it.
func NewTap(target string) (*Tap, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("listen in front of %s: %w", target, err)
	}
	p, err := reservePort()
	if err != nil {
		return nil, err
	}
	l, err := p.listen()
	if err != nil {
		p.release()
		return nil, fmt.Errorf("listen in front of %s: %w", target, err)
	}
	root := &url.URL{Scheme: u.Scheme, Host: u.Host}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(root) },
		// A client or a server that goes away is what these tests are about, not something to complain of.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	t := &Tap{port: p, url: "http://" + p.addr() + u.RequestURI()}
	t.server = &http.Server{Handler: t.handler(forward)}
	t.work.Go(func() { _ = t.server.Serve(l) })
	return t, nil
}

// URL returns the address that stands for the target.
func (t *Tap) URL() string { return t.url }

// Close ends the tap and every connection through it.
func (t *Tap) Close() {
	_ = t.server.Close()
	t.work.Wait()
	t.port.release()
}

// Requests returns the requests answered since the last Reset, in the order of their ends.
func (t *Tap) Requests() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.seen)
}

// Reset forgets the requests.
func (t *Tap) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = nil
}

// Intercept lets answer decide about each request from now on: nil forwards it to the server. It must be
// safe for concurrent use and must not read the body. A nil function forwards everything.
func (t *Tap) Intercept(answer func(*http.Request) *Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer = answer
}

func (t *Tap) handler(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := Request{Method: r.Method, Path: r.URL.RequestURI(), At: time.Now()}
		status := &statusWriter{ResponseWriter: w}
		defer func() {
			seen.Status, seen.Took = status.status, time.Since(seen.At)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.seen = append(t.seen, seen)
		}()
		t.mu.Lock()
		answer := t.answer
		t.mu.Unlock()
		if answer != nil {
			if a := answer(r); a != nil {
				a.write(r.Context(), status)
				return
			}
		}
		forward.ServeHTTP(status, r)
	})
}

func (a *Answer) write(ctx context.Context, w http.ResponseWriter) {
	select {
	case <-time.After(a.Wait):
	case <-ctx.Done():
		return
	}
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the reverse proxy flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
