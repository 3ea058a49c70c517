package kube

import (
	"cmp"
	"context"
	"slices"

	"signalbox/internal/fact"
)

// Scope is where rules are to be given.
type Scope struct {
	// Namespace is empty for the rules of a ClusterRole; else they are those of a
	// Role in it.
	Namespace string
	Rules     []Rule
}

// WishRights returns the rights that wishes need beside those of
// [RequiredRules], each once. A wish that can never be granted needs none. To
// ask which resources a cluster has needs the role system:discovery, which
// every account has unless somebody took it away.
func WishRights(wishes []fact.Wish) []Right {
	var rights []Right
	for _, wish := range wishes {
		c, err := collectorOf(wish)
		if err != nil {
			continue
		}
		for _, r := range c.reads() {
			for _, verb := range []string{"list", "watch"} {
				rights = append(rights, Right{Verb: verb, Group: r.resource.Group, Resource: r.resource.Resource, Namespace: r.namespace, Name: r.name})
			}
		}
		if more, ok := c.(interface{ rights() []Right }); ok {
			rights = append(rights, more.rights()...)
		}
	}
	slices.SortFunc(rights, compareRights)
	return slices.Compact(rights)
}

func compareRights(a, b Right) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb),
	)
}

// WishRules returns [WishRights] as the rules of roles: those of a ClusterRole
// first, then those of each namespace.
func WishRules(wishes []fact.Wish) []Scope {
	var scopes []Scope
	for _, r := range WishRights(wishes) {
		if len(scopes) == 0 || scopes[len(scopes)-1].Namespace != r.Namespace {
			scopes = append(scopes, Scope{Namespace: r.Namespace})
		}
		s := &scopes[len(scopes)-1]
		rule := Rule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}}
		if r.Name != "" {
			rule.ResourceNames = []string{r.Name}
		}
		// The verbs of one thing stand together.
		if last := len(s.Rules) - 1; last >= 0 && sameThings(s.Rules[last], rule) {
			s.Rules[last].Verbs = append(s.Rules[last].Verbs, r.Verb)
			continue
		}
		s.Rules = append(s.Rules, rule)
	}
	for i := range scopes {
		scopes[i].Rules = joined(scopes[i].Rules)
	}
	return scopes
}

func sameThings(a, b Rule) bool {
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) && slices.Equal(a.ResourceNames, b.ResourceNames)
}

// joined puts resources of one group together that need the same.
func joined(rules []Rule) []Rule {
	var out []Rule
	for _, r := range rules {
		i := slices.IndexFunc(out, func(o Rule) bool {
			return slices.Equal(o.APIGroups, r.APIGroups) && slices.Equal(o.Verbs, r.Verbs) && len(o.ResourceNames)+len(r.ResourceNames) == 0
		})
		if i < 0 {
			out = append(out, r)
			continue
		}
		out[i].Resources = append(out[i].Resources, r.Resources...)
	}
	return out
}

// MissingRights asks which of some rights the account lacks in a cluster, such
// as [WishRights]. The fault is why that could not be asked, in one line, or
// empty. An error is of the configuration itself.
func MissingRights(ctx context.Context, cfg Config, rights []Right) (missing []Right, fault string, err error) {
	if err := cfg.validate(); err != nil {
		return nil, "", err
	}
	i := &inspector{cfg: cfg, out: &Inspection{}}
	if i.conn, err = cfg.connect(); err != nil {
		return nil, "", err
	}
	missing, fault = i.lacks(ctx, rights)
	return missing, fault, nil
}

// lacks returns those of the rights that the account does not have, or why that
// is not known.
func (i *inspector) lacks(ctx context.Context, rights []Right) (missing []Right, fault string) {
	for _, r := range rights {
		allowed, err := i.allowed(ctx, r)
		if err != nil {
			return missing, explain("create", reviews.GroupResource().String(), err).message
		}
		if !allowed {
			missing = append(missing, r)
		}
	}
	return missing, ""
}
