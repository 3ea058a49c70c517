package kube

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

// Ten thousand objects of five kinds, each of about eight kilobytes as JSON.
const (
	manyKinds   = 5
	manyObjects = 10_000
)

// crowded is a cluster with many objects, of which one in a hundred is not
// healthy, and the wishes for all of them.
func crowded(tb testing.TB, objects int) (*kubetest.Cluster, []fact.Wish) {
	tb.Helper()
	c := kubetest.New()
	var wishes []fact.Wish
	r := rand.New(rand.NewPCG(1, 2))
	for k := range manyKinds {
		res := kubetest.Resource{Kind: fmt.Sprint("Kind", k), Group: "example.com", Resource: fmt.Sprintf("kind%ds", k)}
		c.Serve(res)
		for i := range objects {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": res.Kind,
				"metadata": map[string]any{"namespace": fmt.Sprint("team-", i%50), "name": fmt.Sprintf("object-%06d-%08x", i, r.Uint32())},
				"status":   map[string]any{"state": "attached", "robustness": map[bool]string{true: "degraded", false: "healthy"}[i%100 == 0]},
			}}
			if err := c.Apply(o); err != nil {
				tb.Fatal(err)
			}
		}
		wishes = append(wishes,
			fact.WishObjects("prod", fact.ObjectsQuery{Resource: res.Resource + ".example.com", Test: healthy}),
			fact.WishObjects("prod", fact.ObjectsQuery{Resource: res.Resource + ".example.com"}))
	}
	// What an object of a real cluster carries beside it; it is not kept by the
	// cluster, so that the measure is of the watcher.
	c.Padding(map[string]any{"managedFields": strings.Repeat("x", 4000), "config": strings.Repeat("y", 4000)})
	return c, wishes
}

func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemory reports what a watcher keeps for ten thousand objects of five
// kinds with two tests each.
func BenchmarkMemory(b *testing.B) {
	c, wishes := crowded(b, manyObjects)
	for b.Loop() {
		before := heap()
		w, stop := watchMany(b, c, wishes)
		after := heap()
		b.ReportMetric(float64(int64(after)-int64(before))/(1<<20), "MB")
		b.ReportMetric(float64(w.wishes.held()), "objects")
		stop()
	}
}

func watchMany(tb testing.TB, c *kubetest.Cluster, wishes []fact.Wish) (w *Watcher, stop func()) {
	tb.Helper()
	s := newFakeSink()
	w, err := New(configOf("prod", c), s, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		tb.Fatal(err)
	}
	w.Wish(wishes)
	ctx, cancel := context.WithCancel(tb.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	var keys []fact.Key
	for _, x := range wishes {
		keys = append(keys, x.Key)
	}
	// It is read as quickly as this machine can.
	for _, k := range keys {
		for {
			w.Await(tb.Context(), []fact.Key{k})
			f, _ := s.Lookup(k)
			if f.Objects != nil && f.Objects.Watch.State == fact.WatchSynced {
				break
			}
			runtime.Gosched()
		}
	}
	return w, func() { cancel(); <-done }
}

func TestMemoryOfManyObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("lists many objects")
	}
	const objects = 2000
	c, wishes := crowded(t, objects)
	before := heap()
	w, stop := watchMany(t, c, wishes)
	defer stop()
	if n := w.wishes.held(); n != manyKinds*objects {
		t.Errorf("%d objects, want %d", n, manyKinds*objects)
	}
	// 150 MB for 50,000 objects are 3 KB for each.
	if per := (int64(heap()) - int64(before)) / (manyKinds * objects); per > 1500 {
		t.Errorf("an object takes %d bytes", per)
	} else {
		t.Logf("an object takes %d bytes", per)
	}
}
