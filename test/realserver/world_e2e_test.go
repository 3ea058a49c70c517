//go:build e2e

package realserver_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/test/realserver"
)

var world *realserver.World

func TestMain(m *testing.M) {
	os.Exit(realserver.RunTests(m, realserver.WorldOptions{}, func(w *realserver.World) { world = w }))
}

// limit returns a context that ends before the test's patience does.
func limit(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// applied is met when Flux has applied a commit.
func applied(sha string) realserver.Condition {
	return func(o *unstructured.Unstructured) (bool, string) {
		revision, _, _ := unstructured.NestedString(o.Object, "status", "lastAppliedRevision")
		return revision == "main@sha1:"+sha, "it has applied " + revision
	}
}

func TestFluxAppliesTheSeededRepository(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	clock := time.Now()
	lap := func(what string) { t.Logf("%-50s %6.2fs", what, time.Since(clock).Seconds()); clock = time.Now() }

	repo := plant(ctx, t)
	lap("planted")
	if err := repo.RemoveStorageProfiles(ctx); err != nil {
		t.Fatal(err)
	}
	if err := world.Flux.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	lap("made Flux forget the kind")
	if err := repo.Bootstrap(ctx); err != nil {
		t.Fatal(err)
	}
	lap("bootstrapped")
	ready := realserver.HasCondition("Ready", "True")
	if _, err := world.Kube.Wait(ctx, repo.Kustomization("platform"), ready); err != nil {
		t.Fatal(err)
	}
	lap("platform is Ready")
	refused := func(o *unstructured.Unstructured) (bool, string) {
		c, _ := realserver.StatusCondition(o, "Ready")
		return c.Status == "False" && strings.Contains(c.Message, `no matches for kind "StorageProfile"`), c.Message
	}
	if _, err := world.Kube.Wait(ctx, repo.Kustomization("platform-config"), refused); err != nil {
		t.Fatal(err)
	}
	lap("platform-config is not Ready")
	if err := repo.InstallStorageProfiles(ctx); err != nil {
		t.Fatal(err)
	}
	lap("installed the kind")
	for _, tier := range []string{"platform-config", "apps"} {
		if _, err := world.Kube.Wait(ctx, repo.Kustomization(tier), ready); err != nil {
			t.Fatal(err)
		}
		lap(tier + " is Ready")
	}
	if err := repo.Uproot(ctx); err != nil {
		t.Fatal(err)
	}
	lap("uprooted")
	gateway := realserver.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: repo.Namespace, Name: "gateway"}
	if err := world.Kube.WaitGone(ctx, gateway); err != nil {
		t.Errorf("what Flux created was not pruned: %v", err)
	}
}
