package kubetest_test

import (
	"io"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/kube/kubetest"
)

func node(name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}}}
	o.SetLabels(labels)
	return o
}

func TestDiscovery(t *testing.T) {
	c := kubetest.New()
	c.Serve(kubetest.Volumes, kubetest.Nodes)
	d := c.Discovery()
	g, err := d.Group(t.Context(), "longhorn.io")
	if err != nil || g.PreferredVersion.Version != "v1beta2" || len(g.Versions) != 2 {
		t.Errorf("group %+v, %v", g, err)
	}
	l, err := d.Resources(t.Context(), schema.GroupVersion{Version: "v1"})
	if err != nil || len(l.APIResources) != 2 || l.APIResources[0].Name != "nodes" || l.APIResources[0].Namespaced || l.APIResources[1].Name != "nodes/status" {
		t.Errorf("resources %+v, %v", l, err)
	}
	c.Withdraw(kubetest.Volumes)
	if _, err := d.Group(t.Context(), "longhorn.io"); !apierrors.IsNotFound(err) {
		t.Errorf("a group that is gone: %v", err)
	}
	if _, err := d.Resources(t.Context(), schema.GroupVersion{Group: "longhorn.io", Version: "v1beta2"}); !apierrors.IsNotFound(err) {
		t.Errorf("a version that is gone: %v", err)
	}
	c.Break(kubetest.Forbid("discover", "api/v1"))
	if _, err := d.Resources(t.Context(), schema.GroupVersion{Version: "v1"}); !apierrors.IsForbidden(err) {
		t.Errorf("forbidden: %v", err)
	}
}

func TestPagesAndLabels(t *testing.T) {
	c := kubetest.New()
	c.Serve(kubetest.Nodes)
	for _, n := range []string{"a", "b", "c"} {
		if err := c.Apply(node(n, map[string]string{"name": n})); err != nil {
			t.Fatal(err)
		}
	}
	r := c.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	o := metav1.ListOptions{Limit: 2}
	var pages []int
	for {
		l, err := r.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, len(l.Items))
		if o.Continue = l.GetContinue(); o.Continue == "" {
			break
		}
	}
	if len(pages) != 2 || pages[0] != 2 || pages[1] != 1 {
		t.Errorf("pages of %v, want 2 and 1", pages)
	}
	l, err := r.List(t.Context(), metav1.ListOptions{LabelSelector: "name in (a,c)"})
	if err != nil || len(l.Items) != 2 {
		t.Errorf("%d with a label, %v", len(l.Items), err)
	}
	if _, err := r.List(t.Context(), metav1.ListOptions{LabelSelector: "a in"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a bad selector: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		w, err := r.Watch(t.Context(), metav1.ListOptions{LabelSelector: "name=a", ResourceVersion: l.GetResourceVersion()})
		if err != nil {
			t.Fatal(err)
		}
		for _, labels := range []map[string]string{nil, {"name": "a"}, {"name": "a", "x": "y"}} {
			if err := c.Apply(node("a", labels)); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, w, "DELETED a", "ADDED a", "MODIFIED a", "nothing")
		w.Stop()
	})
}

func TestLogs(t *testing.T) {
	c := kubetest.New()
	if _, err := c.Logs(t.Context(), "ns", "pod", "main", 10); !apierrors.IsInternalError(err) {
		t.Errorf("without a log: %v", err)
	}
	c.SetLog("ns", "pod", "main", "hello world")
	l, err := c.Logs(t.Context(), "ns", "pod", "main", 5)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(l); err != nil || string(data) != "hello" {
		t.Errorf("log %q, %v", data, err)
	}
}
