package kubetest

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is an object of a Flux kind on a [Cluster]. Its methods write what
// the controller of Flux writes, in one step each, and return it; the first
// one creates it. They panic where the kind is not installed.
type Object struct {
	c               *Cluster
	info            kindInfo
	namespace, name string
}

// Kustomization returns the named Kustomization. Its source is the
// GitRepository flux-system and its path is its name.
func (c *Cluster) Kustomization(namespace, name string) *Object {
	return c.Object("Kustomization", namespace, name)
}

// GitRepository returns the named GitRepository.
func (c *Cluster) GitRepository(namespace, name string) *Object {
	return c.Object("GitRepository", namespace, name)
}

// Object returns the named object of a kind of Flux.
func (c *Cluster) Object(kind, namespace, name string) *Object {
	return &Object{c: c, info: infoOf(kind), namespace: namespace, name: name}
}

// Ready writes that the object is Ready at a revision, such as
// "main@sha1:<commit>".
func (o *Object) Ready(revision string) *Object {
	return o.update(func(w *writer) {
		w.condition("Ready", "True", o.succeeded(), "Applied revision: "+revision)
		w.remove("Reconciling", "Stalled")
		w.status["observedGeneration"] = w.obj.GetGeneration()
		switch o.info.kind {
		case "Kustomization":
			w.status["lastAppliedRevision"] = revision
			w.status["lastAttemptedRevision"] = revision
		case "HelmRelease":
			w.status["lastAttemptedRevision"] = revision
			w.status["history"] = []any{map[string]any{"version": int64(1), "status": "deployed", "chartVersion": revision}}
		default:
			w.status["artifact"] = map[string]any{"revision": revision}
		}
	})
}

func (o *Object) succeeded() string {
	switch o.info.kind {
	case "Kustomization":
		return "ReconciliationSucceeded"
	case "HelmRelease":
		return "UpgradeSucceeded"
	default:
		return "Succeeded"
	}
}

// Failing writes that the controller tried and failed. The generation is not
// observed by that, as in Flux.
func (o *Object) Failing(reason, message string) *Object {
	return o.update(func(w *writer) {
		w.condition("Reconciling", "True", "ProgressingWithRetry", "Detecting drift")
		w.condition("Ready", "False", reason, message)
	})
}

// Progressing writes that the controller is at work, as it is at each
// interval.
func (o *Object) Progressing() *Object {
	return o.update(func(w *writer) {
		w.condition("Reconciling", "True", "Progressing", "Fetching manifests")
		w.condition("Ready", "Unknown", "Progressing", "Reconciliation in progress")
	})
}

// Attempted writes the revision that the controller is trying.
func (o *Object) Attempted(revision string) *Object {
	return o.update(func(w *writer) { w.status["lastAttemptedRevision"] = revision })
}

// Suspended suspends the object, as a person does.
func (o *Object) Suspended() *Object { return o.Spec("suspend", true) }

// Resumed ends the suspension.
func (o *Object) Resumed() *Object { return o.Spec("suspend", nil) }

// Spec changes a field of the spec; nil removes it. The generation grows.
func (o *Object) Spec(field string, value any) *Object {
	return o.update(func(w *writer) {
		if value == nil {
			delete(w.spec, field)
		} else {
			w.spec[field] = value
		}
	})
}

// Delete deletes the object at once.
func (o *Object) Delete() {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.c.drop(o.info.resourceGroup(), o.namespace+"/"+o.name)
}

// writer is an object while it is being changed.
type writer struct {
	obj          *unstructured.Unstructured
	spec, status map[string]any
}

func (o *Object) update(change func(*writer)) *Object {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	t := o.c.tables[o.info.resourceGroup()]
	if t == nil {
		panic("kubetest: " + o.info.kind + " is not installed")
	}
	obj := o.created()
	if old, ok := t.objects[o.namespace+"/"+o.name]; ok {
		obj = old.DeepCopy()
	}
	spec, _ := obj.Object["spec"].(map[string]any)
	status, _ := obj.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		obj.Object["status"] = status
	}
	change(&writer{obj, spec, status})
	o.c.set(o.info.resourceGroup(), obj)
	return o
}

// created returns the object as a person creates it, with the status that the
// API server gives it.
func (o *Object) created() *unstructured.Unstructured {
	spec := map[string]any{"interval": "10m"}
	switch o.info.kind {
	case "Kustomization":
		spec["path"] = "./" + o.name
		spec["prune"] = true
		spec["sourceRef"] = map[string]any{"kind": "GitRepository", "name": "flux-system"}
	case "HelmRelease":
		spec["chartRef"] = map[string]any{"kind": "OCIRepository", "name": o.name}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec":   spec,
		"status": map[string]any{"observedGeneration": int64(-1)},
	}}
	obj.SetNamespace(o.namespace)
	obj.SetName(o.name)
	obj.SetGeneration(1)
	return obj
}

func (w *writer) conditions() []any {
	l, _ := w.status["conditions"].([]any)
	return l
}

// condition sets a condition. As in Flux, any change of it is a transition.
func (w *writer) condition(kind, status, reason, message string) {
	next := map[string]any{
		"type": kind, "status": status, "reason": reason, "message": message,
		"observedGeneration": w.obj.GetGeneration(),
	}
	conditions := slices.Clone(w.conditions())
	i := slices.IndexFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == kind })
	if i < 0 {
		i = len(conditions)
		conditions = append(conditions, map[string]any{})
	}
	old := maps.Clone(conditions[i].(map[string]any))
	at := old["lastTransitionTime"]
	delete(old, "lastTransitionTime")
	if at == nil || !reflect.DeepEqual(old, next) {
		at = time.Now().UTC().Format(time.RFC3339)
	}
	next["lastTransitionTime"] = at
	conditions[i] = next
	w.status["conditions"] = conditions
}

func (w *writer) remove(kinds ...string) {
	w.status["conditions"] = slices.DeleteFunc(slices.Clone(w.conditions()), func(c any) bool {
		kind, _ := c.(map[string]any)["type"].(string)
		return slices.Contains(kinds, kind)
	})
}
