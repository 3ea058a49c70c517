package matrix

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// gate stands between signalbox and a homeserver.
type gate struct {
	server *httptest.Server
	pass   http.Handler // The homeserver.

	mu    sync.Mutex
	fault func(http.ResponseWriter, *http.Request) bool
	seen  []string // Method and path of each request.
}

func newGate(t *testing.T, homeserver http.Handler) *gate {
	t.Helper()
	g := &gate{pass: homeserver}
	g.server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

// interfere lets a function answer in the place of the homeserver: those requests of
// which it returns true. Nil ends that.
func (g *gate) interfere(f func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = f
}

// ServeHTTP implements [http.Handler].
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.seen = append(g.seen, r.Method+" "+r.URL.Path)
	fault := g.fault
	g.mu.Unlock()
	if fault == nil || !fault(w, r) {
		g.pass.ServeHTTP(w, r)
	}
}

// refuse answers with JSON.
func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // Nobody is left to hear that it could not be.
}

// hangUp ends the connection of a request without an answer.
func hangUp(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}
