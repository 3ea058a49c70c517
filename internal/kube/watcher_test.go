package kube

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

const (
	revA = "main@sha1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	revB = "main@sha1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// watching runs a watcher of the cluster, named prod, within a bubble of
// synctest until do returns.
func watching(t *testing.T, c *kubetest.Cluster, s *fakeSink, do func()) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := New(Config{Cluster: "prod", Client: c.Client(), Probe: c.Probe}, s, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		do()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

// settle lets a moment pass in which the watcher can do its work.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func TestProgressingWritesNothing(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	watching(t, c, s, func() {
		o := c.Kustomization("flux-system", "apps").Ready(revA)
		settle()
		if got := s.object("kustomization", "flux-system", "apps"); got.Flux == nil || got.Flux.Ready.Status != fact.True || got.Flux.Applied != revA {
			t.Fatalf("fact = %+v, want Ready at %s", got, revA)
		}
		before := len(s.log)
		for range 20 {
			time.Sleep(10 * time.Minute)
			o.Progressing()
			settle()
			o.Ready(revA)
			settle()
		}
		if got := s.log[before:]; len(got) != 0 {
			t.Errorf("%d facts were written while nothing changed: %+v", len(got), got)
		}
	})
}
