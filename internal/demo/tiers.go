package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/fact"
)

// kustomizations reads the Kustomization of each tier.
func (w *World) kustomizations(ctx context.Context) ([]*unstructured.Unstructured, error) {
	client := w.Cluster.Client().Resource(schema.GroupVersionResource{
		Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations",
	}).Namespace(namespace)
	objects := make([]*unstructured.Unstructured, len(tiers))
	for i, name := range tiers {
		var err error
		if objects[i], err = client.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("read Kustomization %s on %s: %w", name, Cluster, err)
		}
	}
	return objects, nil
}

// reconcileTime is how long Flux is at work.
const reconcileTime = 400 * time.Millisecond

// reconcile lets Flux reconcile every tier, as it does at each interval, and
// come to the result that it had. It leaves what is suspended alone.
func (w *World) reconcile(ctx context.Context) error {
	objects, err := w.kustomizations(ctx)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, suspended)
	for _, o := range objects {
		w.tier(o.GetName()).Progressing()
	}
	if err := wait(ctx, reconcileTime); err != nil {
		return err
	}
	for _, o := range objects {
		if err := w.Cluster.Apply(o); err != nil {
			return err
		}
	}
	return nil
}

// showTiers shows the Kustomizations as the client of Flux does.
func (p *player) showTiers(ctx context.Context) error {
	objects, err := p.world.kustomizations(ctx)
	if err != nil {
		return err
	}
	rows := make([][]string, len(objects))
	for i, o := range objects {
		rows[i] = tierRow(o)
	}
	p.screen.table(gutter, []string{"KUSTOMIZATION", "READY", "REVISION", "MESSAGE"}, rows)
	return nil
}

func suspended(o *unstructured.Unstructured) bool {
	// A field that is missing or odd is false.
	is, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	return is
}

func tierRow(o *unstructured.Unstructured) []string {
	status, message := "-", "-"
	// A field that is missing or odd is shown as a dash.
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" {
			status, message = fmt.Sprint(m["status"]), fmt.Sprint(m["message"])
		}
	}
	if suspended(o) {
		status = "Suspended"
	}
	applied, _, _ := unstructured.NestedString(o.Object, "status", "lastAppliedRevision")
	commit := fact.ParseRevision(applied).Commit
	return []string{o.GetName(), status, commit[:min(len(commit), 10)], message}
}
