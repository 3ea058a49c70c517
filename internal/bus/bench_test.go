package bus

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"signalbox/internal/fact"
)

// openSynced opens a bus as it is by default: nothing is acknowledged before it
// is on disk.
func openSynced(b *testing.B, cfg Config) *Bus {
	b.Helper()
	if cfg.embedded() {
		cfg.Embedded.Dir = b.TempDir()
	}
	bus, err := Open(b.Context(), cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeBus(b, bus) })
	return bus
}

func BenchmarkPublish(b *testing.B) {
	for name, cfg := range map[string]Config{
		"synced":  {},
		"relaxed": {Embedded: Embedded{SyncInterval: time.Minute}},
	} {
		b.Run(name, func(b *testing.B) {
			bus := openSynced(b, cfg)
			e := event(b, "x", 1)
			n := 0
			for b.Loop() {
				n++
				e.ID = fmt.Sprint("gitea/", n)
				if err := bus.Publish(b.Context(), e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSync(b *testing.B) {
	barrier := func(b *testing.B, bus *Bus) {
		if _, err := bus.facts.Put(b.Context(), someFact("apps", "1", "one")); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := bus.facts.Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("embedded", func(b *testing.B) { barrier(b, openSynced(b, Config{})) })
	b.Run("external", func(b *testing.B) {
		_, ext := external(b, nil)
		barrier(b, openSynced(b, Config{External: ext}))
	})
}

func BenchmarkFacts(b *testing.B) {
	bus := openSynced(b, Config{})
	for i := range 1000 {
		if _, err := bus.facts.Put(b.Context(), someFact(fmt.Sprint("app-", i), "1", "one")); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("changed", func(b *testing.B) {
		n := 1
		for b.Loop() {
			n++
			if _, err := bus.facts.Put(b.Context(), someFact("app-1", fmt.Sprint(n), fmt.Sprint(n))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		v := someFact("app-2", "1", "one")
		for b.Loop() {
			if _, err := bus.facts.Put(b.Context(), v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("lookup", func(b *testing.B) {
		key := fact.Kube("prod", "Kustomization", "flux-system", "app-3")
		for b.Loop() {
			if _, ok := bus.facts.Lookup(key); !ok {
				b.Fatal("it is gone")
			}
		}
	})
}

func BenchmarkWork(b *testing.B) {
	b.Run("schedule", func(b *testing.B) {
		bus := openSynced(b, Config{})
		at := time.Now().Add(time.Hour)
		for b.Loop() {
			if err := bus.work.Schedule(b.Context(), Item{Ref: ref(1), Kind: Wake}, at); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("soon, one pull request", func(b *testing.B) {
		bus := openSynced(b, Config{})
		for b.Loop() {
			if err := bus.work.Soon(b.Context(), Item{Ref: ref(1), Kind: Full}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("soon, another each time", func(b *testing.B) {
		bus := openSynced(b, Config{Debounce: time.Hour, MaxWait: time.Hour})
		var n int64
		for b.Loop() {
			n++
			if err := bus.work.Soon(b.Context(), Item{Ref: ref(n), Kind: Full}); err != nil {
				b.Fatal(err)
			}
		}
	})
	// How long after its debounce time the work is in hand.
	b.Run("late", func(b *testing.B) {
		const debounce = 20 * time.Millisecond
		bus := openSynced(b, Config{Debounce: debounce, MaxWait: debounce})
		inHand := make(chan struct{})
		stop := running(b, func(ctx context.Context) error {
			return bus.work.Consume(ctx, func(context.Context, Item) error {
				inHand <- struct{}{}
				return nil
			})
		})
		var late time.Duration
		n := int64(0)
		for b.Loop() {
			n++
			start := time.Now()
			if err := bus.work.Soon(b.Context(), Item{Ref: ref(n), Kind: Full}); err != nil {
				b.Fatal(err)
			}
			<-inHand
			late += time.Since(start) - debounce
		}
		b.ReportMetric(float64(late.Microseconds())/float64(n), "µs-late/op")
		stop()
	})
}
