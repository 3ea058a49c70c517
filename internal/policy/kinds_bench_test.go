package policy_test

import (
	"fmt"
	"testing"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// everyKind is a policy with each kind of precondition, about each change.
const everyKind = `
preconditions:
  - {name: flux, flux: {kustomization: flux-system/apps, contains: base, settle: 10m}}
  - {name: renovate, renovate: {workflow: renovate.yaml, mode: dry-run, maxAge: 36h, next: true}}
  - {name: status, status: {context: "ci / *", by: [gitea-actions]}}
  - {name: workflow, workflow: {file: ci.yaml, maxAge: 36h}}
  - {name: kured, kured: {daemonSet: kube-system/kured}}
  - {name: volumes, objects: {kind: volumes.longhorn.io, all: 'object.status.robustness == "healthy"'}}
  - {name: nodes, objects: {kind: nodes}}
  - {name: window, window: {deny: ["03:00-03:10", "Sat 16:00-Sun 20:00"], allow: "00:00-24:00", timezone: America/Chicago}}
  - {name: dependsOn, dependsOn: {applied: true}}
approvals:
  - {name: owners, from: {users: [alice, carol]}}
`

// everyFact is what makes all of it met, on one cluster.
func everyFact() factMap {
	m := healthy("apps")
	ended := now.Add(-time.Hour)
	m.put(fact.Fact{Key: fact.RenovateKey(7, "renovate.yaml"), Renovate: &fact.Renovate{
		Last:       &fact.RenovateRun{ID: "1", Conclusion: "success", Mode: fact.RenovateFull, Completed: ended, Branches: make([]string, 20)},
		Configured: fact.RenovateConfigured{Schedules: []string{"0 * * * *"}, OnSchedule: fact.RenovateFull},
	}})
	var statuses []fact.Status
	for i := range 35 {
		statuses = append(statuses, fact.Status{Context: fmt.Sprintf("ci / job %d", i), State: "success", Job: int64(i) + 1, At: ended})
	}
	m.put(fact.Fact{Key: fact.StatusesKey(7, headSHA), Statuses: &fact.Statuses{Statuses: statuses}})
	run := fact.Run{ID: 1, Workflow: "ci.yaml", Event: "push", Status: "completed", Conclusion: "success", Completed: ended}
	for i := range 20 {
		run.Jobs = append(run.Jobs, fact.Job{Name: fmt.Sprint("job ", i), Status: "completed", Conclusion: "success"})
	}
	m.put(fact.Fact{Key: fact.RunsKey(7, "ci.yaml", headSHA), Runs: &fact.Runs{Runs: []fact.Run{run}}})
	synced := fact.Watch{State: fact.WatchSynced}
	m.put(fact.Fact{Key: fact.KuredKey("prod", fact.KuredQuery{Namespace: "kube-system", Name: "kured"}), Kured: &fact.Kured{Watch: synced}})
	for _, q := range []fact.ObjectsQuery{
		{Resource: "volumes.longhorn.io", Test: `object.status.robustness == "healthy"`}, {Resource: "nodes"},
	} {
		m.put(fact.Fact{Key: fact.ObjectsKey("prod", q), Objects: &fact.Objects{Query: q, Watch: synced, Passing: fact.ObjectSet{Count: 10_000}}})
	}
	for i := range 5 {
		m.put(fact.Fact{Key: fact.PullKey("ops", "home-gitops", int64(i)+40), Pull: &fact.Pull{
			Repo: "ops/home-gitops", RepoID: 7, Number: int64(i) + 40, State: fact.PullMerged, Base: "main", MergeCommit: baseSHA,
		}})
	}
	for i := range 30 {
		m.flux("prod", fmt.Sprint("tier", i), nil)
	}
	return m
}

func everyInput(tb testing.TB) policy.Input {
	s := snapshot()
	s.Files = append(manyFiles(299), pull.File{Path: "clusters/prod/a.yaml", Change: pull.Modified})
	s.Pull.Body = "Words.\n\nDepends-On: #40, #41, #42, #43, #44\n"
	s.Reviews = []pull.Review{{ID: 1, Author: alice, State: pull.Approved, Commit: headSHA}}
	s.Timeline = []pull.Moment{{Kind: pull.MomentReview, ReviewID: 1}}
	return input(s, load(tb, everyKind), everyFact())
}

// TestEveryKindTogether: each kind is met, wishes for its fact, and the verdict
// wakes itself when the first of them can change by time alone.
func TestEveryKindTogether(t *testing.T) {
	v := policy.Evaluate(everyInput(t))
	if v.State() != policy.Clear {
		t.Errorf("%s: %s", v.State(), v.Preconditions.Reason)
	}
	// Renovate, statuses, runs, kured, two queries, five pull requests.
	if len(v.Wishes) != 11 {
		t.Errorf("there are %d wishes, want 11: %v", len(v.Wishes), v.Wishes)
	}
	if v.LookAgain.IsZero() {
		t.Error("nothing wakes it")
	}
}

// BenchmarkEvaluateEveryKind has a bound of 1 ms.
func BenchmarkEvaluateEveryKind(b *testing.B) {
	in := everyInput(b)
	if v := policy.Evaluate(in); v.State() != policy.Clear {
		b.Fatalf("the benchmark's verdict is %s: %s", v.State(), v.Preconditions.Reason)
	}
	for b.Loop() {
		policy.Evaluate(in)
	}
}
