package bus

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// answering answers a subject in the place of the server, until the test ends.
func answering(t *testing.T, ext External, subject string, answer func(n int) string) {
	t.Helper()
	nc, err := connectExternal(ext, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var n atomic.Int32
	if _, err := nc.Subscribe(subject, func(m *nats.Msg) {
		if text := answer(int(n.Add(1))); text != "" {
			if err := m.Respond([]byte(text)); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestPublishTriesAgain(t *testing.T) {
	t.Parallel()
	const stored = `{"stream":"EVENTS","seq":1}`
	for name, test := range map[string]struct {
		answers []string
		tries   int32
		wrong   string
	}{
		"another has the same in hand": {[]string{
			`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`, stored,
		}, 2, ""},
		"there is no leader":     {[]string{`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`, stored}, 2, ""},
		"the answer is lost":     {[]string{"", stored}, 2, ""},
		"it can never be stored": {[]string{`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`, stored}, 1, "maximum"},
		"the server says no":     {[]string{`{"error":{"code":400,"err_code":10003,"description":"bad request"}}`, stored}, 1, "bad request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, ext := external(t, nil)
			b := open(t, Config{External: ext})
			if err := b.js.DeleteStream(deadline(t), streamEvents); err != nil {
				t.Fatal(err)
			}
			var tries atomic.Int32
			answering(t, ext, "event.>", func(n int) string {
				tries.Store(int32(n))
				return test.answers[min(n, len(test.answers))-1]
			})
			err := b.Publish(t.Context(), event(t, "gitea/1", 1))
			if test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("error %v, want %q", err, test.wrong)
			}
			if n := tries.Load(); n != test.tries {
				t.Errorf("%d tries, want %d", n, test.tries)
			}
		})
	}
}

// TestPublishWaitsForALeader: while the servers choose one, nobody answers at all.
func TestPublishWaitsForALeader(t *testing.T) {
	t.Parallel()
	_, ext := external(t, nil)
	b := open(t, Config{External: ext})
	info := mustStream(t, b.js, streamEvents).CachedInfo()
	if err := b.js.DeleteStream(deadline(t), streamEvents); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.Publish(t.Context(), event(t, "gitea/1", 1)) }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(time.Second): // Longer than the client library tries by itself.
	}
	if _, err := b.js.CreateStream(deadline(t), info.Config); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := mustStream(t, b.js, streamEvents).CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d events are stored", n)
	}
}
