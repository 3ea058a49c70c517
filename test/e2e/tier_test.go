//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/test/realserver"
)

// withoutFlux stops Flux until the test ends, so that nobody but the test says
// how its objects are.
func withoutFlux(t *testing.T) {
	t.Helper()
	world.Flux.Kill()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := world.Flux.Restart(ctx); err != nil {
			t.Error(err)
		}
	})
}

// tier is a Kustomization that the test looks after in the place of Flux.
type tier struct {
	t               *testing.T
	namespace, name string
}

// newTier makes a Kustomization that was never reconciled. It is gone when the
// test ends.
func newTier(t *testing.T, namespace, name string) tier {
	t.Helper()
	k := tier{t, namespace, name}
	if err := world.Kube.CreateNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	k.spec("")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := world.Kube.Delete(ctx, k.manifest("")); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k tier) String() string { return k.namespace + "/" + k.name }

func (k tier) ref() realserver.Ref {
	return realserver.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: k.namespace, Name: k.name}
}

// manifest is the object with further fields of its spec, as a flow mapping
// continues.
func (k tier) manifest(more string) []byte {
	return fmt.Appendf(nil, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: %s}
spec: {interval: 1h, prune: false, sourceRef: {kind: GitRepository, name: nobody}%s}
`, k.name, k.namespace, more)
}

func (k tier) spec(more string) {
	k.t.Helper()
	if err := world.Kube.Apply(k.t.Context(), k.manifest(more)); err != nil {
		k.t.Fatal(err)
	}
}

func (k tier) remove() {
	k.t.Helper()
	if err := world.Kube.Delete(k.t.Context(), k.manifest("")); err != nil {
		k.t.Fatal(err)
	}
}

// ready says that a commit of main is applied.
func (k tier) ready(sha string) {
	k.t.Helper()
	k.status(sha, condition{"True", "ReconciliationSucceeded", "Applied revision: main@sha1:" + sha})
}

func (k tier) failing(sha, message string) {
	k.t.Helper()
	k.status(sha, condition{"False", "ReconciliationFailed", message})
}

func (k tier) progressing(sha string) {
	k.t.Helper()
	k.status(sha, condition{"Unknown", "Progressing", "Reconciliation in progress"})
}

// condition is a Ready condition.
type condition struct{ status, reason, message string }

// status writes the status that the controller would: applied is a commit of
// main, and the latest generation is observed.
func (k tier) status(applied string, ready condition) {
	k.t.Helper()
	ctx := k.t.Context()
	// Without the retry that a controller would do: nobody else writes.
	o, err := world.Kube.Get(ctx, k.ref())
	if err != nil {
		k.t.Fatal(err)
	}
	o.Object["status"] = map[string]any{
		"observedGeneration":  o.GetGeneration(),
		"lastAppliedRevision": "main@sha1:" + applied,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": ready.status, "reason": ready.reason, "message": ready.message,
			"observedGeneration": o.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}
	if err := updateStatus(ctx, o); err != nil {
		k.t.Fatal(err)
	}
}

func updateStatus(ctx context.Context, o *unstructured.Unstructured) error {
	resource := schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	_, err := world.Kube.Dynamic().Resource(resource).Namespace(o.GetNamespace()).UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return err
}
