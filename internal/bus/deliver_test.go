package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
	"signalbox/internal/fact"
)

// consumeEvents runs a consumer of all events in the background.
func consumeEvents(t testing.TB, b *Bus, name string, h func(context.Context, events.Event) error) (stop func()) {
	return running(t, func(ctx context.Context) error {
		return b.ConsumeEvents(ctx, name, []string{"event.>"}, h)
	})
}

// settledEvents waits until a consumer of events has nothing left to do.
func settledEvents(t testing.TB, b *Bus, name string) {
	t.Helper()
	eventually(t, name+" has nothing left", func() bool {
		cons, err := b.js.Consumer(deadline(t), streamEvents, name)
		if err != nil {
			return false
		}
		info := cons.CachedInfo()
		return info.NumPending == 0 && info.NumAckPending == 0
	})
}

func dead(t testing.TB, b *Bus) []DeadLetter {
	t.Helper()
	list, err := b.dead.List(deadline(t), 100)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEventsArriveWhole(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	sent := event(t, "gitea/1", 12)
	publish(t, b, sent)
	got := make(chan events.Event, 1)
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { got <- e; return nil })
	e := <-got
	if e.ID != sent.ID || e.Type != sent.Type || e.Subject != sent.Subject || !e.Time.Equal(sent.Time) || string(e.Data) != string(sent.Data) {
		t.Errorf("got %+v, sent %+v", e, sent)
	}
}

func TestEventIsKeptOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	var seen record[string]
	stop := consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { seen.add(e.ID); return nil })
	for range 3 {
		publish(t, b, event(t, "gitea/1", 1))
	}
	eventually(t, "it is handled", func() bool { return seen.len() > 0 })
	settledEvents(t, b, "pull")
	if n := counted(t, b.metrics.published.WithLabelValues(streamEvents, "duplicate")); n != 2 {
		t.Errorf("%v duplicates counted, want 2", n)
	}
	stop()
	closeBus(t, b)

	b = open(t, Config{Embedded: Embedded{Dir: dir}})
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { seen.add(e.ID); return nil })
	publish(t, b, event(t, "gitea/1", 1))
	publish(t, b, event(t, "gitea/2", 1))
	eventually(t, "the next is handled", func() bool { return seen.len() > 1 })
	settledEvents(t, b, "pull")
	if got := strings.Join(seen.all(), " "); got != "gitea/1 gitea/2" {
		t.Errorf("handled %q over a restart, want each once", got)
	}
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	ok := event(t, "gitea/1", 1)
	large := ok
	large.Data = json.RawMessage(`"` + strings.Repeat("x", maxPayload) + `"`)
	tests := map[string]events.Event{
		"no id":             {Subject: "event.x", Type: "x"},
		"a foreign subject": {ID: "1", Subject: "work.run.0.7.1.full"},
		"a wildcard":        {ID: "1", Subject: "event.*"},
		"an empty token":    {ID: "1", Subject: "event..x"},
		"a space":           {ID: "1", Subject: "event.a b"},
		"too large":         large,
		"broken data":       {ID: "1", Subject: "event.x", Data: json.RawMessage("{")},
	}
	for name, e := range tests {
		t.Run(name, func(t *testing.T) {
			if err := b.Publish(deadline(t), e); !events.IsPermanent(err) {
				t.Errorf("error = %v, want a permanent one", err)
			}
		})
	}
	large.Data = json.RawMessage(`"` + strings.Repeat("x", maxPayload-2*headroom) + `"`)
	publish(t, b, large)
}

func TestFailedEventIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var tries record[string]
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error {
		if tries.add(e.ID) < 5 {
			return errors.New("not yet")
		}
		return nil
	})
	publish(t, b, event(t, "gitea/1", 1))
	eventually(t, "five tries", func() bool { return tries.len() == 5 })
	settledEvents(t, b, "pull")
	times := tries.times()
	for i, least := range []int64{7, 15, 30, 60} { // three quarters of 10, 20, 40, 80ms
		if gap := times[i+1].Sub(times[i]); gap.Milliseconds() < least {
			t.Errorf("try %d came after %v, want at least %dms", i+2, gap, least)
		}
	}
	if n := counted(t, b.metrics.handled.WithLabelValues("pull", resultRetry)); n != 4 {
		t.Errorf("%v retries counted, want 4", n)
	}
	if len(dead(t, b)) != 0 {
		t.Error("a message that was handled in the end is a dead letter")
	}
}

func TestRetryDelay(t *testing.T) {
	b := &Bus{cfg: Config{Embedded: Embedded{Dir: "x"}}.withDefaults()}
	plain := errors.New("x")
	tests := []struct {
		count    int
		err      error
		from, to time.Duration
	}{
		{1, plain, 750 * time.Millisecond, time.Second},
		{2, plain, 1500 * time.Millisecond, 2 * time.Second},
		{9, plain, 192 * time.Second, 256 * time.Second},
		{10, plain, 225 * time.Second, 5 * time.Minute},
		{1000, plain, 225 * time.Second, 5 * time.Minute},
		{1, fmt.Errorf("outer: %w", events.RetryAfter(plain, time.Minute)), time.Minute, time.Minute},
		{1, events.RetryAfter(plain, time.Millisecond), 750 * time.Millisecond, time.Second},
		{1, events.RetryAfter(plain, 1000*time.Hour), time.Hour, time.Hour},
	}
	for _, tt := range tests {
		for range 100 {
			if d := b.retryDelay(tt.count, tt.err); d < tt.from || d > tt.to {
				t.Errorf("delay after %d deliveries and %v = %v, want %v to %v", tt.count, tt.err, d, tt.from, tt.to)
				break
			}
		}
	}
}

func TestWhatCannotBeHandledIsPutAside(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		send       func(*testing.T, *Bus)
		handle     func(context.Context, events.Event) error
		reason     string
		deliveries int
	}{
		{"permanent", nil, func(context.Context, events.Event) error {
			return fmt.Errorf("outer: %w", events.Permanent(errors.New("no such\nrepository")))
		}, "outer: no such repository", 1},
		{"tried too often", nil, func(context.Context, events.Event) error { return errors.New("still down") }, "still down", 3},
		{"panics", nil, func(context.Context, events.Event) error { panic("nil map") }, "handler panicked: nil map", 3},
		{"poison", func(t *testing.T, b *Bus) {
			if _, err := b.js.Publish(deadline(t), "event.gitea.pull.7.1", []byte(`{"specversion":`)); err != nil {
				t.Fatal(err)
			}
		}, nothing[events.Event], "decode event", 1},
		{"a long reason", nil, func(context.Context, events.Event) error {
			return events.Permanent(errors.New(strings.Repeat("ü", maxReason)))
		}, strings.Repeat("ü", maxReason/2), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, Config{MaxDeliveries: 3})
			var after atomic.Bool
			consumeEvents(t, b, "pull", func(ctx context.Context, e events.Event) error {
				if e.ID == "gitea/next" {
					after.Store(true)
					return nil
				}
				return tt.handle(ctx, e)
			})
			var data []byte
			if tt.send != nil {
				tt.send(t, b)
			} else {
				e := event(t, "gitea/1", 1)
				publish(t, b, e)
				data, _ = json.Marshal(e)
			}
			publish(t, b, event(t, "gitea/next", 2))
			eventually(t, "it is put aside", func() bool { return len(dead(t, b)) == 1 })
			l := dead(t, b)[0]
			if !strings.Contains(l.Reason, tt.reason) || l.Deliveries != tt.deliveries || l.Consumer != "pull" ||
				l.Stream != streamEvents || l.Subject != "event.gitea.pull.7.1" || time.Since(l.Time) > time.Minute {
				t.Errorf("dead letter = %+v, want reason %q after %d deliveries", l, tt.reason, tt.deliveries)
			}
			if data != nil && string(l.Data) != string(data) {
				t.Errorf("data = %s, want %s", l.Data, data)
			}
			eventually(t, "the next event is handled", after.Load)
			settledEvents(t, b, "pull")
			if n, err := b.dead.Count(deadline(t)); n != 1 || err != nil {
				t.Errorf("Count = %d, %v; want 1", n, err)
			}
		})
	}
}

func TestMessageThatEndsTheProcessIsPutAside(t *testing.T) {
	t.Parallel()
	b := open(t, Config{MaxDeliveries: 3, timing: timing{ackWait: 50 * time.Millisecond}})
	publish(t, b, event(t, "gitea/1", 1))
	// A client that takes the message and never answers, as a process that dies.
	cons, err := b.js.CreateOrUpdateConsumer(deadline(t), streamEvents, jetstream.ConsumerConfig{
		Durable: "pull", FilterSubjects: []string{"event.>"}, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: b.cfg.timing.ackWait, MaxDeliver: -1, MaxAckPending: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := cons.Next(jetstream.FetchMaxWait(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	var called atomic.Bool
	consumeEvents(t, b, "pull", func(context.Context, events.Event) error { called.Store(true); return nil })
	eventually(t, "it is put aside", func() bool { return len(dead(t, b)) == 1 })
	if called.Load() || !strings.Contains(dead(t, b)[0].Reason, "3 times") {
		t.Errorf("handled: %v, dead letter: %+v", called.Load(), dead(t, b)[0])
	}
}

func TestCancelledHandlerLeavesItsMessage(t *testing.T) {
	t.Parallel()
	b := open(t, Config{timing: timing{ackWait: 200 * time.Millisecond}})
	started := make(chan struct{})
	stop := consumeEvents(t, b, "pull", func(ctx context.Context, _ events.Event) error {
		close(started)
		<-ctx.Done()
		return events.Permanent(ctx.Err()) // even then
	})
	publish(t, b, event(t, "gitea/1", 1))
	<-started
	stop()
	if n := len(dead(t, b)); n != 0 {
		t.Fatalf("%d dead letters", n)
	}
	var again record[string]
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { again.add(e.ID); return nil })
	eventually(t, "it is delivered again", func() bool { return again.len() == 1 })
	settledEvents(t, b, "pull")
}

func TestLongHandlerKeepsItsMessage(t *testing.T) {
	t.Parallel()
	b := open(t, Config{timing: timing{ackWait: 200 * time.Millisecond}})
	var calls atomic.Int32
	finished := make(chan struct{})
	consumeEvents(t, b, "pull", func(ctx context.Context, _ events.Event) error {
		calls.Add(1)
		select {
		case <-time.After(time.Second): // five times what the server waits
		case <-ctx.Done():
			return ctx.Err()
		}
		close(finished)
		return nil
	})
	publish(t, b, event(t, "gitea/1", 1))
	<-finished
	settledEvents(t, b, "pull")
	if n := calls.Load(); n != 1 {
		t.Errorf("handled %d times, want once", n)
	}
}

func TestSlowEventDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Workers: 2})
	release := make(chan struct{})
	defer close(release)
	var others record[string]
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error {
		if e.ID == "gitea/slow" {
			<-release
			return nil
		}
		others.add(e.ID)
		return nil
	})
	publish(t, b, event(t, "gitea/slow", 1))
	for i := range 10 {
		publish(t, b, event(t, fmt.Sprint("gitea/", i), 2))
	}
	eventually(t, "the others are handled", func() bool { return others.len() == 10 })
}

func TestDeletedConsumerIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := open(t, Config{timing: timing{heartbeat: 500 * time.Millisecond}})
	var seen record[string]
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { seen.add(e.ID); return nil })
	publish(t, b, event(t, "gitea/1", 1))
	eventually(t, "the first is handled", func() bool { return seen.len() == 1 })
	if err := b.js.DeleteConsumer(deadline(t), streamEvents, "pull"); err != nil {
		t.Fatal(err)
	}
	publish(t, b, event(t, "gitea/2", 1))
	eventually(t, "the second is handled", func() bool { return slices.Contains(seen.all(), "gitea/2") })
	if n := counted(t, b.metrics.recreated.WithLabelValues("pull")); n < 1 {
		t.Errorf("%v restarts counted", n)
	}
}

func TestConsumerThatCannotBeIsAnError(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	for name, consume := range map[string]func() error{
		"orders.>": func() error {
			return b.ConsumeEvents(deadline(t), "pull", []string{"orders.>"}, nothing[events.Event])
		},
		"pull.x": func() error {
			return b.ConsumeEvents(deadline(t), "pull.x", []string{"event.>"}, nothing[events.Event])
		},
		"overlap": func() error {
			return b.ConsumeEvents(deadline(t), "overlap", []string{"event.>", "event.gitea.>"}, nothing[events.Event])
		},
	} {
		if err := consume(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error = %v, want one that names %s", err, name)
		}
	}
}

func TestDeadLetterIsTriedAgainByItsOwnConsumer(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var mine, others record[string]
	var healed atomic.Bool
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error {
		if !healed.Load() {
			return events.Permanent(errors.New("broken"))
		}
		mine.add(e.ID)
		return nil
	})
	consumeEvents(t, b, "comment", func(_ context.Context, e events.Event) error { others.add(e.ID); return nil })
	publish(t, b, event(t, "gitea/1", 1))
	publish(t, b, event(t, "gitea/2", 1))
	eventually(t, "both are put aside", func() bool { return len(dead(t, b)) == 2 })
	settledEvents(t, b, "comment")
	healed.Store(true)
	newest := dead(t, b)[0]
	if one, err := b.dead.List(deadline(t), 1); err != nil || len(one) != 1 || one[0].ID != newest.ID {
		t.Fatalf("List(1) = %+v, %v; want the newest, %d", one, err, newest.ID)
	}
	if err := b.dead.Retry(deadline(t), newest.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is tried again", func() bool { return mine.len() == 1 })
	settledEvents(t, b, "pull")
	settledEvents(t, b, "comment")
	if others.len() != 2 {
		t.Errorf("the other consumer handled %v, want each once", others.all())
	}
	rest := dead(t, b)
	if len(rest) != 1 || rest[0].ID == newest.ID {
		t.Fatalf("left are %+v", rest)
	}
	if err := b.dead.Drop(deadline(t), rest[0].ID); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"retry twice": b.dead.Retry(deadline(t), newest.ID),
		"drop twice":  b.dead.Drop(deadline(t), rest[0].ID),
	} {
		if !errors.Is(err, ErrNoDeadLetter) {
			t.Errorf("%s: error = %v, want ErrNoDeadLetter", what, err)
		}
	}
	if n, err := b.dead.Count(deadline(t)); n != 0 || err != nil {
		t.Errorf("Count = %d, %v; want 0", n, err)
	}
}

func TestDeadLetterOfAFactIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var healed atomic.Bool
	var seen record[fact.Key]
	running(t, func(ctx context.Context) error {
		return b.facts.Consume(ctx, "fact", func(_ context.Context, k fact.Key) error {
			if !healed.Load() {
				return events.Permanent(errors.New("broken"))
			}
			seen.add(k)
			return nil
		})
	})
	v := someFact("apps", "1", "one")
	if _, err := b.facts.Put(deadline(t), v); err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.Publish(deadline(t), "$KV.facts.not-a-key", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are put aside", func() bool { return len(dead(t, b)) == 2 })
	healed.Store(true)
	for _, l := range dead(t, b) {
		if err := b.dead.Retry(deadline(t), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the fact is handled", func() bool { return seen.len() == 1 })
	if k := seen.all()[0]; k != v.Key {
		t.Errorf("key = %v, want %v", k, v.Key)
	}
	if got, ok := b.facts.Lookup(v.Key); !ok || got.Flux.Applied != "one" {
		t.Errorf("the fact is %+v, %v now", got, ok)
	}
	eventually(t, "the bad key is a dead letter again", func() bool { return len(dead(t, b)) == 1 })
}

func TestDeadLetterTooLargeKeepsItsReason(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	// Somebody else's message may be as large as the server takes.
	msg := &nats.Msg{Subject: "event.gitea.pull.7.1", Data: []byte(strings.Repeat("x", maxPayload-10))}
	if _, err := b.js.PublishMsg(deadline(t), msg); err != nil {
		t.Fatal(err)
	}
	consumeEvents(t, b, "pull", nothing[events.Event])
	eventually(t, "it is put aside", func() bool { return len(dead(t, b)) == 1 })
	l := dead(t, b)[0]
	if !strings.Contains(l.Reason, "too large to keep") || l.Data != nil {
		t.Errorf("reason = %q with %d bytes", l.Reason, len(l.Data))
	}
	if err := b.dead.Retry(deadline(t), l.ID); err == nil || !strings.Contains(err.Error(), "not kept") {
		t.Errorf("error = %v, want one that says that the data was not kept", err)
	}
}
