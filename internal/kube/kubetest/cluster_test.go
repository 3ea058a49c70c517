package kubetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"signalbox/internal/kube/kubetest"
)

var kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

func list(t *testing.T, r dynamic.ResourceInterface) *unstructured.UnstructuredList {
	t.Helper()
	l, err := r.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// next returns what a watch tells next: the type, and the name of the object.
// It must run in a bubble of synctest.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			return "closed"
		}
		if o, ok := e.Object.(*unstructured.Unstructured); ok {
			return string(e.Type) + " " + o.GetName()
		}
		return string(e.Type)
	case <-time.After(time.Minute):
		return "nothing"
	}
}

func expect(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, s := range want {
		if got := next(t, w); got != s {
			t.Errorf("the watch tells %q, want %q", got, s)
		}
	}
}

func TestWatchResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kubetest.New()
		r := c.Client().Resource(kustomizations)
		c.Kustomization("flux-system", "a").Ready("1")
		from := list(t, r).GetResourceVersion()
		c.Kustomization("flux-system", "b").Ready("1")
		c.Kustomization("flux-system", "a").Delete()

		w, err := r.Watch(t.Context(), metav1.ListOptions{ResourceVersion: from})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, w, "ADDED b", "DELETED a", "nothing")
		c.Kustomization("flux-system", "b").Progressing()
		expect(t, w, "MODIFIED b")
		c.Cut()
		expect(t, w, "closed")

		c.Forget()
		if _, err := r.Watch(t.Context(), metav1.ListOptions{ResourceVersion: from}); !apierrors.IsResourceExpired(err) {
			t.Errorf("resumed from a forgotten version: %v", err)
		}
	})
}

func TestWatchBeginsWithTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kubetest.New()
		c.Kustomization("flux-system", "a").Ready("1")
		yes := true
		o := metav1.ListOptions{SendInitialEvents: &yes}
		for mute, last := range map[bool]string{false: "BOOKMARK ", true: "nothing"} {
			c.Mute(mute)
			w, err := c.Client().Resource(kustomizations).Watch(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, w, "ADDED a", last)
			w.Stop()
			expect(t, w, "closed")
		}
		o.ResourceVersion = "999999"
		w, err := c.Client().Resource(kustomizations).Watch(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, w, "ERROR", "closed")
		c.Break(nil)
	})
}

func TestWatchFromTheFutureHearsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kubetest.New()
		ctx, cancel := context.WithCancel(t.Context())
		w, err := c.Client().Resource(kustomizations).Watch(ctx, metav1.ListOptions{ResourceVersion: "999999"})
		if err != nil {
			t.Fatal(err)
		}
		c.Kustomization("flux-system", "a").Ready("1")
		expect(t, w, "nothing")
		cancel()
		expect(t, w, "closed")
	})
}

func TestIdentity(t *testing.T) {
	c := kubetest.New()
	r := c.Client().Resource(kustomizations)
	get := func() *unstructured.Unstructured {
		o, err := r.Namespace("flux-system").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	c.Kustomization("flux-system", "a").Ready("1")
	first := get()
	c.Kustomization("flux-system", "a").Progressing()
	if o := get(); o.GetUID() != first.GetUID() || o.GetResourceVersion() == first.GetResourceVersion() || o.GetGeneration() != 1 {
		t.Errorf("after a change of the status: uid %s, version %s, generation %d", o.GetUID(), o.GetResourceVersion(), o.GetGeneration())
	}
	c.Kustomization("flux-system", "a").Suspended()
	if o := get(); o.GetGeneration() != 2 {
		t.Errorf("generation %d after a change of the spec, want 2", o.GetGeneration())
	}
	c.Kustomization("flux-system", "a").Delete()
	c.Kustomization("flux-system", "a").Ready("1")
	if o := get(); o.GetUID() == first.GetUID() {
		t.Error("the object that was created again has the uid of the deleted one")
	}
	c.Kustomization("other", "a").Ready("1")
	if n := len(list(t, r.Namespace("other")).Items); n != 1 {
		t.Errorf("%d objects in the namespace, want 1", n)
	}
}

func TestKindsAndVersions(t *testing.T) {
	c := kubetest.New("Kustomization")
	c.InstallVersions("Kustomization", "v1", "v1beta2")
	c.Kustomization("flux-system", "a").Ready("1")
	older := kustomizations
	older.Version = "v1beta2"
	if o := list(t, c.Client().Resource(older)).Items[0]; o.GetAPIVersion() != "kustomize.toolkit.fluxcd.io/v1beta2" {
		t.Errorf("the object is of %s", o.GetAPIVersion())
	}
	c.Remove("Kustomization")
	if _, err := c.Client().Resource(kustomizations).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("listed a kind that is not installed: %v", err)
	}
	if _, err := c.Client().Resource(kustomizations).Namespace("x").Create(t.Context(), nil, metav1.CreateOptions{}); err == nil {
		t.Error("the client wrote")
	}
}

func TestFaults(t *testing.T) {
	c := kubetest.New()
	r := c.Client().Resource(kustomizations)
	for name, tt := range map[string]struct {
		fault kubetest.Fault
		is    func(error) bool
	}{
		"forbidden": {kubetest.Forbid("list", ""), apierrors.IsForbidden},
		"expired":   {kubetest.Expired, apierrors.IsUnauthorized},
		"hang":      {kubetest.Hang, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"mended":    {nil, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			c.Break(tt.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := r.List(ctx, metav1.ListOptions{}); !tt.is(err) {
				t.Errorf("List = %v", err)
			}
		})
	}
	c.Break(kubetest.Down)
	if _, err := c.Probe(t.Context()); err == nil {
		t.Error("a cluster that is down answers the probe")
	}
}
