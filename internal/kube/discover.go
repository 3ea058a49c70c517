package kube

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"signalbox/internal/fact"
)

// Discovery asks which resources an API server serves.
type Discovery interface {
	// Group returns an API group with its versions; the error of one that there
	// is not is [apierrors.IsNotFound]. The core group is never asked for.
	Group(ctx context.Context, name string) (*metav1.APIGroup, error)
	// Resources returns the resources of a group and version, such as
	// "apps/v1", or "v1" for the core group.
	Resources(ctx context.Context, version schema.GroupVersion) (*metav1.APIResourceList, error)
}

// discovery asks a real API server. The discovery client of client-go takes a
// refusal for an empty answer in places.
type discovery struct{ rest rest.Interface }

func (d discovery) Group(ctx context.Context, name string) (*metav1.APIGroup, error) {
	g := &metav1.APIGroup{}
	return g, d.read(ctx, g, "apis", name)
}

func (d discovery) Resources(ctx context.Context, version schema.GroupVersion) (*metav1.APIResourceList, error) {
	l := &metav1.APIResourceList{}
	if version.Group == "" {
		return l, d.read(ctx, l, "api", version.Version)
	}
	return l, d.read(ctx, l, "apis", version.Group, version.Version)
}

func (d discovery) read(ctx context.Context, into runtime.Object, path ...string) error {
	return d.rest.Get().AbsPath(path...).Do(ctx).Into(into)
}

// served is a resource as an API server serves it.
type served struct {
	schema.GroupVersionResource
	namespaced bool
}

// failureUnfit is of a resource that cannot be watched as it was asked for.
const failureUnfit failureKind = "unfit"

// lookup finds a resource on the cluster. If it is not found, the health says
// why.
func lookup(ctx context.Context, d Discovery, t target) (served, health) {
	if d == nil {
		return served{}, unfit("this client cannot be asked which resources there are")
	}
	versions, h := versions(ctx, d, t.resource)
	if h.state != fact.WatchSynced {
		return served{}, h
	}
	hint := ""
	for _, v := range versions {
		l, err := d.Resources(ctx, v)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return served{}, health{state: fact.WatchFailing, failure: explain("discover", "the resources of "+v.String(), err)}
		}
		i := slices.IndexFunc(l.APIResources, func(r metav1.APIResource) bool { return r.Name == t.resource.Resource })
		if i >= 0 {
			return fit(t, v, l.APIResources[i])
		}
		if i := slices.IndexFunc(l.APIResources, func(r metav1.APIResource) bool { return alias(r, t.resource.Resource) }); i >= 0 {
			hint = "; is " + fact.Resource{Resource: l.APIResources[i].Name, Group: t.resource.Group}.String() + " meant?"
		}
	}
	return served{}, missing(t.resource, hint)
}

// versions returns the versions in which to look for a resource, the preferred
// one first.
func versions(ctx context.Context, d Discovery, r fact.Resource) ([]schema.GroupVersion, health) {
	found := health{state: fact.WatchSynced}
	switch {
	case r.Version != "":
		return []schema.GroupVersion{{Group: r.Group, Version: r.Version}}, found
	case r.Group == "":
		return []schema.GroupVersion{{Version: "v1"}}, found
	}
	g, err := d.Group(ctx, r.Group)
	if apierrors.IsNotFound(err) {
		return nil, missing(r, "; it has no API group "+r.Group)
	}
	if err != nil {
		return nil, health{state: fact.WatchFailing, failure: explain("discover", "the API group "+r.Group, err)}
	}
	preferred := schema.GroupVersion{Group: r.Group, Version: g.PreferredVersion.Version}
	all := []schema.GroupVersion{preferred}
	for _, v := range g.Versions {
		if v.Version != preferred.Version {
			all = append(all, schema.GroupVersion{Group: r.Group, Version: v.Version})
		}
	}
	return all, found
}

// alias reports whether a name is another one of a resource.
func alias(r metav1.APIResource, name string) bool {
	return r.SingularName == name || slices.Contains(r.ShortNames, name)
}

// fit checks that a resource can be watched as it is asked for.
func fit(t target, v schema.GroupVersion, r metav1.APIResource) (served, health) {
	found := served{v.WithResource(r.Name), r.Namespaced}
	switch {
	case t.namespace != "" && !r.Namespaced:
		return served{}, unfit(fmt.Sprintf("%s are in no namespace; ask for them without one", t.resource))
	case !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch"):
		return served{}, unfit(fmt.Sprintf("the API server cannot list and watch %s", t.resource))
	}
	return found, health{state: fact.WatchSynced}
}

func unfit(message string) health {
	return health{state: fact.WatchFailing, failure: failure{failureUnfit, message}}
}

func missing(r fact.Resource, hint string) health {
	if r.Group == "" && hint == "" {
		hint = "; of another group than the core it is named with its group, such as deployments.apps"
	}
	return health{state: fact.WatchNotInstalled, failure: failure{failureMissing, "the cluster has no resource " + r.String() + hint}}
}
