package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

// healthy is the documented test of volumes.
const healthy = `object.status.state != "attached" || object.status.robustness == "healthy"`

var volumes = fact.ObjectsQuery{Resource: "volumes.longhorn.io", Namespace: "longhorn-system", Test: healthy}

func volume(name, robustness string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
		"metadata": map[string]any{"namespace": "longhorn-system", "name": name},
		"status":   map[string]any{"state": "attached", "robustness": robustness},
	}}
}

// apply creates or replaces objects.
func apply(t *testing.T, c *kubetest.Cluster, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if err := c.Apply(o); err != nil {
			t.Fatal(err)
		}
	}
}

// longhorn is a cluster with two healthy volumes and one degraded one.
func longhorn(t *testing.T) *kubetest.Cluster {
	t.Helper()
	c := kubetest.New()
	c.Serve(kubetest.Volumes, kubetest.Nodes, kubetest.DaemonSets, kubetest.Deployments)
	apply(t, c, volume("a", "healthy"), volume("b", "degraded"), volume("c", "healthy"))
	return c
}

// answer is the fact of a query on the cluster "prod".
func (s *fakeSink) answer(q fact.ObjectsQuery) fact.Objects {
	f, _ := s.Lookup(fact.ObjectsKey("prod", q))
	if f.Objects == nil {
		return fact.Objects{}
	}
	return *f.Objects
}

// wantAnswer compares an answer: the state of the watch, and the objects in
// each set with why they are.
func wantAnswer(t *testing.T, s *fakeSink, q fact.ObjectsQuery, state fact.WatchState, passing, failing, unclear []string) {
	t.Helper()
	o := s.answer(q)
	if o.Watch.State != state {
		t.Errorf("the watch is %s %q, want %s", o.Watch.State, o.Watch.Message, state)
	}
	names := func(set fact.ObjectSet) []string {
		var out []string
		for _, n := range set.Notes {
			text := n.Object()
			if n.Why != "" {
				text += ": " + n.Why
			}
			out = append(out, text)
		}
		return out
	}
	got := [][]string{names(o.Passing), names(o.Failing), names(o.Unclear)}
	if diff := cmp.Diff([][]string{passing, failing, unclear}, got); diff != "" {
		t.Errorf("passing, failing, unclear (-want +got):\n%s", diff)
	}
}

func wantFailing(t *testing.T, s *fakeSink, q fact.ObjectsQuery, state fact.WatchState, message string) {
	t.Helper()
	if w := s.answer(q).Watch; w.State != state || !strings.Contains(w.Message, message) || strings.Contains(w.Message, "\n") {
		t.Errorf("the watch is %s %q, want %s %q", w.State, w.Message, state, message)
	}
}

func TestObjects(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish([]fact.Wish{fact.WishObjects("prod", volumes), fact.WishObjects("dev", volumes)})
		w.Await(t.Context(), []fact.Key{fact.ObjectsKey("prod", volumes), fact.ObjectsKey("dev", volumes)})
		lh := "longhorn-system/"
		wantAnswer(t, s, volumes, fact.WatchSynced, []string{lh + "a", lh + "c"}, []string{lh + "b"}, nil)
		if v := s.answer(volumes).Version; v != "longhorn.io/v1beta2" {
			t.Errorf("version %q", v)
		}
		if got := s.written(fact.ObjectsKey("prod", volumes)); len(got) != 1 {
			t.Errorf("%d facts were written until the first answer, want 1: %+v", len(got), got)
		}
		if got := s.written(fact.ObjectsKey("dev", volumes)); got != nil {
			t.Errorf("a fact of another cluster was written: %+v", got)
		}
		since := s.answer(volumes).Failing.Notes[0].Since

		pass(time.Minute)
		first, _ := s.Lookup(fact.ObjectsKey("prod", volumes))
		apply(t, c, volume("a", "faulted"))
		pass(gather)
		wantAnswer(t, s, volumes, fact.WatchSynced, []string{lh + "c"}, []string{lh + "a", lh + "b"}, nil)
		now, _ := s.Lookup(first.Key)
		if !now.Since.Equal(first.Since) {
			t.Error("since changed although the same sets have objects")
		}
		notes := now.Objects.Failing.Notes
		if !notes[1].Since.Equal(since) || !notes[0].Since.After(since) {
			t.Errorf("since %v and %v, want that of the change and %v", notes[0].Since, notes[1].Since, since)
		}
		if now.Version == "" || !now.Newer(first) || first.Newer(now) {
			t.Errorf("version %q after %q", now.Version, first.Version)
		}

		apply(t, c, volume("a", "healthy"), volume("b", "healthy"))
		pass(gather)
		wantAnswer(t, s, volumes, fact.WatchSynced, []string{lh + "a", lh + "b", lh + "c"}, nil, nil)
		if now, _ := s.Lookup(first.Key); !now.Since.After(first.Since) {
			t.Error("since did not change although nothing fails any more")
		}
		c.Delete(volume("a", ""))
		c.Delete(volume("b", ""))
		c.Delete(volume("c", ""))
		pass(gather)
		wantAnswer(t, s, volumes, fact.WatchSynced, nil, nil, nil)
	})
}

func TestObjectsBySelection(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	labelled := volume("d", "degraded")
	labelled.SetLabels(map[string]string{"tier": "data"})
	elsewhere := volume("e", "degraded")
	elsewhere.SetNamespace("other")
	apply(t, c, labelled, elsewhere)
	query := func(change func(*fact.ObjectsQuery)) fact.ObjectsQuery { q := volumes; change(&q); return q }
	all := query(func(q *fact.ObjectsQuery) { q.Namespace = "" })
	one := query(func(q *fact.ObjectsQuery) { q.Name = "b" })
	data := query(func(q *fact.ObjectsQuery) { q.Selector = "tier in (data,cache)" })
	older := query(func(q *fact.ObjectsQuery) { q.Resource = "volumes.v1beta1.longhorn.io" })
	none := query(func(q *fact.ObjectsQuery) { q.Name = "z" })
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		var wishes []fact.Wish
		for _, q := range []fact.ObjectsQuery{all, one, data, older, none} {
			wishes = append(wishes, fact.WishObjects("prod", q))
		}
		w.Wish(wishes)
		settle()
		pass(gather)
		lh := "longhorn-system/"
		wantAnswer(t, s, all, fact.WatchSynced, []string{lh + "a", lh + "c"}, []string{lh + "b", lh + "d", "other/e"}, nil)
		wantAnswer(t, s, one, fact.WatchSynced, nil, []string{lh + "b"}, nil)
		wantAnswer(t, s, data, fact.WatchSynced, nil, []string{lh + "d"}, nil)
		wantAnswer(t, s, older, fact.WatchSynced, []string{lh + "a", lh + "c"}, []string{lh + "b", lh + "d"}, nil)
		wantAnswer(t, s, none, fact.WatchSynced, nil, nil, nil)
		if v := s.answer(older).Version; v != "longhorn.io/v1beta1" {
			t.Errorf("version %q, want the one that was asked for", v)
		}
		labelled.SetLabels(nil)
		apply(t, c, labelled)
		pass(gather)
		wantAnswer(t, s, data, fact.WatchSynced, nil, nil, nil)
	})
}

func TestObjectsWithoutATest(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	deployment := func(name string, ready int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "web", "name": name, "generation": int64(1)},
			"spec":     map[string]any{"replicas": int64(2)},
			"status": map[string]any{
				"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": ready, "availableReplicas": ready,
				"conditions": []any{map[string]any{"type": "Available", "status": map[bool]string{true: "True", false: "False"}[ready == 2]}},
			},
		}}
	}
	apply(t, c, deployment("up", 2), deployment("down", 1))
	q := fact.ObjectsQuery{Resource: "deployments.apps", Namespace: "web"}
	bare := fact.ObjectsQuery{Resource: "volumes.longhorn.io"}
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish([]fact.Wish{fact.WishObjects("prod", q), fact.WishObjects("prod", bare)})
		pass(gather)
		wantAnswer(t, s, q, fact.WatchSynced, []string{"web/up"}, []string{"web/down: Available: not all of 2"}, nil)
		// Nothing of a volume's status is known to kstatus.
		if n := s.answer(bare).Passing.Count; n != 3 {
			t.Errorf("%d volumes are Current, want 3", n)
		}
	})
}

func TestObjectsThatAreMalformed(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	odd := map[string]any{
		"nothing": nil, "text": "status", "list": []any{int64(1)}, "deep": map[string]any{"state": map[string]any{}},
		"number": map[string]any{"state": int64(3)}, "conditions": map[string]any{"conditions": "x", "observedGeneration": "y"},
		"half": map[string]any{"conditions": []any{nil, "x", map[string]any{"type": int64(1)}}},
	}
	for name, status := range odd {
		v := volume(name, "")
		v.Object["status"] = status
		apply(t, c, v)
	}
	bare := volumes
	bare.Test = ""
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish([]fact.Wish{fact.WishObjects("prod", volumes), fact.WishObjects("prod", bare)})
		pass(gather)
		for _, q := range []fact.ObjectsQuery{volumes, bare} {
			o := s.answer(q)
			if o.Watch.State != fact.WatchSynced || o.Total() != 3+len(odd) || o.Unclear.Count == 0 {
				t.Errorf("answer = %+v", o)
			}
			for _, n := range o.Unclear.Notes {
				if n.Why == "" || strings.Contains(n.Why, "\n") || len(n.Why) > maxWhy {
					t.Errorf("%s is unclear because of %q", n.Object(), n.Why)
				}
			}
		}
	})
}

func TestReaderThatPanics(t *testing.T) {
	c := readCell(column{read: func(o map[string]any) cell { return cell{why: o["a"].(string)} }}, map[string]any{"a": 1})
	if c.verdict != unclear || !strings.Contains(c.why, "could not be read") {
		t.Errorf("cell = %+v", c)
	}
}

func TestObjectsNotInstalled(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	c.Withdraw(kubetest.Volumes)
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish([]fact.Wish{fact.WishObjects("prod", volumes)})
		w.Await(t.Context(), []fact.Key{fact.ObjectsKey("prod", volumes)})
		wantFailing(t, s, volumes, fact.WatchNotInstalled, "no resource volumes.longhorn.io; it has no API group longhorn.io")
		for range 2 {
			before := s.writes()
			pass(time.Hour)
			if n := s.writes() - before; n != 0 {
				t.Errorf("%d facts were written while nothing changed", n)
			}
			c.Serve(kubetest.Volumes)
			apply(t, c, volume("a", "degraded"))
			pass(missingPause + time.Second)
			wantAnswer(t, s, volumes, fact.WatchSynced, nil, []string{"longhorn-system/a"}, nil)
			c.Withdraw(kubetest.Volumes)
			pass(gonePause + 2*time.Second)
			wantFailing(t, s, volumes, fact.WatchNotInstalled, "no resource volumes.longhorn.io")
			wantAnswer(t, s, volumes, fact.WatchNotInstalled, nil, nil, nil)
		}
	})
}

func TestObjectsVersionGoes(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, fact.WishObjects("prod", volumes))
		defer stop()
		settle()
		next := kubetest.Volumes
		next.Versions = []string{"v1"}
		c.Serve(next)
		c.Forget()
		pass(gonePause + 2*time.Second)
		if o := s.answer(volumes); o.Watch.State != fact.WatchSynced || o.Version != "longhorn.io/v1" || o.Total() != 3 {
			t.Errorf("answer = %+v", o)
		}
	})
}

func TestResourcesThatCannotBeWatched(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	c.Serve(kubetest.Resource{Kind: "Token", Resource: "tokens", Verbs: []string{"create"}})
	q := func(resource string) fact.ObjectsQuery { return fact.ObjectsQuery{Resource: resource} }
	inNamespace := fact.ObjectsQuery{Resource: "nodes", Namespace: "x"}
	badSelector, badTest := q("nodes"), q("nodes")
	badSelector.Selector, badTest.Test = "a in", "object.status.state = 1"
	tests := map[string]struct {
		query   fact.ObjectsQuery
		state   fact.WatchState
		message string
	}{
		"no list":      {q("tokens"), fact.WatchFailing, "cannot list and watch tokens"},
		"namespace":    {inNamespace, fact.WatchFailing, "nodes are in no namespace"},
		"subresource":  {q("nodes/status"), fact.WatchFailing, "a subresource cannot be watched"},
		"selector":     {badSelector, fact.WatchFailing, "unable to parse"},
		"test":         {badTest, fact.WatchFailing, "the test cannot be read"},
		"singular":     {q("node"), fact.WatchNotInstalled, "no resource node; is nodes meant?"},
		"no group":     {q("deployments"), fact.WatchNotInstalled, "such as deployments.apps"},
		"version":      {q("volumes.v9.longhorn.io"), fact.WatchNotInstalled, "no resource volumes.v9.longhorn.io"},
		"not in group": {q("disks.longhorn.io"), fact.WatchNotInstalled, "no resource disks.longhorn.io"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, stop := start(t, "prod", c, s)
				defer stop()
				w.Wish([]fact.Wish{fact.WishObjects("prod", tt.query)})
				w.Await(t.Context(), []fact.Key{fact.ObjectsKey("prod", tt.query)})
				wantFailing(t, s, tt.query, tt.state, tt.message)
			})
		})
	}
}

// requests notes what is asked of a cluster.
type requests struct {
	mu   sync.Mutex
	seen []kubetest.Request
}

func (r *requests) fault(_ context.Context, q kubetest.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, q)
	return nil
}

func (r *requests) all() []kubetest.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func TestSecretsAreNeverRead(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	c.Serve(kubetest.Resource{Kind: "Secret", Resource: "secrets"})
	var r requests
	c.Break(r.fault)
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		for _, name := range []string{"secrets", "secret", "secrets.v1", "secrets.v1.", "SECRETS", "secrets.core", "secrets."} {
			q := fact.ObjectsQuery{Resource: name, Namespace: "default"}
			w.Wish([]fact.Wish{fact.WishObjects("prod", q)})
			w.Await(t.Context(), []fact.Key{fact.ObjectsKey("prod", q)})
			wantFailing(t, s, q, fact.WatchFailing, "secrets are never read")
		}
		pass(time.Minute)
		for _, q := range r.all() {
			if strings.Contains(q.Resource, "secret") || q.Verb == "discover" {
				t.Errorf("asked for %+v", q)
			}
		}
	})
}

func TestObjectsForbidden(t *testing.T) {
	const resource = "volumes.longhorn.io"
	tests := map[string]struct {
		fault   kubetest.Fault
		message string
	}{
		"watch":     {kubetest.Forbid("watch", resource), "missing right: watch " + resource + " in longhorn-system (list and watch are needed)"},
		"all":       {kubetest.Forbid("", resource), `cannot watch resource "volumes" in API group "longhorn.io" in the namespace "longhorn-system"`},
		"discovery": {kubetest.Forbid("discover", "apis/longhorn.io"), "missing right: discover the API group longhorn.io"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := longhorn(t), newFakeSink()
			c.Break(tt.fault)
			synctest.Test(t, func(t *testing.T) {
				w, stop := start(t, "prod", c, s)
				defer stop()
				w.Wish([]fact.Wish{fact.WishObjects("prod", volumes)})
				w.Await(t.Context(), []fact.Key{fact.ObjectsKey("prod", volumes)})
				wantFailing(t, s, volumes, fact.WatchFailing, tt.message)
				before := s.writes()
				pass(time.Hour)
				if n := s.writes() - before; n != 0 {
					t.Errorf("%d facts were written in an hour of the same failure", n)
				}
				c.Break(nil)
				pass(2 * maxDeniedPause)
				wantAnswer(t, s, volumes, fact.WatchSynced, []string{"longhorn-system/a", "longhorn-system/c"}, []string{"longhorn-system/b"}, nil)
			})
		})
	}
}

func TestObjectsOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		fault   kubetest.Fault
		message string
	}{
		"down":                {kubetest.Down, "the API server cannot be reached"},
		"not answering":       {kubetest.Hang, "no answer from the API server in time"},
		"credentials expired": {kubetest.Expired, "the API server refuses the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := longhorn(t), newFakeSink()
			synctest.Test(t, func(t *testing.T) {
				_, stop := start(t, "prod", c, s, fact.WishObjects("prod", volumes))
				defer stop()
				pass(time.Minute)
				before := s.writes()
				c.Cut()
				pass(time.Minute)
				c.Break(kubetest.Down)
				pass(5 * time.Second)
				c.Break(nil)
				pass(time.Minute)
				if n := s.writes() - before; n != 0 {
					t.Errorf("%d facts were written over an outage of seconds", n)
				}
				c.Break(tt.fault)
				apply(t, c, volume("a", "faulted"))
				c.Delete(volume("b", ""))
				pass(time.Minute)
				wantFailing(t, s, volumes, fact.WatchFailing, tt.message)
				if o := s.answer(volumes); o.Total() != 3 {
					t.Errorf("%d objects, want what was known last", o.Total())
				}
				c.Break(nil)
				pass(time.Minute)
				wantAnswer(t, s, volumes, fact.WatchSynced, []string{"longhorn-system/c"}, []string{"longhorn-system/a"}, nil)
			})
		})
	}
}

func TestObjectsSlowList(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	c.Break(func(ctx context.Context, r kubetest.Request) error {
		if r.Resource == "volumes.longhorn.io" {
			return kubetest.Hang(ctx, r)
		}
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s, fact.WishObjects("prod", volumes))
		defer stop()
		pass(2 * time.Second)
		if s.answer(volumes).Watch.State != "" {
			t.Errorf("told before its time: %+v", s.answer(volumes))
		}
		begin := time.Now()
		w.Await(t.Context(), []fact.Key{fact.ObjectsKey("prod", volumes)})
		if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("waited for %v", d)
		}
		<-w.Settled()
		wantFailing(t, s, volumes, fact.WatchSyncing, "")
		pass(31 * time.Second)
		wantFailing(t, s, volumes, fact.WatchFailing, "no answer from the API server in time: watch volumes.longhorn.io in longhorn-system")
		c.Break(nil)
		pass(40 * time.Second) // A request may hang still.
		wantAnswer(t, s, volumes, fact.WatchSynced, []string{"longhorn-system/a", "longhorn-system/c"}, []string{"longhorn-system/b"}, nil)
	})
}

func TestObjectsListedInPages(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	for i := range 2*pageSize + 10 {
		apply(t, c, volume(fmt.Sprintf("v%04d", i), "healthy"))
	}
	// A server that never ends the stream of what there is has to be asked for
	// lists.
	var r requests
	c.Break(r.fault)
	c.Mute(true)
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish([]fact.Wish{fact.WishObjects("prod", volumes)})
		pass(time.Minute)
		o := s.answer(volumes)
		if o.Watch.State != fact.WatchSynced || o.Passing.Count != 2*pageSize+12 || o.Failing.Count != 1 {
			t.Errorf("answer = %+v", o)
		}
		lists := 0
		for _, q := range r.all() {
			if q.Verb == "list" && q.Resource == "volumes.longhorn.io" {
				lists++
			}
		}
		if lists != 3 {
			t.Errorf("%d lists, want 3 pages", lists)
		}
		if notes := o.Passing.Notes; len(notes) != fact.MaxNotes || notes[0].Name != "a" || notes[9].Name != "v0007" {
			t.Errorf("notes = %+v", notes)
		}
	})
}

func TestBurstIsFewWrites(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, fact.WishObjects("prod", volumes))
		defer stop()
		pass(time.Minute)
		before := s.writes()
		for i := range 1000 {
			apply(t, c, volume(fmt.Sprint("v", i), []string{"healthy", "degraded"}[i%2]))
			pass(time.Millisecond)
		}
		pass(gather)
		if n := s.writes() - before; n > 6 {
			t.Errorf("%d writes of 1000 changes in a second", n)
		}
		if o := s.answer(volumes); o.Passing.Count != 502 || o.Failing.Count != 501 {
			t.Errorf("%d pass and %d fail", o.Passing.Count, o.Failing.Count)
		}
		before = s.writes()
		for i := range 1000 {
			v := volume("a", "healthy")
			v.Object["status"].(map[string]any)["actualSize"] = int64(i)
			apply(t, c, v)
			pass(100 * time.Millisecond)
		}
		if n := s.writes() - before; n != 0 {
			t.Errorf("%d facts were written while no result changed", n)
		}
	})
}

func TestObjectsRestoredFromBackup(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, fact.WishObjects("prod", volumes))
		defer stop()
		pass(time.Minute)
		backup := c.Backup()
		apply(t, c, volume("a", "degraded"), volume("d", "degraded"), volume("b", "healthy"))
		pass(time.Minute)
		lh := "longhorn-system/"
		wantAnswer(t, s, volumes, fact.WatchSynced, []string{lh + "b", lh + "c"}, []string{lh + "a", lh + "d"}, nil)
		c.Restore(backup)
		pass(30 * time.Second)
		wantAnswer(t, s, volumes, fact.WatchSynced, []string{lh + "a", lh + "c"}, []string{lh + "b"}, nil)
		apply(t, c, volume("b", "healthy"))
		pass(gather)
		wantAnswer(t, s, volumes, fact.WatchSynced, []string{lh + "a", lh + "b", lh + "c"}, nil, nil)
	})
}
