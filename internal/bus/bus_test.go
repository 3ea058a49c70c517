package bus_test

import (
	"context"
	"testing"
	"time"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

func TestFirst(t *testing.T) {
	b := bustest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e, err := events.New("gitea/1", "gitea", time.Now(), events.PullChanged{Repo: events.Repo{ID: 7}, Number: 12})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(ctx, e); err != nil {
		t.Fatal(err)
	}
	cctx, stop := context.WithCancel(ctx)
	got := make(chan events.Event, 1)
	done := make(chan error, 3)
	go func() {
		done <- b.ConsumeEvents(cctx, "pull", []string{"event.gitea.>"}, func(_ context.Context, e events.Event) error { got <- e; return nil })
	}()
	select {
	case e2 := <-got:
		if e2.ID != e.ID {
			t.Error(e2)
		}
	case <-ctx.Done():
		t.Fatal("no event")
	}
	facts := b.Facts()
	keys := make(chan fact.Key, 10)
	go func() {
		done <- facts.Consume(cctx, "fact", func(_ context.Context, k fact.Key) error { keys <- k; return nil })
	}()
	k := fact.Kube("prod", "Kustomization", "flux-system", "apps")
	changed, err := facts.Put(ctx, fact.Fact{Key: k, UID: "1", Version: "2", Flux: &fact.Flux{Applied: "x"}})
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	if got := <-keys; got != k {
		t.Error(got)
	}
	if f, ok := facts.Lookup(k); !ok || f.Flux.Applied != "x" {
		t.Error(f, ok)
	}
	items := make(chan bus.Item, 10)
	go func() {
		done <- b.Work().Consume(cctx, func(_ context.Context, i bus.Item) error { items <- i; return nil })
	}()
	start := time.Now()
	for range 10 {
		if err := b.Work().Soon(ctx, bus.Item{Ref: pull.Ref{RepoID: 7, Number: 12}, Kind: bus.Full}); err != nil {
			t.Fatal(err)
		}
	}
	i := <-items
	t.Log(i, time.Since(start))
	start = time.Now()
	if err := b.Work().Schedule(ctx, bus.Item{Ref: pull.Ref{RepoID: 7, Number: 12}, Kind: bus.Wake}, time.Now().Add(400*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	i = <-items
	t.Log(i, time.Since(start))
	stop()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
