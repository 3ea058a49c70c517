package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Relay stands between Gitea and signalbox and loses, doubles and delays webhooks while
// it is rough. Close ends it.
type Relay struct {
	// URL is where Gitea delivers to.
	URL string

	server *http.Server
	mu     sync.Mutex
	target string
	random *rand.Rand
	rough  bool
	lost   int
	closed chan struct{}
	work   sync.WaitGroup
}

// maxDelivery bounds a delivery, in bytes.
const maxDelivery = 8 << 20

// NewRelay starts a relay that goes straight on.
func NewRelay(seed uint64) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen in front of signalbox: %w", err)
	}
	r := &Relay{URL: "http://" + l.Addr().String() + "/", random: rand.New(rand.NewPCG(seed, 1)), closed: make(chan struct{})}
	r.server = &http.Server{Handler: http.HandlerFunc(r.serve), ReadHeaderTimeout: 10 * time.Second}
	r.work.Go(func() { _ = r.server.Serve(l) })
	return r, nil
}

// Aim says where signalbox is, as its address with a slash at the end.
func (r *Relay) Aim(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
}

// Rough says whether webhooks go wrong.
func (r *Relay) Rough(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rough = yes
}

// Lost is how many webhooks were lost so far.
func (r *Relay) Lost() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Close ends the relay; what is late is lost.
func (r *Relay) Close() {
	close(r.closed)
	_ = r.server.Close()
	r.work.Wait()
}

func (r *Relay) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxDelivery))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	send := func() int { return r.forward(req, body) }
	times, late := r.fate()
	switch {
	case times == 0:
	case late > 0:
		for range times {
			r.later(late, func() { send() })
		}
	default:
		for range times - 1 {
			send()
		}
		w.WriteHeader(send())
		return
	}
	// Gitea hears that all is well.
	w.WriteHeader(http.StatusNoContent)
}

// fate is how often a delivery arrives, and how late.
func (r *Relay) fate() (times int, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.rough {
		return 1, 0
	}
	switch n := r.random.IntN(10); {
	case n < 3:
		r.lost++
		return 0, 0
	case n < 5:
		return 2, 0
	case n < 8:
		return 1 + r.random.IntN(2), time.Duration(r.random.IntN(3000)) * time.Millisecond
	}
	return 1, 0
}

func (r *Relay) later(d time.Duration, f func()) {
	r.work.Go(func() {
		select {
		case <-time.After(d):
			f()
		case <-r.closed:
		}
	})
}

// forward delivers, and returns the answer, which is that of a gateway if there is none.
func (r *Relay) forward(req *http.Request, body []byte) int {
	r.mu.Lock()
	target := r.target
	r.mu.Unlock()
	// What is late outlives the request that it came by.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), 10*time.Second)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, req.Method, target+req.URL.Path[1:], bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway
	}
	out.Header = req.Header.Clone()
	resp, err := http.DefaultClient.Do(out)
	if err != nil {
		return http.StatusBadGateway
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
