package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/agent"
	"signalbox/internal/fact"
)

// wire is a line within the process.
type wire struct {
	mu     sync.Mutex
	served map[string][]func(ctx context.Context, subject string, data []byte) []byte
	// cut is what every request fails with, if it is set.
	cut error
	// changed is closed, and made anew, when somebody begins to serve.
	changed chan struct{}
}

func newWire() *wire {
	return &wire{served: map[string][]func(context.Context, string, []byte) []byte{}, changed: make(chan struct{})}
}

func (w *wire) Serve(ctx context.Context, subject, _ string, answer func(context.Context, string, []byte) []byte) error {
	w.mu.Lock()
	w.served[subject] = append(w.served[subject], answer)
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

func (w *wire) find(subject string) []func(context.Context, string, []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut != nil {
		return nil
	}
	prefix := subject[:strings.LastIndex(subject, ".")+1]
	return append(w.served[subject], w.served[prefix+"*"]...)
}

func (w *wire) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	all := w.find(subject)
	if len(all) == 0 {
		return nil, errors.New("nobody answers")
	}
	return all[0](ctx, subject, data), nil
}

func (w *wire) Publish(subject string, data []byte) error {
	for _, answer := range w.find(subject) {
		answer(context.Background(), subject, data)
	}
	return nil
}

// awaits returns when a subject is served.
func (w *wire) awaits(t *testing.T, subject string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		w.mu.Lock()
		n, changed := len(w.served[subject]), w.changed
		w.mu.Unlock()
		if n > 0 {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("nobody serves %s", subject)
		}
	}
}

// beats records heartbeats.
type beats struct {
	mu  sync.Mutex
	all []string
}

func (b *beats) note(_ context.Context, cluster, by string, _ time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, cluster+" by "+by)
	return nil
}

// newHub makes a hub with stores of its own, for the cluster prod and dev, and runs it.
func newHub(t *testing.T, w *wire, change func(*agent.Hub)) (*agent.Hub, *beats) {
	t.Helper()
	facts, wishes, beats := &store{held: map[fact.Key]revised{}}, &wishStore{held: map[string]agent.Wished{}}, &beats{}
	h := &agent.Hub{
		Line: w, Facts: facts, Wishes: wishes, Made: func() time.Time { return time.Time{} }, Beat: beats.note,
		Conflict: func(err error) bool { return errors.Is(err, errConflict) },
		Clusters: []string{"prod", "dev"}, Replica: "one", Answered: func(string, string, error) {}, Now: time.Now,
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(h)
	}
	facts.changed, wishes.changed = h.FactChanged, h.WishesChanged
	run(t, h.Run)
	w.awaits(t, "signalbox.v1.hub.prod.*")
	w.awaits(t, "signalbox.v1.hub.dev.*")
	return h, beats
}

// run runs something until the test ends, and fails if it fails.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// watcher records what is wished of it, and settles what it is told to.
type watcher struct {
	mu      sync.Mutex
	wished  []fact.Key
	settled map[fact.Key]bool
	told    chan struct{}
	// held is where it looks facts up, as the watcher of a cluster does when it is
	// told of wishes.
	held *agent.Remote
}

func newWatcher(held *agent.Remote) *watcher {
	return &watcher{settled: map[fact.Key]bool{}, told: make(chan struct{}, 100), held: held}
}

func (w *watcher) Wish(wishes []fact.Wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wished = nil
	for _, wish := range wishes {
		w.wished = append(w.wished, wish.Key)
		w.held.Lookup(wish.Key)
	}
	w.told <- struct{}{}
}

func (w *watcher) Await(ctx context.Context, keys []fact.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keys {
		if !w.settled[k] {
			return false
		}
	}
	return ctx.Err() == nil
}

// remote makes the remote of a cluster and loads it.
func remote(t *testing.T, w *wire, cluster, name string) (*agent.Remote, *watcher) {
	t.Helper()
	r := agent.NewRemote(w, cluster, name, slog.New(slog.DiscardHandler))
	of := newWatcher(r)
	if !r.Load(t.Context(), of) {
		t.Fatal("the test ended")
	}
	return r, of
}

func kustomization(cluster, name, version, applied string) fact.Fact {
	at := time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	return fact.Fact{
		Key: fact.Kube(cluster, "Kustomization", "flux-system", name), UID: "u", Version: version, Since: at, SeenAt: at,
		Flux: &fact.Flux{Applied: applied},
	}
}
