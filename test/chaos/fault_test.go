//go:build e2e

package chaos

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"signalbox/test/realserver"
)

// trouble answers for a Gitea that is not well: some requests fail before anything is
// done, and some after it.
type trouble struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newTrouble(seed uint64) *trouble { return &trouble{random: rand.New(rand.NewPCG(seed, 2))} }

func (x *trouble) answer(r *http.Request) *realserver.Answer {
	x.mu.Lock()
	n, wait := x.random.IntN(100), time.Duration(x.random.IntN(1500))*time.Millisecond
	x.mu.Unlock()
	switch {
	case n < 12:
		return &realserver.Answer{Status: http.StatusServiceUnavailable, Body: `{"message":"overloaded"}`, Wait: wait}
	case n < 16:
		return &realserver.Answer{Status: http.StatusInternalServerError, Body: "no JSON"}
	case n < 18:
		return &realserver.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "1"}}
	case n < 30 && r.Method != http.MethodGet:
		carryOut(r)
		return &realserver.Answer{Status: http.StatusBadGateway, Body: "it was done, and nobody tells", Wait: wait}
	}
	return nil
}

// carryOut does what is asked for, and forgets the answer.
func carryOut(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	target := strings.TrimSuffix(world.Gitea.URL(), "/") + r.URL.RequestURI()
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, target, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// fault breaks something, or mends it, and says what.
func (s *stage) fault() string {
	switch s.random.IntN(14) {
	case 0, 1, 2:
		if !s.alive {
			return s.revive()
		}
		s.bot.Kill()
		s.alive = false
		return "signalbox is killed"
	case 3:
		s.tap.Intercept(s.trouble.answer)
		return "Gitea is in trouble"
	case 4:
		s.tap.Intercept(nil)
		return "Gitea is well again"
	case 5:
		s.gitea.Delay(time.Duration(20+s.random.IntN(120)) * time.Millisecond)
		return "Gitea is slow"
	case 6:
		s.gitea.Cut()
		return "the connections to Gitea are cut"
	case 7:
		s.gitea.Refuse()
		return "Gitea is not reached"
	case 8:
		check(s.t, s.gitea.Pass())
		return "Gitea is reached again, and at once"
	case 9:
		s.kube.Refuse()
		return "the cluster is not reached"
	case 10:
		s.kube.Hang()
		return "the cluster says nothing"
	case 11:
		s.kube.Cut()
		return "the connections to the cluster are cut"
	case 12:
		check(s.t, s.kube.Pass())
		return "the cluster is reached again"
	default:
		if s.random.IntN(3) > 0 {
			rough := s.random.IntN(4) > 0
			s.relay.Rough(rough)
			if rough {
				return "webhooks go wrong"
			}
			return "webhooks go right"
		}
		ctx, cancel := s.patient()
		defer cancel()
		world.Kube.Kill()
		check(s.t, world.Kube.Restart(ctx))
		return "the API server was killed and started"
	}
}

// revive starts signalbox again. Where Gitea is not reached it may need to wait for it.
func (s *stage) revive() string {
	ctx, cancel := s.patient()
	defer cancel()
	check(s.t, s.bot.Restart(ctx))
	s.alive = true
	return "signalbox is started"
}

// calm ends all that is broken.
func (s *stage) calm() {
	s.tap.Intercept(nil)
	check(s.t, s.gitea.Pass())
	check(s.t, s.kube.Pass())
	s.relay.Rough(false)
	if !s.alive {
		s.revive()
	}
	s.did("calm")
}

// socketTransport reaches a server on a Unix socket.
func socketTransport(path string) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
}
