package kubetest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a kind of object that a [Cluster] can be made to serve, beside
// those of Flux.
type Resource struct {
	Kind, Group, Resource string
	// Versions are those served, the preferred one first; "v1" if there is none.
	Versions []string
	// Cluster says that its objects are in no namespace.
	Cluster bool
	// Verbs are what can be done with it; get, list and watch if there is none.
	Verbs []string
}

// Some resources that many clusters have.
var (
	Nodes       = Resource{Kind: "Node", Resource: "nodes", Cluster: true}
	DaemonSets  = Resource{Kind: "DaemonSet", Group: "apps", Resource: "daemonsets"}
	Deployments = Resource{Kind: "Deployment", Group: "apps", Resource: "deployments"}
	Volumes     = Resource{Kind: "Volume", Group: "longhorn.io", Resource: "volumes", Versions: []string{"v1beta2", "v1beta1"}}
)

func (r Resource) resourceGroup() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// Serve makes the cluster serve resources, or changes how it does. There is no
// CustomResourceDefinition of them.
func (c *Cluster) Serve(resources ...Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		versions := r.Versions
		if len(versions) == 0 {
			versions = []string{"v1"}
		}
		t := c.tables[r.resourceGroup()]
		if t == nil {
			t = newTable(r.Kind)
			t.oldest = c.version
			c.tables[r.resourceGroup()] = t
		}
		t.serve(versions)
		t.namespaced = !r.Cluster
		if len(r.Verbs) > 0 {
			t.verbs = r.Verbs
		}
	}
}

func (t *table) serve(versions []string) {
	t.versions, t.served = versions, map[string]bool{}
	for _, v := range versions {
		t.served[v] = true
	}
}

// Withdraw removes resources with all their objects.
func (c *Cluster) Withdraw(resources ...Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		delete(c.tables, r.resourceGroup())
		c.cut(func(s *stream) bool { return s.resource == r.resourceGroup() })
	}
}

// Delete deletes an object at once, if it is there.
func (c *Cluster) Delete(obj *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gr := c.resourceOf(obj); c.tables[gr] != nil {
		c.drop(gr, keyOf(obj))
	}
}

// Padding gives every object some fields when it is read, as real ones have
// many that nobody asks for.
func (c *Cluster) Padding(fields map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.padding = fields
}

// Discovery tells which resources a cluster serves, as an API server does.
type Discovery struct{ c *Cluster }

// Discovery returns what tells which resources the cluster serves.
func (c *Cluster) Discovery() Discovery { return Discovery{c} }

// Group returns an API group.
func (d Discovery) Group(ctx context.Context, name string) (*metav1.APIGroup, error) {
	if err := d.c.check(ctx, Request{Verb: "discover", Resource: "apis/" + name}); err != nil {
		return nil, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	g := &metav1.APIGroup{Name: name}
	for gr, t := range d.c.tables {
		if gr.Group != name {
			continue
		}
		for _, v := range t.versions {
			known := slices.ContainsFunc(g.Versions, func(o metav1.GroupVersionForDiscovery) bool { return o.Version == v })
			if !known {
				g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
			}
		}
	}
	if len(g.Versions) == 0 {
		return nil, errNoPage()
	}
	g.PreferredVersion = g.Versions[0]
	return g, nil
}

// Resources returns the resources of a group and version.
func (d Discovery) Resources(ctx context.Context, version schema.GroupVersion) (*metav1.APIResourceList, error) {
	path := "apis/" + version.String()
	if version.Group == "" {
		path = "api/" + version.Version
	}
	if err := d.c.check(ctx, Request{Verb: "discover", Resource: path}); err != nil {
		return nil, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	l := &metav1.APIResourceList{GroupVersion: version.String()}
	for gr, t := range d.c.tables {
		if gr.Group != version.Group || !t.served[version.Version] {
			continue
		}
		r := metav1.APIResource{Name: gr.Resource, SingularName: t.singular, Kind: t.kind, Namespaced: t.namespaced, Verbs: t.verbs}
		status := r
		status.Name, status.Verbs = r.Name+"/status", []string{"get"}
		l.APIResources = append(l.APIResources, r, status)
	}
	if len(l.APIResources) == 0 && version.Group != "" {
		return nil, errNoPage()
	}
	slices.SortFunc(l.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return l, nil
}

// errNoPage answers a path that is not served.
func errNoPage() error {
	return apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
}

// Some resources by which a CronJob runs.
var (
	CronJobs   = Resource{Kind: "CronJob", Group: "batch", Resource: "cronjobs"}
	Jobs       = Resource{Kind: "Job", Group: "batch", Resource: "jobs"}
	Pods       = Resource{Kind: "Pod", Resource: "pods"}
	ConfigMaps = Resource{Kind: "ConfigMap", Resource: "configmaps"}
)

// SetLog sets the log of a container.
func (c *Cluster) SetLog(namespace, pod, container, log string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.containerLogs == nil {
		c.containerLogs = map[string]string{}
	}
	c.containerLogs[namespace+"/"+pod+"/"+container] = log
}

// Logs opens the log of a container. The request is of the verb get on
// pods/log.
func (c *Cluster) Logs(ctx context.Context, namespace, pod, container string, limit int64) (io.ReadCloser, error) {
	if err := c.check(ctx, Request{Verb: "get", Resource: "pods/log", Namespace: namespace, Name: pod}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	log, ok := c.containerLogs[namespace+"/"+pod+"/"+container]
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("dial tcp 10.0.0.7:10250: connect: connection refused"))
	}
	return io.NopCloser(strings.NewReader(log[:min(int64(len(log)), limit)])), nil
}
