package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// definitionOf makes a definition that is established or not.
func definitionOf(established string, versions ...any) tree {
	return tree{
		"kind": "CustomResourceDefinition",
		"spec": tree{"versions": versions},
		"status": tree{"conditions": []any{
			tree{"type": "NamesAccepted", "status": established, "message": "kind is taken"},
			tree{"type": "Established", "status": established},
		}},
	}
}

func TestServedVersion(t *testing.T) {
	version := func(name string, served, storage bool) any {
		return tree{"name": name, "served": served, "storage": storage}
	}
	tests := map[string]struct {
		crd  tree
		want string
		why  string
	}{
		"the storage version": {
			definitionOf("True", version("v1", true, false), version("v1beta2", true, true)), "v1beta2", "",
		},
		"the storage version is not served": {
			definitionOf("True", version("v1beta2", true, false), version("v2", true, false), version("v2beta1", true, false), version("v3alpha1", false, true)), "v2", "",
		},
		"none is served": {
			definitionOf("True", version("v1", false, true)), "", "its CustomResourceDefinition serves no version",
		},
		"not established": {
			definitionOf("False", version("v1", true, true)), "", "its CustomResourceDefinition is not established: kind is taken",
		},
		"without a status": {
			tree{"kind": "CustomResourceDefinition", "spec": tree{"versions": []any{version("v1", true, true)}}}, "", "its CustomResourceDefinition is not established",
		},
		"odd": {
			definitionOf("True", "v1", tree{"name": 1, "served": true}), "", "its CustomResourceDefinition serves no version",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v, why := servedVersion(tt.crd.object(t))
			if v != tt.want || why != tt.why {
				t.Errorf("servedVersion = %q, %q, want %q, %q", v, why, tt.want, tt.why)
			}
		})
	}
}

func TestRequiredRules(t *testing.T) {
	read := []string{"list", "watch"}
	want := []Rule{
		{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}, Verbs: read},
		{APIGroups: []string{"helm.toolkit.fluxcd.io"}, Resources: []string{"helmreleases"}, Verbs: read},
		{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"gitrepositories", "ocirepositories", "helmrepositories", "helmcharts", "buckets"}, Verbs: read},
		{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: read,
			ResourceNames: []string{
				"kustomizations.kustomize.toolkit.fluxcd.io", "helmreleases.helm.toolkit.fluxcd.io", "gitrepositories.source.toolkit.fluxcd.io",
				"ocirepositories.source.toolkit.fluxcd.io", "helmrepositories.source.toolkit.fluxcd.io", "helmcharts.source.toolkit.fluxcd.io", "buckets.source.toolkit.fluxcd.io",
			},
		},
	}
	if diff := cmp.Diff(want, RequiredRules()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
