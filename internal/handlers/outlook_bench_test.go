package handlers_test

import (
	"fmt"
	"testing"
	"time"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// BenchmarkLook looks at 5,000 pull requests and 2,000 objects, as each alert does up to
// every other second.
func BenchmarkLook(b *testing.B) {
	facts := &factStore{facts: map[fact.Key]fact.Fact{}}
	facts.facts[fact.HeartbeatKey("prod")] = fact.Fact{Heartbeat: &fact.Heartbeat{}}
	facts.facts[fact.ClusterKey("prod")] = fact.Fact{Cluster: &fact.Cluster{Kinds: map[string]fact.Watch{"kustomization": {State: fact.WatchSynced}}}}
	for i := range 2000 {
		k := fact.Kube("prod", "Kustomization", "flux-system", fmt.Sprint("apps", i))
		facts.facts[k] = fact.Fact{Key: k, Flux: &fact.Flux{Ready: fact.Condition{Status: fact.True}}}
	}
	records := &kept[handlers.Record]{}
	for i := range 5000 {
		r := handlers.Record{EvaluatedAt: eight, Inputs: handlers.Inputs{Snapshot: pull.Snapshot{Pull: pull.Pull{Repo: pull.Repo{ID: 7}, Number: int64(i + 1)}}}}
		r.Verdict.Preconditions.State, r.Verdict.Approval.State = policy.Waiting, policy.Waiting
		for range 50 {
			r.History = append(r.History, policy.Change{At: eight, Preconditions: r.Verdict.Preconditions, Approval: r.Verdict.Approval})
		}
		if _, err := records.Put(b.Context(), fmt.Sprint("7.", i+1), r, 0); err != nil {
			b.Fatal(err)
		}
	}
	repositories := handlers.NewRepositories(oneRepo{}, []handlers.RepositorySetting{{Owner: "ops", Name: "home"}})
	if err := repositories.Complete(b.Context()); err != nil {
		b.Fatal(err)
	}
	m := &handlers.Outlook{
		Facts: facts, Records: records, Repositories: repositories, Ledger: &wholeLedger{}, Clusters: []string{"prod"},
		DeadLetters: noDeadLetters, Now: func() time.Time { return eight.Add(100 * time.Hour) }, Checks: digest.DefaultChecks(),
	}
	for b.Loop() {
		if _, err := m.Look(b.Context(), handlers.About{Sections: digest.Sections()}, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}
