package kube_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
	"signalbox/internal/kube"
	"signalbox/internal/kube/kubetest"
)

func TestInspectWishes(t *testing.T) {
	c := kubetest.New()
	c.Serve(kubetest.Nodes, kubetest.DaemonSets, kubetest.Volumes, kubetest.CronJobs, kubetest.Jobs)
	if err := c.Apply(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": map[string]any{"namespace": "kube-system", "name": "kured"},
	}}); err != nil {
		t.Fatal(err)
	}
	requests := map[string]int{}
	c.Break(func(_ context.Context, r kubetest.Request) error {
		requests[r.Verb+" "+r.Resource]++
		return nil
	})
	wishes := []fact.Wish{
		fact.WishKured("prod", fact.KuredQuery{Namespace: "kube-system", Name: "kured"}),
		fact.WishKured("prod", fact.KuredQuery{Namespace: "kube-system", Name: "gone"}),
		fact.WishObjects("prod", fact.ObjectsQuery{Resource: "volumes.longhorn.io", Namespace: "longhorn-system"}),
		fact.WishObjects("prod", fact.ObjectsQuery{Resource: "volumes.longhorn.io", Namespace: "longhorn-system", Test: "true"}),
		fact.WishObjects("prod", fact.ObjectsQuery{Resource: "datavolumes.cdi.kubevirt.io"}),
		fact.WishObjects("prod", fact.ObjectsQuery{Resource: "nodes", Namespace: "web"}),
		fact.WishObjects("prod", fact.ObjectsQuery{Resource: "secrets"}),
		fact.WishRenovate("prod", fact.RenovateQuery{Namespace: "renovate", Name: "renovate"}),
	}
	may := func(r kube.Right) bool {
		return r.Resource != "volumes" && r.Name != "gone" && (r.Resource != "pods" || r.Verb != "get")
	}
	got, err := kube.InspectWishes(t.Context(), kube.Config{
		Cluster: "prod", Client: reviewed{c.Client(), may, nil}, Probe: c.Probe, Discovery: c.Discovery(),
	}, wishes)
	if err != nil || got.RightsFault != "" || len(got.Wishes) != len(wishes) {
		t.Fatal(got, err)
	}
	var told []string
	for i, w := range got.Wishes {
		if diff := cmp.Diff(wishes[i], w.Wish); diff != "" {
			t.Errorf("wish %d (-want +got):\n%s", i, diff)
		}
		parts := []string{w.Refused, w.NotInstalled, w.Fault, strings.Join(w.Absent, "+"), strings.Join(words(w.Missing), "+")}
		told = append(told, strings.Join(parts, "|"))
	}
	const volumes = "||||list volumes.longhorn.io in longhorn-system+watch volumes.longhorn.io in longhorn-system"
	if diff := cmp.Diff([]string{
		"||||",
		"||||list daemonsets.apps gone in kube-system+watch daemonsets.apps gone in kube-system",
		volumes, volumes,
		"|the cluster has no resource datavolumes.cdi.kubevirt.io; it has no API group cdi.kubevirt.io|||",
		"nodes are in no namespace; ask for them without one||||",
		`resource "secrets": secrets are never read||||`,
		"|||cronjobs.batch renovate in renovate|get pods/log in renovate",
	}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := requests["discover apis/longhorn.io"]; n != 1 {
		t.Errorf("one group was asked for %d times", n)
	}
}

func TestInspectWishesOfWhatFails(t *testing.T) {
	c := kubetest.New()
	c.Serve(kubetest.Nodes)
	c.Break(kubetest.Forbid("discover", "api/v1"))
	cfg := kube.Config{Cluster: "prod", Client: reviewed{c.Client(), least, nil}, Probe: c.Probe, Discovery: c.Discovery()}
	got, err := kube.InspectWishes(t.Context(), cfg, []fact.Wish{fact.WishObjects("prod", fact.ObjectsQuery{Resource: "nodes"})})
	if err != nil || !strings.Contains(got.Wishes[0].Fault, "missing right: discover the resources of v1") {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := kube.InspectWishes(t.Context(), kube.Config{}, nil); err == nil {
		t.Error("no error of a configuration without a cluster")
	}
}

func TestAppliedRevisions(t *testing.T) {
	c := kubetest.New()
	cfg := kube.Config{Cluster: "prod", Client: c.Client(), Probe: c.Probe}
	commit := strings.Repeat("a", 40)
	for _, name := range []string{"apps", "config"} {
		c.Kustomization("flux-system", name).Ready("main@sha1:" + commit)
	}
	c.Kustomization("flux-system", "new")
	got, err := kube.AppliedRevisions(t.Context(), cfg)
	if diff := cmp.Diff([]fact.Revision{{Branch: "main", Commit: commit}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	c.Remove("Kustomization")
	if got, err := kube.AppliedRevisions(t.Context(), cfg); got != nil || err != nil {
		t.Errorf("without Flux: %v, %v", got, err)
	}
	c.Break(kubetest.Down)
	if _, err := kube.AppliedRevisions(t.Context(), cfg); err == nil {
		t.Error("no error of a cluster that is down")
	}
}
