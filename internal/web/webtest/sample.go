package webtest

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Commit is the name of a commit that is the same for the same number.
func Commit(n int) string {
	return fmt.Sprintf("%08x", uint32(n)*2654435761) + strings.Repeat("5c0ffee7", 4)
}

// Gate is a gate with its reason.
func Gate(state policy.GateState, reason string) policy.Gate {
	return policy.Gate{State: state, Reason: reason}
}

// Standing is an open pull request by Bob that is clear, since an hour ago.
func Standing(repo pull.Repo, number int64, title string) policy.Standing {
	head := Commit(int(number))
	at := Now.Add(-time.Hour)
	s := policy.Standing{
		Pull: pull.Pull{
			Repo: repo, Number: number, Title: title, Author: Bob, State: pull.Open,
			URL:       fmt.Sprintf("https://gitea.example.org/%s/pulls/%d", repo, number),
			Head:      pull.Branch{Repo: repo.String(), Name: fmt.Sprintf("renovate/change-%d", number), SHA: head},
			Base:      pull.Branch{Repo: repo.String(), Name: "main", SHA: Commit(0)},
			CreatedAt: at.Add(-time.Duration(number) * time.Hour), UpdatedAt: at,
		},
		EvaluatedAt: Now.Add(-2 * time.Minute),
	}
	s.Verdict = policy.Verdict{
		Ref: s.Pull.Ref(), Head: head, Base: "main",
		Preconditions: Gate(policy.Clear, "all 2 preconditions are met"),
		Approval:      Gate(policy.Clear, "approved by alice"),
	}
	return Changed(s, at, "webhook")
}

// Changed notes in the history of a pull request that its gates are as they are
// since a time.
func Changed(s policy.Standing, at time.Time, because string, rules ...policy.RuleChange) policy.Standing {
	s.History = append(s.History, policy.Change{
		At: at, Head: s.Verdict.Head, Preconditions: s.Verdict.Preconditions, Approval: s.Verdict.Approval, Rules: rules, Because: because,
	})
	return s
}

// With sets the gates of a pull request, and notes that they are so since a time.
func With(s policy.Standing, at time.Time, preconditions, approval policy.Gate) policy.Standing {
	s.Verdict.Preconditions, s.Verdict.Approval = preconditions, approval
	return Changed(s, at, "fact")
}

// Waiting is a pull request with everything that a page can show of one that
// waits: findings with evidence, approvals, voided ones, decisions in force.
func Waiting(repo pull.Repo, number int64) policy.Standing {
	s := Standing(repo, number, "Update longhorn to v1.9.2")
	s.Files = []pull.File{
		{Path: "infrastructure/longhorn/release.yaml", Change: pull.Modified},
		{Path: "infrastructure/longhorn/values.yaml", Previous: "infrastructure/longhorn/config.yaml", Change: pull.Renamed},
	}
	s.Pull.Labels = []string{"renovate", "storage"}
	v := &s.Verdict
	since := Now.Add(-26 * time.Hour)
	v.Results = []policy.Result{
		{
			Name: "storage is healthy", Policy: "platform", State: policy.Unmet, Reason: "1 of 14 volumes on prod is degraded",
			Checks: []policy.Check{
				{
					Cluster: "prod", State: policy.Unmet, Reason: "1 of 14 volumes is degraded: longhorn-system/pvc-0a1b", Since: since,
					ReadAt: Now.Add(-20 * time.Second), Looked: "14 volumes",
					Evidence: []policy.Evidence{
						{Label: "Volume longhorn-system/pvc-0a1b", Value: "degraded", Parts: []policy.Evidence{
							{Label: "condition", Value: "status.robustness != 'degraded'"},
							{Label: "status", Value: "robustness: degraded\nstate: attached\nreplicas: 2 of 3"},
						}},
					},
				},
				{Cluster: "test", State: policy.Met, Reason: "all 3 volumes are healthy", ReadAt: Now.Add(-35 * time.Second), Looked: "3 volumes"},
			},
		},
		{
			Name: "no reboot under way", Policy: "platform", State: policy.Unknown, Reason: "nothing has been heard from cluster test since 2026-09-07 02:48 UTC",
			Checks: []policy.Check{{Cluster: "test", State: policy.Unknown, Reason: "nothing has been heard from cluster test since 2026-09-07 02:48 UTC", Since: Now.Add(-12 * time.Minute)}},
		},
		{
			Name: "Flux has applied main", Policy: "platform", State: policy.Met, Reason: "all 3 Kustomizations are ready at the tip of main",
			Checks: []policy.Check{{
				Cluster: "prod", State: policy.Met, Reason: "3 of 3 Kustomizations are ready at " + Commit(0)[:10], ReadAt: Now.Add(-10 * time.Second),
				Evidence: []policy.Evidence{{Label: "Kustomization flux-system/apps", Value: "main@sha1:" + Commit(0)}},
			}},
		},
		{Name: "in the hours of maintenance", Policy: "platform", State: policy.NotApplicable, Reason: "is not about this change"},
	}
	v.Approvals = []policy.ApprovalResult{
		{
			Name: "storage needs two", Policy: "platform", State: policy.Unmet, Reason: "needs 1 approval more by alice or carol", Need: 2,
			By:         []policy.Approval{{Person: pull.Person{ID: 4, Login: "dave"}, Commit: v.Head, At: Now.Add(-3 * time.Hour), Place: "review"}},
			CanApprove: []string{"alice", "carol"},
			Voided:     []policy.Voided{{Person: Carol, Why: "approved " + Commit(99)[:10] + ", and the change is another since"}},
			Files:      []string{"infrastructure/longhorn/release.yaml", "infrastructure/longhorn/values.yaml"},
		},
		{Name: "the policy of signalbox", Policy: "built in", State: policy.NotApplicable, Reason: "is not about this change", Need: 1},
	}
	v.Holds = []decision.Entry{Entry(s, "comment/41/0", decision.Hold, Carol, Now.Add(-2*time.Hour), "wait for the backup of tonight")}
	v.Policies = []string{"platform", "home-gitops"}
	v.Notes = []string{"mallory posted the status “signalbox / approval (main)” in the name of signalbox; it was posted again."}
	v.LookAgain = Now.Add(3 * time.Hour)
	s.History[0].At = since.Add(-30 * time.Hour)
	s = With(s, since, Gate(policy.Waiting, "1 of 14 volumes on prod is degraded"), Gate(policy.Waiting, "needs 1 approval more by alice or carol"))
	s.History[len(s.History)-1].Rules = []policy.RuleChange{{Name: "storage is healthy", From: policy.Met, To: policy.Unmet, Reason: "1 of 14 volumes on prod is degraded"}}
	return s
}

// Entry is an entry of the ledger about a pull request as it stands.
func Entry(s policy.Standing, id string, kind decision.Kind, by pull.Person, at time.Time, reason string) decision.Entry {
	return decision.Entry{
		ID: id, Kind: kind, By: by, Place: "comment", URL: s.Pull.URL + "#issuecomment-" + id, Repo: s.Pull.Repo, Number: s.Pull.Number,
		Base: s.Pull.Base.Name, Head: s.Pull.Head.SHA, At: at, Reason: reason,
	}
}

// Sample fills a world with pull requests in every state, and decisions about one.
func (w *World) Sample() {
	w.Enter(
		Entry(Standing(Home, 12, ""), "comment/40/0", decision.Refused, Bob, Now.Add(-4*time.Hour), "bob wrote this change. Others who may: alice, carol."),
		Entry(Standing(Home, 12, ""), "review/7", decision.Approve, pull.Person{ID: 4, Login: "dave"}, Now.Add(-3*time.Hour), ""),
		Entry(Standing(Home, 12, ""), "comment/41/0", decision.Hold, Carol, Now.Add(-2*time.Hour), "wait for the backup of tonight"),
		Entry(Standing(Home, 5, ""), "comment/9/0", decision.Merged, Alice, Now.Add(-48*time.Hour), ""),
	)
	w.SetPull(Waiting(Home, 12))
	w.SetPull(Standing(Home, 13, "Update ghcr.io/immich-app/immich-server to v1.140.0"))
	blocked := With(Standing(Home, 14, "Give the policy another name"), Now.Add(-5*24*time.Hour), Gate(policy.Blocked, "the policy on main is not valid, so nothing can pass; mend it first"), Gate(policy.Clear, "no rule asks for an approval"))
	blocked.Verdict.Problems = []policy.Problem{{State: policy.Blocked, Text: "the policy on main is not valid, so nothing can pass; mend it first\n.signalbox.yaml:12: unknown kind “fluks”, did you mean “flux”?"}}
	blocked.Pull.Draft = true
	w.SetPull(blocked)
	undecided := With(Standing(Apps, 3, "Update the release of paperless-ngx to 2.18"), Now.Add(-40*time.Minute), Gate(policy.Undecided, "the list of changed files could not be read to its end"), Gate(policy.Waiting, "needs 1 approval by alice"))
	undecided.Verdict.Approvals = []policy.ApprovalResult{{Name: "apps", State: policy.Unmet, Reason: "needs 1 approval by alice", Need: 1, CanApprove: []string{"alice"}}}
	undecided.Pull.Author = Carol
	w.SetPull(undecided)
	fresh := Standing(Apps, 4, "Add a cron job")
	fresh.Verdict, fresh.History, fresh.EvaluatedAt = policy.Verdict{}, nil, time.Time{}
	w.SetPull(fresh)
	w.SetPull(With(Standing(Secret, 1, "Rotate the keys"), Now.Add(-time.Minute), Gate(policy.Waiting, "Flux has not applied main on prod yet"), Gate(policy.Clear, "approved by root")))
}

// Fill adds pull requests in all states to the first two repositories and the
// third, a third of n in each.
func (w *World) Fill(n int) {
	repos := []pull.Repo{Home, Apps, Secret}
	states := []policy.GateState{policy.Clear, policy.Waiting, policy.Blocked, policy.Waiting}
	for i := range n {
		s := Standing(repos[i%len(repos)], int64(1000+i), fmt.Sprintf("Update dependency %d of the platform to v%d.%d", i, i%7, i%13))
		for j := range 5 {
			s = With(s, Now.Add(-time.Duration(6-j)*time.Hour), Gate(states[(i+j)%len(states)], "Flux has not applied "+Commit(i)[:10]+" on prod yet"), Gate(policy.Clear, "approved by alice"))
		}
		w.locked(func() { w.pulls[s.Pull.Ref()] = &s })
	}
}
