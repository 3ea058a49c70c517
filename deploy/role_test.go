package deploy

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/kube"
)

var update = flag.Bool("update", false, "write the roles from what the kinds of preconditions and digests need")

const rbac = "rbac.authorization.k8s.io"

// manifest is a role or its binding.
type manifest struct {
	APIVersion string      `yaml:"apiVersion"`
	Kind       string      `yaml:"kind"`
	Metadata   metadata    `yaml:"metadata"`
	Rules      []rule      `yaml:"rules,omitempty"`
	RoleRef    *reference  `yaml:"roleRef,omitempty"`
	Subjects   []reference `yaml:"subjects,omitempty"`
}

// rule is a [kube.Rule], written in short.
type rule struct {
	APIGroups     []string `yaml:"apiGroups,flow"`
	Resources     []string `yaml:"resources,flow"`
	ResourceNames []string `yaml:"resourceNames,omitempty"`
	Verbs         []string `yaml:"verbs,flow"`
}

func rulesOf(all []kube.Rule) []rule {
	out := make([]rule, len(all))
	for i, r := range all {
		out[i] = rule(r)
	}
	return out
}

type metadata struct {
	Name      string            `yaml:"name"`
	Namespace string            `yaml:"namespace,omitempty"`
	Labels    map[string]string `yaml:"labels"`
}

type reference struct {
	APIGroup  string `yaml:"apiGroup,omitempty"`
	Kind      string `yaml:"kind"`
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

// wishesOf are what each component that adds rights is for.
func wishesOf() map[string][]fact.Wish {
	section := func(s digest.Section) (checks []digest.Check) {
		for _, c := range digest.DefaultChecks() {
			if c.Section == s {
				checks = append(checks, c)
			}
		}
		return checks
	}
	return map[string][]fact.Wish{
		"read-nodes":    digest.Wishes(clusters, section(digest.Nodes), nil),
		"read-storage":  digest.Wishes(clusters, section(digest.Storage), nil),
		"read-kured":    {fact.WishKured(clusters[0], fact.KuredQuery{Namespace: "kube-system", Name: "kured"})},
		"read-renovate": {fact.WishRenovate(clusters[0], fact.RenovateQuery{Namespace: "renovate", Name: "renovate"})},
	}
}

var clusters = []string{"home"}

// TestRoles compares the roles with what the program needs, which is also what
// the documents show. With -update it writes them.
func TestRoles(t *testing.T) {
	labels := map[string]string{"app.kubernetes.io/name": "signalbox"}
	generated := map[string][]manifest{
		"base": {{
			APIVersion: rbac + "/v1", Kind: "ClusterRole",
			Metadata: metadata{Name: "signalbox", Labels: labels}, Rules: rulesOf(kube.RequiredRules()),
		}},
	}
	for name, wishes := range wishesOf() {
		at := filepath.Join("components", name)
		for _, scope := range kube.WishRules(wishes) {
			kind := "ClusterRole"
			if scope.Namespace != "" {
				kind = "Role"
			}
			meta := metadata{Name: "signalbox-" + name, Namespace: scope.Namespace, Labels: labels}
			generated[at] = append(generated[at], manifest{APIVersion: rbac + "/v1", Kind: kind, Metadata: meta, Rules: rulesOf(scope.Rules)}, manifest{
				APIVersion: rbac + "/v1", Kind: kind + "Binding", Metadata: meta,
				RoleRef:  &reference{APIGroup: rbac, Kind: kind, Name: meta.Name},
				Subjects: []reference{{Kind: "ServiceAccount", Name: "signalbox", Namespace: "signalbox"}},
			})
		}
	}
	for folder, manifests := range generated {
		t.Run(folder, func(t *testing.T) {
			want := written(t, manifests)
			path := filepath.Join(folder, "role.yaml")
			if *update {
				if err := os.WriteFile(path, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s is not what the program needs; write it with make generate (-needed +there):\n%s", path, diff)
			}
		})
	}
}

func written(t *testing.T, manifests []manifest) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Written by make generate, from what the program reads.\n")
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	for _, m := range manifests {
		if err := encoder.Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := encoder.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDigestsCanBeRead: the components for nodes, storage and kured together are
// what digests need without further settings, and no more.
func TestDigestsCanBeRead(t *testing.T) {
	all := wishesOf()
	var given []fact.Wish
	for _, name := range []string{"read-nodes", "read-storage", "read-kured"} {
		given = append(given, all[name]...)
	}
	// A kured is looked for in two places, of which a cluster has one at most.
	needed := digest.Wishes(clusters, digest.DefaultChecks(), digest.DefaultKured()[:1])
	if diff := cmp.Diff(kube.WishRights(needed), kube.WishRights(given)); diff != "" {
		t.Errorf("(-needed +given):\n%s", diff)
	}
}
