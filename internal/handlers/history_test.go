package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/policy"
	"signalbox/internal/work"
)

func TestHistory(t *testing.T) {
	now := time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	r := &run{Evaluator: &Evaluator{Now: func() time.Time { return now }}, item: work.Item{Reason: "fact"}}
	verdict := func(head string, state policy.ResultState, reason string) policy.Verdict {
		gate := policy.Waiting
		if state == policy.Met {
			gate = policy.Clear
		}
		return policy.Verdict{
			Head: head, Preconditions: policy.Gate{State: gate, Reason: reason}, Approval: policy.Gate{State: policy.Clear},
			Results: []policy.Result{{Name: "ready", State: state, Reason: reason}},
		}
	}
	first := verdict("a", policy.Unmet, "apps is not ready")
	r.setVerdict(first)
	shared := r.record.History
	// Another reason alone is no change: it may come every few seconds.
	r.setVerdict(verdict("a", policy.Unmet, "apps is not ready: other words"))
	r.setVerdict(verdict("a", policy.Met, "all are ready"))
	r.setVerdict(policy.Verdict{Head: "b", Preconditions: policy.Gate{State: policy.Clear}, Approval: policy.Gate{State: policy.Clear}})
	want := []policy.Change{
		{
			At: now, Head: "a", Preconditions: first.Preconditions, Approval: first.Approval, Because: "fact",
			Rules: []policy.RuleChange{{Name: "ready", To: policy.Unmet, Reason: "apps is not ready"}},
		},
		{
			At: now, Head: "a", Preconditions: policy.Gate{State: policy.Clear, Reason: "all are ready"}, Approval: first.Approval, Because: "fact",
			Rules: []policy.RuleChange{{Name: "ready", From: policy.Unmet, To: policy.Met, Reason: "all are ready"}},
		},
		{
			At: now, Head: "b", Preconditions: policy.Gate{State: policy.Clear}, Approval: policy.Gate{State: policy.Clear}, Because: "fact",
			Rules: []policy.RuleChange{{Name: "ready", From: policy.Met}},
		},
	}
	if diff := cmp.Diff(want, r.record.History); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], shared); diff != "" {
		t.Errorf("what was read before changed (-want +got):\n%s", diff)
	}
	for i := range 2 * policy.MaxHistory {
		r.setVerdict(policy.Verdict{Head: fmt.Sprint(i)})
	}
	if n, last := len(r.record.History), r.record.History[len(r.record.History)-1].Head; n != policy.MaxHistory || last != fmt.Sprint(2*policy.MaxHistory-1) {
		t.Errorf("%d changes, the last of %s", n, last)
	}
}

func TestHistoryOfManyRulesIsBounded(t *testing.T) {
	r := &run{Evaluator: &Evaluator{Now: time.Now}}
	for i := range 2 * policy.MaxHistory {
		v := policy.Verdict{Head: fmt.Sprint(i)}
		state := policy.Met
		if i%2 == 0 {
			state = policy.Unknown
		}
		for n := range 30 {
			v.Results = append(v.Results, policy.Result{Name: fmt.Sprint("rule", n), State: state, Reason: strings.Repeat("cluster prod is silent ", 10)})
		}
		r.setVerdict(v)
		if last := r.record.History[len(r.record.History)-1]; last.Head != v.Head || len(last.Rules) != 30 {
			t.Fatalf("the newest change is %+v", last)
		}
	}
	text, err := json.Marshal(r.record)
	if err != nil || len(text) > 128<<10 || len(r.record.History) < 5 {
		t.Errorf("%d bytes, %d changes, %v", len(text), len(r.record.History), err)
	}
}
