package kube

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// kind is a kind of object that is watched. Its version is read from the
// cluster.
type kind struct {
	kind     string
	group    string
	resource string
}

// API groups of Flux.
const (
	groupKustomize = "kustomize.toolkit.fluxcd.io"
	groupHelm      = "helm.toolkit.fluxcd.io"
	groupSource    = "source.toolkit.fluxcd.io"
)

// kinds returns every kind that is watched.
func kinds() []kind {
	return []kind{
		{"Kustomization", groupKustomize, "kustomizations"},
		{"HelmRelease", groupHelm, "helmreleases"},
		{"GitRepository", groupSource, "gitrepositories"},
		{"OCIRepository", groupSource, "ocirepositories"},
		{"HelmRepository", groupSource, "helmrepositories"},
		{"HelmChart", groupSource, "helmcharts"},
		{"Bucket", groupSource, "buckets"},
	}
}

// name is the kind as facts spell it.
func (k kind) name() string { return strings.ToLower(k.kind) }

// crd is the name of the kind's CustomResourceDefinition.
func (k kind) crd() string { return k.resource + "." + k.group }

// crdResource is the resource of CustomResourceDefinitions.
func crdResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// servedVersion returns the version in which to read the objects of a
// CustomResourceDefinition, or "" and why there is none. The storage version
// is preferred, since it alone needs no conversion; if it is not served, the
// highest served one is taken.
func servedVersion(crd *unstructured.Unstructured) (v, why string) {
	if c := condition(crd.Object, "Established"); c.Status != "True" {
		why := "its CustomResourceDefinition is not established"
		if n := condition(crd.Object, "NamesAccepted"); n.Status == "False" && n.Message != "" {
			why += ": " + n.Message
		}
		return "", why
	}
	var served []string
	for _, item := range list(crd.Object, "spec", "versions") {
		m, _ := item.(map[string]any)
		name := text(m, "name")
		if name == "" || !flag(m, "served") {
			continue
		}
		if flag(m, "storage") {
			return name, ""
		}
		served = append(served, name)
	}
	if len(served) == 0 {
		return "", "its CustomResourceDefinition serves no version"
	}
	return slices.MaxFunc(served, version.CompareKubeAwareVersionStrings), ""
}

// Rule is a rule of a Kubernetes ClusterRole, with the field names of RBAC.
type Rule struct {
	APIGroups     []string `json:"apiGroups" yaml:"apiGroups"`
	Resources     []string `json:"resources" yaml:"resources"`
	ResourceNames []string `json:"resourceNames,omitempty" yaml:"resourceNames,omitempty"`
	Verbs         []string `json:"verbs" yaml:"verbs"`
}

// RequiredRules returns the least that a [Watcher] needs, as the rules of a
// ClusterRole. It reads only; of the CustomResourceDefinitions only those of
// the watched kinds, each by its name.
func RequiredRules() []Rule {
	read := []string{"list", "watch"}
	var rules []Rule
	var crds []string
	for _, k := range kinds() {
		crds = append(crds, k.crd())
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.APIGroups[0] == k.group })
		if i < 0 {
			i = len(rules)
			rules = append(rules, Rule{APIGroups: []string{k.group}, Verbs: read})
		}
		rules[i].Resources = append(rules[i].Resources, k.resource)
	}
	crd := crdResource()
	return append(rules, Rule{APIGroups: []string{crd.Group}, Resources: []string{crd.Resource}, ResourceNames: crds, Verbs: read})
}
