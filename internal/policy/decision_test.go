package policy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// decided makes an entry that fits the pull request of the tests.
func decided(id string, kind decision.Kind, by pull.Person) decision.Entry {
	return decision.Entry{
		ID: id, Kind: kind, By: by, Place: "comment", Repo: pull.Repo{ID: 7}, Number: 12,
		Base: "main", Head: headSHA, At: now.Add(-time.Hour), Until: now.Add(time.Hour),
	}
}

func entryWith(e decision.Entry, edit func(*decision.Entry)) decision.Entry {
	edit(&e)
	return e
}

// accounts are the people of the tests as they are called now.
var accounts = map[int64]pull.Person{1: alice, 2: bob, 3: carol, 9: robot}

const decisionRules = `
preconditions:
  - {name: ready, flux: {kustomization: flux-system/platform-config}}
approvals:
  - {name: owners, from: {users: [alice, carol]}, survive: identical-diff}
override: {from: {users: [alice, carol]}, ttl: 2h}
merge: {enabled: true}
`

func decide(t testing.TB, l decision.Ledger, change func(*policy.Input)) policy.Verdict {
	t.Helper()
	in := input(snapshot("clusters/a.yaml"), load(t, decisionRules), healthy("platform-config"))
	in.Decisions, in.Accounts = l, accounts
	if change != nil {
		change(&in)
	}
	return policy.Evaluate(in)
}

// rejection adds a review that asks for changes.
func rejection(id int64, by pull.Person) func(*policy.Input) {
	return func(in *policy.Input) { in.Snapshot.Reviews = []pull.Review{review(id, by, pull.ChangesRequested)} }
}

func TestApprovalByCommand(t *testing.T) {
	diff := func(h string) *pull.Diff {
		return &pull.Diff{Files: []pull.FileDiff{{Header: "h", Old: "o" + h, New: "n", Hunks: h}}}
	}
	older := func(d *pull.Diff) decision.Entry {
		return entryWith(decided("1", decision.Approve, alice), func(e *decision.Entry) { e.Head, e.Diff = oldSHA, d })
	}
	headDiff := func(in *policy.Input) { in.Snapshot.Diffs = map[string]pull.Diff{headSHA: *diff("same")} }
	tests := []struct {
		name   string
		ledger decision.Ledger
		change func(*policy.Input)
		want   policy.GateState
		reason string
	}{
		{"counts", decision.Ledger{decided("1", decision.Approve, alice)}, nil, policy.Clear, "approved by alice"},
		{"the author's", decision.Ledger{decided("1", decision.Approve, bob)}, nil, policy.Waiting, "owners: needs 1 approval by alice or carol"},
		{"a bot's", decision.Ledger{decided("1", decision.Approve, robot)}, nil, policy.Waiting, "owners: needs 1 approval by alice or carol"},
		{"of an account that is gone", decision.Ledger{decided("1", decision.Approve, alice)}, func(in *policy.Input) { in.Accounts = nil }, policy.Waiting, "owners: needs 1 approval by alice or carol"},
		{
			"of an account that is called otherwise now",
			decision.Ledger{decided("1", decision.Approve, alice)},
			func(in *policy.Input) { in.Accounts = map[int64]pull.Person{1: {ID: 1, Login: "alicia"}} },
			policy.Waiting, "owners: needs 1 approval by alice or carol",
		},
		{"on an older head", decision.Ledger{older(nil)}, nil, policy.Waiting, "owners: needs 1 approval by alice or carol"},
		{"on an older head with the same diff", decision.Ledger{older(diff("same"))}, headDiff, policy.Clear, "approved by alice"},
		{"on an older head with another diff", decision.Ledger{older(diff("other"))}, headDiff, policy.Waiting, "owners: needs 1 approval by alice or carol"},
		{"for another base", decision.Ledger{entryWith(decided("1", decision.Approve, alice), func(e *decision.Entry) { e.Base = "dev" })}, nil, policy.Waiting, "owners: needs 1 approval by alice or carol"},
		{
			"before the base was changed and changed back",
			decision.Ledger{decided("1", decision.Approve, alice)},
			func(in *policy.Input) {
				in.Snapshot.Timeline = []pull.Moment{{Kind: pull.MomentRetarget}, {Kind: pull.MomentRetarget}}
			},
			policy.Waiting, "owners: needs 1 approval by alice or carol",
		},
		{"taken back", decision.Ledger{decided("1", decision.Approve, alice), decided("2", decision.ApproveCancel, alice)}, nil, policy.Waiting, "owners: needs 1 approval by alice or carol"},
		{
			"taking it back takes the review back too",
			decision.Ledger{entryWith(decided("1", decision.ApproveCancel, alice), func(e *decision.Entry) { e.Reviews = []int64{4} })},
			func(in *policy.Input) {
				in.Snapshot.Reviews = []pull.Review{review(4, alice, pull.Approved)}
				in.Snapshot.Timeline = []pull.Moment{{Kind: pull.MomentReview, ReviewID: 4}}
			},
			policy.Waiting, "owners: needs 1 approval by alice or carol",
		},
		{"lifts one's own request for changes", decision.Ledger{entryWith(decided("1", decision.Approve, alice), func(e *decision.Entry) { e.Reviews = []int64{4} })}, rejection(4, alice), policy.Clear, "approved by alice"},
		{"does not lift another's", decision.Ledger{decided("1", decision.Approve, alice)}, rejection(4, carol), policy.Blocked, "carol asks for changes"},
		{"a later request for changes stands", decision.Ledger{decided("1", decision.Approve, alice)}, rejection(4, alice), policy.Blocked, "alice asks for changes"},
		{
			"a later request for changes, dismissed, does not bring it back",
			decision.Ledger{decided("1", decision.Approve, alice)},
			func(in *policy.Input) {
				in.Snapshot.Reviews = []pull.Review{dismissed(review(4, alice, pull.ChangesRequested))}
			},
			policy.Waiting, "owners: needs 1 approval by alice or carol",
		},
		{
			"a review and a command of one person are one",
			decision.Ledger{decided("1", decision.Approve, alice)},
			func(in *policy.Input) {
				in.Repository = load(t, "approvals:\n  - {name: two, count: 2, from: {users: [alice, carol]}}\n")
				in.Snapshot.Reviews = []pull.Review{review(4, alice, pull.Approved)}
				in.Snapshot.Timeline = []pull.Moment{{Kind: pull.MomentReview, ReviewID: 4}}
			},
			policy.Waiting, "two: needs 1 approval more by carol",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := decide(t, tt.ledger, tt.change)
			if diff := cmp.Diff(policy.Gate{State: tt.want, Reason: tt.reason}, v.Approval); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverride(t *testing.T) {
	suspended := func(in *policy.Input) {
		facts := healthy("platform-config")
		facts.flux("prod", "platform-config", func(f *fact.Fact) { f.Flux.Suspended = true })
		in.Facts = facts
	}
	all := []string{policy.RuleKey("precondition", "ready"), policy.RuleKey("approval", "owners")}
	o := entryWith(decided("1", decision.Override, alice), func(e *decision.Entry) { e.Passes, e.Reason = all, "the disk is full" })
	second := func(in *policy.Input) {
		suspended(in)
		in.Repository = load(t, `
preconditions:
  - {name: ready, flux: {kustomization: flux-system/platform-config}}
approvals:
  - {name: owners, from: {users: [alice, carol]}}
override: {from: {users: [alice, carol]}, secondPerson: true}
`)
	}
	tests := []struct {
		name          string
		ledger        decision.Ledger
		change        func(*policy.Input)
		preconditions policy.GateState
		approval      policy.GateState
	}{
		{"passes what was open", decision.Ledger{o}, suspended, policy.Clear, policy.Clear},
		{"passes only what was open", decision.Ledger{entryWith(o, func(e *decision.Entry) { e.Passes = all[:1] })}, suspended, policy.Clear, policy.Waiting},
		{"by the author", decision.Ledger{entryWith(o, func(e *decision.Entry) { e.By = bob })}, suspended, policy.Waiting, policy.Waiting},
		{"by nobody on the list", decision.Ledger{entryWith(o, func(e *decision.Entry) { e.By = robot })}, suspended, policy.Waiting, policy.Waiting},
		{"ended", decision.Ledger{entryWith(o, func(e *decision.Entry) { e.Until = now })}, suspended, policy.Waiting, policy.Waiting},
		{"the policy allows less time now", decision.Ledger{entryWith(o, func(e *decision.Entry) { e.At = now.Add(-3 * time.Hour) })}, suspended, policy.Waiting, policy.Waiting},
		{"after a push", decision.Ledger{entryWith(o, func(e *decision.Entry) { e.Head = oldSHA })}, suspended, policy.Waiting, policy.Waiting},
		{"cancelled", decision.Ledger{o, decided("2", decision.OverrideCancel, carol)}, suspended, policy.Waiting, policy.Waiting},
		{"one of two", decision.Ledger{o}, second, policy.Waiting, policy.Waiting},
		{"one twice is one", decision.Ledger{o, entryWith(o, func(e *decision.Entry) { e.ID = "2" })}, second, policy.Waiting, policy.Waiting},
		{"two of two", decision.Ledger{o, entryWith(o, func(e *decision.Entry) { e.ID, e.By = "2", carol })}, second, policy.Clear, policy.Clear},
		{
			"does not pass who asks for changes",
			decision.Ledger{o},
			func(in *policy.Input) {
				suspended(in)
				rejection(4, carol)(in)
			},
			policy.Clear, policy.Blocked,
		},
		{
			"does not pass the operator's rules",
			decision.Ledger{o},
			func(in *policy.Input) {
				suspended(in)
				in.Operator, in.Repository = in.Repository, load(t, "override: {from: {users: [alice]}}\n")
				in.Operator = load(t, "preconditions:\n  - {name: ready, flux: {kustomization: flux-system/platform-config}}\n")
			},
			policy.Waiting, policy.Clear,
		},
		{
			"the operator's list passes a repository's rules",
			decision.Ledger{o},
			func(in *policy.Input) {
				suspended(in)
				in.Operator = load(t, "override: {from: {users: [alice]}}\n")
				in.Repository = load(t, "preconditions:\n  - {name: ready, flux: {kustomization: flux-system/platform-config}}\n")
			},
			policy.Clear, policy.Clear,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := decide(t, tt.ledger, tt.change)
			if v.Preconditions.State != tt.preconditions || v.Approval.State != tt.approval {
				t.Errorf("gates are %+v and %+v, want %s and %s", v.Preconditions, v.Approval, tt.preconditions, tt.approval)
			}
		})
	}
	t.Run("wakes when it ends", func(t *testing.T) {
		if v := decide(t, decision.Ledger{o}, suspended); !v.LookAgain.Equal(o.Until) {
			t.Errorf("look again at %s, want %s", v.LookAgain, o.Until)
		}
	})
	t.Run("does not pass a request for changes", func(t *testing.T) {
		v := decide(t, decision.Ledger{o}, func(in *policy.Input) {
			in.Snapshot.Reviews = []pull.Review{review(1, carol, pull.ChangesRequested)}
		})
		if v.Approval.State != policy.Blocked {
			t.Errorf("approval gate %+v", v.Approval)
		}
	})
}

func TestHoldWaits(t *testing.T) {
	hold := entryWith(decided("1", decision.Hold, carol), func(e *decision.Entry) { e.Reason, e.Head = "until Monday", oldSHA })
	v := decide(t, decision.Ledger{decided("0", decision.Approve, alice), hold}, nil)
	if want := (policy.Gate{State: policy.Waiting, Reason: "held by carol: until Monday"}); v.Approval != want {
		t.Errorf("approval gate %+v, want %+v", v.Approval, want)
	}
	if v.Preconditions.State != policy.Clear {
		t.Errorf("preconditions gate %+v", v.Preconditions)
	}
}

// TestNoLedgerPassesWithoutRight holds the rules against any ledger: whatever
// is in it, in any order and repetition, the author, bots, strangers and void or
// ended decisions pass nothing.
func TestNoLedgerPassesWithoutRight(t *testing.T) {
	mallory := pull.Person{ID: 8, Login: "mallory"}
	known := map[int64]pull.Person{1: alice, 2: bob, 3: carol, 8: mallory, 9: robot}
	pol := load(t, decisionRules)
	rapid.Check(t, func(t *rapid.T) {
		var l decision.Ledger
		for i := range rapid.IntRange(0, 10).Draw(t, "entries") {
			e := decided(fmt.Sprint(i), rapid.SampledFrom(decision.Kinds()).Draw(t, "kind"), rapid.SampledFrom([]pull.Person{alice, bob, carol, mallory, robot}).Draw(t, "by"))
			e.Head = rapid.SampledFrom([]string{headSHA, oldSHA}).Draw(t, "head")
			e.Base = rapid.SampledFrom([]string{"main", "dev"}).Draw(t, "base")
			e.Retargets = rapid.IntRange(0, 1).Draw(t, "retargets")
			e.Until = now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")) * time.Hour)
			e.Passes = []string{policy.RuleKey("approval", "owners")}
			l = append(l, e)
		}
		if rapid.Bool().Draw(t, "repeated") {
			l = append(l, l...)
		}
		in := input(snapshot("clusters/a.yaml"), pol, healthy("platform-config"))
		in.Decisions, in.Accounts = l, known
		v := policy.Evaluate(in)
		if v.Approval.State != policy.Clear {
			return
		}
		// Then somebody who may has said so, about just this.
		backed := slices.ContainsFunc(l, func(e decision.Entry) bool {
			return (e.By.Is(alice) || e.By.Is(carol)) && e.Head == headSHA && e.Base == "main" && e.Retargets == 0 &&
				(e.Kind == decision.Approve || e.Kind == decision.Override && now.Before(e.Until))
		})
		if !backed {
			t.Fatalf("clear (%s) by %+v", v.Approval.Reason, l)
		}
	})
}
