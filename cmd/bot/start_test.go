package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/kube/kubetest"
)

// TestStartChangesNothing: while the clusters are being read, what was posted
// before the start stands.
func TestStartChangesNothing(t *testing.T) {
	silence := time.Second
	o := worldOptions{adjust: func(c *config.Config) { c.Timing.ClusterSilence = silence }}
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(o)
	number := w.open("quiet", clusterChange)
	w.shows(number, "success", "pending")
	w.quiet()
	w.stop()
	stopped := time.Now()
	w.eventually("the cluster was silent for too long", func() string {
		if time.Since(stopped) < silence+200*time.Millisecond {
			return "not yet"
		}
		return ""
	})

	// The list of objects arrives only after all else was done.
	list := make(chan struct{})
	w.cluster.Break(func(ctx context.Context, r kubetest.Request) error {
		if !strings.HasPrefix(r.Resource, "kustomizations.") {
			return nil
		}
		select {
		case <-list:
		case <-ctx.Done():
		}
		return nil
	})
	w.forge.ResetCalls()
	o.unread = true
	w.start(o)
	const open = "GET /repos/{owner}/{repo}/pulls"
	w.eventually("the reconciler has listed the pull requests", func() string {
		if w.forge.Calls()[open] == 0 {
			return "it has not"
		}
		return ""
	})
	w.quiet()
	if n := w.evaluations(); n != 0 {
		t.Errorf("%d evaluations before the cluster is known", n)
	}
	close(list)
	w.eventually("the pull request was looked at", func() string {
		if w.evaluations() == 0 {
			return "it was not"
		}
		return ""
	})
	w.quiet()
	w.shows(number, "success", "pending")
	for route, n := range w.forge.Calls() {
		if route[:4] != "GET " {
			t.Errorf("%s was called %d times", route, n)
		}
	}
}

// TestStartWithoutCluster: a cluster that cannot be read holds nothing up for
// long.
func TestStartWithoutCluster(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.cluster.Break(kubetest.Hang)
	w.start(worldOptions{unread: true})
	number := w.open("dark", clusterChange)
	w.shows(number, "pending", "pending", "Cluster prod has not been heard from yet")
	_, err := w.forge.Review(t.Context(), w.repo, number, "alice", giteatest.Approve, "")
	w.must(err)
	w.shows(number, "pending", "success", "Approved by alice")
}
