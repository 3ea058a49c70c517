package precondition_test

import (
	"testing"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/precondition"
)

// ranAt is when the runs of the tests ended.
var ranAt = now.Add(-2 * time.Hour)

func ran(edit func(*fact.Run)) fact.Run {
	r := fact.Run{
		ID: 41, Number: 5, Workflow: "conformance.yaml", Event: "pull_request", Branch: "cdi", Commit: headSHA,
		Status: "completed", Conclusion: "success", Created: ranAt.Add(-time.Hour), Started: ranAt.Add(-time.Hour), Completed: ranAt,
		Jobs: []fact.Job{
			{Name: "build", Status: "completed", Conclusion: "success", Runner: "one"},
			{Name: "conformance", Status: "completed", Conclusion: "success", Runner: "one"},
		},
	}
	if edit != nil {
		edit(&r)
	}
	return r
}

func TestWorkflow(t *testing.T) {
	runs := func(commit string, more bool, rs ...fact.Run) func(*world) {
		return func(w *world) {
			w.put(fact.Fact{Key: fact.RunsKey(7, "conformance.yaml", commit), Runs: &fact.Runs{Runs: rs, More: more}})
		}
	}
	onHead := func(edit func(*fact.Run)) func(*world) { return runs(headSHA, false, ran(edit)) }
	const kind = `workflow: {file: conformance.yaml}`
	runCases(t, nil, []kindCase{
		{name: "ran", text: kind, world: onHead(nil), want: precondition.Met, reason: "run 5 of conformance.yaml (pull_request) ended with success at 2026-09-07 01:14 UTC, 2 of 2 jobs ran"},
		{name: "never", text: kind, world: runs(headSHA, false), want: precondition.Unmet, reason: "workflow conformance.yaml never ran on aaaaaaaaaa"},
		{
			name: "a job was skipped and the run says success", text: kind, want: precondition.Unmet,
			world:  onHead(func(r *fact.Run) { r.Jobs[1].Conclusion = "skipped" }),
			reason: "run 5 of conformance.yaml (pull_request) skipped its job conformance, although it says success",
		},
		{
			name: "a job may be skipped", text: `workflow: {file: conformance.yaml, maySkip: ["conf*"]}`, want: precondition.Met,
			world:  onHead(func(r *fact.Run) { r.Jobs[1].Conclusion = "skipped" }),
			reason: "run 5 of conformance.yaml (pull_request) ended with success at 2026-09-07 01:14 UTC, 1 of 2 jobs ran",
		},
		{
			name: "all jobs may be skipped and all were", text: `workflow: {file: conformance.yaml, maySkip: ["*"]}`, want: precondition.Unmet,
			world: onHead(func(r *fact.Run) {
				r.Jobs[0].Conclusion, r.Jobs[1].Conclusion = "skipped", "skipped"
			}),
			reason: "run 5 of conformance.yaml (pull_request) skipped every job, so nothing ran",
		},
		{
			name: "another job failed", text: `workflow: {file: conformance.yaml, jobs: [conformance]}`, want: precondition.Met,
			world:  onHead(func(r *fact.Run) { r.Conclusion, r.Jobs[0].Conclusion = "failure", "failure" }),
			reason: "run 5 of conformance.yaml (pull_request) ended with success at 2026-09-07 01:14 UTC, 1 of 2 jobs ran",
		},
		{
			name: "a job that must have run does not exist", text: `workflow: {file: conformance.yaml, jobs: [e2e]}`, want: precondition.Unmet,
			world: onHead(nil), reason: "run 5 of conformance.yaml (pull_request) has no job e2e",
		},
		{
			name: "failed", text: kind, want: precondition.Unmet,
			world:  onHead(func(r *fact.Run) { r.Conclusion, r.Jobs[1].Conclusion = "failure", "failure" }),
			reason: "run 5 of conformance.yaml (pull_request) ended with failure in its job conformance",
		},
		{
			name: "no jobs are known", text: kind, want: precondition.Unmet,
			world:  onHead(func(r *fact.Run) { r.Jobs = nil }),
			reason: "run 5 of conformance.yaml (pull_request) has no job, so nothing ran",
		},
		{
			name: "queued, and nobody is there", text: kind, want: precondition.Unmet,
			world: func(w *world) {
				onHead(func(r *fact.Run) { r.Status, r.Conclusion, r.Completed = "queued", "", time.Time{} })(w)
				w.put(fact.Fact{Key: fact.ActionsKey(7), Actions: &fact.Actions{Runners: []fact.Runner{{Name: "one"}, {Name: "two", Online: true, Disabled: true}}}})
			},
			reason: "run 5 of conformance.yaml (pull_request) has not ended: it is queued, and no runner is known to be online",
		},
		{
			name: "queued, and nobody may see the runners", text: kind, want: precondition.Unmet,
			world: func(w *world) {
				onHead(func(r *fact.Run) { r.Status, r.Conclusion = "queued", "" })(w)
				w.put(fact.Fact{Key: fact.ActionsKey(7), Actions: &fact.Actions{RunnersProblem: "forbidden"}})
			},
			reason: "run 5 of conformance.yaml (pull_request) has not ended: it is queued, and no runner is known to be online",
		},
		{
			name: "of two events the worse one counts", text: kind, want: precondition.Unmet,
			world: runs(headSHA, false, ran(nil), ran(func(r *fact.Run) {
				r.ID, r.Number, r.Event, r.Status, r.Conclusion = 40, 4, "push", "in_progress", ""
			})),
			reason: "run 4 of conformance.yaml (push) has not ended: it is in progress",
		},
		{
			name: "of one event the newest counts", text: kind, want: precondition.Met,
			world: runs(headSHA, false, ran(nil), ran(func(r *fact.Run) {
				r.ID, r.Number, r.Conclusion, r.Jobs[0].Conclusion = 40, 4, "failure", "failure"
			})),
			reason: "run 5 of conformance.yaml (pull_request) ended with success at 2026-09-07 01:14 UTC, 2 of 2 jobs ran",
		},
		{
			name: "the head has more runs than are read", text: kind, want: precondition.Unknown,
			world:  runs(headSHA, true, ran(nil)),
			reason: "aaaaaaaaaa has more runs than are read, and one of conformance.yaml that is not may have failed; name the events that must have run it",
		},
		{
			name: "more runs than are read, and each event is there", text: `workflow: {file: conformance.yaml, events: [pull_request]}`, want: precondition.Met,
			world:  runs(headSHA, true, ran(nil)),
			reason: "run 5 of conformance.yaml (pull_request) ended with success at 2026-09-07 01:14 UTC, 2 of 2 jobs ran",
		},
		{
			name: "more runs than are read, and an event is not there", text: `workflow: {file: conformance.yaml, events: [pull_request, push]}`, want: precondition.Unknown,
			world:  runs(headSHA, true, ran(nil)),
			reason: "aaaaaaaaaa has more runs than are read, and one of conformance.yaml that is not may have failed; name the events that must have run it",
		},
		{
			name: "more runs than are read, and one failed", text: kind, want: precondition.Unmet,
			world:  runs(headSHA, true, ran(func(r *fact.Run) { r.Conclusion, r.Jobs[1].Conclusion = "failure", "failure" })),
			reason: "run 5 of conformance.yaml (pull_request) ended with failure in its job conformance",
		},
		{
			name: "more runs than are read, and none of it", text: `workflow: {file: conformance.yaml, events: [push]}`, want: precondition.Unknown,
			world:  runs(headSHA, true, ran(nil)),
			reason: "aaaaaaaaaa has more runs than are read, and no run of conformance.yaml is among those for push",
		},
		{
			name: "another pull request with the same head", text: kind, want: precondition.Unmet,
			world: runs(headSHA, false,
				ran(func(r *fact.Run) { r.ID, r.Number, r.Ref = 42, 6, "refs/pull/13/head" }),
				ran(func(r *fact.Run) {
					r.Ref, r.Conclusion, r.Jobs[1].Conclusion = "refs/pull/12/head", "failure", "failure"
				})),
			reason: "run 5 of conformance.yaml (pull_request) ended with failure in its job conformance",
		},
		{
			name: "another pull request alone", text: kind, want: precondition.Unmet,
			world:  onHead(func(r *fact.Run) { r.Ref = "refs/pull/121/head" }),
			reason: "workflow conformance.yaml never ran on aaaaaaaaaa",
		},
		{
			name: "a push to any branch", text: kind, want: precondition.Met,
			world:  onHead(func(r *fact.Run) { r.Event, r.Ref, r.Branch = "push", "refs/heads/other", "other" }),
			reason: "run 5 of conformance.yaml (push) ended with success at 2026-09-07 01:14 UTC, 2 of 2 jobs ran",
		},
		{
			name: "another event", text: `workflow: {file: conformance.yaml, events: [schedule]}`, want: precondition.Unmet,
			world: onHead(nil), reason: "workflow conformance.yaml never ran on aaaaaaaaaa for schedule",
		},
		{
			name: "young enough, until it is too old", text: `workflow: {file: conformance.yaml, maxAge: 3h}`, want: precondition.Met,
			world: onHead(nil), again: ranAt.Add(3 * time.Hour),
			reason: "run 5 of conformance.yaml (pull_request) ended with success at 2026-09-07 01:14 UTC, 2 of 2 jobs ran",
		},
		{
			name: "too old", text: `workflow: {file: conformance.yaml, maxAge: 2h}`, want: precondition.Unmet,
			world:  onHead(nil),
			reason: "run 5 of conformance.yaml (pull_request) ended at 2026-09-07 01:14 UTC, which is longer ago than 2h",
		},
		{
			name: "on the base", text: `workflow: {file: conformance.yaml, on: base, maxAge: 36h}`, want: precondition.Met,
			world: runs("refs/heads/main", false,
				ran(func(r *fact.Run) { r.ID, r.Number, r.Branch, r.Status = 42, 6, "main", "in_progress" }),
				ran(func(r *fact.Run) { r.Branch, r.Event = "main", "schedule" })),
			again:  ranAt.Add(36 * time.Hour),
			reason: "run 5 of conformance.yaml (schedule) ended with success at 2026-09-07 01:14 UTC, 2 of 2 jobs ran",
		},
		{
			name: "older runs are not known", text: `workflow: {file: conformance.yaml, on: base}`, want: precondition.Unknown,
			world: runs("refs/heads/main", true, ran(func(r *fact.Run) { r.Status = "queued" })), reason: "none of the newest 1 run of conformance.yaml is a completed one on main",
		},
		{name: "not read yet", text: kind, want: precondition.Unknown, reason: "the list of runs of conformance.yaml has not been read yet"},
	})
	problemCases(t, map[string][]string{
		`workflow: {on: heat}`: {
			`p.yaml:1: workflow.file: is missing (name the file, such as renovate.yaml)`,
			`p.yaml:1: workflow.on: "heat" is not known (did you mean "head"?)`,
		},
		`workflow: {file: .gitea/workflows/a.yaml, jobs: ["["], maxAge: soon}`: {
			`p.yaml:1: workflow.maxAge: "soon" is not a duration; write it like 90s, 10m or 36h`,
		},
		`workflow: {file: .gitea/workflows/a.yaml, jobs: ["["]}`: {
			`p.yaml:1: workflow.file: ".gitea/workflows/a.yaml" is not the name of a workflow's file (write the name of the file alone, such as renovate.yaml; it is in .gitea/workflows or .github/workflows)`,
			`p.yaml:1: workflow.jobs[0]: "[" is not a valid glob (check its brackets and braces)`,
		},
	})
}
