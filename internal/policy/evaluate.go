package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

// Proposal is a policy that is not in force yet.
type Proposal struct {
	// Policy is nil if it is not valid, or if the pull request removes it.
	Policy   *Policy
	Problems []string
}

// Team is what is known of the members of a team.
type Team struct {
	Members []pull.Person
	// Problem says why the members are not known, or is empty.
	Problem string
}

// Input is all that a verdict follows from.
type Input struct {
	Snapshot *pull.Snapshot
	// Operator is the policy of the configuration, and Repository that of the
	// base branch; nil for none. Both are in force, and neither weakens the
	// other.
	Operator, Repository *Policy
	// Proposal is the policy that the pull request brings, if it changes it. It
	// is not in force.
	Proposal *Proposal
	Facts    precondition.Facts
	// Answers holds what is known of ancestry.
	Answers map[Ask]Answer
	// Teams are by the key that [TeamKey] makes.
	Teams map[string]Team
	// Decisions is the ledger of the pull request.
	Decisions decision.Ledger
	// Freezes is the ledger of the repository's freezes, on whichever pull
	// request they were said.
	Freezes decision.Ledger
	// Accounts are those who decided, as they are called now, by id. A decision
	// of an account that is not among them does not count.
	Accounts map[int64]pull.Person
	// Clusters are the names of all configured clusters.
	Clusters []string
	// Bots are accounts that never count, signalbox's own among them.
	Bots []pull.Person
	// Problems that were met on the way to the input.
	Problems []Problem
	Now      time.Time
}

// TeamKey returns the key of a team as a policy writes it: "owner/team" in
// lower case, where owner is the repository's unless the team names another.
func TeamKey(team, owner string) string {
	if !strings.Contains(team, "/") {
		team = owner + "/" + team
	}
	return strings.ToLower(team)
}

// Evaluate decides about a pull request. It is pure: it makes no call, reads no
// clock and keeps nothing.
func Evaluate(in Input) Verdict {
	p := &in.Snapshot.Pull
	e := &evaluation{in: &in, reading: precondition.Evaluation{
		Snapshot: in.Snapshot, Facts: in.Facts, Answers: in.Answers, Clusters: in.Clusters, Now: in.Now,
	}}
	v := Verdict{
		Ref: p.Ref(), Head: p.Head.SHA, Base: p.Base.Name,
		Problems:   slices.Clone(in.Problems),
		Rejections: e.rejections(),
	}
	e.decisions(&v)
	bare := v
	e.rules(&v, in.Repository)
	if in.Proposal != nil {
		v.Proposed = e.propose(bare)
	}
	v.gates()
	if f, ok := e.reading.Fact(fact.ProtectionKey(p.Repo.ID, p.Base.Name)); ok && f.Protection != nil {
		v.Gaps = f.Protection.Gaps
	}
	v.Reads, v.Wishes, v.Asks, v.LookAgain = e.reading.Reads(), e.reading.Wishes(), e.reading.Asks(), e.reading.LookAgain()
	return v
}

// rules evaluates the operator's policy and a repository's into v.
func (e *evaluation) rules(v *Verdict, repository *Policy) {
	var inForce []*Policy
	overriding := e.overriding(repository, 0)
	if r, ok := e.frozen(repository); ok {
		v.Results = append(v.Results, r)
	}
	for _, pol := range []*Policy{e.in.Operator, repository} {
		if pol == nil {
			continue
		}
		inForce = append(inForce, pol)
		v.Policies = append(v.Policies, pol.Name)
		for i := range pol.file.Preconditions {
			r := e.precondition(pol, &pol.file.Preconditions[i])
			if r.State.Open() && overriding.passes(pol, RuleKey("precondition", r.Name)) {
				r.State = Overridden
			}
			v.Results = append(v.Results, r)
		}
	}
	v.Approvals = e.approvals(inForce, overriding)
}

// gates decides by the rules.
func (v *Verdict) gates() {
	v.Preconditions, v.Approval = preconditionGate(v), approvalGate(v)
}

// propose evaluates what the pull request's own policy would decide; like is
// the verdict as far as no rule was asked. Nobody but its author has agreed to
// that policy, so it has nothing read that the policies in force do not ask for,
// and what it would find out is not told: only which of its rules are open.
func (e *evaluation) propose(like Verdict) *Proposed {
	proposal := e.in.Proposal
	if len(proposal.Problems) > 0 {
		return &Proposed{Problems: proposal.Problems}
	}
	wished := map[fact.Key]bool{}
	for _, w := range e.reading.Wishes() {
		wished[w.Key] = true
	}
	other := &evaluation{in: e.in, reading: precondition.Evaluation{
		Snapshot: e.in.Snapshot, Facts: e.in.Facts, Answers: e.in.Answers, Clusters: e.in.Clusters, Now: e.in.Now,
		Collected: func(k fact.Key) bool { return wished[k] },
	}}
	other.rules(&like, proposal.Policy)
	like.gates()
	like.Preconditions.Reason = openRules(like.Results, like.Preconditions.Reason)
	return &Proposed{Preconditions: like.Preconditions, Approval: like.Approval}
}

// openRules names the rules that are open, or else says what the gate says.
func openRules(results []Result, gate string) string {
	var open []string
	for _, r := range results {
		if r.State.Open() {
			open = append(open, string(r.State)+": "+r.Name)
		}
	}
	if len(open) == 0 {
		return gate
	}
	return strings.Join(open, "; ")
}

// evaluation is one call of Evaluate.
type evaluation struct {
	in      *Input
	reading precondition.Evaluation
}

func (e *evaluation) precondition(pol *Policy, p *Precondition) Result {
	r := Result{Name: p.Name, Policy: pol.Name}
	files, applies := match(p.Scope, p.Unless, e.in.Snapshot)
	if !applies {
		r.State, r.Reason = NotApplicable, "is not about this change"
		return r
	}
	clusters := pol.file.clusters(files, e.in.Clusters)
	r.Checks = p.Given()[0].Kind.Evaluate(&e.reading, clusters)
	worst := slices.MaxFunc(r.Checks, func(a, b Check) int { return precondition.Worse(a.State, b.State) })
	r.State, r.Reason, r.Brief = worst.State, worst.Reason, worst.Brief
	return r
}

// stamp writes a time for people. It is absolute, so that a comment stays true
// without being edited.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func preconditionGate(v *Verdict) Gate {
	if g, ok := problemGate(v.Problems); ok {
		return g
	}
	open, applicable, overridden, first := 0, 0, 0, ""
	for _, r := range v.Results {
		switch r.State {
		case Unmet, Unknown:
			open++
			applicable++
			if first == "" {
				first = cmp.Or(r.Brief, r.Name+": "+r.Reason)
			}
		case Overridden:
			overridden++
			applicable++
		case Met:
			applicable++
		case NotApplicable:
		}
	}
	switch {
	case v.Proposed != nil && len(v.Proposed.Problems) > 0:
		return Gate{Blocked, "the policy in this pull request is not valid: " + v.Proposed.Problems[0]}
	case open > 1:
		return Gate{Waiting, fmt.Sprintf("%s (and %d more)", first, open-1)}
	case open == 1:
		return Gate{Waiting, first}
	case applicable == 0:
		return Gate{Clear, "no precondition is about this change"}
	case overridden > 0:
		return Gate{Clear, fmt.Sprintf("%d of %s overridden", overridden, plural(applicable, "precondition"))}
	case applicable == 1:
		return Gate{Clear, "the one precondition is met"}
	default:
		return Gate{Clear, fmt.Sprintf("all %d preconditions are met", applicable)}
	}
}

func approvalGate(v *Verdict) Gate {
	if g, ok := problemGate(v.Problems); ok {
		return g
	}
	if len(v.Rejections) > 0 {
		return Gate{Blocked, v.Rejections[0].Person.Login + " asks for changes"}
	}
	if len(v.Holds) > 0 {
		return Gate{Waiting, holdText(v.Holds[0])}
	}
	open, applicable, overridden, first := 0, 0, 0, ""
	for _, a := range v.Approvals {
		switch a.State {
		case Unmet, Unknown:
			open++
			applicable++
			if first == "" {
				first = a.Name + ": " + a.Reason
			}
		case Overridden:
			overridden++
			applicable++
		case Met:
			applicable++
		case NotApplicable:
		}
	}
	switch {
	case open > 1:
		return Gate{Waiting, fmt.Sprintf("%s (and %d more)", first, open-1)}
	case open == 1:
		return Gate{Waiting, first}
	case applicable == 0:
		return Gate{Clear, "this change needs no approval"}
	case overridden > 0:
		return Gate{Clear, fmt.Sprintf("%d of %s overridden", overridden, plural(applicable, "approval rule"))}
	default:
		return Gate{Clear, "approved by " + strings.Join(approvers(v.Approvals), ", ")}
	}
}

// problemGate is the gate while there are problems: the worst one speaks.
func problemGate(ps []Problem) (Gate, bool) {
	if len(ps) == 0 {
		return Gate{}, false
	}
	worst := slices.MaxFunc(ps, func(a, b Problem) int { return gateRank[a.State] - gateRank[b.State] })
	first, _, _ := strings.Cut(worst.Text, "\n")
	return Gate{worst.State, first}, true
}

func approvers(rs []ApprovalResult) []string {
	var names []string
	for _, r := range rs {
		for _, a := range r.By {
			if !slices.Contains(names, a.Person.Login) {
				names = append(names, a.Person.Login)
			}
		}
	}
	return names
}
