//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

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
	k.apply("", "")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := world.Kube.Delete(ctx, k.manifest("", "")); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k tier) String() string { return k.namespace + "/" + k.name }

func (k tier) ref() realserver.Ref {
	return realserver.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: k.namespace, Name: k.name}
}

// manifest is the object with further fields of its metadata and spec, as a
// flow mapping continues.
func (k tier) manifest(metadata, spec string) []byte {
	return fmt.Appendf(nil, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: %s%s}
spec: {interval: 1h, prune: false, sourceRef: {kind: GitRepository, name: nobody}%s}
`, k.name, k.namespace, metadata, spec)
}

// apply applies the manifest.
func (k tier) apply(metadata, spec string) {
	k.t.Helper()
	if err := world.Kube.Apply(k.t.Context(), k.manifest(metadata, spec)); err != nil {
		k.t.Fatal(err)
	}
}

// delete asks for the end of the object and does not wait for it.
func (k tier) delete() {
	k.t.Helper()
	if err := kustomizations(k.namespace).Delete(k.t.Context(), k.name, metav1.DeleteOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

func kustomizations(namespace string) dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	return world.Kube.Dynamic().Resource(resource).Namespace(namespace)
}

// ready says that a commit of main is applied.
func (k tier) ready(sha string) {
	k.t.Helper()
	k.applied("main@sha1:" + sha)
}

// applied says that a revision is applied, as a source spells it.
func (k tier) applied(revision string) {
	k.t.Helper()
	k.status(revision, condition{"True", "ReconciliationSucceeded", "Applied revision: " + revision})
}

func (k tier) failing(sha, message string) {
	k.t.Helper()
	k.status("main@sha1:"+sha, condition{"False", "ReconciliationFailed", message})
}

func (k tier) progressing(sha string) {
	k.t.Helper()
	k.status("main@sha1:"+sha, condition{"Unknown", "Progressing", "Reconciliation in progress"})
}

// condition is a Ready condition.
type condition struct{ status, reason, message string }

// status writes the status that the controller would: a revision is applied,
// and the latest generation is observed.
func (k tier) status(revision string, ready condition) {
	k.t.Helper()
	ctx := k.t.Context()
	// Without the retry that a controller would do: nobody else writes.
	o, err := world.Kube.Get(ctx, k.ref())
	if err != nil {
		k.t.Fatal(err)
	}
	o.Object["status"] = map[string]any{
		"observedGeneration":  o.GetGeneration(),
		"lastAppliedRevision": revision,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": ready.status, "reason": ready.reason, "message": ready.message,
			"observedGeneration": o.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}
	if _, err := kustomizations(k.namespace).UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}
