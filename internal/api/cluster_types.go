package api

import (
	"time"

	"signalbox/internal/fact"
)

// ClusterSummary is a cluster as a list shows it.
type ClusterSummary struct {
	Name        string       `json:"name" example:"prod"`
	State       string       `json:"state" enum:"heard,silent,unknown" doc:"heard: it answers. silent: nothing was heard from it for too long; what is told of it is what was known last. unknown: it was not heard from yet."`
	LastHeardAt time.Time    `json:"lastHeardAt,omitzero" doc:"When it was last heard from, if it is silent."`
	Problem     string       `json:"problem,omitempty" doc:"Why nothing can be known of it now."`
	Objects     ObjectCounts `json:"objects"`
	Blind       int          `json:"blindKinds" minimum:"0" doc:"How many kinds of Flux cannot be seen now; their objects are unknown, and there may be others."`
}

// ObjectCounts are how many objects of Flux are in each state.
type ObjectCounts struct {
	Total     int `json:"total" minimum:"0"`
	Ready     int `json:"ready" minimum:"0"`
	NotReady  int `json:"notReady" minimum:"0"`
	Suspended int `json:"suspended" minimum:"0"`
	Deleting  int `json:"deleting" minimum:"0"`
	Unknown   int `json:"unknown" minimum:"0"`
}

// Cluster is a cluster with what is watched on it.
type Cluster struct {
	ClusterSummary
	Watches []Watch `json:"watches" doc:"What is watched, sorted by kind."`
}

// Watch is the state of the watch on one kind.
type Watch struct {
	Kind    string    `json:"kind" example:"Kustomization"`
	State   string    `json:"state" enum:"synced,syncing,not-installed,failing" doc:"synced: all objects are known. syncing: the first list has not arrived. not-installed: the cluster has no such kind. failing: list or watch fails."`
	Since   time.Time `json:"since,omitzero"`
	Message string    `json:"message,omitempty" doc:"What is wrong, in one line."`
}

func newWatch(kind string, w fact.Watch) Watch {
	return Watch{Kind: clip(spelled(kind)), State: oneOf(w.State, fact.WatchFailing, fact.WatchSynced, fact.WatchSyncing, fact.WatchNotInstalled), Since: utc(w.Since), Message: clip(w.Message)}
}

// ObjectPage is a part of the objects of a cluster.
type ObjectPage struct {
	Page[Object]
	Blind []BlindKind `json:"blind" doc:"The kinds, of those that are wanted, that cannot be seen now. There may be objects of them that are not in the list."`
}

// BlindKind is a kind that cannot be seen now.
type BlindKind struct {
	Kind string `json:"kind" example:"HelmRelease"`
	Why  string `json:"why"`
}

// Object is an object of Flux.
type Object struct {
	Kind      string    `json:"kind" example:"Kustomization"`
	Namespace string    `json:"namespace" example:"flux-system"`
	Name      string    `json:"name" example:"apps"`
	State     string    `json:"state" enum:"ready,not-ready,suspended,deleting,unknown" doc:"unknown is also everything of a cluster that is silent, and of a kind that cannot be seen now."`
	Problem   string    `json:"problem,omitempty" doc:"Why it cannot be known how it stands."`
	Since     time.Time `json:"since,omitzero" doc:"When it came into the state that was seen last."`
	SeenAt    time.Time `json:"seenAt,omitzero" doc:"When it was last read."`

	Ready              *Condition  `json:"ready,omitempty" doc:"The Ready condition; missing if the object has none."`
	Stalled            bool        `json:"stalled" doc:"The controller says that it cannot go on without a change."`
	Suspended          bool        `json:"suspended"`
	Deleting           bool        `json:"deleting"`
	Generation         int64       `json:"generation"`
	ObservedGeneration int64       `json:"observedGeneration" doc:"If it is another than generation, the controller has not taken up the latest change."`
	Applied            string      `json:"applied,omitempty" example:"main@sha1:f21e89d9d20c4f2b9a6d1e7e5a5f4c3b2a190817" doc:"The revision last applied with success, or that of the artifact of a source, as Flux spells it."`
	Attempted          string      `json:"attempted,omitempty" doc:"The revision last tried."`
	Origin             string      `json:"origin,omitempty" doc:"The commit that an OCI artifact was made from, if known."`
	Source             *ObjectRef  `json:"source,omitempty" doc:"Where it comes from; missing for a source."`
	Path               string      `json:"path,omitempty" example:"./apps" doc:"spec.path of a Kustomization."`
	DependsOn          []ObjectRef `json:"dependsOn" doc:"The objects of the same kind that it waits for."`
}

// Condition is a condition of Kubernetes.
type Condition struct {
	Status  string `json:"status" example:"False" doc:"True, False or Unknown."`
	Reason  string `json:"reason,omitempty" example:"HealthCheckFailed"`
	Message string `json:"message,omitempty" doc:"The words of the controller."`
}

// ObjectRef names an object on the same cluster.
type ObjectRef struct {
	Kind      string `json:"kind,omitempty" example:"GitRepository"`
	Namespace string `json:"namespace,omitempty" example:"flux-system"`
	Name      string `json:"name" example:"flux-system"`
}

func newObjectRef(r fact.Ref) ObjectRef {
	return ObjectRef{Kind: clip(r.Kind), Namespace: clip(r.Namespace), Name: clip(r.Name)}
}

func (c *look) object(f fact.Fact) Object {
	kind := spelled(f.Key.Kind)
	out := Object{
		Kind: kind, Namespace: clip(f.Key.Namespace), Name: clip(f.Key.Name),
		State: c.state(kind, f), Problem: c.blind(kind), Since: utc(f.Since), SeenAt: utc(f.SeenAt),
		DependsOn: []ObjectRef{},
	}
	if f.Problem != "" {
		out.Problem = clip(f.Problem)
	}
	o := f.Flux
	if o == nil {
		return out
	}
	out.Stalled, out.Suspended, out.Deleting = o.Stalled, o.Suspended, o.Deleting
	out.Generation, out.ObservedGeneration = o.Generation, o.ObservedGeneration
	out.Applied, out.Attempted, out.Origin = clip(o.Applied), clip(o.Attempted), clip(o.Origin)
	out.Path, out.DependsOn = clip(o.Path), list(o.DependsOn, newObjectRef)
	if o.Ready.Status != "" {
		out.Ready = &Condition{Status: clip(o.Ready.Status), Reason: clip(o.Ready.Reason), Message: clip(o.Ready.Message)}
	}
	if o.Source != nil {
		source := newObjectRef(*o.Source)
		out.Source = &source
	}
	return out
}
