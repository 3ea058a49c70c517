package precondition_test

import (
	"testing"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/precondition"
)

func TestRenovate(t *testing.T) {
	dry := fact.RenovateRun{
		ID: "41", Event: "workflow_dispatch", Conclusion: "success", Job: "renovate", Completed: ranAt,
		Mode: fact.RenovateFull, Proof: []string{"DRY-RUN: Would create branch renovate/left-pad-1.x"},
		Branches: []string{"renovate/left-pad-1.x"}, Pulls: []string{"Update left-pad"},
	}
	last := func(edit func(*fact.RenovateRun)) func(*world) {
		return func(w *world) {
			r := dry
			if edit != nil {
				edit(&r)
			}
			w.put(fact.Fact{Key: fact.RenovateKey(7, "renovate.yaml"), Renovate: &fact.Renovate{Last: &r}})
		}
	}
	configured := func(c fact.RenovateConfigured) func(*world) {
		return func(w *world) {
			last(nil)(w)
			w.facts[fact.RenovateKey(7, "renovate.yaml")].Renovate.Configured = c
		}
	}
	const kind = `renovate: {workflow: renovate.yaml, mode: dry-run}`
	const next = `renovate: {workflow: renovate.yaml, mode: dry-run, next: true}`
	const was = "run 41 of Renovate in renovate.yaml was a dry run (full), ended at 2026-09-07 01:14 UTC; it would touch 1 branch and 1 pull request"
	runCases(t, nil, []kindCase{
		{name: "a full dry run", text: kind, world: last(nil), want: precondition.Met, reason: was},
		{
			name: "an empty RENOVATE_DRY_RUN", text: kind, want: precondition.Unmet,
			world: last(func(r *fact.RenovateRun) {
				r.Mode, r.Proof = fact.RenovateLive, []string{"Branch created"}
				r.Branches, r.Pulls = []string{"a", "b"}, nil
			}),
			reason: "run 41 of Renovate in renovate.yaml was a live run, not a dry run; it touched 2 branches",
		},
		{
			name: "a skipped job that says success", text: kind, want: precondition.Unmet,
			world: last(func(r *fact.RenovateRun) {
				*r = fact.RenovateRun{ID: "41", Conclusion: "skipped", Job: "renovate", Mode: fact.RenovateUnknown}
			}),
			reason: "run 41 of Renovate in renovate.yaml skipped its job renovate, so nothing ran",
		},
		{
			name: "failed", text: kind, want: precondition.Unmet,
			world: last(func(r *fact.RenovateRun) {
				r.Conclusion, r.Failures = "failure", []string{"Initialization error: You must configure a Gitea personal access token"}
			}),
			reason: "run 41 of Renovate in renovate.yaml ended with failure: Initialization error: You must configure a Gitea personal access token",
		},
		{
			name: "success of the job and failure of Renovate", text: kind, want: precondition.Unmet,
			world:  last(func(r *fact.RenovateRun) { r.Failures = []string{"Initialization error"} }),
			reason: "run 41 of Renovate in renovate.yaml says success, but Renovate failed: Initialization error",
		},
		{
			name: "a log that proves nothing", text: kind, want: precondition.Unknown,
			world:  last(func(r *fact.RenovateRun) { r.Mode, r.Proof = fact.RenovateUnknown, nil }),
			reason: "nobody can tell whether run 41 of Renovate in renovate.yaml was a dry run: its log proves none",
		},
		{
			name: "a log that is gone", text: kind, want: precondition.Unknown,
			world: last(func(r *fact.RenovateRun) {
				r.Mode, r.Proof, r.LogProblem = fact.RenovateUnknown, nil, "Gitea has no log of it"
			}),
			reason: "nobody can tell whether run 41 of Renovate in renovate.yaml was a dry run: Gitea has no log of it",
		},
		{
			name: "a run that nobody saw", text: kind, want: precondition.Unknown,
			world: last(func(r *fact.RenovateRun) {
				*r = fact.RenovateRun{ID: "41", Mode: fact.RenovateUnknown, LogProblem: "its job is gone"}
			}),
			reason: "nobody can tell what run 41 of Renovate in renovate.yaml did: its job is gone",
		},
		{
			name: "another dry run than the one asked for", text: `renovate: {workflow: renovate.yaml, mode: full}`, want: precondition.Unmet,
			world:  last(func(r *fact.RenovateRun) { r.Mode, r.Branches, r.Pulls = fact.RenovateExtract, nil, nil }),
			reason: "run 41 of Renovate in renovate.yaml was a dry run (extract), not a dry run (full)",
		},
		{
			name: "live as asked for", text: `renovate: {workflow: renovate.yaml, mode: live}`, want: precondition.Met,
			world:  last(func(r *fact.RenovateRun) { r.Mode, r.Branches, r.Pulls = fact.RenovateLive, nil, nil }),
			reason: "run 41 of Renovate in renovate.yaml was a live run, ended at 2026-09-07 01:14 UTC",
		},
		{
			name: "until it is too old", text: `renovate: {workflow: renovate.yaml, mode: dry-run, maxAge: 36h}`, want: precondition.Met,
			world: last(nil), reason: was, again: ranAt.Add(36 * time.Hour),
		},
		{
			name: "too old", text: `renovate: {workflow: renovate.yaml, mode: dry-run, maxAge: 90m}`, want: precondition.Unmet,
			world: last(nil), reason: "run 41 of Renovate in renovate.yaml ended at 2026-09-07 01:14 UTC, which is longer ago than 1h30m",
		},
		{
			name: "never ran", text: kind, want: precondition.Unmet,
			world: func(w *world) {
				w.put(fact.Fact{Key: fact.RenovateKey(7, "renovate.yaml"), Renovate: &fact.Renovate{}})
			},
			reason: "Renovate in renovate.yaml has never run, or its runs are forgotten",
		},
		{
			name: "no such workflow", text: kind, want: precondition.Unmet,
			world: func(w *world) {
				w.put(fact.Fact{Key: fact.RenovateKey(7, "renovate.yaml"), Renovate: &fact.Renovate{Missing: true}})
			},
			reason: "Renovate in renovate.yaml does not exist",
		},
		{
			name: "the schedule would start a live run", text: next, want: precondition.Unmet,
			world:  configured(fact.RenovateConfigured{Schedules: []string{"0 * * * *"}, OnSchedule: fact.RenovateLive}),
			reason: "Renovate in renovate.yaml will be a live run when the schedule starts it next (0 * * * *)",
		},
		{
			name: "nobody can tell what the schedule would start", text: next, want: precondition.Unknown,
			world:  configured(fact.RenovateConfigured{Schedules: []string{"0 * * * *"}, OnSchedule: fact.RenovateUnknown, Why: "it is ${{ vars.DRY }}"}),
			reason: "Renovate in renovate.yaml will run by schedule, and nobody can tell how: it is ${{ vars.DRY }}",
		},
		{name: "no schedule", text: next, want: precondition.Met, world: configured(fact.RenovateConfigured{ByHand: fact.RenovateLive}), reason: was},
		{
			name: "a CronJob", text: `renovate: {cronJob: renovate/renovate, mode: dry-run}`, want: precondition.Met,
			world: func(w *world) {
				r := dry
				r.ID = "renovate/renovate-1"
				w.put(fact.Fact{Key: fact.RenovateCronJobKey("prod", "renovate", "renovate"), Renovate: &fact.Renovate{Watch: &fact.Watch{State: fact.WatchSynced}, Last: &r}})
			},
			reason: "run renovate/renovate-1 of Renovate in CronJob renovate/renovate on prod was a dry run (full), ended at 2026-09-07 01:14 UTC; it would touch 1 branch and 1 pull request",
		},
		{
			name: "a CronJob that may not be read", text: `renovate: {cronJob: renovate/renovate, mode: dry-run}`, want: precondition.Unknown,
			world: func(w *world) {
				w.put(fact.Fact{Key: fact.RenovateCronJobKey("prod", "renovate", "renovate"), Renovate: &fact.Renovate{Watch: &fact.Watch{State: fact.WatchFailing, Since: since, Message: "may not list cronjobs.batch"}}})
			},
			reason: "CronJobs on prod cannot be watched since 2026-09-07 02:44 UTC: may not list cronjobs.batch",
		},
		{name: "not read yet", text: kind, want: precondition.Unknown, reason: "Renovate in renovate.yaml has not been read yet"},
	})
	problemCases(t, map[string][]string{
		`renovate: {mode: dry}`: {
			`p.yaml:1: renovate: needs a workflow or a cronJob (give exactly one, such as workflow: renovate.yaml)`,
			`p.yaml:1: renovate.mode: "dry" is not known (known: dry-run, extract, full, live, lookup)`,
		},
		`renovate: {workflow: a.yaml, cronJob: a/b, mode: live}`: {
			`p.yaml:1: renovate: needs a workflow or a cronJob (give exactly one, such as workflow: renovate.yaml)`,
		},
		`renovate: {cronJob: renovate}`: {
			`p.yaml:1: renovate.cronJob: "renovate" does not name an object (write "namespace/name")`,
			`p.yaml:1: renovate.mode: is missing (write mode: dry-run or mode: live)`,
		},
	})
}
