package kube

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
)

// readAt is when the objects in testdata are read: shortly after they were
// written.
var readAt = time.Date(2026, 11, 30, 14, 50, 0, 0, time.UTC)

const hold = 5 * time.Minute

// object reads an object from testdata.
func object(t testing.TB, file string) *unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return u
}

// keyOf is the key of an object on the cluster "prod".
func keyOf(u *unstructured.Unstructured) fact.Key {
	return fact.Kube("prod", u.GetKind(), u.GetNamespace(), u.GetName())
}

// project projects an object that is seen for the first time.
func project(t testing.TB, u *unstructured.Unstructured) fact.Fact {
	t.Helper()
	f, recheck := Project(keyOf(u), nil, u, Circumstances{Now: readAt, MinHold: hold})
	if recheck != 0 {
		t.Errorf("recheck = %v for an object that is seen for the first time", recheck)
	}
	return f
}

func TestProjectRealObjects(t *testing.T) {
	const (
		first  = "main@sha1:5110fa210f524bae09fcf8a11e4bc03c1da0227a"
		second = "main@sha1:7109712d98d3af1c9128fa85d21741c330080e20"
		third  = "main@sha1:72a2c53bc14c3744581604b139ae03e9f119b07c"
	)
	at := func(clock string) time.Time {
		c, err := time.Parse(time.TimeOnly, clock)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 11, 30, c.Hour(), c.Minute(), c.Second(), 0, time.UTC)
	}
	dependency := func(name string) []fact.Ref { return []fact.Ref{{Namespace: "flux-system", Name: name}} }
	tests := []struct {
		file string
		want fact.Flux
		// message is a part of the message.
		message string
		since   time.Time
	}{
		{"gitrepository-ready", fact.Flux{Generation: 1, ObservedGeneration: 1, Ready: fact.Condition{Status: "True", Reason: "Succeeded"}, Applied: third}, "stored artifact for revision", at("14:48:48")},
		{"kustomization-bad-build-false-buildfailed", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "BuildFailed"}, Attempted: third, Path: "./bad-build"}, "kustomize build failed", at("14:49:38")},
		{"kustomization-bad-build-unknown-progressing", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "Unknown", Reason: "Progressing"}, Attempted: third, Path: "./bad-build"}, "Reconciliation in progress", at("14:49:48")},
		{"kustomization-cycle-a-false-dependencynotready", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "DependencyNotReady"}, Path: "./platform", DependsOn: dependency("cycle-b")}, "dependency 'flux-system/cycle-b' is not ready", at("14:47:46")},
		{"kustomization-cycle-b-false-dependencynotready", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "DependencyNotReady"}, Path: "./platform", DependsOn: dependency("cycle-a")}, "dependency 'flux-system/cycle-a' is not ready", at("14:47:46")},
		{"kustomization-immutable-false-reconciliationfailed", fact.Flux{Generation: 1, ObservedGeneration: 1, Ready: fact.Condition{Status: "False", Reason: "ReconciliationFailed"}, Applied: second, Attempted: third, Path: "./immutable"}, "spec.persistentvolumesource is immutable after creation\n@@ -4,7 +4,7 @@", at("14:49:38")},
		{"kustomization-immutable-unknown-progressing", fact.Flux{Generation: 1, ObservedGeneration: 1, Ready: fact.Condition{Status: "Unknown", Reason: "Progressing"}, Applied: second, Attempted: third, Path: "./immutable"}, "Reconciliation in progress", at("14:49:48")},
		{"kustomization-missing-dep-false-dependencynotready", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "DependencyNotReady"}, Path: "./platform", DependsOn: dependency("nope")}, `"nope" not found`, at("14:47:46")},
		{"kustomization-nopath-false-artifactfailed", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "ArtifactFailed"}, Path: "./nope"}, "kustomization path not found", at("14:49:37")},
		{"kustomization-nopath-unknown-progressing", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "Unknown", Reason: "Progressing"}, Path: "./nope"}, "Reconciliation in progress", at("14:49:47")},
		{"kustomization-platform-config-cdi-false-dependencynotready", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "DependencyNotReady"}, Path: "./platform-config-cdi", DependsOn: dependency("platform-config")}, "dependency 'flux-system/platform-config' is not ready", at("14:47:46")},
		// Generation 2 failed; only a success moves the observed generation.
		{"kustomization-platform-config-false-reconciliationfailed", fact.Flux{Generation: 2, ObservedGeneration: 1, Ready: fact.Condition{Status: "False", Reason: "ReconciliationFailed"}, Applied: first, Attempted: third, Path: "./platform-config"}, `no matches for kind "StorageProfile"`, at("14:49:38")},
		{"kustomization-platform-config-unknown-progressing", fact.Flux{Generation: 2, ObservedGeneration: 1, Ready: fact.Condition{Status: "Unknown", Reason: "Progressing"}, Applied: first, Attempted: third, Path: "./platform-config"}, "Reconciliation in progress", at("14:49:48")},
		{"kustomization-platform-nocondition", fact.Flux{Generation: 1, ObservedGeneration: -1, Path: "./platform"}, "", readAt},
		// The conditions are written before the rest of the status.
		{"kustomization-platform-true-reconciliationsucceeded", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "True", Reason: "ReconciliationSucceeded"}, Attempted: third, Path: "./platform"}, "Applied revision: " + third, at("14:49:41")},
		{"kustomization-platform-unknown-progressing", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "Unknown", Reason: "Progressing"}, Path: "./platform"}, "Reconciliation in progress", at("14:49:40")},
		{"kustomization-strict-false-buildfailed", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "BuildFailed"}, Attempted: third, Path: "./strict"}, `variable not set (strict mode): "UNDEFINED_TOKEN"`, at("14:49:41")},
		{"kustomization-strict-nocondition", fact.Flux{Generation: 1, ObservedGeneration: -1, Path: "./strict"}, "", readAt},
		{"kustomization-strict-unknown-progressing", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "Unknown", Reason: "Progressing"}, Path: "./strict"}, "Reconciliation in progress", at("14:49:40")},
		{"kustomization-suspended-nocondition", fact.Flux{Generation: 1, ObservedGeneration: -1, Suspended: true, Path: "./platform"}, "", readAt},
		{"kustomization-wait-false-healthcheckfailed", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "False", Reason: "HealthCheckFailed"}, Attempted: third, Path: "./wait"}, "health check failed after 30s: timeout waiting for: [Deployment/default/never status: 'InProgress']", at("14:49:47")},
		{"kustomization-wait-unknown-progressing", fact.Flux{Generation: 1, ObservedGeneration: -1, Ready: fact.Condition{Status: "Unknown", Reason: "Progressing"}, Attempted: third, Path: "./wait"}, "Reconciliation in progress", at("14:49:17")},
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(tests) {
		t.Errorf("%d objects in testdata (%v), %d in the table", len(files), err, len(tests))
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			u := object(t, tt.file)
			got := project(t, u)
			if message := got.Flux.Ready.Message; !strings.Contains(message, tt.message) || (tt.message == "") != (message == "") {
				t.Errorf("message = %q, want it to contain %q", message, tt.message)
			}
			tt.want.Ready.Message = got.Flux.Ready.Message
			if u.GetKind() == "Kustomization" {
				tt.want.Source = &fact.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
			}
			want := fact.Fact{
				Key: keyOf(u), UID: string(u.GetUID()), Version: u.GetResourceVersion(),
				Since: tt.since, SeenAt: readAt, Flux: &tt.want,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// tree is an object being made for a test.
type tree map[string]any

// kustomization returns an object with the fields that readiness depends on.
func kustomization(uid string, generation, observed int64, ready, reason string, since time.Time, applied string) tree {
	status := tree{"observedGeneration": observed, "lastAppliedRevision": applied, "lastAttemptedRevision": applied}
	if ready != "" {
		status["conditions"] = []any{map[string]any{
			"type": "Ready", "status": ready, "reason": reason, "message": reason + " of " + applied,
			"observedGeneration": generation, "lastTransitionTime": since.UTC().Format(time.RFC3339),
		}}
	}
	return tree{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": tree{"namespace": "flux-system", "name": "apps", "uid": uid, "generation": generation, "resourceVersion": "1", "creationTimestamp": "2026-11-01T00:00:00Z"},
		"spec":     tree{"interval": "10m", "timeout": "1m", "path": "./apps"},
		"status":   status,
	}
}

// with sets a field, given by a path with dots.
func (o tree) with(path string, value any) tree {
	names := strings.Split(path, ".")
	m := o
	for _, n := range names[:len(names)-1] {
		m = m[n].(tree)
	}
	m[names[len(names)-1]] = value
	return o
}

// object returns it as the API server sends it.
func (o tree) object(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return u
}

// step is one state of an object in a sequence, and what becomes of the fact.
type step struct {
	after  time.Duration
	object tree
	// writes says that the fact differs from the one before.
	writes bool
	ready  fact.Condition
	since  time.Duration
}

func TestProjectSequences(t *testing.T) {
	const a, b = "main@sha1:aaaa", "main@sha1:bbbb"
	start := readAt
	// at is a moment of the sequence.
	at := func(d time.Duration) time.Time { return start.Add(d) }
	ready := func(since time.Duration, applied string) tree {
		return kustomization("u1", 1, 1, "True", "ReconciliationSucceeded", at(since), applied)
	}
	working := func(since time.Duration, applied string) tree {
		return kustomization("u1", 1, 1, "Unknown", "Progressing", at(since), applied)
	}
	failed := func(since time.Duration, reason, applied string) tree {
		return kustomization("u1", 1, 1, "False", reason, at(since), applied)
	}
	c := func(status, reason, revision string) fact.Condition {
		return fact.Condition{Status: status, Reason: reason, Message: reason + " of " + revision}
	}
	readyA := c("True", "ReconciliationSucceeded", a)
	failedA := c("False", "ReconciliationFailed", a)
	workingA := c("Unknown", "Progressing", a)
	needs := func(o tree, names ...string) tree {
		var refs []any
		for _, n := range names {
			refs = append(refs, tree{"name": n})
		}
		return o.with("spec.dependsOn", refs)
	}
	const m = time.Minute
	tests := map[string][]step{
		"a healthy object writes nothing": {
			{0, ready(0, a), true, readyA, 0},
			{10 * m, working(10*m, a), false, readyA, 0},
			{11 * m, ready(11*m, a), false, readyA, 0},
			{20 * m, working(20*m, a), false, readyA, 0},
			{21 * m, ready(21*m, a), false, readyA, 0},
		},
		"a failing object writes nothing, with new messages only the message": {
			{0, failed(0, "ReconciliationFailed", a), true, failedA, 0},
			{1 * m, working(1*m, a), false, failedA, 0},
			{2 * m, failed(2*m, "ReconciliationFailed", a), false, failedA, 0},
			{3 * m, failed(3*m, "ReconciliationFailed", b).with("status.lastAppliedRevision", a).with("status.lastAttemptedRevision", a), true, c("False", "ReconciliationFailed", b), 0},
		},
		"it breaks: one write": {
			{0, ready(0, a), true, readyA, 0},
			{10 * m, working(10*m, a), false, readyA, 0},
			{11 * m, failed(11*m, "ReconciliationFailed", a), true, failedA, 11 * m},
		},
		"it recovers: one write": {
			{0, failed(0, "ReconciliationFailed", a), true, failedA, 0},
			{10 * m, working(10*m, a), false, failedA, 0},
			{11 * m, ready(11*m, a), true, readyA, 11 * m},
		},
		"another reason is another state": {
			{0, failed(0, "BuildFailed", a), true, c("False", "BuildFailed", a), 0},
			{m, failed(m, "ArtifactFailed", a), true, c("False", "ArtifactFailed", a), m},
		},
		"at work for too long": {
			{0, ready(0, a), true, readyA, 0},
			{10 * m, working(10*m, a), false, readyA, 0},
			{15*m - time.Second, working(10*m, a), false, readyA, 0},
			{15 * m, working(10*m, a), true, workingA, 10 * m},
			{16 * m, working(10*m, a), false, workingA, 10 * m},
			{17 * m, ready(17*m, a), true, readyA, 17 * m},
			{20 * m, working(20*m, a), false, readyA, 17 * m},
		},
		"a long timeout is waited for": {
			{0, ready(0, a).with("spec.timeout", "20m"), true, readyA, 0},
			{10 * m, working(10*m, a).with("spec.timeout", "20m"), false, readyA, 0},
			{30 * m, working(10*m, a).with("spec.timeout", "20m"), false, readyA, 0},
			{31 * m, working(10*m, a).with("spec.timeout", "20m"), true, workingA, 10 * m},
		},
		"without a timeout the interval counts": {
			{0, ready(0, a).with("spec.timeout", nil), true, readyA, 0},
			{20 * m, working(10*m, a).with("spec.timeout", nil), false, readyA, 0},
			{21 * m, working(10*m, a).with("spec.timeout", nil), true, workingA, 10 * m},
		},
		"no timeout is waited for longer than an hour": {
			{0, ready(0, a).with("spec.timeout", "24h"), true, readyA, 0},
			{60 * m, working(m, a).with("spec.timeout", "24h"), false, readyA, 0},
			{61 * m, working(m, a).with("spec.timeout", "24h"), true, workingA, m},
		},
		"first seen at work": {
			{0, working(-m, a), true, workingA, -m},
			{1 * m, ready(1*m, a), true, readyA, m},
		},
		"another applied revision while at work": {
			{0, ready(0, a), true, readyA, 0},
			{m, working(m, b), true, c("Unknown", "Progressing", b), m},
			{2 * m, ready(2*m, b), true, c("True", "ReconciliationSucceeded", b), 2 * m},
		},
		"a new revision is tried and applied": {
			{0, ready(0, a), true, readyA, 0},
			{m, working(m, a), false, readyA, 0},
			{m, working(m, a).with("status.lastAttemptedRevision", b), true, readyA, 0},
			{2 * m, ready(2*m, b), true, c("True", "ReconciliationSucceeded", b), 0},
		},
		// Ready=True about generation 1 must never pass for generation 2.
		"the spec changes": {
			{0, ready(0, a), true, readyA, 0},
			{m, ready(0, a).with("metadata.generation", 2), true, readyA, m},
			{m, kustomization("u1", 2, 1, "Unknown", "Progressing", at(m), a), false, readyA, m},
			{2 * m, kustomization("u1", 2, 2, "Unknown", "Progressing", at(m), a), false, readyA, m},
			{3 * m, kustomization("u1", 2, 1, "True", "ReconciliationSucceeded", at(3*m), a), false, readyA, m},
			{3 * m, kustomization("u1", 2, 2, "True", "ReconciliationSucceeded", at(3*m), a), true, readyA, 3 * m},
		},
		"the spec changes and it is at work at once": {
			{0, ready(0, a), true, readyA, 0},
			{m, kustomization("u1", 2, 1, "Unknown", "Progressing", at(m), a), true, workingA, m},
			{2 * m, kustomization("u1", 2, 2, "True", "ReconciliationSucceeded", at(2*m), a), true, readyA, 2 * m},
		},
		"the status is ahead of the condition": {
			{0, ready(0, a), true, readyA, 0},
			{m, ready(0, a).with("metadata.generation", 2).with("status.observedGeneration", 2), true, readyA, m},
		},
		"suspended and resumed": {
			{0, ready(0, a), true, readyA, 0},
			{m, ready(0, a).with("spec.suspend", true).with("metadata.generation", 2), true, readyA, m},
			{2 * m, ready(0, a).with("metadata.generation", 3), true, readyA, 2 * m},
			{3 * m, kustomization("u1", 3, 3, "True", "ReconciliationSucceeded", at(3*m), a), true, readyA, 3 * m},
		},
		"suspended while at work": {
			{0, ready(0, a), true, readyA, 0},
			{m, working(m, a).with("spec.suspend", true), true, workingA, m},
		},
		"deleted while at work": {
			{0, ready(0, a), true, readyA, 0},
			{2 * m, working(m, a).with("metadata.deletionTimestamp", at(m).Format(time.RFC3339)), true, workingA, m},
		},
		"created again under its name": {
			{0, ready(0, a), true, readyA, 0},
			{m, kustomization("u2", 1, -1, "", "", at(0), ""), true, fact.Condition{}, m},
			{2 * m, kustomization("u2", 1, -1, "Unknown", "Progressing", at(2*m), ""), true, fact.Condition{Status: "Unknown", Reason: "Progressing", Message: "Progressing of"}, 2 * m},
			{3 * m, kustomization("u2", 1, 1, "True", "ReconciliationSucceeded", at(3*m), a), true, readyA, 3 * m},
		},
		"a condition from the future, and one from before the object": {
			{0, ready(10*m, a), true, readyA, 0},
			{m, failed(-60*24*60*m, "BuildFailed", a), true, c("False", "BuildFailed", a), m},
		},
		"what it depends on is at work": {
			{0, needs(ready(0, a), "ready"), true, readyA, 0},
			{m, needs(failed(m, "DependencyNotReady", a), "ready"), false, readyA, 0},
			{2 * m, needs(working(2*m, a), "ready"), false, readyA, 0},
			{3 * m, needs(ready(3*m, a), "ready"), false, readyA, 0},
		},
		"what it depends on has failed": {
			{0, needs(ready(0, a), "ready", "broken"), true, readyA, 0},
			{m, needs(failed(m, "DependencyNotReady", a), "ready", "broken"), true, c("False", "DependencyNotReady", a), m},
		},
		"it waits for too long": {
			{0, needs(ready(0, a), "ready"), true, readyA, 0},
			{m, needs(failed(m, "DependencyNotReady", a), "ready"), false, readyA, 0},
			{7 * m, needs(failed(m, "DependencyNotReady", a), "ready"), true, c("False", "DependencyNotReady", a), m},
		},
		"it waits for nothing that is known": {
			{0, ready(0, a), true, readyA, 0},
			{m, failed(m, "DependencyNotReady", a), true, c("False", "DependencyNotReady", a), m},
		},
		"another unknown is no work in progress": {
			{0, ready(0, a), true, readyA, 0},
			{m, kustomization("u1", 1, 1, "Unknown", "Paused", at(m), a), true, c("Unknown", "Paused", a), m},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var held *fact.Fact
			for i, s := range steps {
				u := s.object.object(t)
				f, recheck := Project(keyOf(u), held, u, Circumstances{Now: at(s.after), MinHold: hold, Ready: func(r fact.Ref) bool { return r.Name == "ready" }})
				if writes := held == nil || !f.Same(*held); writes != s.writes {
					t.Errorf("step %d: writes = %v, want %v\n%s", i, writes, s.writes, cmp.Diff(held, &f))
				}
				if diff := cmp.Diff(s.ready, f.Flux.Ready); diff != "" {
					t.Errorf("step %d: Ready (-want +got):\n%s", i, diff)
				}
				if want := at(s.since); !f.Since.Equal(want) {
					t.Errorf("step %d: since = %v, want %v", i, f.Since.Sub(start), s.since)
				}
				now := condition(u.Object, "Ready").Condition
				if stands := f.Flux.Ready != now; stands != (recheck > 0) {
					t.Errorf("step %d: the former state stands = %v, but recheck = %v", i, stands, recheck)
				}
				if held == nil || !f.Same(*held) {
					held = &f
				}
			}
		})
	}
}

// Whatever the controller writes in whatever order, what was true of an older
// generation must not look as if it were true of the new one.
func TestOldReadyNeverPassesForTheNewGeneration(t *testing.T) {
	const a = "main@sha1:aaaa"
	old := kustomization("u1", 1, 1, "True", "ReconciliationSucceeded", readAt, a)
	for _, observed := range []int64{1, 2} {
		var held *fact.Fact
		for _, o := range []tree{
			old,
			kustomization("u1", 1, 1, "True", "ReconciliationSucceeded", readAt, a).with("metadata.generation", 2).with("status.observedGeneration", observed),
			kustomization("u1", 2, observed, "Unknown", "Progressing", readAt, a),
		} {
			u := o.object(t)
			f, _ := Project(keyOf(u), held, u, Circumstances{Now: readAt, MinHold: hold})
			if got := f.Flux; got.Generation == 2 && got.Ready.Status == fact.True && got.ObservedGeneration == 2 {
				t.Errorf("with observed generation %d the fact says ready at generation 2: %+v", observed, got)
			}
			held = &f
		}
	}
}

func TestProjectOtherKinds(t *testing.T) {
	meta := func(kind string) tree {
		return tree{
			"kind":     kind,
			"metadata": tree{"namespace": "media", "name": "web", "uid": "u1", "generation": 3, "resourceVersion": "9"},
		}
	}
	status := func(o, spec, status tree) tree {
		status["observedGeneration"] = 3
		status["conditions"] = []any{tree{"type": "Ready", "status": "True", "reason": "Succeeded", "observedGeneration": 3, "lastTransitionTime": "2026-11-30T14:00:00Z"}}
		o["spec"], o["status"] = spec, status
		return o
	}
	flux := func(f fact.Flux) *fact.Flux {
		f.Generation, f.ObservedGeneration = 3, 3
		f.Ready = fact.Condition{Status: "True", Reason: "Succeeded"}
		return &f
	}
	release := func(version int, status, chart string) tree {
		return tree{"version": version, "status": status, "chartVersion": chart, "namespace": "media", "name": "web"}
	}
	tests := []struct {
		name string
		in   tree
		want *fact.Flux
	}{
		{
			"HelmRelease with a failed upgrade and a chart from a repository",
			status(meta("HelmRelease"), tree{
				"chart":     tree{"spec": tree{"chart": "web", "sourceRef": tree{"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"}}},
				"dependsOn": []any{tree{"name": "db", "namespace": "data"}, tree{"name": "cache"}},
			}, tree{"lastAttemptedRevision": "2.0.0", "history": []any{release(5, "failed", "2.0.0"), release(4, "deployed", "1.9.0"), release(3, "superseded", "1.8.0")}}),
			flux(fact.Flux{
				Applied: "1.9.0", Attempted: "2.0.0", Source: &fact.Ref{Kind: "HelmRepository", Namespace: "flux-system", Name: "charts"},
				DependsOn: []fact.Ref{{Namespace: "data", Name: "db"}, {Namespace: "media", Name: "cache"}},
			}),
		},
		{
			"HelmRelease with a chart reference and its history in another order",
			status(meta("HelmRelease"), tree{"chartRef": tree{"kind": "OCIRepository", "name": "web"}},
				tree{"history": []any{release(1, "deployed", "1.0.0"), release(2, "deployed", "1.1.0")}}),
			flux(fact.Flux{Applied: "1.1.0", Source: &fact.Ref{Kind: "OCIRepository", Namespace: "media", Name: "web"}}),
		},
		{
			"HelmRelease of an older version",
			status(meta("HelmRelease"), tree{}, tree{"lastAppliedRevision": "1.0.0", "lastAttemptedRevision": "1.0.0"}),
			flux(fact.Flux{Applied: "1.0.0", Attempted: "1.0.0"}),
		},
		{
			"HelmRelease that was uninstalled",
			status(meta("HelmRelease"), tree{}, tree{"history": []any{release(1, "uninstalled", "1.0.0")}}),
			flux(fact.Flux{}),
		},
		{
			"Kustomization from an OCI artifact",
			status(meta("Kustomization"), tree{"path": "./", "sourceRef": tree{"kind": "OCIRepository", "name": "web", "namespace": "flux-system"}},
				tree{"lastAppliedRevision": "latest@sha256:11", "lastAppliedOriginRevision": "main@sha1:22"}),
			flux(fact.Flux{Applied: "latest@sha256:11", Origin: "main@sha1:22", Path: "./", Source: &fact.Ref{Kind: "OCIRepository", Namespace: "flux-system", Name: "web"}}),
		},
		{
			"OCIRepository",
			status(meta("OCIRepository"), tree{}, tree{"artifact": tree{"revision": "latest@sha256:11", "metadata": tree{"org.opencontainers.image.revision": "main@sha1:22"}}}),
			flux(fact.Flux{Applied: "latest@sha256:11", Origin: "main@sha1:22"}),
		},
		{"HelmChart", status(meta("HelmChart"), tree{"sourceRef": tree{"kind": "HelmRepository", "name": "charts"}}, tree{"artifact": tree{"revision": "1.2.3"}}), flux(fact.Flux{Applied: "1.2.3"})},
		{"Bucket", status(meta("Bucket"), tree{}, tree{"artifact": tree{"revision": "sha256:33"}}), flux(fact.Flux{Applied: "sha256:33"})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := project(t, tt.in.object(t))
			if diff := cmp.Diff(tt.want, got.Flux); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An object without any field that is expected must give a fact, not a panic.
func TestProjectOfNothing(t *testing.T) {
	key := fact.Kube("prod", "Kustomization", "a", "b")
	got, recheck := Project(key, nil, &unstructured.Unstructured{}, Circumstances{Now: readAt})
	want := fact.Fact{Key: key, Since: readAt, SeenAt: readAt, Flux: &fact.Flux{}}
	if diff := cmp.Diff(want, got); diff != "" || recheck != 0 {
		t.Errorf("recheck %v, fact (-want +got):\n%s", recheck, diff)
	}
}

// FuzzProject replaces a part of a real object by something odd.
func FuzzProject(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for i := range files {
		f.Add(uint16(i), uint16(i*7), uint16(i), "x\x00\xff", int64(i))
		f.Add(uint16(i), uint16(i*13), uint16(i+1), "9999999h", int64(-i))
	}
	f.Fuzz(func(t *testing.T, file, where, what uint16, s string, n int64) {
		u := object(t, strings.TrimSuffix(filepath.Base(files[int(file)%len(files)]), ".json"))
		odd := []any{nil, s, n, float64(n) / 3, true, []any{s, n}, map[string]any{"type": s, "status": n}, map[string]any{}, []any{[]any{}}}
		count := 0
		u.Object, _ = replace(u.Object, &count, int(where)%200, odd[int(what)%len(odd)]).(map[string]any)
		key := fact.Kube("prod", "Kustomization", "flux-system", "apps")
		first, recheck := Project(key, nil, u, Circumstances{Now: readAt, MinHold: hold})
		if recheck != 0 {
			t.Errorf("recheck = %v without a former fact", recheck)
		}
		again, _ := Project(key, &first, u, Circumstances{Now: readAt.Add(time.Minute), MinHold: hold})
		if !again.Same(first) {
			t.Errorf("the same object gave another fact:\n%s", cmp.Diff(first, again))
		}
		b, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		var back fact.Fact
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if !back.Same(first) {
			t.Errorf("the fact does not survive its way over the bus:\n%s", cmp.Diff(first, back))
		}
		if l := len(first.Flux.Ready.Message); l > maxMessage {
			t.Errorf("message of %d bytes", l)
		}
	})
}

// replace returns v with its n-th part, counted in depth, replaced by odd.
func replace(v any, count *int, n int, odd any) any {
	if *count++; *count-1 == n {
		return odd
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = replace(v[k], count, n, odd)
		}
	case []any:
		for i := range v {
			v[i] = replace(v[i], count, n, odd)
		}
	}
	return v
}
