package policy_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
)

const notFrozen = "the repository is not frozen"

// freeze is a freeze that alice said on another pull request half an hour ago
// and that ends in two hours.
func freeze(id string, seq uint64) decision.Entry {
	return entryWith(decided(id, decision.Freeze, alice), func(e *decision.Entry) {
		e.Number, e.Base, e.Head, e.Seq, e.Reason = 99, "dev", oldSHA, seq, "etcd is being restored"
		e.At, e.Until, e.URL = since, now.Add(2*time.Hour), "https://gitea.example.org/ops/home-gitops/pulls/99#issuecomment-1"
	})
}

func TestFreeze(t *testing.T) {
	approved := decision.Ledger{entryWith(decided("0", decision.Approve, alice), func(e *decision.Entry) { e.Seq = 1 })}
	carols := entryWith(freeze("5", 5), func(e *decision.Entry) { e.By, e.Until, e.Reason = carol, now.Add(time.Hour), "" })
	thaw := func(lifts ...string) decision.Entry {
		return entryWith(decided("8", decision.Unfreeze, alice), func(e *decision.Entry) { e.Seq, e.Lifts = 8, lifts })
	}
	frozen := policy.Gate{State: policy.Waiting, Reason: "frozen until 2026-09-07 05:14 UTC by alice"}
	met := policy.Gate{State: policy.Clear, Reason: "the one precondition is met"}
	tests := []struct {
		name    string
		freezes decision.Ledger
		change  func(*policy.Input)
		want    policy.Gate
		again   time.Time
	}{
		{"none", nil, nil, met, time.Time{}},
		{"in force", decision.Ledger{freeze("4", 4)}, nil, frozen, now.Add(2 * time.Hour)},
		{"ended", decision.Ledger{entryWith(freeze("4", 4), func(e *decision.Entry) { e.Until = now })}, nil, met, time.Time{}},
		{"lifted", decision.Ledger{freeze("4", 4), thaw("4")}, nil, met, time.Time{}},
		{"two: the one that ends last speaks, the first that ends wakes", decision.Ledger{freeze("4", 4), carols}, nil, frozen, now.Add(time.Hour)},
		{
			"two, and the later end is lifted",
			decision.Ledger{freeze("4", 4), carols, thaw("4")},
			nil,
			policy.Gate{State: policy.Waiting, Reason: "frozen until 2026-09-07 04:14 UTC by carol"},
			now.Add(time.Hour),
		},
		{"without a policy", decision.Ledger{freeze("4", 4)}, func(in *policy.Input) { in.Repository = nil }, frozen, now.Add(2 * time.Hour)},
		{
			"the operator's policy alone",
			decision.Ledger{freeze("4", 4)},
			func(in *policy.Input) { in.Operator, in.Repository = in.Repository, nil },
			frozen, now.Add(2 * time.Hour),
		},
		{
			"beside what else is open",
			decision.Ledger{freeze("4", 4)},
			func(in *policy.Input) { in.Facts = factMap{} },
			policy.Gate{State: policy.Waiting, Reason: "frozen until 2026-09-07 05:14 UTC by alice (and 1 more)"},
			now.Add(2 * time.Hour),
		},
		{
			"a problem is worse",
			decision.Ledger{freeze("4", 4)},
			func(in *policy.Input) { in.Problems = []policy.Problem{{State: policy.Blocked, Text: "no"}} },
			policy.Gate{State: policy.Blocked, Reason: "no"},
			now.Add(2 * time.Hour),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := decide(t, approved, func(in *policy.Input) {
				in.Freezes = tt.freezes
				if tt.change != nil {
					tt.change(in)
				}
			})
			if diff := cmp.Diff(tt.want, v.Preconditions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !v.LookAgain.Equal(tt.again) {
				t.Errorf("look again at %s, want %s", v.LookAgain, tt.again)
			}
		})
	}
}

// TestFreezeSaysWhoWhenAndWhere holds that the finding names all that a person
// asks for.
func TestFreezeSaysWhoWhenAndWhere(t *testing.T) {
	another := entryWith(freeze("5", 5), func(e *decision.Entry) { e.Until = now.Add(time.Hour) })
	v := decide(t, nil, func(in *policy.Input) { in.Freezes = decision.Ledger{another, freeze("4", 4)} })
	reason := "frozen by alice until 2026-09-07 05:14 UTC: etcd is being restored (and 1 freeze more)"
	brief := "frozen until 2026-09-07 05:14 UTC by alice"
	want := policy.Result{
		Name: notFrozen, Policy: "built in", State: policy.Unmet, Reason: reason, Brief: brief,
		Checks: []policy.Check{{State: policy.Unmet, Reason: reason, Brief: brief, Since: since, Evidence: []policy.Evidence{
			{Label: "frozen by", Value: "alice"},
			{Label: "until", Value: "2026-09-07 05:14 UTC"},
			{Label: "on", Value: "pull request 99"},
			{Label: "where", Value: "https://gitea.example.org/ops/home-gitops/pulls/99#issuecomment-1"},
		}}},
	}
	if diff := cmp.Diff(want, v.Results[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var ids []string
	for _, f := range v.Freezes {
		ids = append(ids, f.ID)
	}
	if diff := cmp.Diff([]string{"4", "5"}, ids); diff != "" {
		t.Errorf("freezes (-want +got):\n%s", diff)
	}
}

func TestOverridePassesAFreeze(t *testing.T) {
	// The override comes after the freeze of place 4.
	o := entryWith(decided("6", decision.Override, alice), func(e *decision.Entry) {
		e.Seq, e.Passes = 6, []string{policy.RuleKey("precondition", notFrozen), policy.RuleKey("approval", "owners")}
	})
	tests := []struct {
		name    string
		freezes decision.Ledger
		change  func(*policy.Input)
		want    policy.GateState
	}{
		{"given later", decision.Ledger{freeze("4", 4)}, nil, policy.Clear},
		{"given before: the freeze was not open then", decision.Ledger{freeze("7", 7)}, nil, policy.Waiting},
		{"between two", decision.Ledger{freeze("4", 4), freeze("7", 7)}, nil, policy.Waiting},
		{
			"between two, of which the later ended",
			decision.Ledger{freeze("4", 4), entryWith(freeze("7", 7), func(e *decision.Entry) { e.Until = now })},
			nil,
			policy.Clear,
		},
		{
			"of other rules",
			decision.Ledger{freeze("4", 4)},
			func(in *policy.Input) { in.Decisions[0].Passes = []string{policy.RuleKey("approval", "owners")} },
			policy.Waiting,
		},
		{"by nobody on the list", decision.Ledger{freeze("4", 4)}, func(in *policy.Input) { in.Decisions[0].By = robot }, policy.Waiting},
		{"by the author", decision.Ledger{freeze("4", 4)}, func(in *policy.Input) { in.Decisions[0].By = bob }, policy.Waiting},
		{"ended", decision.Ledger{freeze("4", 4)}, func(in *policy.Input) { in.Decisions[0].Until = now }, policy.Waiting},
		{
			"by the operator's list, without a policy of the repository",
			decision.Ledger{freeze("4", 4)},
			func(in *policy.Input) {
				in.Operator, in.Repository = load(t, "override: {from: {users: [alice]}}\n"), nil
			},
			policy.Clear,
		},
		{"without a list", decision.Ledger{freeze("4", 4)}, func(in *policy.Input) { in.Repository = nil }, policy.Waiting},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := decide(t, decision.Ledger{o}, func(in *policy.Input) {
				in.Freezes = tt.freezes
				if tt.change != nil {
					tt.change(in)
				}
			})
			if v.Preconditions.State != tt.want {
				t.Errorf("gate %+v, want %s", v.Preconditions, tt.want)
			}
		})
	}
	t.Run("an override given now names it", func(t *testing.T) {
		v := decide(t, nil, func(in *policy.Input) { in.Freezes = decision.Ledger{freeze("4", 4)} })
		want := []string{policy.RuleKey("precondition", notFrozen), policy.RuleKey("approval", "owners")}
		if diff := cmp.Diff(want, v.OpenRules()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestAVerdictWithDecisionsIsTheSameOnceStored: what differs from its stored form
// would be published for ever again.
func TestAVerdictWithDecisionsIsTheSameOnceStored(t *testing.T) {
	var l, freezes decision.Ledger
	for i, kind := range []decision.Kind{decision.Hold, decision.Unhold, decision.Override, decision.Merge} {
		l = append(l, entryWith(decided(fmt.Sprint(i), kind, alice), func(e *decision.Entry) { e.Seq = uint64(i) + 1 }))
	}
	l[1].Lifts = []string{"0"}
	for i := range 20 {
		freezes = append(freezes, freeze(fmt.Sprint(i), uint64(i)+10))
	}
	for name, change := range map[string]func(*policy.Input){
		"lifted": func(in *policy.Input) {
			in.Freezes = append(decision.Ledger{}, freezes[0], entryWith(decided("x", decision.Unfreeze, alice), func(e *decision.Entry) { e.Lifts = []string{"0"} }))
		},
		"in force": func(in *policy.Input) {
			in.Decisions, in.Freezes = append(in.Decisions[:1:1], in.Decisions[2:]...), freezes
		},
	} {
		v := decide(t, l, change)
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var stored policy.Verdict
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, stored); diff != "" {
			t.Errorf("%s (-fresh +stored):\n%s", name, diff)
		}
		if len(v.Freezes) > 10 {
			t.Errorf("%s: %d freezes are kept", name, len(v.Freezes))
		}
	}
}
