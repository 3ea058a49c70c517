//go:build e2e

package replica

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/test/realserver"
)

// tier is a Kustomization that the test looks after in the place of Flux.
type tier struct {
	t    *testing.T
	name string
}

var tiers atomic.Int32

// newTier makes a Kustomization that is ready. It is gone when the test ends.
func newTier(t *testing.T) tier {
	t.Helper()
	k := tier{t, fmt.Sprintf("tier-%d", tiers.Add(1))}
	manifest := fmt.Appendf(nil, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: %s}
spec: {interval: 1h, prune: false, sourceRef: {kind: GitRepository, name: nobody}}
`, k.name, realserver.FluxNamespace)
	if err := cluster.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := cluster.Delete(ctx, manifest); err != nil {
			t.Error(err)
		}
	})
	k.is(true)
	return k
}

// is says that the tier is ready, or that it fails.
func (k tier) is(ready bool) {
	k.t.Helper()
	ctx := k.t.Context()
	ref := realserver.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: realserver.FluxNamespace, Name: k.name}
	o, err := cluster.Get(ctx, ref)
	if err != nil {
		k.t.Error(err)
		return
	}
	status, reason, message := "True", "ReconciliationSucceeded", "Applied revision: main@sha1:abc"
	if !ready {
		status, reason, message = "False", "BuildFailed", "kustomize build failed"
	}
	o.Object["status"] = map[string]any{
		"observedGeneration": o.GetGeneration(), "lastAppliedRevision": "main@sha1:abc",
		"conditions": []any{map[string]any{
			"type": "Ready", "status": status, "reason": reason, "message": message,
			"observedGeneration": o.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}
	resource := schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	if _, err := cluster.Dynamic().Resource(resource).Namespace(realserver.FluxNamespace).UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
		k.t.Error(err)
	}
}
