package kubetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// crds is the resource of CustomResourceDefinitions.
var crds = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// kindInfo is a kind of Flux that the cluster knows to install.
type kindInfo struct{ kind, group, resource, version string }

var known = []kindInfo{
	{"Kustomization", "kustomize.toolkit.fluxcd.io", "kustomizations", "v1"},
	{"HelmRelease", "helm.toolkit.fluxcd.io", "helmreleases", "v2"},
	{"GitRepository", "source.toolkit.fluxcd.io", "gitrepositories", "v1"},
	{"OCIRepository", "source.toolkit.fluxcd.io", "ocirepositories", "v1"},
	{"HelmRepository", "source.toolkit.fluxcd.io", "helmrepositories", "v1"},
	{"HelmChart", "source.toolkit.fluxcd.io", "helmcharts", "v1"},
	{"Bucket", "source.toolkit.fluxcd.io", "buckets", "v1"},
}

func infoOf(kind string) kindInfo {
	for _, k := range known {
		if k.kind == kind {
			return k
		}
	}
	panic("kubetest: no kind " + kind)
}

func (k kindInfo) resourceGroup() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.resource}
}

// event is a change that a watch tells of.
type event struct {
	version int64
	kind    watch.EventType
	object  *unstructured.Unstructured
	// old is what was there before a change, or nil.
	old *unstructured.Unstructured
}

// table holds the objects of one resource and what happened to them.
type table struct {
	kind   string
	served map[string]bool
	// versions are those served, the preferred one first.
	versions   []string
	singular   string
	namespaced bool
	verbs      []string

	objects map[string]*unstructured.Unstructured
	history []event
	// oldest is the version from which a watch can resume.
	oldest int64
}

// Cluster is the stand-in. Make one with [New].
type Cluster struct {
	mu      sync.Mutex
	version int64
	uids    int
	tables  map[schema.GroupResource]*table
	watches map[*stream]struct{}
	fault   Fault
	// mute keeps bookmarks back.
	mute bool
	// padding are fields that every object has when it is read.
	padding map[string]any
	// containerLogs are by "namespace/pod/container".
	containerLogs map[string]string
}

// New returns a cluster with the kinds of Flux installed: all of them if none
// is named. To have none at first, call [Cluster.Remove].
func New(kinds ...string) *Cluster {
	c := &Cluster{
		version: 100,
		watches: map[*stream]struct{}{},
		tables: map[schema.GroupResource]*table{
			crds: newTable("CustomResourceDefinition", "v1"),
		},
	}
	c.Install(kinds...)
	return c
}

func newTable(kind string, versions ...string) *table {
	t := &table{
		kind: kind, served: map[string]bool{}, versions: versions, singular: strings.ToLower(kind), namespaced: true,
		verbs: []string{"get", "list", "watch"}, objects: map[string]*unstructured.Unstructured{},
	}
	for _, v := range versions {
		t.served[v] = true
	}
	return t
}

// Client returns a client that reads from the cluster.
func (c *Cluster) Client() dynamic.Interface { return client{c} }

// Probe asks the cluster whether it answers, as a watcher's probe does, and
// returns the version that it is at. It fails while [Cluster.Break] breaks the
// verb "probe".
func (c *Cluster) Probe(ctx context.Context) (version string, err error) {
	if err := c.check(ctx, Request{Verb: "probe"}); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return strconv.FormatInt(c.version, 10), nil
}

// Install installs kinds of Flux, such as "Kustomization": all if none is
// named. What is installed stays as it is.
func (c *Cluster) Install(kinds ...string) {
	for _, k := range named(kinds) {
		c.InstallVersions(k.kind, k.version)
	}
}

// InstallVersions installs a kind that is served in the given versions, or
// changes which are. The last is the storage version.
func (c *Cluster) InstallVersions(kind string, versions ...string) {
	k := infoOf(kind)
	var served []any
	for i, v := range versions {
		served = append(served, map[string]any{"name": v, "served": true, "storage": i == len(versions)-1})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	gr := k.resourceGroup()
	if c.tables[gr] == nil {
		c.tables[gr] = newTable(k.kind)
		c.tables[gr].oldest = c.version
	}
	c.tables[gr].serve(versions)
	c.set(crds, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": gr.String()},
		"spec": map[string]any{
			"group":    k.group,
			"names":    map[string]any{"kind": k.kind, "plural": k.resource},
			"versions": served,
		},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"},
			map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
		}},
	}})
}

// Establish says whether the definition of an installed kind is established.
func (c *Cluster) Establish(kind string, established bool) {
	gr := infoOf(kind).resourceGroup()
	status, message := "True", "the initial names have been accepted"
	if !established {
		status, message = "False", "not all names are accepted"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	crd := c.tables[crds].objects[gr.String()].DeepCopy()
	crd.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": status, "reason": "Names", "message": message},
		map[string]any{"type": "Established", "status": status, "reason": "Names", "message": message},
	}}
	c.set(crds, crd)
}

// Remove removes kinds of Flux with all their objects: all if none is named.
func (c *Cluster) Remove(kinds ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range named(kinds) {
		gr := k.resourceGroup()
		t := c.tables[gr]
		if t == nil {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(t.objects)) {
			c.drop(gr, key)
		}
		c.drop(crds, gr.String())
		delete(c.tables, gr)
		c.cut(func(s *stream) bool { return s.resource == gr })
	}
}

func named(kinds []string) []kindInfo {
	if len(kinds) == 0 {
		return known
	}
	var infos []kindInfo
	for _, k := range kinds {
		infos = append(infos, infoOf(k))
	}
	return infos
}

// Apply creates an object of an installed kind, or replaces it: its labels,
// spec and status become those given. The uid, the resourceVersion and the
// generation are the cluster's, unless a new object brings its own.
func (c *Cluster) Apply(obj *unstructured.Unstructured) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	gr := c.resourceOf(obj)
	if c.tables[gr] == nil {
		return apierrors.NewNotFound(gr, obj.GetName())
	}
	c.set(gr, obj.DeepCopy())
	return nil
}

// resourceOf returns the resource of an object. The lock is held.
func (c *Cluster) resourceOf(obj *unstructured.Unstructured) schema.GroupResource {
	group := obj.GroupVersionKind().Group
	for gr, t := range c.tables {
		if t.kind == obj.GetKind() && gr.Group == group {
			return gr
		}
	}
	for _, k := range known {
		if k.kind == obj.GetKind() {
			return k.resourceGroup()
		}
	}
	return schema.GroupResource{Group: group, Resource: obj.GetKind()}
}

// set stores an object under its name. The lock is held.
func (c *Cluster) set(gr schema.GroupResource, obj *unstructured.Unstructured) {
	t := c.tables[gr]
	key := keyOf(obj)
	c.version++
	kind := watch.Modified
	old, exists := t.objects[key]
	if exists {
		obj.SetUID(old.GetUID())
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
		obj.SetGeneration(old.GetGeneration())
		if !reflect.DeepEqual(old.Object["spec"], obj.Object["spec"]) {
			obj.SetGeneration(old.GetGeneration() + 1)
		}
	} else {
		kind = watch.Added
		if obj.GetUID() == "" {
			c.uids++
			obj.SetUID(uid(c.uids))
		}
		if created := obj.GetCreationTimestamp(); created.IsZero() {
			obj.SetCreationTimestamp(metav1.NewTime(time.Now()))
		}
		obj.SetGeneration(cmp.Or(obj.GetGeneration(), 1))
	}
	obj.SetResourceVersion(strconv.FormatInt(c.version, 10))
	t.objects[key] = obj
	c.tell(gr, t, event{c.version, kind, obj, old})
}

// drop deletes an object. The lock is held.
func (c *Cluster) drop(gr schema.GroupResource, key string) {
	t := c.tables[gr]
	obj, ok := t.objects[key]
	if !ok {
		return
	}
	c.version++
	delete(t.objects, key)
	obj = obj.DeepCopy()
	obj.SetResourceVersion(strconv.FormatInt(c.version, 10))
	c.tell(gr, t, event{c.version, watch.Deleted, obj, nil})
}

// tell writes an event down and passes it to the watches. The lock is held.
func (c *Cluster) tell(gr schema.GroupResource, t *table, e event) {
	t.history = append(t.history, e)
	for s := range c.watches {
		if s.resource == gr {
			s.send(e)
		}
	}
}

// cut ends the watches that match. The lock is held.
func (c *Cluster) cut(match func(*stream) bool) {
	for s := range c.watches {
		if match(s) {
			delete(c.watches, s)
			s.end()
		}
	}
}

func keyOf(o *unstructured.Unstructured) string {
	return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

func uid(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }
