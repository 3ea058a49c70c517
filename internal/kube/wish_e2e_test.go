//go:build e2e

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
	"signalbox/test/realserver"
)

// minimalCRD is a definition without a schema.
func minimalCRD(r fact.Resource, o *unstructured.Unstructured) string {
	scope := "Cluster"
	if o.GetNamespace() != "" {
		scope = "Namespaced"
	}
	return yamlOf(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": r.Resource + "." + r.Group},
		"spec": map[string]any{
			"group": r.Group, "scope": scope,
			"names": map[string]any{"kind": o.GetKind(), "plural": r.Resource, "singular": strings.ToLower(o.GetKind())},
			"versions": []any{map[string]any{
				"name": o.GroupVersionKind().Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	})
}

// applyWhole applies an object with its status, also where that is a
// subresource.
func applyWhole(ctx context.Context, t *testing.T, k *realserver.Kube, r fact.Resource, text string) {
	t.Helper()
	o := manifest(t, text)
	if err := k.Apply(ctx, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if o.Object["status"] == nil {
		return
	}
	gvr := o.GroupVersionKind().GroupVersion().WithResource(r.Resource)
	var resource dynamic.ResourceInterface = k.Dynamic().Resource(gvr)
	if o.GetNamespace() != "" {
		resource = k.Dynamic().Resource(gvr).Namespace(o.GetNamespace())
	}
	now, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now.Object["status"] = o.Object["status"]
	_, err = resource.UpdateStatus(ctx, now, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // Without the subresource it is applied already.
		t.Fatal(err)
	}
}

// grant gives an account rules in their scopes, and takes away what it had.
func grant(ctx context.Context, t *testing.T, k *realserver.Kube, account string, scopes []Scope) {
	t.Helper()
	for _, s := range scopes {
		kind := "ClusterRole"
		if s.Namespace != "" {
			kind = "Role"
		}
		name := map[string]any{"name": account, "namespace": s.Namespace}
		for _, o := range []map[string]any{
			{"kind": kind, "metadata": name, "rules": s.Rules},
			{
				"kind": kind + "Binding", "metadata": name,
				"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": account},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": "default"}},
			},
		} {
			o["apiVersion"] = "rbac.authorization.k8s.io/v1"
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Apply(ctx, data); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// answered is met when the sets of an answer hold so many objects.
func answered(s *fakeSink, q fact.ObjectsQuery, passing, failing, unclear int) func() string {
	return func() string {
		o := s.answer(q)
		if o.Watch.State != fact.WatchSynced || o.Passing.Count != passing || o.Failing.Count != failing || o.Unclear.Count != unclear {
			return fmt.Sprintf("the answer to %s is %+v", q.Resource, o)
		}
		return ""
	}
}

func inWatchState(s *fakeSink, q fact.ObjectsQuery, state fact.WatchState, message string) func() string {
	return func() string {
		if w := s.answer(q).Watch; w.State != state || !strings.Contains(w.Message, message) {
			return fmt.Sprintf("the watch on %s is %+v", q.Resource, w)
		}
		return ""
	}
}

// TestRealWishes tries the examples with an account that has only the rights
// that they need.
func TestRealWishes(t *testing.T) {
	ctx := limit(t, 5*time.Minute)
	k := ownKube(ctx, t)
	queries := exampleQueries(t)
	kured := fact.WishKured("prod", fact.KuredQuery{Namespace: "kube-system", Name: "kured"})
	wishes := []fact.Wish{kured}
	for _, q := range queries {
		wishes = append(wishes, fact.WishObjects("prod", q))
	}
	for _, n := range []string{"longhorn-system", "vms", "db", "web", "ingress"} {
		if err := k.CreateNamespace(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	access, err := k.CreateAccount(ctx, "default", "signalbox", RequiredRules())
	if err != nil {
		t.Fatal(err)
	}
	scopes := WishRules(wishes)
	grant(ctx, t, k, "signalbox", scopes)
	for _, s := range scopes {
		t.Logf("%q: %+v", s.Namespace, s.Rules)
	}
	proxy, err := realserver.NewProxy(k.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	cfg := as(t, access.Via(proxy.Addr()))
	cfg.Cluster = "prod"
	// Roles are looked at through a cache.
	until(ctx, t, "no right is missing", func() string {
		missing, fault, err := MissingRights(ctx, cfg, WishRights(wishes))
		if err != nil || fault != "" || len(missing) > 0 {
			return fmt.Sprint(missing, fault, err)
		}
		return ""
	})
	s, w := watchRealWishes(t, cfg, wishes)
	w.Await(ctx, []fact.Key{kured.Key})

	resources := map[string]fact.Resource{}
	for _, r := range recipes() {
		q := queries[r.precondition]
		resource, err := fact.ParseResource(q.Resource)
		if err != nil {
			t.Fatal(err)
		}
		resources[r.precondition] = resource
		if r.crd {
			until(ctx, t, q.Resource+" is not installed", inWatchState(s, q, fact.WatchNotInstalled, "the cluster has no resource "+q.Resource))
		}
	}
	for _, r := range recipes() {
		if r.crd {
			if err := k.Apply(ctx, []byte(minimalCRD(resources[r.precondition], manifest(t, r.passing[0])))); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range slices.Concat(r.passing, r.unclear) {
			applyWhole(ctx, t, k, resources[r.precondition], m)
		}
	}
	for _, r := range recipes() {
		q := queries[r.precondition]
		until(ctx, t, q.Resource+" pass", answered(s, q, len(r.passing), 0, len(r.unclear)))
		for _, m := range r.failing {
			applyWhole(ctx, t, k, resources[r.precondition], m)
		}
		passing := len(r.passing)
		if q.Name != "" {
			passing = 0 // The one object that is meant fails now.
		}
		until(ctx, t, q.Resource+" fail", answered(s, q, passing, len(r.failing), len(r.unclear)))
		for _, n := range slices.Concat(s.answer(q).Failing.Notes, s.answer(q).Unclear.Notes) {
			t.Logf("   %s: %s", n.Object(), n.Why)
		}
	}

	t.Run("kured", func(t *testing.T) { realKured(ctx, t, k, s) })

	volumes := queries["Longhorn volumes are healthy"]
	t.Run("a right is taken away", func(t *testing.T) {
		lesser := slices.Clone(scopes)
		i := slices.IndexFunc(lesser, func(s Scope) bool { return s.Namespace == "longhorn-system" })
		lesser[i].Rules = []Rule{{APIGroups: []string{"longhorn.io"}, Resources: []string{"volumes"}, Verbs: []string{"list"}}}
		grant(ctx, t, k, "signalbox", lesser[i:i+1])
		until(ctx, t, "told which", func() string {
			proxy.Cut()
			idle(ctx, time.Second)
			return inWatchState(s, volumes, fact.WatchFailing, "missing right: watch volumes.longhorn.io in longhorn-system (list and watch are needed)")()
		})
		t.Log(s.answer(volumes).Watch.Message)
		missing, fault, err := MissingRights(ctx, cfg, WishRights(wishes))
		if err != nil || fault != "" || len(missing) != 1 || missing[0].String() != "watch volumes.longhorn.io in longhorn-system" {
			t.Errorf("missing %v, %s, %v", missing, fault, err)
		}
		if why := inWatchState(s, queries["nodes are ready"], fact.WatchSynced, "")(); why != "" {
			t.Error(why)
		}
		grant(ctx, t, k, "signalbox", WishRules(wishes))
		until(ctx, t, "it is given back", answered(s, volumes, 2, 1, 1))
	})
	t.Run("the definition is removed", func(t *testing.T) {
		if err := k.Delete(ctx, []byte(minimalCRD(fact.Resource{Resource: "volumes", Group: "longhorn.io"}, manifest(t, recipes()[0].passing[0])))); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "told", inWatchState(s, volumes, fact.WatchNotInstalled, "volumes.longhorn.io"))
	})
	t.Run("secrets", func(t *testing.T) {
		q := fact.ObjectsQuery{Resource: "secrets", Namespace: "default"}
		w.Wish(append(wishes, fact.WishObjects("prod", q)))
		w.Await(ctx, []fact.Key{objectsKey(q)})
		if why := inWatchState(s, q, fact.WatchFailing, "secrets are never read")(); why != "" {
			t.Error(why)
		}
	})
	t.Run("nothing is wished", func(t *testing.T) {
		w.Wish(nil)
		until(ctx, t, "the facts are removed", func() string {
			if held := s.Select(fact.SourceKube, "prod", fact.KindObjects); len(held) > 0 {
				return fmt.Sprintf("%d facts are held", len(held))
			}
			return ""
		})
	})
}

func realKured(ctx context.Context, t *testing.T, k *realserver.Kube, s *fakeSink) {
	t.Helper()
	daemonSet := func(lock string) string {
		return yamlOf(map[string]any{
			"apiVersion": "apps/v1", "kind": "DaemonSet",
			"metadata": map[string]any{"name": "kured", "namespace": "kube-system", "annotations": map[string]any{fact.DefaultKuredLock: lock}},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": "kured"}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "kured"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
				},
			},
		})
	}
	until(ctx, t, "no kured", func() string {
		if k := s.kured(); k.Watch.State != fact.WatchSynced || !k.Missing {
			return fmt.Sprintf("kured is %+v", k)
		}
		return ""
	})
	now := time.Now().UTC().Format(time.RFC3339)
	applyNow := func(m string) {
		t.Helper()
		if err := k.Apply(ctx, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	applyNow(daemonSet(fmt.Sprintf(`{"maxOwners":2,"locks":[{"nodeID":"n1","created":%q,"TTL":0},{"nodeID":"gone","created":%q,"TTL":3000000000}]}`, now, now)))
	until(ctx, t, "two locks", func() string {
		if k := s.kured(); len(k.Locks) != 2 || k.Locks[0].Node != "gone" || !k.Locks[0].Gone || k.Locks[1].Gone {
			return fmt.Sprintf("kured is %+v", k)
		}
		return ""
	})
	until(ctx, t, "one expires", func() string {
		if k := s.kured(); len(k.Locks) != 1 || k.Locks[0].Node != "n1" {
			return fmt.Sprintf("kured is %+v", k)
		}
		return ""
	})
	applyNow(yamlOf(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n1", "annotations": map[string]any{"weave.works/kured-reboot-in-progress": now}}}))
	until(ctx, t, "a node is marked", func() string {
		if k := s.kured(); len(k.Rebooting) != 1 || k.Rebooting[0].Since.IsZero() {
			return fmt.Sprintf("kured is %+v", k)
		}
		return ""
	})
}

// Without a kubelet there are no logs.
func TestRealRenovateWithoutLogs(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	k := ownKube(ctx, t)
	if err := k.CreateNamespace(ctx, "renovate"); err != nil {
		t.Fatal(err)
	}
	access, err := k.CreateAccount(ctx, "default", "signalbox", RequiredRules())
	if err != nil {
		t.Fatal(err)
	}
	x := fact.WishRenovate("prod", renovateQuery)
	wishes := []fact.Wish{x}
	grant(ctx, t, k, "signalbox", WishRules(wishes))
	cfg := as(t, access)
	cfg.Cluster = "prod"
	until(ctx, t, "no right is missing", func() string {
		missing, fault, err := MissingRights(ctx, cfg, WishRights(wishes))
		if err != nil || fault != "" || len(missing) > 0 {
			return fmt.Sprint(missing, fault, err)
		}
		return ""
	})
	s, _ := watchRealWishes(t, cfg, wishes)
	until(ctx, t, "no CronJob", func() string {
		if r := s.renovate(); !r.Missing {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
	pod := map[string]any{"nodeName": "n1", "restartPolicy": "Never", "containers": []any{map[string]any{
		"name": "renovate", "image": "ghcr.io/renovatebot/renovate:39",
		"env": []any{map[string]any{"name": "RENOVATE_DRY_RUN", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "settings", "key": "dryRun"}}}},
	}}}
	for _, o := range []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "renovate"}, "data": map[string]any{"dryRun": "full"}},
		{
			"apiVersion": "batch/v1", "kind": "CronJob", "metadata": map[string]any{"name": "renovate", "namespace": "renovate"},
			"spec": map[string]any{"schedule": "0 3 * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": pod}}}},
		},
	} {
		if err := k.Apply(ctx, []byte(yamlOf(o))); err != nil {
			t.Fatal(err)
		}
	}
	cron, err := k.Get(ctx, realserver.Ref{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "renovate", Name: "renovate"})
	if err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "the ConfigMap may not be read", func() string {
		if c := s.renovate().Configured; c.OnSchedule != fact.RenovateUnknown || !strings.Contains(c.Why, "signalbox may not read it") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	at := time.Now().UTC().Add(-time.Hour)
	jobs := fact.Resource{Resource: "jobs", Group: "batch"}
	applyWhole(ctx, t, k, jobs, yamlOf(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": "r1", "namespace": "renovate", "ownerReferences": []any{map[string]any{
			"apiVersion": "batch/v1", "kind": "CronJob", "name": "renovate", "uid": string(cron.GetUID()), "controller": true,
		}}},
		"spec": map[string]any{"template": map[string]any{"spec": pod}},
		"status": map[string]any{
			"startTime": at.Format(time.RFC3339), "completionTime": at.Add(time.Minute).Format(time.RFC3339), "succeeded": 1,
			"uncountedTerminatedPods": map[string]any{},
			"conditions": []any{
				map[string]any{"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached", "lastTransitionTime": at.Format(time.RFC3339)},
				map[string]any{"type": "Complete", "status": "True", "reason": "CompletionsReached", "lastTransitionTime": at.Format(time.RFC3339)},
			},
		},
	}))
	last := func(problem string) func() string {
		return func() string {
			if l := s.renovate().Last; l == nil || l.Conclusion != "success" || l.Mode != fact.RenovateUnknown || !strings.Contains(l.LogProblem, problem) {
				return fmt.Sprintf("%+v", l)
			}
			return ""
		}
	}
	until(ctx, t, "the pod is gone", last("the pod of job r1 is gone"))
	j, err := k.Get(ctx, realserver.Ref{APIVersion: "batch/v1", Kind: "Job", Namespace: "renovate", Name: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Apply(ctx, []byte(yamlOf(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "r1-a", "namespace": "renovate", "labels": map[string]any{"job-name": "r1"}, "ownerReferences": []any{map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "name": "r1", "uid": string(j.GetUID()), "controller": true,
		}}},
		"spec": pod,
	}))); err != nil {
		t.Fatal(err)
	}
	// Looked at once more, as after a restart.
	again, _ := watchRealWishes(t, cfg, wishes)
	until(ctx, t, "the log cannot be read", func() string {
		if l := again.renovate().Last; l == nil || l.LogProblem == "" || strings.Contains(l.LogProblem, "gone") || strings.Contains(l.LogProblem, "being read") {
			return fmt.Sprintf("%+v", l)
		}
		return ""
	})
	t.Log(again.renovate().Last.LogProblem)
}
