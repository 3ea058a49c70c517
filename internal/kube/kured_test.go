package kube

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

var kured = fact.KuredQuery{Namespace: "kube-system", Name: "kured"}

func kuredKey() fact.Key { return fact.KuredKey("prod", kured) }

func node(name string, annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
		"status": map[string]any{"nodeInfo": map[string]any{"kernelVersion": "6.12"}},
	}}
	o.SetAnnotations(annotations)
	return o
}

func kuredWith(annotation, lock string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": map[string]any{"namespace": "kube-system", "name": "kured"},
	}}
	if lock != "-" {
		o.SetAnnotations(map[string]string{annotation: lock})
	}
	return o
}

// withNodes is a cluster with kured and three nodes.
func withNodes(t *testing.T) *kubetest.Cluster {
	t.Helper()
	c := longhorn(t)
	apply(t, c, node("n1", nil), node("n2", nil), node("n3", nil), kuredWith("", "-"))
	return c
}

func (s *fakeSink) kured() fact.Kured {
	f, _ := s.Lookup(kuredKey())
	if f.Kured == nil {
		return fact.Kured{}
	}
	return *f.Kured
}

func TestKuredLock(t *testing.T) {
	created := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	at := created.Format(time.RFC3339Nano)
	one := func(node, ttl string) string {
		return fmt.Sprintf(`{"nodeID":%q,"metadata":{"unschedulable":false},"created":%q,"TTL":%s}`, node, at, ttl)
	}
	tests := map[string]struct {
		lock      string
		want      []fact.KuredLock
		malformed string
	}{
		"absent":              {lock: "-"},
		"empty":               {lock: ""},
		"white space":         {lock: " \n"},
		"one":                 {lock: one("n1", "0"), want: []fact.KuredLock{{Node: "n1", Since: created}}},
		"one with TTL":        {lock: one("n1", "1800000000000"), want: []fact.KuredLock{{Node: "n1", Since: created, Until: created.Add(30 * time.Minute)}}},
		"negative TTL":        {lock: one("n1", "-1"), want: []fact.KuredLock{{Node: "n1", Since: created}}},
		"no metadata":         {lock: `{"nodeID":"n1"}`, want: []fact.KuredLock{{Node: "n1"}}},
		"several":             {lock: `{"maxOwners":2,"locks":[` + one("n2", "0") + "," + one("n1", "60000000000") + `]}`, want: []fact.KuredLock{{Node: "n1", Since: created, Until: created.Add(time.Minute)}, {Node: "n2", Since: created}}},
		"several, all free":   {lock: `{"maxOwners":2,"locks":[]}`},
		"several, null":       {lock: `{"maxOwners":2,"locks":null}`},
		"no locks":            {lock: `{"maxOwners":2}`},
		"not JSON":            {lock: "n1", malformed: "not a JSON object"},
		"null":                {lock: "null", malformed: "not a JSON object"},
		"list":                {lock: "[]", malformed: "not a JSON object"},
		"cut":                 {lock: `{"nodeID":"n1`, malformed: "unexpected end"},
		"other object":        {lock: `{"a":1}`, malformed: "names no node"},
		"empty object":        {lock: `{}`, malformed: "names no node"},
		"empty node":          {lock: `{"nodeID":""}`, malformed: "names no node"},
		"node is a number":    {lock: `{"nodeID":1}`, malformed: "cannot be read"},
		"time is none":        {lock: `{"nodeID":"n1","created":"yesterday"}`, malformed: "cannot be read"},
		"a holder of several": {lock: `{"maxOwners":2,"locks":[{}]}`, malformed: "names no node"},
		"too many":            {lock: `{"locks":[` + strings.TrimSuffix(strings.Repeat(`{"nodeID":"n"},`, maxLocks+1), ",") + `]}`, malformed: "too many"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lock := tt.lock
			if lock == "-" {
				lock = ""
			}
			got := parseKuredLock(lock)
			if diff := cmp.Diff(tt.want, got.locks); diff != "" {
				t.Errorf("locks (-want +got):\n%s", diff)
			}
			if tt.malformed == "" && got.malformed != "" || !strings.Contains(got.malformed, tt.malformed) || strings.Contains(got.malformed, "\n") {
				t.Errorf("malformed %q, want %q", got.malformed, tt.malformed)
			}
		})
	}
}

func FuzzKuredLock(f *testing.F) {
	f.Add(`{"nodeID":"n1","created":"2026-03-01T04:00:00Z","TTL":5}`)
	f.Add(`{"maxOwners":2,"locks":[{"nodeID":"n1"}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		got := parseKuredLock(s)
		if got.malformed != "" && got.locks != nil {
			t.Errorf("%+v", got)
		}
		if len(got.locks) > maxLocks {
			t.Errorf("%d locks", len(got.locks))
		}
	})
}

func TestKured(t *testing.T) {
	c, s := withNodes(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish([]fact.Wish{fact.WishKured("prod", kured)})
		w.Await(t.Context(), []fact.Key{kuredKey()})
		want := func(want fact.Kured) {
			t.Helper()
			got := s.kured()
			if got.Watch.State != fact.WatchSynced {
				t.Errorf("the watch is %+v", got.Watch)
			}
			got.Watch = fact.Watch{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		want(fact.Kured{})
		free, _ := s.Lookup(kuredKey())
		pass(time.Second)

		now := time.Now().UTC()
		lock := func(node string, ttl time.Duration) string {
			return fmt.Sprintf(`{"nodeID":%q,"metadata":{},"created":%q,"TTL":%d}`, node, now.Format(time.RFC3339Nano), ttl)
		}
		apply(t, c, kuredWith(fact.DefaultKuredLock, lock("n1", 30*time.Minute)))
		pass(gather)
		want(fact.Kured{Locks: []fact.KuredLock{{Node: "n1", Since: now, Until: now.Add(30 * time.Minute)}}})
		if f, _ := s.Lookup(kuredKey()); !f.Since.After(free.Since) || !f.Newer(free) || free.Newer(f) {
			t.Errorf("since %v at %s, before %v at %s", f.Since, f.Version, free.Since, free.Version)
		}

		t.Log("its node goes")
		c.Delete(node("n1", nil))
		pass(gather)
		want(fact.Kured{Locks: []fact.KuredLock{{Node: "n1", Since: now, Until: now.Add(30 * time.Minute), Gone: true}}})

		t.Log("it expires")
		pass(29 * time.Minute)
		if n := len(s.kured().Locks); n != 1 {
			t.Errorf("%d locks before it expired", n)
		}
		pass(2 * time.Minute)
		want(fact.Kured{})

		t.Log("nodes are marked")
		stamp := now.Truncate(time.Second)
		marks := map[string]string{
			"weave.works/kured-reboot-in-progress":        stamp.Format(time.RFC3339),
			"weave.works/kured-most-recent-reboot-needed": stamp.Format(time.RFC3339),
		}
		old := map[string]string{"weave.works/kured-most-recent-reboot-needed": stamp.Format(time.RFC3339)}
		apply(t, c, node("n3", marks), node("n2", map[string]string{"kured.dev/kured-reboot-in-progress": "soon"}), node("n4", old))
		pass(gather)
		want(fact.Kured{Required: []fact.NodeNote{{Name: "n2"}, {Name: "n3", Since: stamp}}})
		t.Log("one of them takes the lock, and keeps it for longer than it lasts")
		now = time.Now().UTC()
		apply(t, c, kuredWith(fact.DefaultKuredLock, lock("n3", time.Minute)))
		pass(gather)
		rebooting := fact.Kured{
			Locks:     []fact.KuredLock{{Node: "n3", Since: now, Until: now.Add(time.Minute)}},
			Rebooting: []fact.NodeNote{{Name: "n3", Since: stamp}},
			Required:  []fact.NodeNote{{Name: "n2"}},
		}
		want(rebooting)
		pass(2 * time.Minute)
		rebooting.Locks = nil
		want(rebooting)
		before := s.writes()
		for range 100 {
			n := node("n3", marks)
			n.Object["status"] = map[string]any{"heartbeat": time.Now().String()}
			apply(t, c, n)
			pass(10 * time.Second)
		}
		if n := s.writes() - before; n != 0 {
			t.Errorf("%d facts were written of heartbeats of nodes", n)
		}
		apply(t, c, node("n3", nil), kuredWith(fact.DefaultKuredLock, "what?"))
		pass(gather)
		want(fact.Kured{Malformed: "the lock is not a JSON object", Rebooting: []fact.NodeNote{{Name: "n2"}}})
		apply(t, c, node("n2", nil), kuredWith("kured.dev/kured-node-lock", `{"nodeID":"n1"}`))
		pass(gather)
		want(fact.Kured{Locks: []fact.KuredLock{{Node: "n1", Gone: true}}})
		c.Delete(kuredWith("", "-"))
		pass(gather)
		want(fact.Kured{Missing: true})
	})
}

func TestKuredWithAnotherAnnotation(t *testing.T) {
	c, s := withNodes(t), newFakeSink()
	q := kured
	q.Annotation = "example.com/lock"
	apply(t, c, kuredWith(q.Annotation, `{"nodeID":"n1"}`))
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, fact.WishKured("prod", kured), fact.WishKured("prod", q))
		defer stop()
		settle()
		other, _ := s.Lookup(fact.KuredKey("prod", q))
		if len(s.kured().Locks) != 0 || other.Kured == nil || len(other.Kured.Locks) != 1 {
			t.Errorf("locks %+v and %+v, want none and n1", s.kured(), other.Kured)
		}
	})
}

// What the DaemonSet says goes before what the policy says.
func TestKuredSettings(t *testing.T) {
	with := func(args ...any) map[string]any { return map[string]any{"args": args} }
	env := func(value string) map[string]any {
		return map[string]any{"command": []any{"/usr/bin/kured"}, "env": []any{map[string]any{"name": "KURED_LOCK_ANNOTATION", "value": value}, map[string]any{"name": "KURED_ANNOTATE_NODES", "value": "true"}}}
	}
	from := map[string]any{"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "kured"}}}}
	const other = "example.com/lock"
	const hidden = "cannot be told from its DaemonSet; write lockAnnotation"
	tests := map[string]struct {
		container  map[string]any
		annotation string
		wrong      string
		unmarked   bool
	}{
		"nothing":                    {with("--period=1m"), "", "", true},
		"nothing, but asked for":     {with(), other, "told no --lock-annotation, so its lock is not in " + other + "; leave lockAnnotation out", true},
		"the next default":           {with(), "kured.dev/kured-node-lock", "", true},
		"the default":                {with("--lock-annotation=" + fact.DefaultKuredLock), "", "", true},
		"the default, not asked":     {with("--lock-annotation=" + fact.DefaultKuredLock), other, "keeps it in " + fact.DefaultKuredLock + "; leave lockAnnotation out", true},
		"another":                    {with("--lock-annotation=" + other), "", "write lockAnnotation: " + other, true},
		"another, in two words":      {with("--lock-annotation", other), "", "write lockAnnotation: " + other, true},
		"another, as asked":          {with("--annotate-nodes", "--lock-annotation="+other), other, "", false},
		"by the environment":         {env(other), "", "write lockAnnotation: " + other, false},
		"both, an argument is first": {map[string]any{"args": []any{"--lock-annotation=x"}, "env": env(other)["env"]}, other, "write lockAnnotation: x", false},
		"in a script":                {with("-c", "kured --lock-annotation=x --annotate-nodes"), "", hidden, false},
		"in a script, asked for":     {with("-c", "kured --lock-annotation=x"), other, "", true},
		"by a variable":              {with("--lock-annotation=$(AT)", "--annotate-nodes=$(MARK)"), "", hidden, false},
		"perhaps by a ConfigMap":     {from, "", "", false},
		"not to mark":                {with("--annotate-nodes=false"), "", "", true},
		"no containers":              {nil, other, "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := kuredWith("", "-")
			if tt.container != nil {
				o.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{tt.container}}}}
			}
			annotation := tt.annotation
			if annotation == "" {
				annotation = fact.DefaultKuredLock
			}
			got := readKuredLock(o.Object, annotation, tt.annotation == "")
			if (got.malformed == "") != (tt.wrong == "") || !strings.Contains(got.malformed, tt.wrong) {
				t.Errorf("%q, want %q", got.malformed, tt.wrong)
			}
			if got.unmarked != (tt.unmarked && tt.wrong == "") {
				t.Errorf("unmarked is %v", got.unmarked)
			}
		})
	}
}

func TestKuredWithoutRights(t *testing.T) {
	c, s := withNodes(t), newFakeSink()
	c.Break(kubetest.Forbid("watch", "nodes"))
	synctest.Test(t, func(t *testing.T) {
		apply(t, c, kuredWith(fact.DefaultKuredLock, `{"nodeID":"gone"}`))
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish([]fact.Wish{fact.WishKured("prod", kured)})
		w.Await(t.Context(), []fact.Key{kuredKey()})
		k := s.kured()
		if k.Watch.State != fact.WatchFailing || !strings.Contains(k.Watch.Message, "missing right: watch nodes (list and watch are needed)") || k.Locks != nil {
			t.Errorf("kured = %+v", k)
		}
		c.Break(nil)
		pass(2 * maxDeniedPause)
		if k := s.kured(); k.Watch.State != fact.WatchSynced || len(k.Locks) != 1 || !k.Locks[0].Gone {
			t.Errorf("kured = %+v", k)
		}
		c.Break(kubetest.Forbid("", "daemonsets.apps"))
		pass(time.Minute)
		if k := s.kured(); !strings.Contains(k.Watch.Message, "daemonsets.apps kured in kube-system") || len(k.Locks) != 1 {
			t.Errorf("kured = %+v", k)
		}
	})
}

// A lock expires also while the cluster cannot be read.
func TestKuredLockExpiresInAnOutage(t *testing.T) {
	c, s := withNodes(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		apply(t, c, kuredWith(fact.DefaultKuredLock, fmt.Sprintf(`{"nodeID":"n1","created":%q,"TTL":%d}`, time.Now().Format(time.RFC3339), 10*time.Minute)))
		_, stop := start(t, "prod", c, s, fact.WishKured("prod", kured))
		defer stop()
		settle()
		c.Break(kubetest.Down)
		pass(time.Minute)
		if k := s.kured(); k.Watch.State != fact.WatchFailing || len(k.Locks) != 1 {
			t.Errorf("kured = %+v", k)
		}
		pass(10 * time.Minute)
		if k := s.kured(); k.Watch.State != fact.WatchFailing || len(k.Locks) != 0 {
			t.Errorf("kured = %+v", k)
		}
	})
}

// One list of nodes serves whoever asks for nodes.
func TestNodesAreWatchedOnce(t *testing.T) {
	c, s := withNodes(t), newFakeSink()
	var r requests
	c.Break(r.fault)
	nodes := fact.ObjectsQuery{Resource: "nodes"}
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, fact.WishKured("prod", kured), fact.WishObjects("prod", nodes))
		defer stop()
		settle()
		n := 0
		for _, q := range r.all() {
			if q.Resource == "nodes" {
				n++
			}
		}
		if n != 1 || s.answer(nodes).Passing.Count != 3 || s.kured().Watch.State != fact.WatchSynced {
			t.Errorf("%d requests for nodes, want 1; %+v %+v", n, s.answer(nodes), s.kured())
		}
	})
}
