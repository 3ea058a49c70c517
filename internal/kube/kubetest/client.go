package kubetest

import (
	"context"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// client implements dynamic.Interface.
type client struct{ c *Cluster }

func (c client) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resource{c: c.c, gvr: r}
}

// resource implements the reading half of dynamic.ResourceInterface.
type resource struct {
	c         *Cluster
	gvr       schema.GroupVersionResource
	namespace string
}

func (r resource) Namespace(ns string) dynamic.ResourceInterface {
	r.namespace = ns
	return r
}

// table returns the objects of the resource. The lock is held.
func (r resource) table() (*table, error) {
	t := r.c.tables[r.gvr.GroupResource()]
	if t == nil || !t.served[r.gvr.Version] {
		return nil, apierrors.NewGenericServerResponse(404, "list", r.gvr.GroupResource(), "", "404 page not found", 0, true)
	}
	return t, nil
}

// filter selects objects by namespace, by the field metadata.name and by labels.
type filter struct {
	namespace, name string
	labels          labels.Selector
}

func (r resource) filter(o metav1.ListOptions) (filter, error) {
	f := filter{namespace: r.namespace}
	s, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return f, apierrors.NewBadRequest(err.Error())
	}
	f.name, _ = s.RequiresExactMatch("metadata.name")
	if f.labels, err = labels.Parse(o.LabelSelector); err != nil {
		return f, apierrors.NewBadRequest(err.Error())
	}
	return f, nil
}

func (f filter) match(o *unstructured.Unstructured) bool {
	return (f.namespace == "" || f.namespace == o.GetNamespace()) && (f.name == "" || f.name == o.GetName()) &&
		f.labels.Matches(labels.Set(o.GetLabels()))
}

// view returns a copy of an object in the version of the request.
func (r resource) view(o *unstructured.Unstructured, kind string) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetGroupVersionKind(r.gvr.GroupVersion().WithKind(kind))
	maps.Copy(o.Object, r.c.padding)
	return o
}

func (r resource) check(ctx context.Context, verb, name string) error {
	return r.c.check(ctx, Request{Verb: verb, Resource: r.gvr.GroupResource().String(), Namespace: r.namespace, Name: name})
}

func (r resource) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if err := r.check(ctx, "get", name); err != nil {
		return nil, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	t, err := r.table()
	if err != nil {
		return nil, err
	}
	for _, o := range t.objects {
		if o.GetName() == name && o.GetNamespace() == r.namespace {
			return r.view(o, t.kind), nil
		}
	}
	return nil, apierrors.NewNotFound(r.gvr.GroupResource(), name)
}

func (r resource) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	f, err := r.filter(o)
	if err != nil {
		return nil, err
	}
	if err := r.check(ctx, "list", f.name); err != nil {
		return nil, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	t, err := r.table()
	if err != nil {
		return nil, err
	}
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(r.gvr.GroupVersion().WithKind(t.kind + "List"))
	l.SetResourceVersion(strconv.FormatInt(r.c.version, 10))
	for _, key := range slices.Sorted(maps.Keys(t.objects)) {
		if key <= o.Continue && o.Continue != "" || !f.match(t.objects[key]) {
			continue
		}
		if o.Limit > 0 && int64(len(l.Items)) == o.Limit {
			l.SetContinue(keyOf(&l.Items[len(l.Items)-1]))
			break
		}
		l.Items = append(l.Items, *r.view(t.objects[key], t.kind))
	}
	return l, nil
}

func (r resource) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	f, err := r.filter(o)
	if err != nil {
		return nil, err
	}
	if err := r.check(ctx, "watch", f.name); err != nil {
		return nil, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	t, err := r.table()
	if err != nil {
		return nil, err
	}
	s := newStream(r, f, t.kind, r.c.mute)
	from, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	switch {
	case o.SendInitialEvents != nil && *o.SendInitialEvents:
		if from > r.c.version {
			// A real server waits for some seconds before it says so.
			e := apierrors.NewTimeoutError("Too large resource version", 1)
			e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
			s.push(watch.Event{Type: watch.Error, Object: &e.ErrStatus})
			s.end()
			break
		}
		for _, key := range slices.Sorted(maps.Keys(t.objects)) {
			s.send(event{kind: watch.Added, object: t.objects[key]})
		}
		s.bookmark(r.c.version, true)
	case err != nil || from < t.oldest:
		return nil, apierrors.NewResourceExpired("too old resource version")
	default:
		// A version that is yet to come is accepted, as by a real server, and
		// nothing is told before it.
		s.after = from
		for _, e := range t.history {
			s.send(e)
		}
	}
	r.c.watches[s] = struct{}{}
	go s.run(ctx)
	return s, nil
}
