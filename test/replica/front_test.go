//go:build e2e

package replica

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// giteaPatience is how long Gitea waits for the answer to a delivery.
const giteaPatience = 5 * time.Second

// front stands where a load balancer does: it takes the deliveries of Gitea and gives each to a replica by
// chance, of those that say that they are ready. To be worse than a load balancer, it gives many to a
// second one too.
type front struct {
	server *httptest.Server
	client *http.Client
	work   sync.WaitGroup
	// end is closed when the test ends.
	end chan struct{}

	mu       sync.Mutex
	chance   *rand.Rand
	replicas []*replica
	away     map[*replica]bool
	sent     []*sent
}

// sent is one delivery with what became of it.
type sent struct {
	header http.Header
	body   []byte
	id     string
	at     time.Time
	// number is the pull request that it is about, 0 for none.
	number int64
	// codes are the answers, 0 for none.
	codes []int
}

// taken reports whether a replica said that the delivery is safe.
func (s *sent) taken() bool {
	return slices.ContainsFunc(s.codes, func(code int) bool { return code/100 == 2 })
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{
		end: make(chan struct{}), away: map[*replica]bool{}, chance: rand.New(rand.NewPCG(1, 2)),
		client: &http.Client{Timeout: giteaPatience, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	f.server = httptest.NewServer(http.HandlerFunc(f.take))
	t.Cleanup(func() {
		close(f.end)
		f.server.Close()
		f.work.Wait()
	})
	return f
}

// url is what the webhook leads to.
func (f *front) url() string { return f.server.URL + "/" }

// to sets the replicas, and asks each of them every second whether it is ready.
func (f *front) to(replicas ...*replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = replicas
	for _, r := range replicas {
		f.work.Go(func() { f.look(r) })
	}
}

func (f *front) look(r *replica) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), giteaPatience)
		err := r.ready(ctx)
		cancel()
		f.mu.Lock()
		f.away[r] = err != nil
		f.mu.Unlock()
		select {
		case <-time.After(time.Second):
		case <-f.end:
			return
		}
	}
}

// take answers at once, and delivers aside: Gitea does not wait with the next for the answer to one.
func (f *front) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.deliver(&sent{
		header: r.Header.Clone(), body: body, number: about(body), id: r.Header.Get("X-Gitea-Delivery"), at: time.Now(),
	})
	w.WriteHeader(http.StatusNoContent)
}

// about returns the number of the pull request that a delivery is about.
func about(body []byte) int64 {
	var b struct {
		Number int64 `json:"number"`
		Issue  struct {
			Number int64 `json:"number"`
		} `json:"issue"`
	}
	_ = json.Unmarshal(body, &b) // One without a number is about none.
	return cmp.Or(b.Number, b.Issue.Number)
}

func (f *front) deliver(s *sent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, s)
	var to []string
	for _, i := range f.chance.Perm(len(f.replicas)) {
		if r := f.replicas[i]; !f.away[r] {
			to = append(to, r.URL)
		}
	}
	f.post(s, s.id, to)
	if len(to) == 0 {
		s.codes = append(s.codes, 0)
		return
	}
	switch f.chance.IntN(6) {
	case 0, 1: // The same once more, elsewhere.
		f.post(s, s.id, to[1:])
	case 2: // As when a person has Gitea deliver it again.
		f.post(s, s.id+"-again", to[1:])
	}
}

// post delivers in the background to the first replica that is there, as a load balancer would: one that
// refuses the connection is passed over. It is called with the lock held.
func (f *front) post(s *sent, id string, replicas []string) {
	if len(replicas) == 0 {
		return
	}
	f.work.Go(func() {
		code := 0
		for _, replica := range replicas {
			var err error
			if code, err = f.send(s, replica, id); !errors.Is(err, syscall.ECONNREFUSED) {
				break
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if id == s.id {
			s.codes = append(s.codes, code)
		}
	})
}

func (f *front) send(s *sent, replica, id string) (code int, err error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, replica+"hooks/gitea", bytes.NewReader(s.body))
	if err != nil {
		return 0, err
	}
	req.Header = maps.Clone(s.header)
	req.Header.Set("X-Gitea-Delivery", id)
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body) // The code says it all.
	return resp.StatusCode, nil
}

// told reports whether signalbox has taken everything that was delivered about a pull request.
func (f *front) told(number int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.sent, func(s *sent) bool { return s.number == number && !s.taken() })
}

// again delivers the first delivery once more, to one replica and with an id of its own, and returns the
// answer. It waits for longer than Gitea would.
func (f *front) again(replica string) int {
	f.mu.Lock()
	first := f.sent[0]
	f.mu.Unlock()
	patient := *f.client
	patient.Timeout = 4 * giteaPatience
	code, _ := (&front{client: &patient}).send(first, replica, first.id+"-once-more")
	return code
}

// deliveries returns what was delivered so far, with the answers so far.
func (f *front) deliveries() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]sent, 0, len(f.sent))
	for _, s := range f.sent {
		now := *s
		now.codes = slices.Clone(s.codes)
		out = append(out, now)
	}
	return out
}

// answers counts the answers since a time by their code.
func (f *front) answers(since time.Time) map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]int{}
	for _, s := range f.sent {
		if s.at.Before(since) {
			continue
		}
		for _, code := range s.codes {
			if code == 0 {
				out["none"]++
			} else {
				out[strconv.Itoa(code)]++
			}
		}
	}
	return out
}
