//go:build e2e

package deploy

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/kube"
	"signalbox/test/realserver"
)

// documented are the rights that docs/operations.md names, and those of what the
// components read-nodes, read-storage, read-kured and read-renovate are for.
func documented() []kube.Right {
	clusters := []string{"home"}
	wishes := append(digest.Wishes(clusters, digest.DefaultChecks(), digest.DefaultKured()[:1]),
		fact.WishRenovate(clusters[0], fact.RenovateQuery{Namespace: "renovate", Name: "renovate"}))
	return sorted(append(rightsOf("", kube.RequiredRules()), kube.WishRights(wishes)...))
}

// rightsOf takes rules apart.
func rightsOf(namespace string, rules []kube.Rule) []kube.Right {
	var out []kube.Right
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, name := range names {
					for _, verb := range r.Verbs {
						out = append(out, kube.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name})
					}
				}
			}
		}
	}
	return out
}

func sorted(rights []kube.Right) []kube.Right {
	slices.SortFunc(rights, func(a, b kube.Right) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb))
	})
	return slices.Compact(rights)
}

// differ returns the rights that are documented and not granted, and those that
// are granted and not documented.
func differ(granted, documented []kube.Right) (missing, excess []kube.Right) {
	for _, r := range documented {
		if !slices.Contains(granted, r) {
			missing = append(missing, r)
		}
	}
	for _, r := range granted {
		if !slices.Contains(documented, r) {
			excess = append(excess, r)
		}
	}
	return missing, excess
}

// namespaces are those in which rights are looked at: where roles are, and where
// none should be.
var namespaces = []string{namespace, "default", "kube-system", realserver.FluxNamespace, "renovate"}

// granted asks the API server for everything that an account may do, beside
// what each account may. A right that it has in every namespace is one of the
// whole cluster.
func granted(t *testing.T, account realserver.Access) []kube.Right {
	t.Helper()
	mine, anybody := rulesOf(t, account), rulesOf(t, nobody(t))
	counts := map[kube.Right]int{}
	var out []kube.Right
	for _, n := range namespaces {
		for _, r := range mine[n] {
			if slices.Contains(anybody[n], r) {
				continue
			}
			r.Namespace = ""
			if counts[r]++; counts[r] == len(namespaces) {
				out = append(out, r)
			}
		}
	}
	for _, n := range namespaces {
		for _, r := range mine[n] {
			whole := r
			whole.Namespace = ""
			if counts[whole] > 0 && counts[whole] < len(namespaces) {
				out = append(out, r)
			}
		}
	}
	return sorted(out)
}

// nobody is an account without any role.
func nobody(t *testing.T) realserver.Access {
	t.Helper()
	if err := world.Kube.Apply(t.Context(), []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: nobody, namespace: default}\n")); err != nil {
		t.Fatal(err)
	}
	access, err := world.Kube.ServiceAccount(t.Context(), "default", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	return access
}

// rulesOf returns what an account may do in each namespace. Paths beside
// resources are resources without a group here.
func rulesOf(t *testing.T, account realserver.Access) map[string][]kube.Right {
	t.Helper()
	config, err := account.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	reviews := client.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectrulesreviews"})
	out := map[string][]kube.Right{}
	for _, n := range namespaces {
		answer, err := reviews.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": map[string]any{"namespace": n},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(answer.Object)
		if err != nil {
			t.Fatal(err)
		}
		var review authorizationv1.SelfSubjectRulesReview
		if err := json.Unmarshal(text, &review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Incomplete {
			t.Fatalf("the API server does not tell all: %s", review.Status.EvaluationError)
		}
		for _, r := range review.Status.ResourceRules {
			out[n] = append(out[n], rightsOf(n, []kube.Rule{{APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames, Verbs: r.Verbs}})...)
		}
		for _, r := range review.Status.NonResourceRules {
			out[n] = append(out[n], rightsOf(n, []kube.Rule{{APIGroups: []string{""}, Resources: r.NonResourceURLs, Verbs: r.Verbs}})...)
		}
		out[n] = sorted(out[n]) // Two roles may grant the same.
	}
	return out
}

// rights compares what the account of the pod may do with what is documented.
func rights(t *testing.T) (missing, excess []kube.Right) {
	t.Helper()
	account, err := world.Kube.ServiceAccount(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return differ(granted(t, account), documented())
}
