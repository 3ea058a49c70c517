package handlers_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/handlers"
)

// clusterCollector notes what is wished and waited for.
type clusterCollector struct {
	mu      sync.Mutex
	wished  [][]fact.Key
	awaited []fact.Key
	// slow waits until the context ends.
	slow bool
}

func (c *clusterCollector) Wish(wishes []fact.Wish) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []fact.Key
	for _, w := range wishes {
		keys = append(keys, w.Key)
	}
	c.wished = append(c.wished, keys)
}

func (c *clusterCollector) Await(ctx context.Context, keys []fact.Key) bool {
	c.mu.Lock()
	c.awaited = append(c.awaited, keys...)
	slow := c.slow
	c.mu.Unlock()
	if slow {
		<-ctx.Done()
	}
	return ctx.Err() == nil
}

func (c *clusterCollector) last() []fact.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wished) == 0 {
		return nil
	}
	return c.wished[len(c.wished)-1]
}

func nodes(cluster string) fact.Wish {
	return fact.WishObjects(cluster, fact.ObjectsQuery{Resource: "nodes"})
}

func wishing(number int64, wishes ...fact.Wish) *handlers.Record {
	r := record(number, "main", "h")
	r.Verdict.Wishes = wishes
	for _, w := range wishes {
		r.Verdict.Reads = append(r.Verdict.Reads, w.Key)
	}
	return r
}

func TestDemandFollowsTheVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prod, dev := &clusterCollector{}, &clusterCollector{}
		x := handlers.NewIndex()
		changed := make(chan struct{}, 1)
		changes := 0
		x.OnWish(func() {
			changes++
			select {
			case changed <- struct{}{}:
			default:
			}
		})
		d := &handlers.Demand{
			Index: x, Records: records{}, Clusters: map[string]handlers.ClusterCollector{"prod": prod, "dev": dev},
			Forge: newForgeFacts(&forgeReader{}, &factStore{}), Patience: time.Second, Now: time.Now,
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = d.Run(ctx, changed) }()
		check := func(what string, c *clusterCollector, want ...fact.Wish) {
			t.Helper()
			synctest.Wait()
			var keys []fact.Key
			for _, w := range want {
				keys = append(keys, w.Key)
			}
			if diff := cmp.Diff(keys, c.last()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		status := fact.Wish{Key: fact.StatusesKey(7, "h")}
		one, two := wishing(1, nodes("prod"), status), wishing(2, nodes("prod"), nodes("dev"))
		x.Change("7.1", nil, one)
		x.Change("7.2", nil, two)
		check("prod", prod, nodes("prod"))
		check("dev", dev, nodes("dev"))
		if !x.Wished(status.Key) || x.Wished(fact.StatusesKey(7, "other")) {
			t.Error("the index does not know what is wished")
		}
		before := changes
		x.Change("7.1", one, wishing(1, nodes("prod"), status))
		if changes != before {
			t.Error("the same wishes are told as a change")
		}
		x.Change("7.2", two, nil)
		check("prod, which one still wishes", prod, nodes("prod"))
		check("dev, which nobody wishes any more", dev)
		x.Change("7.1", one, nil)
		check("prod, which nobody wishes any more", prod)
	})
}

func TestDemandBeforeTheVerdictIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prod := &clusterCollector{slow: true}
		r := &forgeReader{}
		d := &handlers.Demand{
			Index: handlers.NewIndex(), Records: records{}, Clusters: map[string]handlers.ClusterCollector{"prod": prod},
			Forge: newForgeFacts(r, &factStore{}), Patience: 2 * time.Second, Now: time.Now,
		}
		status := fact.Wish{Key: fact.StatusesKey(7, "h")}
		wishes := []fact.Wish{nodes("prod"), nodes("none"), status}
		start := time.Now()
		began, err := d.Collect(t.Context(), wishes)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("a cluster that does not answer was waited for for %s, want 2s", took)
		}
		if !slices.Contains(began, nodes("prod").Key) || !slices.Contains(began, status.Key) {
			t.Errorf("began is %v", began)
		}
		if diff := cmp.Diff([]fact.Key{nodes("prod").Key}, prod.last()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// What did not settle is waited for by the next one too.
		prod.mu.Lock()
		prod.slow = false
		prod.mu.Unlock()
		if began, err = d.Collect(t.Context(), wishes); err != nil || !slices.Contains(began, nodes("prod").Key) {
			t.Errorf("what did not settle is taken for known: %v, %v", began, err)
		}
		began, err = d.Collect(t.Context(), wishes)
		if err != nil || slices.Contains(began, nodes("prod").Key) || len(r.asked) != 1 {
			t.Errorf("what is collected was begun again: %v, %v, asked %v", began, err, r.asked)
		}
	})
}
