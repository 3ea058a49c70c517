package digest_test

import (
	"strings"
	"testing"
	"time"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// What is asked about no more has not recovered, in alerts and in digests.
func TestWhatIsAskedNoMoreDoesNotRecover(t *testing.T) {
	check := digest.DefaultChecks()[0]
	node := fact.Fact{Key: fact.ObjectsKey("prod", check.Query), Objects: &fact.Objects{
		Watch: fact.Watch{State: fact.WatchSynced}, Failing: fact.ObjectSet{Count: 1, Notes: []fact.ObjectNote{{Name: "n1", Since: since}}},
	}}
	runs := fact.Fact{Key: fact.RunsKey(7, "ci.yaml", "refs/heads/main"), Runs: &fact.Runs{
		Runs: []fact.Run{{ID: 1, Status: "completed", Conclusion: "failure", Completed: since}},
	}}
	for name, tt := range map[string]struct {
		put    fact.Fact
		change func(*world)
		// ended is what is said to have recovered.
		ended bool
	}{
		"well again": {put: node, ended: true, change: func(w *world) {
			w.put(fact.Fact{Key: node.Key, Objects: &fact.Objects{Watch: fact.Watch{State: fact.WatchSynced}}})
		}},
		"no such cluster": {put: node, change: func(w *world) { w.Clusters = nil }},
		"no such check":   {put: node, change: func(w *world) { w.Checks = nil }},
		"cluster silent": {put: node, change: func(w *world) {
			w.put(fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{Silent: true}})
		}},
		"the run is well again": {put: runs, ended: true, change: func(w *world) {
			w.put(fact.Fact{Key: runs.Key, Runs: &fact.Runs{Runs: []fact.Run{{Status: "completed", Conclusion: "success"}}}})
		}},
		"no such repository":    {put: runs, change: func(w *world) { w.Repositories = []digest.Repository{{Repo: pull.Repo{ID: 8}}} }},
		"nobody reads the runs": {put: runs, change: func(w *world) { delete(w.facts, runs.Key) }},
		"repository not read":   {put: runs, change: func(w *world) { w.Repositories, w.Unread = nil, 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("prod")
			w.Checks = []digest.Check{check}
			w.Sections = []digest.Section{digest.Nodes, digest.Pipelines}
			w.put(tt.put)
			rule := digest.Rule{Settle: time.Minute}
			res := w.find()
			s, batch, _ := digest.State{}.Next(res, rule, now)
			if batch == nil || len(batch.Broke) != 1 {
				t.Fatalf("announced %+v of %+v", batch, res)
			}
			before := digest.Make(res, nil, digest.Options{Clusters: w.Clusters})
			tt.change(w)
			res = w.find()
			if r := digest.Make(res, &before, digest.Options{Clusters: w.Clusters}); (len(r.Recovered) > 0) != tt.ended {
				t.Errorf("the digest says that %+v recovered", r.Recovered)
			}
			var ended []string
			for i := range 3 {
				if s, batch, _ = s.Next(res, rule, now.Add(time.Duration(i)*time.Hour)); batch != nil {
					ended = append(ended, notices(batch.Recovered))
				}
			}
			if (len(ended) > 0) != tt.ended {
				t.Errorf("recovered: %q", ended)
			}
		})
	}
}

// A change of what does not work is tried for minutes. It has not recovered by that.
func TestATryIsNoRecovery(t *testing.T) {
	for _, works := range []bool{false, true} {
		w := newWorld("prod")
		w.flux("Kustomization", "apps", failing("HealthCheckFailed", "a Deployment is not ready"))
		w.flux("GitRepository", "flux-system", nil)
		rule := digest.Rule{After: 5 * time.Minute, Settle: 2 * time.Minute}
		before := digest.Make(w.find(), nil, digest.Options{Clusters: w.Clusters})
		s, batch, _ := digest.State{}.Next(w.find(), rule, now)
		if batch == nil {
			t.Fatal("it is not announced")
		}
		look := func(minutes int, change func(*fact.Fact)) *digest.Batch {
			w.Now = now.Add(time.Duration(minutes) * time.Minute)
			w.flux("Kustomization", "apps", change)
			s, batch, _ = s.Next(w.find(), rule, w.Now)
			return batch
		}
		trying := func(f *fact.Fact) {
			f.Flux.Generation, f.Flux.ObservedGeneration, f.Since = 2, 2, now.Add(time.Minute)
			f.Flux.Ready = fact.Condition{Status: fact.Unknown, Reason: "Progressing"}
		}
		for m := 1; m < 9; m++ {
			if batch := look(m, trying); batch != nil {
				t.Fatalf("after %d minutes: %+v", m, batch)
			}
		}
		if r := digest.Make(w.find(), &before, digest.Options{Clusters: w.Clusters}); len(r.Recovered) != 0 || r.Unknown != 1 {
			t.Errorf("recovered %+v, %d unknown", r.Recovered, r.Unknown)
		}
		end := failing("HealthCheckFailed", "a Deployment is not ready")
		if works {
			end = nil
		}
		look(9, end)
		if batch := look(12, end); (batch != nil && len(batch.Recovered) == 1) != works {
			t.Errorf("works %t: %+v", works, batch)
		}
	}
}

// A source that moves on while something is behind it does not make that up to date.
func TestBehindStaysSoWhenTheSourceMovesOn(t *testing.T) {
	w := newWorld("prod")
	rule := digest.Rule{Settle: 2 * time.Minute}
	var s digest.State
	look := func(minutes int, moved int, revision string) (batch *digest.Batch) {
		w.Now = now.Add(time.Duration(minutes) * time.Minute)
		w.flux("GitRepository", "flux-system", func(f *fact.Fact) {
			f.Flux.Applied, f.SeenAt = "main@sha1:"+revision, now.Add(time.Duration(moved)*time.Minute)
		})
		w.flux("Kustomization", "apps", nil)
		s, batch, _ = s.Next(w.find(), rule, w.Now)
		return batch
	}
	if batch := look(0, -11, shaB); batch == nil || len(batch.Broke) != 1 {
		t.Fatalf("announced %+v", batch)
	}
	for m := 1; m < 20; m++ {
		if batch := look(m, 1, strings.Repeat("c", 40)); batch != nil {
			t.Fatalf("after %d minutes: %+v", m, batch)
		}
	}
	look(20, 1, shaA)
	if batch := look(22, 1, shaA); batch == nil || len(batch.Recovered) != 1 {
		t.Errorf("recovered %+v", batch)
	}
}
