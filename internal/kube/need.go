package kube

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/fact"
)

// Needs is what a look at a cluster has shown of what wishes need there.
type Needs struct {
	// Wishes are in the order in which they were given.
	Wishes []InspectedWish
	// RightsFault is why the rights could not be asked for, or empty.
	RightsFault string
	// Account is the name that the API server knows the account by, or empty
	// where it does not tell.
	Account string
}

// InspectedWish is what a wish needs.
type InspectedWish struct {
	Wish fact.Wish
	// Refused is why it can never be collected, and NotInstalled what the cluster
	// lacks for it. Fault is why that could not be told. Each is one line, or
	// empty.
	Refused, NotInstalled, Fault string
	// Absent are the objects that it names and that do not exist, in the words of
	// kubectl.
	Absent []string
	// Missing are the rights that it needs and the account lacks.
	Missing []Right
}

// InspectWishes looks at a cluster once for what wishes need: whether it has the
// resources and the objects that they name, and whether the account may read
// them. Wishes for other clusters are taken for this one. It writes no more than
// [Inspect]. An error is of the configuration itself.
func InspectWishes(ctx context.Context, cfg Config, wishes []fact.Wish) (*Needs, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &wishInspector{inspector: &inspector{cfg: cfg, out: &Inspection{}}, found: map[target]located{}}
	var err error
	if n.conn, err = cfg.connect(); err != nil {
		return nil, err
	}
	out := &Needs{}
	missing, fault := n.lacks(ctx, WishRights(wishes))
	out.RightsFault = fault
	if len(missing) > 0 {
		out.Account = n.account(ctx)
	}
	for _, w := range wishes {
		out.Wishes = append(out.Wishes, n.look(ctx, w, missing))
	}
	return out, nil
}

// wishInspector looks at what wishes need. Many read the same, which is looked for once.
type wishInspector struct {
	*inspector
	found map[target]located
}

// located is a resource as it was found, or the health that says why not.
type located struct {
	at     served
	health health
}

func (n *wishInspector) look(ctx context.Context, w fact.Wish, missing []Right) InspectedWish {
	out := InspectedWish{Wish: w}
	c, err := collectorOf(w)
	if err != nil {
		out.Refused = oneLine(steady(err.Error()))
		return out
	}
	for _, r := range WishRights([]fact.Wish{w}) {
		if slices.Contains(missing, r) {
			out.Missing = append(out.Missing, r)
		}
	}
	for _, r := range c.reads() {
		found := n.locate(ctx, r.target)
		switch message := found.health.failure.message; {
		case found.health.state == fact.WatchNotInstalled:
			out.NotInstalled = message
		case found.health.failure.kind == failureUnfit:
			out.Refused = message
		case found.health.state != fact.WatchSynced:
			out.Fault = message
		default:
			n.named(ctx, r.target, found.at, &out)
		}
	}
	return out
}

func (n *wishInspector) locate(ctx context.Context, t target) located {
	t.name, t.selector = "", ""
	if known, ok := n.found[t]; ok {
		return known
	}
	at, h := lookup(ctx, n.conn.discovery, t)
	n.found[t] = located{at, h}
	return n.found[t]
}

// named looks for the object that is named, if one is and it may be looked for.
func (n *wishInspector) named(ctx context.Context, t target, at served, out *InspectedWish) {
	list := Right{Verb: "list", Group: t.resource.Group, Resource: t.resource.Resource, Namespace: t.namespace, Name: t.name}
	if t.name == "" || slices.Contains(out.Missing, list) {
		return
	}
	items, err := n.conn.client.Resource(at.GroupVersionResource).Namespace(t.namespace).List(ctx, byName(t.name))
	switch {
	case err != nil:
		out.Fault = explain("list", t.String(), err).message
	case len(items.Items) == 0:
		out.Absent = append(out.Absent, t.String())
	}
}

// account asks who the API server takes the account for.
func (n *wishInspector) account(ctx context.Context) string {
	gvr := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": "SelfSubjectReview"}}
	out, err := n.conn.client.Resource(gvr).Create(ctx, review, metav1.CreateOptions{})
	if err != nil || out == nil {
		return "" // API servers before 1.28 do not know the question.
	}
	return text(out.Object, "status", "userInfo", "username")
}

// AppliedRevisions returns the revisions that the Kustomizations of a cluster
// have applied now, each once; none where Flux is not installed. Of one that
// follows an artifact it is the commit that the artifact was made of.
func AppliedRevisions(ctx context.Context, cfg Config) ([]fact.Revision, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	conn, err := cfg.connect()
	if err != nil {
		return nil, err
	}
	k := kinds()[0]
	crds, err := conn.client.Resource(crdResource()).List(ctx, byName(k.crd()))
	if err != nil || len(crds.Items) == 0 {
		return nil, err
	}
	version, _ := servedVersion(&crds.Items[0])
	if version == "" {
		return nil, nil
	}
	all, err := conn.client.Resource(schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.resource}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []fact.Revision
	for i := range all.Items {
		o := &all.Items[i]
		f, _ := Project(fact.Kube(cfg.Cluster, k.kind, o.GetNamespace(), o.GetName()), nil, o, Circumstances{})
		rev := fact.ParseRevision(f.Flux.Applied)
		if rev.Commit == "" {
			rev = fact.ParseRevision(f.Flux.Origin)
		}
		if rev.Commit != "" && !slices.Contains(out, rev) {
			out = append(out, rev)
		}
	}
	return out, nil
}
