//go:build e2e

package realserver_test

import (
	"testing"
	"time"

	"signalbox/test/realserver"
)

// TestSecondCluster starts a cluster of its own, in which Flux's kinds come and go.
func TestSecondCluster(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	started := time.Now()
	k, err := realserver.StartKube(ctx, realserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Stop()
	t.Logf("the cluster was up after %s", time.Since(started).Round(10*time.Millisecond))
	if k.Addr() == world.Kube.Addr() {
		t.Fatal("it is the cluster of the world")
	}

	manifest := []byte(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: home, namespace: default}
spec: {interval: 1m, url: "https://example.org/ops/home-gitops.git"}
`)
	home := realserver.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "default", Name: "home"}
	for range 2 { // Twice, because the second time nothing is new to the clients.
		if err := realserver.InstallFluxCRDs(ctx, k, realserver.Builder{}); err != nil {
			t.Fatal(err)
		}
		if err := k.Apply(ctx, manifest); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Get(ctx, home); err != nil {
			t.Fatal(err)
		}
		if err := realserver.RemoveFluxCRDs(ctx, k, realserver.Builder{}); err != nil {
			t.Fatal(err)
		}
		if o, err := k.Get(ctx, home); err == nil {
			t.Errorf("without its kind there is still %v", o)
		}
	}
	if err := k.Delete(ctx, manifest); err != nil {
		t.Errorf("deleting what does not exist: %v", err)
	}
}
