package main

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/fact"
	"signalbox/internal/kube"
)

// roleName is that of the roles that bot doctor proposes.
const roleName = "signalbox-preconditions"

// manifest is what is given to kubectl apply.
type manifest struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata,omitempty,flow"`
	Rules      []roleRule        `yaml:"rules,omitempty"`
	RoleRef    map[string]string `yaml:"roleRef,omitempty,flow"`
	Subjects   []roleSubject     `yaml:"subjects,omitempty"`
	Items      []manifest        `yaml:"items,omitempty"`
}

type roleRule struct {
	APIGroups     []string `yaml:"apiGroups,flow"`
	Resources     []string `yaml:"resources,flow"`
	ResourceNames []string `yaml:"resourceNames,omitempty,flow"`
	Verbs         []string `yaml:"verbs,flow"`
}

type roleSubject struct {
	Kind      string `yaml:"kind"`
	APIGroup  string `yaml:"apiGroup,omitempty"`
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

const groupRBAC = "rbac.authorization.k8s.io"

// rolesFor returns the roles for wishes in every scope in which a right is
// missing, whole, so that they can replace what was given there before; and where
// the name of the account is known, what binds them to it. It is one document:
// indented as a whole it stays what it is.
func rolesFor(n *kube.Needs) string {
	var wishes []fact.Wish
	var lacking []string
	for _, w := range n.Wishes {
		wishes = append(wishes, w.Wish)
		for _, r := range w.Missing {
			lacking = append(lacking, r.Namespace)
		}
	}
	out := manifest{APIVersion: "v1", Kind: "List"}
	for _, scope := range kube.WishRules(wishes) {
		if !slices.Contains(lacking, scope.Namespace) {
			continue
		}
		kind, meta := "ClusterRole", map[string]string{"name": roleName}
		if scope.Namespace != "" {
			kind, meta["namespace"] = "Role", scope.Namespace
		}
		role := manifest{APIVersion: groupRBAC + "/v1", Kind: kind, Metadata: meta}
		for _, r := range scope.Rules {
			role.Rules = append(role.Rules, roleRule(r))
		}
		out.Items = append(out.Items, role)
		if n.Account != "" {
			out.Items = append(out.Items, manifest{
				APIVersion: groupRBAC + "/v1", Kind: kind + "Binding", Metadata: meta,
				RoleRef:  map[string]string{"apiGroup": groupRBAC, "kind": kind, "name": roleName},
				Subjects: []roleSubject{subjectOf(n.Account)},
			})
		}
	}
	var b strings.Builder
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	// It writes to memory, and there is nothing in it that cannot be written.
	_ = encoder.Encode(out)
	if n.Account == "" {
		b.WriteString("# and bind each to the account that signalbox uses\n")
	}
	return b.String()
}

// subjectOf returns an account as a binding names it.
func subjectOf(account string) roleSubject {
	if rest, ok := strings.CutPrefix(account, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(rest, ":"); ok {
			return roleSubject{Kind: "ServiceAccount", Name: name, Namespace: namespace}
		}
	}
	return roleSubject{Kind: "User", APIGroup: groupRBAC, Name: account}
}
