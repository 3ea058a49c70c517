package precondition_test

import (
	"testing"

	"signalbox/internal/fact"
	"signalbox/internal/precondition"
)

func TestStatus(t *testing.T) {
	report := func(statuses ...fact.Status) func(*world) {
		return func(w *world) {
			for i := range statuses {
				if statuses[i].At.IsZero() {
					statuses[i].At = since
				}
			}
			w.put(fact.Fact{Key: fact.StatusesKey(7, headSHA), Statuses: &fact.Statuses{Statuses: statuses}})
		}
	}
	const kind = `status: {context: "gate / conformance*"}`
	ok := fact.Status{Context: "gate / conformance (pull_request)", State: "success", Description: "Successful in 3m"}
	runCases(t, nil, []kindCase{
		{name: "success", text: kind, world: report(ok), want: precondition.Met, reason: "status gate / conformance (pull_request) is success on aaaaaaaaaa"},
		{
			name: "skipped is no success", text: kind, want: precondition.Unmet,
			world:  report(fact.Status{Context: "gate / conformance", State: "skipped", Description: "Has been skipped"}),
			reason: "status gate / conformance is skipped (Has been skipped), posted by gitea-actions at 2026-09-07 02:44 UTC on aaaaaaaaaa",
		},
		{
			name: "skipped is accepted", text: `status: {context: "gate / conformance*", accept: [success, skipped]}`, want: precondition.Met,
			world:  report(fact.Status{Context: "gate / conformance", State: "skipped"}),
			reason: "status gate / conformance is skipped on aaaaaaaaaa",
		},
		{
			name: "never reported", text: kind, want: precondition.Unmet,
			world:  report(fact.Status{Context: "gate / lint", State: "success"}),
			reason: "status gate / conformance* was never reported on aaaaaaaaaa",
		},
		{
			name: "a failure among successes comes first", text: kind, want: precondition.Unmet,
			world:  report(ok, fact.Status{Context: "gate / conformance b", State: "pending"}, fact.Status{Context: "gate / conformance c", State: "failure", Creator: "bob"}),
			reason: "status gate / conformance c is failure, posted by bob at 2026-09-07 02:44 UTC on aaaaaaaaaa, and 1 context more will not do",
		},
		{
			name: "by somebody else", text: `status: {context: "gate / conformance*", by: [gitea-actions]}`, want: precondition.Unmet,
			world:  report(fact.Status{Context: "gate / conformance", State: "success", Creator: "mallory"}),
			reason: "status gate / conformance on aaaaaaaaaa was posted by mallory, not by gitea-actions",
		},
		{
			name: "an account that is called like the workflows", text: `status: {context: "gate / conformance*", by: [gitea-actions]}`, want: precondition.Unmet,
			world:  report(fact.Status{Context: "gate / conformance", State: "success", Creator: "gitea-actions"}),
			reason: "status gate / conformance on aaaaaaaaaa was posted by gitea-actions, not by gitea-actions",
		},
		{
			name: "by whom it should be", text: `status: {context: "gate / conformance*", by: [CI]}`, want: precondition.Met,
			world:  report(fact.Status{Context: "gate / conformance", State: "success", Creator: "ci"}),
			reason: "status gate / conformance is success on aaaaaaaaaa",
		},
		{
			name: "by a workflow, and a job bears it out", text: `status: {context: "gate / conformance*", by: [gitea-actions]}`, want: precondition.Met,
			world:  report(fact.Status{Context: "gate / conformance (push)", State: "success", Job: 9}),
			reason: "status gate / conformance (push) is success on aaaaaaaaaa",
		},
		{
			name: "by an account that is gone, or a workflow elsewhere", text: `status: {context: "gate / conformance*", by: [gitea-actions]}`, want: precondition.Unmet,
			world:  report(fact.Status{Context: "gate / conformance (push)", State: "success"}),
			reason: "status gate / conformance (push) on aaaaaaaaaa names no account, and no job of Gitea Actions on it is known that was success",
		},
		{
			name: "by a workflow that goes on", text: `status: {context: "gate / conformance*", by: [gitea-actions]}`, want: precondition.Unmet,
			world:  report(fact.Status{Context: "gate / conformance (push)", State: "pending", Description: "Has started running"}),
			reason: "status gate / conformance (push) is pending (Has started running), posted by gitea-actions at 2026-09-07 02:44 UTC on aaaaaaaaaa",
		},
		{
			name: "beside what signalbox posts", text: `status: {context: "*(release)"}`, want: precondition.Met,
			world: report(
				fact.Status{Context: "signalbox / preconditions (release)", State: "pending", Creator: "signalbox"},
				fact.Status{Context: "signalbox / approval (release)", State: "pending", Creator: "signalbox"},
				fact.Status{Context: "signalbox / lint (release)", State: "success"},
			),
			reason: "status signalbox / lint (release) is success on aaaaaaaaaa",
		},
		{
			name: "what signalbox posts, and nothing else", text: `status: {context: "* / approval (v1)"}`, want: precondition.Unmet,
			world:  report(fact.Status{Context: "signalbox / approval (v1)", State: "success", Creator: "signalbox"}),
			reason: "status * / approval (v1) was never reported on aaaaaaaaaa but by signalbox itself, which does not count",
		},
		{
			name: "more than are read", text: kind, want: precondition.Unknown,
			world: func(w *world) {
				w.put(fact.Fact{Key: fact.StatusesKey(7, headSHA), Statuses: &fact.Statuses{Statuses: []fact.Status{ok}, More: true}})
			},
			reason: "aaaaaaaaaa has more statuses than are read, so a context that gate / conformance* stands for may be missing; push a new commit",
		},
		{
			name: "more than are read, and a failure", text: kind, want: precondition.Unmet,
			world: func(w *world) {
				w.put(fact.Fact{Key: fact.StatusesKey(7, headSHA), Statuses: &fact.Statuses{
					Statuses: []fact.Status{{Context: "gate / conformance", State: "failure", Creator: "ci", At: since}}, More: true,
				}})
			},
			reason: "status gate / conformance is failure, posted by ci at 2026-09-07 02:44 UTC on aaaaaaaaaa",
		},
		{name: "not read yet", text: kind, want: precondition.Unknown, reason: "the list of statuses of aaaaaaaaaa has not been read yet"},
		{
			name: "cannot be read", text: kind, want: precondition.Unknown,
			world: func(w *world) {
				report(ok)(w)
				f := w.facts[fact.StatusesKey(7, headSHA)]
				f.Problem = "500 Internal Server Error"
				w.put(f)
			},
			reason: "the list of statuses of aaaaaaaaaa cannot be read since 2026-09-07 02:44 UTC: 500 Internal Server Error",
		},
	})
	const own = " is what signalbox posts, which would wait for itself (name the contexts of your pipeline, such as ci / *)"
	problemCases(t, map[string][]string{
		`status: {}`: {`p.yaml:1: status.context: is missing (name a context, such as "ci / test (pull_request)" or "ci / *")`},
		`status: {context: "signalbox / preconditions (release)"}`: {
			`p.yaml:1: status.context: "signalbox / preconditions (release)"` + own,
		},
		`status: {context: "signalbox / approval*"}`: {
			`p.yaml:1: status.context: "signalbox / approval*"` + own,
		},
		`status: {context: ci, accept: [failure], by: [" x"]}`: {
			`p.yaml:1: status.accept[0]: "failure" cannot be accepted (known: skipped, success, warning)`,
			`p.yaml:1: status.by[0]: " x" is empty or has space around it`,
		},
		`status: {context: ci, accepts: [success]}`: {`p.yaml:1: status.accepts: unknown field (did you mean "accept"?)`},
	})
	// These stand for other contexts too.
	problemCases(t, map[string][]string{`status: {context: "*"}`: nil, `status: {context: "signalbox / *(dev)"}`: nil})
}
