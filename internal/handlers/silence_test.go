package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/handlers"
)

// facts hold the last value of each key and count the writes.
type facts struct {
	held   map[fact.Key]fact.Fact
	writes int
}

func (f *facts) Lookup(k fact.Key) (fact.Fact, bool) {
	v, ok := f.held[k]
	return v, ok
}

func (f *facts) Put(_ context.Context, v fact.Fact) (bool, error) {
	f.held[v.Key] = v
	f.writes++
	return true, nil
}

func (*facts) Sync(context.Context) error { return nil }

// beats are the times at which clusters were last heard from.
type beats map[string]time.Time

func (b beats) Last(cluster string) (time.Time, bool) {
	at, ok := b[cluster]
	return at, ok
}

func (beats) Sync(context.Context) error { return nil }

func TestSilence(t *testing.T) {
	start := time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	now := start
	f, b := &facts{held: map[fact.Key]fact.Fact{}}, beats{}
	s := handlers.Silence{Facts: f, Beats: b, Clusters: []string{"prod"}, Limit: time.Minute, Now: func() time.Time { return now }}
	look := func(what string, writes int, want fact.Heartbeat, since time.Time) {
		t.Helper()
		before := f.writes
		if err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := f.held[fact.HeartbeatKey("prod")]
		if diff := cmp.Diff(&want, got.Heartbeat); diff != "" || !got.Since.Equal(since) || f.writes-before != writes {
			t.Errorf("%s: since %s, %d writes, heartbeat (-want +got):\n%s", what, got.Since, f.writes-before, diff)
		}
	}
	look("never heard from", 1, fact.Heartbeat{Silent: true}, start)
	look("still not", 0, fact.Heartbeat{Silent: true}, start)
	now = start.Add(time.Second)
	b["prod"] = now
	look("heard from", 1, fact.Heartbeat{}, now)
	now = start.Add(time.Minute)
	look("within the limit", 0, fact.Heartbeat{}, start.Add(time.Second))
	now = start.Add(2 * time.Minute)
	look("silent since it was last heard from", 1, fact.Heartbeat{Silent: true, LastHeard: start.Add(time.Second)}, start.Add(time.Second))
	b["prod"] = now
	look("back", 1, fact.Heartbeat{}, now)
}
