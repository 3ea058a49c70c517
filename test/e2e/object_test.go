//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver/seed"
)

// apply applies manifests and deletes them when the test ends.
func apply(t *testing.T, manifests string) {
	t.Helper()
	if err := world.Kube.Apply(t.Context(), []byte(manifests)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := world.Kube.Delete(ctx, []byte(manifests)); err != nil {
			t.Error(err)
		}
	})
}

// volumeKind is that of Longhorn, as far as signalbox asks about it.
const volumeKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: volumes.longhorn.io}
spec:
  group: longhorn.io
  scope: Namespaced
  names: {kind: Volume, plural: volumes, singular: volume, listKind: VolumeList}
  versions:
    - name: v1beta2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func volume(namespace, name, robustness string) string {
	return fmt.Sprintf(`apiVersion: longhorn.io/v1beta2
kind: Volume
metadata: {namespace: %s, name: %s}
status: {state: attached, robustness: %s}
`, namespace, name, robustness)
}

// TestObjects: a kind that a policy names is watched from then on, when it is
// installed later too, and decides as its objects change.
func TestObjects(t *testing.T) {
	t.Parallel()
	namespace := world.Name(t)
	st := newStage(t, seed.Options{Policy: `version: 1
preconditions:
  - name: volumes are healthy
    objects: {kind: volumes.longhorn.io, namespace: ` + namespace + `, all: 'object.status.state != "attached" || object.status.robustness == "healthy"'}
`}, settings{})
	pr := st.open(t, "a", write("apps/a.yaml", "a: 1\n"))
	pr.shows(patience, "pending", "success", "Cluster prod has no resource volumes.longhorn.io in "+namespace)
	apply(t, volumeKind)
	if err := world.Kube.CreateNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	pr.shows(patience, "pending", "success", "there are 0, and there should be at least 1")
	set := func(name, robustness string) {
		t.Helper()
		if err := world.Kube.Apply(t.Context(), []byte(volume(namespace, name, robustness))); err != nil {
			t.Fatal(err)
		}
	}
	set("a", "healthy")
	pr.shows(patience, "success", "success", "all pass")
	set("b", "degraded")
	_, took := pr.shows(patience, "pending", "success", "1 does not pass: "+namespace+"/b")
	t.Logf("a degraded volume shows after %s", took)
	st.explains(t, pr, 1, "looked at: 2 objects", "read as: longhorn.io/v1beta2", "do not pass: 1")
	set("b", "healthy")
	pr.shows(patience, "success", "success")
}

// kured is its DaemonSet, with a lock or without.
func kured(namespace, lock string) string {
	annotations := ""
	if lock != "" {
		annotations = ", annotations: {weave.works/kured-node-lock: '" + lock + "'}"
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: %s, name: kured%s}
spec:
  selector: {matchLabels: {name: kured}}
  template:
    metadata: {labels: {name: kured}}
    spec: {containers: [{name: kured, image: kured.example.org/kured}]}
`, namespace, annotations)
}

// TestKured: a lock that is held, by a node that is there and by one that is
// gone.
func TestKured(t *testing.T) {
	t.Parallel()
	name := world.Name(t)
	if err := world.Kube.CreateNamespace(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	apply(t, "apiVersion: v1\nkind: Node\nmetadata: {name: "+name+"}\n")
	st := newStage(t, seed.Options{Policy: `version: 1
preconditions:
  - {name: no node is rebooting, kured: {daemonSet: ` + name + `/kured}}
`}, settings{})
	pr := st.open(t, "a", write("apps/a.yaml", "a: 1\n"))
	pr.shows(patience, "pending", "success", "DaemonSet "+name+"/kured does not exist on prod")
	apply(t, kured(name, ""))
	pr.shows(patience, "success", "success", "No node of prod is rebooting")
	lock := func(node string) string {
		return fmt.Sprintf(`{"nodeID":%q,"metadata":{"unschedulable":false},"created":"2026-09-07T02:44:00Z","TTL":0}`, node)
	}
	set := func(lock string) {
		t.Helper()
		if err := world.Kube.Apply(t.Context(), []byte(kured(name, lock))); err != nil {
			t.Fatal(err)
		}
	}
	set(lock(name))
	pr.shows(patience, "pending", "success", "Kured holds its lock for "+name+" since 2026-09-07 02:44 UTC on prod")
	set(lock("gone-" + name))
	pr.shows(patience, "pending", "success", "a node that is gone: nobody will release it")
	set(`{"maxOwners":2,"locks":[]}`)
	pr.shows(patience, "success", "success")
	set(`{"nodeID":`)
	pr.shows(patience, "pending", "success", "cannot be read")
}

// TestDependencies: a pull request waits for another one, until that is merged
// and applied.
func TestDependencies(t *testing.T) {
	withoutFlux(t)
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: `version: 1
preconditions:
  - {name: what it depends on, paths: ["second/**"], dependsOn: {applied: true, kustomization: ` + name + `-k/tier}}
`})
	base := st.tip(t)
	k := newTier(t, name+"-k", "tier")
	k.ready(base)
	st.bot = newBot(t, st.repo, settings{})
	st.bot.start()
	first := st.open(t, "first", write("first/a.yaml", "a: 1\n"))
	second := st.open(t, "second", write("second/a.yaml", "a: 1\n"))
	second.shows(patience, "success", "success", "The description names no dependency")
	body := fmt.Sprintf("Words.\n\nDepends-On: %s#%d\n", st.repo, first.number)
	second.edit(sdk.EditPullRequestOption{Body: &body})
	second.shows(patience, "pending", "success", fmt.Sprintf("#%d (Take first into main) is not merged yet", first.number))
	// The other way round too: now they wait for each other.
	back, none := fmt.Sprintf("Depends-On: #%d", second.number), "Words."
	first.edit(sdk.EditPullRequestOption{Body: &back})
	second.shows(patience, "pending", "success", "This pull request depends on itself")
	first.edit(sdk.EditPullRequestOption{Body: &none})
	second.shows(patience, "pending", "success", "is not merged yet")
	if ok, _, err := client(t, st.repo, st.repo.Alice).MergePullRequest(st.repo.Owner, st.repo.Name, first.number, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge}); err != nil || !ok {
		t.Fatalf("merge: %t, %v", ok, err)
	}
	second.shows(patience, "pending", "success", "has applied "+base[:10]+", which does not contain")
	k.ready(st.tip(t))
	second.shows(patience, "success", "success", "Kustomization "+name+"-k/tier on prod has applied")
}
