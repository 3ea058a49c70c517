package precondition_test

import (
	"testing"

	"signalbox/internal/fact"
	"signalbox/internal/precondition"
)

func notes(names ...string) fact.ObjectSet {
	s := fact.ObjectSet{Count: len(names)}
	for _, n := range names {
		s.Notes = append(s.Notes, fact.ObjectNote{Namespace: "longhorn-system", Name: n, Since: since})
	}
	return s
}

func TestObjects(t *testing.T) {
	const healthy = `object.status.robustness == "healthy"`
	answer := func(test string, o fact.Objects) func(*world) {
		return func(w *world) {
			if o.Watch.State == "" {
				o.Watch.State = fact.WatchSynced
			}
			o.Query = fact.ObjectsQuery{Resource: "volumes.longhorn.io", Namespace: "longhorn-system", Test: test}
			w.put(fact.Fact{Key: fact.ObjectsKey("prod", o.Query), Objects: &o})
		}
	}
	kind := func(rest string) string {
		return `objects: {kind: volumes.longhorn.io, namespace: longhorn-system` + rest + `}`
	}
	all, anyOf, none := kind(`, all: '`+healthy+`'`), kind(`, any: '`+healthy+`'`), kind(`, none: '`+healthy+`'`)
	count := func(bounds string) string { return kind(`, count: {where: '` + healthy + `', ` + bounds + `}`) }
	unclear := fact.ObjectSet{Count: 1, Notes: []fact.ObjectNote{{Namespace: "longhorn-system", Name: "c", Why: "object.status has no field robustness", Since: since}}}
	runCases(t, nil, []kindCase{
		{name: "all pass", text: all, world: answer(healthy, fact.Objects{Passing: notes("a", "b")}), want: precondition.Met, reason: "resource volumes.longhorn.io in longhorn-system on prod: all pass"},
		{
			name: "one does not", text: all, want: precondition.Unmet,
			world:  answer(healthy, fact.Objects{Passing: notes("a"), Failing: notes("b"), Unclear: unclear}),
			reason: "resource volumes.longhorn.io in longhorn-system on prod: 1 does not pass: longhorn-system/b",
		},
		{
			name: "many do not", text: all, want: precondition.Unmet,
			world:  answer(healthy, fact.Objects{Failing: fact.ObjectSet{Count: 400, Notes: notes("a", "b", "c", "d").Notes}}),
			reason: "resource volumes.longhorn.io in longhorn-system on prod: 400 do not pass: longhorn-system/a, longhorn-system/b, longhorn-system/c and 397 more",
		},
		{
			name: "one cannot be told", text: all, want: precondition.Unknown,
			world:  answer(healthy, fact.Objects{Passing: notes("a"), Unclear: unclear}),
			reason: "resource volumes.longhorn.io in longhorn-system on prod: the test cannot be evaluated for 1: longhorn-system/c (object.status has no field robustness)",
		},
		{name: "there are none", text: all, world: answer(healthy, fact.Objects{}), want: precondition.Unmet, reason: "resource volumes.longhorn.io in longhorn-system on prod: there are 0, and there should be at least 1"},
		{name: "there may be none", text: kind(`, min: 0, all: '` + healthy + `'`), world: answer(healthy, fact.Objects{}), want: precondition.Met, reason: "resource volumes.longhorn.io in longhorn-system on prod: all pass"},
		{name: "too few", text: kind(`, min: 3, all: '` + healthy + `'`), world: answer(healthy, fact.Objects{Passing: notes("a")}), want: precondition.Unmet, reason: "resource volumes.longhorn.io in longhorn-system on prod: there are 1, and there should be at least 3"},
		{name: "any passes", text: anyOf, world: answer(healthy, fact.Objects{Passing: notes("a"), Failing: notes("b"), Unclear: unclear}), want: precondition.Met, reason: "resource volumes.longhorn.io in longhorn-system on prod: at least one passes"},
		{name: "none passes of any", text: anyOf, world: answer(healthy, fact.Objects{Failing: notes("b")}), want: precondition.Unmet, reason: "resource volumes.longhorn.io in longhorn-system on prod: none passes: longhorn-system/b"},
		{
			name: "any may pass", text: anyOf, world: answer(healthy, fact.Objects{Failing: notes("b"), Unclear: unclear}), want: precondition.Unknown,
			reason: "resource volumes.longhorn.io in longhorn-system on prod: the test cannot be evaluated for 1: longhorn-system/c (object.status has no field robustness)",
		},
		{name: "none is such", text: none, world: answer(healthy, fact.Objects{Failing: notes("b")}), want: precondition.Met, reason: "resource volumes.longhorn.io in longhorn-system on prod: none passes, as it should be"},
		{name: "none at all", text: none, world: answer(healthy, fact.Objects{}), want: precondition.Met, reason: "resource volumes.longhorn.io in longhorn-system on prod: none passes, as it should be"},
		{
			name: "some are such as none may be", text: none, world: answer(healthy, fact.Objects{Passing: notes("a"), Unclear: unclear}), want: precondition.Unmet,
			reason: "resource volumes.longhorn.io in longhorn-system on prod: 1 passes, and none should: longhorn-system/a",
		},
		{name: "enough", text: count("min: 2"), world: answer(healthy, fact.Objects{Passing: notes("a", "b"), Unclear: unclear}), want: precondition.Met, reason: "resource volumes.longhorn.io in longhorn-system on prod: as many pass as should, at least 2"},
		{name: "not enough", text: count("min: 3"), world: answer(healthy, fact.Objects{Passing: notes("a"), Unclear: unclear}), want: precondition.Unmet, reason: "resource volumes.longhorn.io in longhorn-system on prod: 1 passes, and at least 3 should"},
		{name: "too many", text: count("max: 1"), world: answer(healthy, fact.Objects{Passing: notes("a", "b")}), want: precondition.Unmet, reason: "resource volumes.longhorn.io in longhorn-system on prod: 2 pass, and at most 1 should"},
		{
			name: "perhaps too many", text: count("min: 1, max: 1"), world: answer(healthy, fact.Objects{Passing: notes("a"), Unclear: unclear}), want: precondition.Unknown,
			reason: "resource volumes.longhorn.io in longhorn-system on prod: the test cannot be evaluated for 1: longhorn-system/c (object.status has no field robustness)",
		},
		{name: "kstatus", text: kind(""), world: answer("", fact.Objects{Passing: notes("a")}), want: precondition.Met, reason: "resource volumes.longhorn.io in longhorn-system on prod: all are Current"},
		{
			name: "kstatus says no", text: kind(""), want: precondition.Unmet,
			world:  answer("", fact.Objects{Failing: fact.ObjectSet{Count: 1, Notes: []fact.ObjectNote{{Name: "a", Why: "Deployment does not have minimum availability."}}}}),
			reason: "resource volumes.longhorn.io in longhorn-system on prod: 1 is not Current: a (Deployment does not have minimum availability.)",
		},
		{
			name: "not installed", text: all, want: precondition.Unknown,
			world:  answer(healthy, fact.Objects{Watch: fact.Watch{State: fact.WatchNotInstalled, Message: "it has no API group longhorn.io"}, Passing: notes("a")}),
			reason: "cluster prod has no resource volumes.longhorn.io in longhorn-system: it has no API group longhorn.io",
		},
		{
			name: "forbidden", text: all, want: precondition.Unknown,
			world:  answer(healthy, fact.Objects{Watch: fact.Watch{State: fact.WatchFailing, Since: since, Message: "may not list volumes.longhorn.io in longhorn-system"}, Passing: notes("a")}),
			reason: "resource volumes.longhorn.io in longhorn-system on prod cannot be watched since 2026-09-07 02:44 UTC: may not list volumes.longhorn.io in longhorn-system",
		},
		{
			name: "slow", text: all, want: precondition.Unknown,
			world:  answer(healthy, fact.Objects{Watch: fact.Watch{State: fact.WatchSyncing}, Passing: notes("a")}),
			reason: "the list of resource volumes.longhorn.io in longhorn-system on prod has not arrived yet",
		},
		{
			name: "another test of the same objects", text: none, want: precondition.Unknown,
			world: answer(`object.x`, fact.Objects{}), reason: "the list of resource volumes.longhorn.io in longhorn-system on prod has not been read yet",
		},
	})
	problemCases(t, map[string][]string{
		`objects: {}`:                        {`p.yaml:1: objects.kind: is missing (name it as kubectl does, such as nodes or volumes.longhorn.io)`},
		`objects: {kind: secrets}`:           {`p.yaml:1: objects.kind: resource "secrets": secrets are never read`},
		`objects: {kind: secrets.v1}`:        {`p.yaml:1: objects.kind: resource "secrets.v1": secrets are never read`},
		`objects: {kind: nodes, all: "obj"}`: {`p.yaml:1: objects.all: 1:1: unknown name "obj"; did you mean "object"?`},
		`objects: {kind: nodes, all: "true", any: "true"}`: {
			`p.yaml:1: objects: has 2 tests (give one of all, any, none and count, or none of them to ask kstatus)`,
		},
		`objects: {kind: nodes, count: {where: "true"}}`:                 {`p.yaml:1: objects.count: has no bound (give min, max or both)`},
		`objects: {kind: nodes, count: {where: "true", min: 3, max: 2}}`: {`p.yaml:1: objects.count: has a min of 3 above its max of 2`},
		`objects: {kind: nodes, name: a, selector: "x=y"}`:               {`p.yaml:1: objects.selector: is given together with a name (leave one of them out)`},
		`objects: {kind: nodes, namespace: "*"}`:                         {`p.yaml:1: objects.namespace: "*" is not the name of a Kubernetes object (name one, or leave it out for all)`},
	})
}

func TestObjectsOnEachCluster(t *testing.T) {
	w := newWorld()
	w.hear("dev")
	w.clusters = []string{"dev", "prod", "stage"}
	q := fact.ObjectsQuery{Resource: "nodes"}
	synced := fact.Watch{State: fact.WatchSynced}
	w.put(fact.Fact{Key: fact.ObjectsKey("prod", q), Objects: &fact.Objects{Query: q, Watch: synced, Passing: notes("a")}})
	w.put(fact.Fact{Key: fact.ObjectsKey("dev", q), Objects: &fact.Objects{Query: q, Watch: synced, Failing: notes("a")}})
	checks, _ := w.evaluate(t, `objects: {kind: nodes}`)
	var got []string
	for _, c := range checks {
		got = append(got, c.Cluster+": "+string(c.State)+": "+c.Reason)
	}
	want := []string{
		"dev: unmet: resource nodes on dev: 1 is not Current: longhorn-system/a",
		"prod: met: resource nodes on prod: all are Current",
		"stage: unknown: the policy names cluster stage, which signalbox does not watch",
	}
	equal(t, want, got)
}
