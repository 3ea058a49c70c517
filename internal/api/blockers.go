package api

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/policy"
)

// Blocker is one thing that keeps a pull request from being clear.
type Blocker struct {
	Kind   string    `json:"kind" enum:"unevaluated,problem,policy,precondition,freeze,rejection,hold,approval" doc:"What sort of thing it is."`
	Name   string    `json:"name" doc:"The name of the rule, the login of who holds or rejects, or the kind again."`
	Reason string    `json:"reason" doc:"Why it blocks, in one line."`
	Remedy string    `json:"remedy,omitempty" example:"alice or an approver writes /unhold" doc:"What would end it; missing where only the thing itself can change."`
	People []string  `json:"people,omitempty" doc:"The logins of those who can do that, as far as they are known."`
	Until  time.Time `json:"until,omitzero" doc:"When it ends by itself; missing if it does not."`
}

// blockers says what keeps a pull request from being clear, in the order in which
// people look: what nothing else helps against comes first.
func blockers(st *policy.Standing) []Blocker {
	out := []Blocker{}
	if st.EvaluatedAt.IsZero() {
		return append(out, Blocker{Kind: unevaluated, Name: unevaluated, Reason: "signalbox has not come to a verdict yet"})
	}
	v := &st.Verdict
	for _, p := range v.Problems {
		first, _, _ := strings.Cut(p.Text, "\n")
		out = append(out, Blocker{Kind: "problem", Name: "problem", Reason: clip(first)})
	}
	if v.Proposed != nil && len(v.Proposed.Problems) > 0 {
		out = append(out, Blocker{
			Kind: "policy", Name: "policy", Reason: "the policy in this pull request is not valid: " + clip(v.Proposed.Problems[0]),
			Remedy: "the author corrects the policy and pushes it", People: []string{clip(st.Pull.Author.Login)},
		})
	}
	for _, r := range v.Results {
		if r.State.Open() {
			out = append(out, ruleBlocker(v, r))
		}
	}
	for _, r := range v.Rejections {
		login := clip(r.Person.Login)
		out = append(out, Blocker{
			Kind: "rejection", Name: login, Reason: login + " asks for changes",
			Remedy: login + " approves, or the review is dismissed", People: []string{login},
		})
	}
	for _, h := range v.Holds {
		login := clip(h.By.Login)
		out = append(out, Blocker{
			Kind: "hold", Name: login, Reason: cmp.Or(clip(h.Reason), login+" holds it"),
			Remedy: login + " or an approver writes /unhold", People: []string{login},
		})
	}
	for _, a := range v.Approvals {
		if a.State.Open() {
			out = append(out, approvalBlocker(a))
		}
	}
	return out
}

// ruleBlocker is an open precondition. That the repository is not frozen is one that
// no policy has; what it waits for is in the freezes.
func ruleBlocker(v *policy.Verdict, r policy.Result) Blocker {
	b := Blocker{Kind: "precondition", Name: clip(r.Name), Reason: clip(r.Reason)}
	if r.Name != policy.FreezeRule || r.Policy != policy.BuiltIn || len(v.Freezes) == 0 {
		return b
	}
	// The first of them ends last.
	last := v.Freezes[0]
	b.Kind, b.Until = "freeze", utc(last.Until)
	b.Remedy = "who froze, an approver or who may override writes /unfreeze"
	for _, f := range v.Freezes {
		b.People = append(b.People, clip(f.By.Login))
	}
	return b
}

func approvalBlocker(a policy.ApprovalResult) Blocker {
	b := Blocker{Kind: "approval", Name: clip(a.Name), Reason: clip(a.Reason), People: clipped(a.CanApprove)}
	switch missing := a.Need - len(a.By); {
	case a.Unsatisfiable:
		b.Remedy = "the policy or the rights change: too few people are entitled"
	case a.State == policy.Unmet && missing == 1:
		b.Remedy = "one more of those who can approves"
	case a.State == policy.Unmet && missing > 1:
		b.Remedy = fmt.Sprintf("%d more of those who can approve", missing)
	}
	return b
}
