package kube_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/kube"
	"signalbox/internal/kube/kubetest"
)

func TestWishRules(t *testing.T) {
	objects := func(q fact.ObjectsQuery) fact.Wish { return fact.WishObjects("prod", q) }
	wishes := []fact.Wish{
		objects(fact.ObjectsQuery{Resource: "volumes.v1beta2.longhorn.io", Namespace: "longhorn-system", Test: "true"}),
		objects(fact.ObjectsQuery{Resource: "volumes.longhorn.io", Namespace: "longhorn-system"}),
		objects(fact.ObjectsQuery{Resource: "nodes"}),
		objects(fact.ObjectsQuery{Resource: "persistentvolumes"}),
		objects(fact.ObjectsQuery{Resource: "deployments.apps", Namespace: "web", Name: "shop"}),
		objects(fact.ObjectsQuery{Resource: "secrets", Namespace: "web"}),
		fact.WishKured("prod", fact.KuredQuery{Namespace: "kube-system", Name: "kured"}),
	}
	read := []string{"list", "watch"}
	want := []kube.Scope{
		{Rules: []kube.Rule{{APIGroups: []string{""}, Resources: []string{"nodes", "persistentvolumes"}, Verbs: read}}},
		{Namespace: "kube-system", Rules: []kube.Rule{{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, ResourceNames: []string{"kured"}, Verbs: read}}},
		{Namespace: "longhorn-system", Rules: []kube.Rule{{APIGroups: []string{"longhorn.io"}, Resources: []string{"volumes"}, Verbs: read}}},
		{Namespace: "web", Rules: []kube.Rule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"shop"}, Verbs: read}}},
	}
	if diff := cmp.Diff(want, kube.WishRules(wishes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := kube.WishRules(nil); got != nil {
		t.Errorf("no wishes need %+v", got)
	}
}

func TestMissingRights(t *testing.T) {
	c := kubetest.New()
	rights := kube.WishRights([]fact.Wish{fact.WishKured("prod", fact.KuredQuery{Namespace: "kube-system", Name: "kured"})})
	cfg := func(may func(kube.Right) bool, err error) kube.Config {
		return kube.Config{Cluster: "prod", Client: reviewed{c.Client(), may, err}, Probe: c.Probe}
	}
	missing, fault, err := kube.MissingRights(t.Context(), cfg(func(r kube.Right) bool { return r.Resource != "daemonsets" || r.Verb == "list" }, nil), rights)
	if err != nil || fault != "" {
		t.Fatal(fault, err)
	}
	if diff := cmp.Diff([]string{"watch daemonsets.apps kured in kube-system"}, words(missing)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, fault, err = kube.MissingRights(t.Context(), cfg(nil, errors.New("no reviews here")), rights)
	if err != nil || !strings.Contains(fault, "no reviews here") {
		t.Errorf("fault %q, %v", fault, err)
	}
	if _, _, err = kube.MissingRights(t.Context(), kube.Config{}, rights); err == nil {
		t.Error("no error of a configuration without a cluster")
	}
}
