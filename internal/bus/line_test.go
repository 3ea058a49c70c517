package bus

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
)

// TestLine: a request is answered by one of a group, or fails at once where nobody is.
func TestLine(t *testing.T) {
	t.Parallel()
	_, ext := external(t, nil)
	b := open(t, Config{External: ext})
	far, err := Dial(ext, "_INBOX.far", logger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := far.Request(deadline(t), "signalbox.v1.hub.prod.list", nil); err == nil || !strings.Contains(err.Error(), "nobody answers") {
		t.Errorf("request to nobody: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- b.Line().Serve(ctx, "signalbox.v1.hub.prod.*", "hub", func(_ context.Context, subject string, data []byte) []byte {
			return []byte(strings.TrimPrefix(subject, "signalbox.v1.hub.prod.") + " " + string(data))
		})
	}()
	var answer []byte
	for limit := deadline(t); ; {
		if answer, err = far.Request(limit, "signalbox.v1.hub.prod.list", []byte("x")); err == nil || limit.Err() != nil {
			break
		}
	}
	if err != nil || string(answer) != "list x" {
		t.Errorf("answer %q, %v", answer, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if !far.Connected() {
		t.Error("it is not connected")
	}
	far.Close()
	if _, err := far.Request(deadline(t), "x", nil); err == nil {
		t.Error("a request on a closed line was answered")
	}
}

// TestLineMoves: a line leaves a server at which nobody answers for another.
func TestLineMoves(t *testing.T) {
	t.Parallel()
	_, empty := external(t, nil)
	_, ext := external(t, nil)
	b := open(t, Config{External: ext})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- b.Line().Serve(ctx, "here", "", func(context.Context, string, []byte) []byte { return []byte("yes") })
	}()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	both := ext
	both.URLs = []string{empty.URLs[0], ext.URLs[0]}
	far, err := Dial(both, "", logger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	servers := map[string]bool{}
	for limit := deadline(t); len(servers) < 2; {
		if limit.Err() != nil {
			t.Fatalf("it was only at %v", servers)
		}
		ask, cancel := context.WithTimeout(limit, time.Second)
		_, err := far.Request(ask, "here", nil)
		cancel()
		if far.Connected() {
			servers[far.nc.ConnectedUrlRedacted()] = err == nil
		}
		if err := far.Move(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLineDoesNotKeepForLater: what is sent while the server is away fails at once, and is
// not sent when it is back and the news is old.
func TestLineDoesNotKeepForLater(t *testing.T) {
	t.Parallel()
	srv, ext := external(t, nil)
	far, err := Dial(ext, "_INBOX.far", logger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	srv.Shutdown()
	srv.WaitForShutdown()
	limit := deadline(t)
	for far.Connected() {
		if limit.Err() != nil {
			t.Fatal("it is still connected")
		}
	}
	began := time.Now()
	if _, err := far.Request(t.Context(), "x", nil); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("request without a server: %v after %s", err, time.Since(began))
	}
}

// TestFactsAtARevision: a fact is changed by whoever knows what is held, and by nobody
// else.
func TestFactsAtARevision(t *testing.T) {
	t.Parallel()
	f := open(t, Config{}).Facts()
	at := time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	v := fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "apps"), Since: at, SeenAt: at, Flux: &fact.Flux{Applied: "a"}}
	if f.Made().IsZero() {
		t.Error("nobody knows when the store was made")
	}
	first, err := f.PutAt(t.Context(), v, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := v
	other.Flux = &fact.Flux{Applied: "b"}
	if _, err := f.PutAt(t.Context(), other, 0); !errors.Is(err, ErrConflict) {
		t.Errorf("put as if there were none: %v", err)
	}
	if err := f.DeleteAt(t.Context(), v.Key, first+1); !errors.Is(err, ErrConflict) {
		t.Errorf("delete another revision: %v", err)
	}
	held, revision, ok := f.Held(v.Key)
	if diff := cmp.Diff(v, held); !ok || revision != first || diff != "" {
		t.Errorf("held at %d, want %d (-want +got):\n%s", revision, first, diff)
	}
	if err := f.DeleteAt(t.Context(), v.Key, first); err != nil {
		t.Fatal(err)
	}
	if _, revision, ok := f.Held(v.Key); ok || revision != 0 {
		t.Errorf("it is still held, at %d", revision)
	}
	if _, err := f.PutAt(t.Context(), other, 0); err != nil {
		t.Errorf("put after delete: %v", err)
	}
}
