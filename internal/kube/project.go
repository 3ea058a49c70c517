package kube

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
)

// Bounds of how long the last settled state stands while a controller is at
// work; see [Project].
const (
	// maxHold bounds what an object's own timeout can ask for.
	maxHold = time.Hour
	// holdMargin is for what a controller does beside what its timeout covers:
	// fetching, building, applying.
	holdMargin = time.Minute
	// Timeouts that the controllers take where the object has none.
	defaultHelmTimeout   = 5 * time.Minute
	defaultSourceTimeout = time.Minute
)

// dependencyRecheck is how soon an object that waits for another is looked at
// again: nothing tells it that the other has failed.
const dependencyRecheck = 5 * time.Second

// Reasons of a Ready condition, in the words of Flux.
const (
	reasonProgressing = "Progressing"
	reasonRetrying    = "ProgressingWithRetry"
	reasonDependency  = "DependencyNotReady"
)

// Circumstances are what a projection depends on beside the object itself.
type Circumstances struct {
	// Now is when the object was read.
	Now time.Time
	// MinHold is the least time for which a settled state stands.
	MinHold time.Duration
	// Ready reports whether the fact of another object of the same kind says
	// that it is ready. Nil stands for no.
	Ready func(fact.Ref) bool
}

// Project returns the fact of a Flux object, named by key. Prev is the fact
// that is held of it, or nil. It is pure.
//
// Every reconcile passes through Ready=Unknown with reason Progressing, also in
// a healthy cluster; and what depends on the object meanwhile passes through
// Ready=False with reason DependencyNotReady. While an object does, with the
// uid, the generation and the applied revision of prev, and in the second case
// with dependencies whose own facts are ready, the settled state of prev
// stands: Ready, Stalled, the observed generation and Since. After a limit it
// stands no longer and Ready is what the controller says. The limit is the
// object's own timeout (Kustomization: the interval where it has none, as its
// controller does) and a minute, at least MinHold and at most an hour, counted
// from the condition's last transition. When recheck is positive, the state
// stands and Project is to be called again after that time, event or not.
//
// A Ready condition about an older generation, or one whose status has not
// caught up, is taken over as it is; ObservedGeneration then differs from
// Generation and says so.
//
// Revisions: Applied is lastAppliedRevision of a Kustomization, the chart
// version of the newest deployed release of a HelmRelease, and the artifact's
// revision of a source. Origin is lastAppliedOriginRevision of a Kustomization
// and the org.opencontainers.image.revision of a source's artifact.
//
// A missing or odd field is the zero value; no object makes Project panic. A
// HelmRepository of type oci has no status at all, so no Ready condition ever.
func Project(key fact.Key, prev *fact.Fact, obj *unstructured.Unstructured, c Circumstances) (f fact.Fact, recheck time.Duration) {
	o := obj.Object
	now := c.Now.UTC()
	ready := condition(o, "Ready")
	f = fact.Fact{
		Key:     key,
		UID:     text(o, "metadata", "uid"),
		Version: text(o, "metadata", "resourceVersion"),
		SeenAt:  now,
		Flux: &fact.Flux{
			Generation:         number(o, "metadata", "generation"),
			ObservedGeneration: observed(o, ready),
			Suspended:          flag(o, "spec", "suspend"),
			Deleting:           field(o, "metadata", "deletionTimestamp") != nil,
			Ready:              ready.Condition,
			Stalled:            condition(o, "Stalled").Status == fact.True,
		},
	}
	fill(f.Flux, key, o)
	if prev != nil && (prev.Flux == nil || prev.Absent || prev.UID != f.UID) {
		prev = nil
	}
	left := holdLimit(key.Kind, o, c.MinHold) - max(now.Sub(ready.changed), 0)
	if left > 0 && sameThing(prev, f.Flux) {
		waits := waiting(f.Flux, c.Ready)
		if waits {
			left = min(left, dependencyRecheck)
		}
		if waits || working(f.Flux.Ready) {
			f.Flux.Ready = prev.Flux.Ready
			f.Flux.Stalled = prev.Flux.Stalled
			f.Flux.ObservedGeneration = prev.Flux.ObservedGeneration
			f.Since = prev.Since
			return f, left
		}
	}
	f.Since = since(prev, f.Flux, o, ready, now)
	return f, 0
}

// observed returns the generation that the object's state is about. The status
// says it for all conditions; one that was written for an older generation
// says so itself and is believed.
func observed(o map[string]any, ready readCondition) int64 {
	n := number(o, "status", "observedGeneration")
	if ready.observed > 0 {
		n = min(n, ready.observed)
	}
	return n
}

// sameThing reports whether prev, or nil, is a settled state of what the object
// is now.
func sameThing(prev *fact.Fact, now *fact.Flux) bool {
	if prev == nil || now.Suspended || now.Deleting {
		return false
	}
	p := prev.Flux
	return (p.Ready.Status == fact.True || p.Ready.Status == fact.False) &&
		p.Generation == now.Generation && p.Applied == now.Applied
}

// working reports whether a controller is at work on the object.
func working(c fact.Condition) bool {
	return c.Status == fact.Unknown && (c.Reason == reasonProgressing || c.Reason == reasonRetrying)
}

// waiting reports whether the object is held up only because a controller is
// at work on what it depends on.
func waiting(f *fact.Flux, ready func(fact.Ref) bool) bool {
	if f.Ready.Status != fact.False || f.Ready.Reason != reasonDependency || len(f.DependsOn) == 0 || ready == nil {
		return false
	}
	return !slices.ContainsFunc(f.DependsOn, func(r fact.Ref) bool { return !ready(r) })
}

// holdLimit returns how long a controller may be at work before the last
// settled state stops standing.
func holdLimit(kind string, o map[string]any, least time.Duration) time.Duration {
	timeout := duration(o, "spec", "timeout")
	if timeout == 0 {
		switch kind {
		case "kustomization":
			timeout = duration(o, "spec", "interval")
		case "helmrelease":
			timeout = defaultHelmTimeout
		default:
			timeout = defaultSourceTimeout
		}
	}
	return max(least, min(timeout+holdMargin, maxHold))
}

// since returns when the object came into its state. A state is Ready's status
// and reason, suspended, deleting, and whether the generation was observed; a
// message alone makes no new one.
func since(prev *fact.Fact, now *fact.Flux, o map[string]any, ready readCondition, at time.Time) time.Time {
	if prev != nil && state(prev.Flux) == state(now) {
		return prev.Since
	}
	var t time.Time
	switch {
	case now.Deleting:
		t = moment(o, "metadata", "deletionTimestamp")
	case now.Suspended, ready.observed > 0 && ready.observed != now.Generation:
		// The object does not tell when it was suspended or changed.
	default:
		t = ready.changed
	}
	if t.IsZero() || t.After(at) || t.Before(moment(o, "metadata", "creationTimestamp")) {
		return at
	}
	// The former state was seen, so this one cannot be older than it.
	if prev != nil && t.Before(prev.Since) {
		return prev.Since
	}
	return t
}

type settled struct {
	status, reason                string
	suspended, deleting, observed bool
}

func state(f *fact.Flux) settled {
	return settled{f.Ready.Status, f.Ready.Reason, f.Suspended, f.Deleting, f.Generation == f.ObservedGeneration}
}

// fill sets what differs between the kinds.
func fill(f *fact.Flux, key fact.Key, o map[string]any) {
	switch key.Kind {
	case "kustomization":
		f.Applied = text(o, "status", "lastAppliedRevision")
		f.Attempted = text(o, "status", "lastAttemptedRevision")
		f.Origin = text(o, "status", "lastAppliedOriginRevision")
		f.Path = text(o, "spec", "path")
		f.Source = ref(o, key, "spec", "sourceRef")
		f.DependsOn = dependsOn(o, key)
	case "helmrelease":
		f.Applied = deployedChart(o)
		f.Attempted = text(o, "status", "lastAttemptedRevision")
		if f.Source = ref(o, key, "spec", "chartRef"); f.Source == nil {
			f.Source = ref(o, key, "spec", "chart", "spec", "sourceRef")
		}
		f.DependsOn = dependsOn(o, key)
	default:
		f.Applied = text(o, "status", "artifact", "revision")
		f.Origin = text(o, "status", "artifact", "metadata", "org.opencontainers.image.revision")
	}
}

// ref reads a reference to another object. A namespace that is not given is
// that of the object itself.
func ref(o map[string]any, key fact.Key, path ...string) *fact.Ref {
	m, _ := field(o, path...).(map[string]any)
	name := text(m, "name")
	if name == "" {
		return nil
	}
	return &fact.Ref{Kind: text(m, "kind"), Namespace: cmp.Or(text(m, "namespace"), key.Namespace), Name: name}
}

func dependsOn(o map[string]any, key fact.Key) []fact.Ref {
	var refs []fact.Ref
	for _, item := range list(o, "spec", "dependsOn") {
		m, _ := item.(map[string]any)
		if r := ref(m, key); r != nil {
			refs = append(refs, *r)
		}
	}
	return refs
}

// deployedChart returns the chart version that a HelmRelease has deployed.
// Since helm.toolkit.fluxcd.io/v2 that is the newest entry of the history
// with status deployed: a failed upgrade leaves the former one so. Before, it
// is lastAppliedRevision.
func deployedChart(o map[string]any) string {
	history := slices.Clone(list(o, "status", "history"))
	slices.SortStableFunc(history, func(a, b any) int {
		am, _ := a.(map[string]any)
		bm, _ := b.(map[string]any)
		return cmp.Compare(number(bm, "version"), number(am, "version"))
	})
	for _, item := range history {
		m, _ := item.(map[string]any)
		if text(m, "status") == "deployed" {
			return text(m, "chartVersion")
		}
	}
	return text(o, "status", "lastAppliedRevision")
}
