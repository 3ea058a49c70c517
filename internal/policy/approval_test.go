package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

const owners = `
approvals:
  - name: platform owners
    paths: ["clusters/**"]
    count: %COUNT%
    from: {teams: [ops], users: [alice]}
    survive: %SURVIVE%
`

type approvalCase struct {
	count, survive string
	reviews        []pull.Review
	change         func(*pull.Snapshot)
	teams          map[string]policy.Team
}

func (c approvalCase) evaluate(t *testing.T) policy.Verdict {
	t.Helper()
	text := strings.NewReplacer("%COUNT%", orDefault(c.count, "1"), "%SURVIVE%", orDefault(c.survive, "none")).Replace(owners)
	s := snapshot("clusters/prod/a.yaml")
	s.Reviews = c.reviews
	for _, r := range c.reviews {
		s.Timeline = append(s.Timeline, pull.Moment{Kind: pull.MomentReview, ReviewID: r.ID})
	}
	if c.change != nil {
		c.change(s)
	}
	in := input(s, load(t, text), healthy())
	in.Teams = map[string]policy.Team{"ops/ops": {Members: []pull.Person{carol, robot}}}
	if c.teams != nil {
		in.Teams = c.teams
	}
	return policy.Evaluate(in)
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}

func review(id int64, by pull.Person, state pull.ReviewState) pull.Review {
	return pull.Review{ID: id, Author: by, State: state, Commit: headSHA}
}

func on(r pull.Review, commit string) pull.Review {
	r.Commit = commit
	return r
}

func dismissed(r pull.Review) pull.Review {
	r.Dismissed = true
	return r
}

func TestApproval(t *testing.T) {
	diff := func(hunks string) pull.Diff {
		return pull.Diff{Files: []pull.FileDiff{{Header: "h", Old: "o" + hunks, New: "n", Hunks: hunks}}}
	}
	diffs := func(then, now string) func(*pull.Snapshot) {
		return func(s *pull.Snapshot) { s.Diffs = map[string]pull.Diff{oldSHA: diff(then), headSHA: diff(now)} }
	}
	mallory := pull.Person{ID: 8, Login: "mallory"}
	tests := []struct {
		name   string
		c      approvalCase
		want   policy.ResultState
		reason string
		voided string
	}{
		{name: "nobody yet", want: policy.Unmet, reason: "needs 1 approval by alice or carol"},
		{name: "a user", c: approvalCase{reviews: []pull.Review{review(1, alice, pull.Approved)}}, want: policy.Met, reason: "approved by alice"},
		{name: "a member of the team", c: approvalCase{reviews: []pull.Review{review(1, carol, pull.Approved)}}, want: policy.Met, reason: "approved by carol"},
		{name: "no member any more", c: approvalCase{reviews: []pull.Review{review(1, carol, pull.Approved)}, teams: map[string]policy.Team{"ops/ops": {}}}, want: policy.Unmet, reason: "needs 1 approval by alice"},
		{name: "an outsider", c: approvalCase{reviews: []pull.Review{review(1, mallory, pull.Approved)}}, want: policy.Unmet, reason: "needs 1 approval by alice or carol"},
		{name: "an outsider who took the login of a user", c: approvalCase{reviews: []pull.Review{review(1, pull.Person{ID: 8, Login: "carol"}, pull.Approved)}}, want: policy.Unmet, reason: "needs 1 approval by alice or carol"},
		{name: "only a comment", c: approvalCase{reviews: []pull.Review{review(1, alice, pull.Commented)}}, want: policy.Unmet, reason: "needs 1 approval by alice or carol"},
		{name: "dismissed", c: approvalCase{reviews: []pull.Review{dismissed(review(1, alice, pull.Approved))}}, want: policy.Unmet, reason: "needs 1 approval by alice or carol"},
		{name: "a comment after an approval changes nothing", c: approvalCase{reviews: []pull.Review{review(1, alice, pull.Approved), review(2, alice, pull.Commented)}}, want: policy.Met, reason: "approved by alice"},
		{name: "one of two", c: approvalCase{count: "2", reviews: []pull.Review{review(1, alice, pull.Approved)}}, want: policy.Unmet, reason: "needs 1 approval more by carol"},
		{name: "one person twice is one", c: approvalCase{count: "2", reviews: []pull.Review{review(1, alice, pull.Approved), review(2, alice, pull.Approved)}}, want: policy.Unmet, reason: "needs 1 approval more by carol"},
		{name: "two of two", c: approvalCase{count: "2", reviews: []pull.Review{review(1, alice, pull.Approved), review(2, carol, pull.Approved)}}, want: policy.Met, reason: "approved by alice, carol"},
		{name: "more than there are people", c: approvalCase{count: "3"}, want: policy.Unmet, reason: "needs 3 approvals, but only alice and carol could still give one"},
		{
			name:   "only the author is entitled",
			c:      approvalCase{change: func(s *pull.Snapshot) { s.Pull.Author = alice }, teams: map[string]policy.Team{"ops/ops": {Members: []pull.Person{robot}}}},
			want:   policy.Unmet,
			reason: "needs 1 approval, but nobody is left who could give it: only alice and bots are entitled",
		},
		{
			name: "the author's own", c: approvalCase{reviews: []pull.Review{review(1, alice, pull.Approved)}, change: func(s *pull.Snapshot) { s.Pull.Author = alice }},
			want: policy.Unmet, reason: "needs 1 approval by carol", voided: "the author's own approval never counts",
		},
		{
			name: "a bot's", c: approvalCase{reviews: []pull.Review{review(1, robot, pull.Approved)}},
			want: policy.Unmet, reason: "needs 1 approval by alice or carol", voided: "a bot's approval never counts",
		},
		{
			name: "given on an older head", c: approvalCase{reviews: []pull.Review{on(review(1, alice, pull.Approved), oldSHA)}},
			want: policy.Unmet, reason: "needs 1 approval by alice or carol", voided: "was given on bbbbbbbbbb; aaaaaaaaaa was pushed since",
		},
		{
			name: "identical diff does not help where nothing survives",
			c:    approvalCase{reviews: []pull.Review{on(review(1, alice, pull.Approved), oldSHA)}, change: diffs("same", "same")},
			want: policy.Unmet, reason: "needs 1 approval by alice or carol", voided: "was given on bbbbbbbbbb; aaaaaaaaaa was pushed since",
		},
		{
			name: "survives a rebase",
			c:    approvalCase{survive: "identical-diff", reviews: []pull.Review{on(review(1, alice, pull.Approved), oldSHA)}, change: diffs("same", "same")},
			want: policy.Met, reason: "approved by alice",
		},
		{
			name: "does not survive another diff",
			c:    approvalCase{survive: "identical-diff", reviews: []pull.Review{on(review(1, alice, pull.Approved), oldSHA)}, change: diffs("one", "other")},
			want: policy.Unmet, reason: "needs 1 approval by alice or carol", voided: "was given on bbbbbbbbbb; aaaaaaaaaa was pushed since, and the diff is another",
		},
		{
			name: "does not survive a diff nobody saw",
			c:    approvalCase{survive: "identical-diff", reviews: []pull.Review{on(review(1, alice, pull.Approved), oldSHA)}},
			want: policy.Unmet, reason: "needs 1 approval by alice or carol", voided: "was given on bbbbbbbbbb; aaaaaaaaaa was pushed since, and signalbox did not see whether the diff is the same",
		},
		{
			name: "the base was changed since",
			c: approvalCase{reviews: []pull.Review{review(1, alice, pull.Approved)}, change: func(s *pull.Snapshot) {
				s.Timeline = append(s.Timeline, pull.Moment{Kind: pull.MomentRetarget, From: "dev", To: "main"})
			}},
			want: policy.Unmet, reason: "needs 1 approval by alice or carol", voided: "was given for dev; the base was changed to main since",
		},
		{
			name: "the base was changed before",
			c: approvalCase{reviews: []pull.Review{review(1, alice, pull.Approved)}, change: func(s *pull.Snapshot) {
				s.Timeline = append([]pull.Moment{{Kind: pull.MomentRetarget, From: "dev", To: "main"}}, s.Timeline...)
			}},
			want: policy.Met, reason: "approved by alice",
		},
		{
			name: "not in the timeline",
			c:    approvalCase{reviews: []pull.Review{review(1, alice, pull.Approved)}, change: func(s *pull.Snapshot) { s.Timeline = nil }},
			want: policy.Unmet, reason: "needs 1 approval by alice or carol", voided: "the timeline does not show when it was given",
		},
		{
			name: "an unknown team",
			c:    approvalCase{teams: map[string]policy.Team{"ops/ops": {Problem: "the organisation ops has no team ops"}}},
			want: policy.Unknown, reason: "the organisation ops has no team ops",
		},
		{
			name: "an unknown team, but a user approved",
			c:    approvalCase{reviews: []pull.Review{review(1, alice, pull.Approved)}, teams: map[string]policy.Team{}},
			want: policy.Met, reason: "approved by alice",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := tt.c.evaluate(t)
			r := v.Approvals[0]
			if r.State != tt.want || r.Reason != tt.reason {
				t.Errorf("got %s: %s\nwant %s: %s", r.State, r.Reason, tt.want, tt.reason)
			}
			var voided []string
			for _, w := range r.Voided {
				voided = append(voided, w.Why)
			}
			if got := strings.Join(voided, "; "); got != tt.voided {
				t.Errorf("voided: %q, want %q", got, tt.voided)
			}
			if wantGate := map[bool]policy.GateState{true: policy.Clear, false: policy.Waiting}[tt.want == policy.Met]; v.Approval.State != wantGate {
				t.Errorf("gate is %s, want %s", v.Approval.State, wantGate)
			}
		})
	}
}

// TestReviewSubmittedLast holds that the order of submitting counts: a review
// that was begun first has the smaller id.
func TestReviewSubmittedLast(t *testing.T) {
	c := approvalCase{
		reviews: []pull.Review{review(1, carol, pull.ChangesRequested), review(2, carol, pull.Approved)},
		change: func(s *pull.Snapshot) {
			s.Timeline = []pull.Moment{{Kind: pull.MomentReview, ReviewID: 2}, {Kind: pull.MomentReview, ReviewID: 1}}
		},
	}
	if v := c.evaluate(t); v.Approval.State != policy.Blocked {
		t.Errorf("gate is %s (%s), want it blocked by what carol said last", v.Approval.State, v.Approval.Reason)
	}
}

func TestRejectionBlocks(t *testing.T) {
	mallory := pull.Person{ID: 8, Login: "mallory"}
	tests := []struct {
		name    string
		reviews []pull.Review
		want    policy.GateState
	}{
		{"asks for changes", []pull.Review{review(1, carol, pull.ChangesRequested)}, policy.Blocked},
		{"another person's approval does not lift it", []pull.Review{review(1, carol, pull.ChangesRequested), review(2, alice, pull.Approved)}, policy.Blocked},
		{"its author approves", []pull.Review{review(1, carol, pull.ChangesRequested), review(2, carol, pull.Approved)}, policy.Clear},
		{"an earlier approval does not help", []pull.Review{review(1, carol, pull.Approved), review(2, carol, pull.ChangesRequested)}, policy.Blocked},
		{"it is dismissed", []pull.Review{dismissed(review(1, carol, pull.ChangesRequested)), review(2, alice, pull.Approved)}, policy.Clear},
		{"dismissed, it does not bring an earlier approval back", []pull.Review{review(1, carol, pull.Approved), dismissed(review(2, carol, pull.ChangesRequested))}, policy.Waiting},
		{"on an older head too", []pull.Review{on(review(1, carol, pull.ChangesRequested), oldSHA), review(2, alice, pull.Approved)}, policy.Blocked},
		{"whoever it is", []pull.Review{review(1, mallory, pull.ChangesRequested), review(2, alice, pull.Approved)}, policy.Blocked},
		{"a bot's word is none", []pull.Review{review(1, robot, pull.ChangesRequested), review(2, alice, pull.Approved)}, policy.Clear},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := approvalCase{reviews: tt.reviews}.evaluate(t)
			if v.Approval.State != tt.want {
				t.Errorf("gate is %s (%s), want %s", v.Approval.State, v.Approval.Reason, tt.want)
			}
		})
	}
}

// TestPolicyGuardsItself holds the rule that a pull request cannot grant itself
// what it asks for.
func TestPolicyGuardsItself(t *testing.T) {
	base := load(t, `
approvals:
  - {name: clusters, paths: ["clusters/**"], from: {users: [alice]}}
`)
	generous := load(t, `
approvals:
  - {name: clusters, paths: ["clusters/**"], from: {users: [bob]}}
`)
	t.Run("its change needs an approver of the base", func(t *testing.T) {
		in := input(snapshot(policy.Path), base, healthy())
		in.Proposal = &policy.Proposal{Policy: generous}
		v := policy.Evaluate(in)
		if v.Approval.Reason != "the policy of signalbox: needs 1 approval by alice" {
			t.Errorf("approval gate: %+v", v.Approval)
		}
		if v.Proposed == nil || v.Proposed.Approval.Reason != "the policy of signalbox: needs 1 approval, but nobody is left who could give it: only bob and bots are entitled" {
			t.Errorf("proposed: %+v", v.Proposed)
		}
	})
	t.Run("a rule that covers it stands alone", func(t *testing.T) {
		covering := load(t, `
approvals:
  - {name: all, from: {users: [carol]}}
`)
		v := policy.Evaluate(input(snapshot(policy.Path), covering, healthy()))
		if len(v.Approvals) != 1 || v.Approvals[0].Name != "all" {
			t.Errorf("approvals: %+v", v.Approvals)
		}
	})
	t.Run("its first appearance asks nobody", func(t *testing.T) {
		in := input(snapshot(policy.Path), nil, healthy())
		in.Proposal = &policy.Proposal{Policy: base}
		if v := policy.Evaluate(in); v.State() != policy.Clear {
			t.Errorf("verdict is %s: %s", v.State(), v.Approval.Reason)
		}
	})
	t.Run("an invalid one blocks its own pull request", func(t *testing.T) {
		in := input(snapshot(policy.Path), base, healthy())
		in.Proposal = &policy.Proposal{Problems: []string{"line 3: unknown field"}}
		v := policy.Evaluate(in)
		want := policy.Gate{State: policy.Blocked, Reason: "the policy in this pull request is not valid: line 3: unknown field"}
		if diff := cmp.Diff(want, v.Preconditions); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
