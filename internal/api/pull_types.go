package api

import (
	"time"

	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

// Gate is the state of one of the two commit statuses.
type Gate struct {
	State  string `json:"state" enum:"clear,waiting,blocked,undecided" doc:"clear: everything is met or overridden. waiting: something is unmet or unknown that can become true without a push. blocked: the change or the policy needs somebody's hand. undecided: signalbox could not decide."`
	Reason string `json:"reason" example:"all 3 preconditions are met" doc:"The first reason, in one line."`
}

func newGate(g policy.Gate) Gate { return Gate{State: gateState(g.State), Reason: clip(g.Reason)} }

// Branch is one end of a pull request.
type Branch struct {
	Repository string `json:"repository,omitempty" example:"ops/home-gitops" doc:"owner/name; missing for a fork that was deleted."`
	Name       string `json:"name" example:"main"`
	Commit     string `json:"commit" example:"5c0ffee51ab1e5c0ffee51ab1e5c0ffee51ab1e5" doc:"The full id of the commit that the branch points at."`
}

func newBranch(b pull.Branch) Branch {
	return Branch{Repository: clip(b.Repo), Name: clip(b.Name), Commit: clip(b.SHA)}
}

// unevaluated is the state of a pull request without a verdict.
const unevaluated = "unevaluated"

func standingState(st *policy.Standing) string {
	if st.EvaluatedAt.IsZero() {
		return unevaluated
	}
	v := &st.Verdict
	return gateState(policy.Worst(policy.GateState(gateState(v.Preconditions.State)), policy.GateState(gateState(v.Approval.State))))
}

// gateState is the state of a gate; one that this version does not know is undecided.
func gateState(s policy.GateState) string {
	return oneOf(s, policy.Undecided, policy.Clear, policy.Waiting, policy.Blocked)
}

// ruleState is the state of a rule; one that this version does not know is unknown.
func ruleState(s policy.ResultState) string {
	return oneOf(s, policy.Unknown, policy.Met, policy.NotApplicable, policy.Unmet, policy.Overridden)
}

// PullSummary is a pull request as a list shows it.
type PullSummary struct {
	Repository  Repository `json:"repository"`
	Number      int64      `json:"number" example:"12"`
	Title       string     `json:"title" example:"Profile the storage"`
	URL         string     `json:"url" example:"https://gitea.example.org/ops/home-gitops/pulls/12" doc:"Its page in Gitea."`
	Author      Person     `json:"author"`
	Draft       bool       `json:"draft"`
	Labels      []string   `json:"labels"`
	Head        Branch     `json:"head"`
	Base        Branch     `json:"base"`
	CreatedAt   time.Time  `json:"createdAt,omitzero"`
	UpdatedAt   time.Time  `json:"updatedAt,omitzero"`
	State       string     `json:"state" enum:"clear,waiting,blocked,undecided,unevaluated" doc:"The worse of the two gates, or unevaluated where there is no verdict yet."`
	EvaluatedAt time.Time  `json:"evaluatedAt,omitzero" doc:"When signalbox came to this verdict; missing if there is none yet."`
	Observed    bool       `json:"observed" doc:"signalbox only looks: it posts nothing on it and decides nothing."`

	Preconditions *Gate    `json:"preconditions,omitempty" doc:"What the clusters say; missing if there is no verdict yet."`
	Approval      *Gate    `json:"approval,omitempty" doc:"What the people say; missing if there is no verdict yet."`
	Open          []string `json:"open" example:"[\"precondition: storage is healthy\"]" doc:"The rules that are unmet or unknown, each with its sort before it."`
	MergeAsked    bool     `json:"mergeAsked" doc:"Somebody asked signalbox to merge it once it is clear."`
}

func newPullSummary(st *policy.Standing) PullSummary {
	p, v := &st.Pull, &st.Verdict
	out := PullSummary{
		Repository: newRepository(p.Repo), Number: p.Number, Title: clip(p.Title), URL: clip(p.URL),
		Author: newPerson(p.Author), Draft: p.Draft, Labels: clipped(p.Labels),
		Head: newBranch(p.Head), Base: newBranch(p.Base),
		CreatedAt: utc(p.CreatedAt), UpdatedAt: utc(p.UpdatedAt),
		State: standingState(st), EvaluatedAt: utc(st.EvaluatedAt), Observed: st.Observed, Open: []string{},
	}
	if st.EvaluatedAt.IsZero() {
		return out
	}
	preconditions, approval := newGate(v.Preconditions), newGate(v.Approval)
	out.Preconditions, out.Approval = &preconditions, &approval
	out.Open = clipped(v.OpenRules())
	out.MergeAsked = v.Merge != nil
	return out
}

// Pull is a pull request with all that is known of it.
type Pull struct {
	PullSummary
	Blockers      []Blocker          `json:"blockers" doc:"What keeps it from being clear, and what would end that. Empty only if it is clear."`
	Rules         []PreconditionRule `json:"rules" doc:"The preconditions, in the order of the policies."`
	ApprovalRules []ApprovalRule     `json:"approvalRules"`
	Rejections    []Rejection        `json:"rejections" doc:"Reviews that ask for changes and still stand."`
	Problems      []Problem          `json:"problems" doc:"They make it blocked or undecided, whatever the rules say."`
	Decisions     []Decision         `json:"decisions" doc:"The holds, overrides and freezes in force and the request to merge. A freeze acts on the whole repository; of many, the ten that end last are here."`
	Proposed      *Proposed          `json:"proposed,omitempty" doc:"Set if the pull request changes the policy."`
	Policies      []string           `json:"policies" doc:"The names of the policies in force."`
	Notes         []string           `json:"notes" doc:"What people should know beside the verdict."`
	Gaps          []string           `json:"gaps" doc:"The ways round signalbox that the protection of the base branch leaves. They decide nothing."`
	LookAgainAt   time.Time          `json:"lookAgainAt,omitzero" doc:"When time alone may change the verdict; missing for never."`
	Files         []File             `json:"files" maxItems:"1000" doc:"The changed files, at most 1000 of them."`
	FilesTotal    int                `json:"filesTotal" minimum:"0" doc:"How many files are changed."`
	History       []Change           `json:"history" maxItems:"200" doc:"How the verdict changed, the oldest first; of more than 200 changes the newest."`
}

func newPull(st *policy.Standing) Pull {
	v := &st.Verdict
	out := Pull{
		PullSummary: newPullSummary(st),
		Blockers:    blockers(st),
		Rules:       list(v.Results, newPreconditionRule), ApprovalRules: list(v.Approvals, newApprovalRule),
		Rejections: list(v.Rejections, newRejection), Problems: list(v.Problems, newProblem),
		Decisions: inForce(v), Policies: clipped(v.Policies), Notes: clipped(v.Notes), Gaps: clipped(v.Gaps),
		LookAgainAt: utc(v.LookAgain),
		Files:       list(st.Files[:min(maxFiles, len(st.Files))], newFile), FilesTotal: len(st.Files),
		History: list(st.History[max(0, len(st.History)-policy.MaxHistory):], newChange),
	}
	if v.Proposed != nil {
		out.Proposed = newProposed(v.Proposed)
	}
	return out
}

// PreconditionRule is the state of one precondition.
type PreconditionRule struct {
	Name   string  `json:"name" example:"storage is healthy"`
	Policy string  `json:"policy" doc:"The name of the policy that has the rule."`
	State  string  `json:"state" enum:"met,not-applicable,unknown,unmet,overridden" doc:"unknown is what cannot be known now; it counts as unmet. overridden is unmet or unknown, and passed by an override."`
	Reason string  `json:"reason" doc:"Why, in one line."`
	Checks []Check `json:"checks" doc:"The single findings, one for each cluster."`
}

func newPreconditionRule(r policy.Result) PreconditionRule {
	return PreconditionRule{
		Name: clip(r.Name), Policy: clip(r.Policy), State: ruleState(r.State), Reason: clip(r.Reason),
		Checks: list(r.Checks, newCheck),
	}
}

// Check is one finding of a precondition.
type Check struct {
	Cluster  string     `json:"cluster,omitempty" example:"prod" doc:"Missing for what concerns none."`
	State    string     `json:"state" enum:"met,not-applicable,unknown,unmet,overridden"`
	Reason   string     `json:"reason"`
	Since    time.Time  `json:"since,omitzero" doc:"When it came into this state; missing if that is not known."`
	ReadAt   time.Time  `json:"readAt,omitzero" doc:"When what decided it was read from its source; missing if that says nothing, as for a window of the clock."`
	Looked   string     `json:"looked,omitempty" doc:"How much was looked at."`
	Evidence []Evidence `json:"evidence" doc:"What was looked at."`
}

func newCheck(c precondition.Check) Check {
	return Check{
		Cluster: c.Cluster, State: ruleState(c.State), Reason: clip(c.Reason), Since: utc(c.Since), ReadAt: utc(c.ReadAt),
		Looked: clip(c.Looked), Evidence: list(c.Evidence, newEvidence),
	}
}

// Evidence is one thing that was looked at.
type Evidence struct {
	Label string     `json:"label" example:"applied revision"`
	Value string     `json:"value,omitempty" doc:"May have many lines, and comes from outside: a controller, a log, a label of an object."`
	Parts []Evidence `json:"parts,omitempty" doc:"What it is made of."`
}

func newEvidence(e precondition.Evidence) Evidence {
	out := Evidence{Label: clip(e.Label), Value: clip(e.Value)}
	if len(e.Parts) > 0 {
		out.Parts = list(e.Parts, newEvidence)
	}
	return out
}

// ApprovalRule is the state of one approval rule.
type ApprovalRule struct {
	Name          string           `json:"name" example:"platform owners"`
	Policy        string           `json:"policy"`
	State         string           `json:"state" enum:"met,not-applicable,unknown,unmet,overridden"`
	Reason        string           `json:"reason"`
	Need          int              `json:"need" minimum:"0" example:"1" doc:"How many approvals it needs."`
	By            []Approval       `json:"by" doc:"The approvals that count."`
	CanApprove    []string         `json:"canApprove" doc:"The logins of those who still can."`
	Voided        []VoidedApproval `json:"voided" doc:"Approvals that do not count, and why."`
	Unsatisfiable bool             `json:"unsatisfiable" doc:"Too few people are entitled, the author apart."`
	Files         []string         `json:"files" maxItems:"1000" doc:"The changed files that the rule is about, at most 1000 of them."`
	FilesTotal    int              `json:"filesTotal" minimum:"0"`
}

func newApprovalRule(r policy.ApprovalResult) ApprovalRule {
	return ApprovalRule{
		Name: clip(r.Name), Policy: clip(r.Policy), State: ruleState(r.State), Reason: clip(r.Reason), Need: r.Need,
		By: list(r.By, newApproval), CanApprove: clipped(r.CanApprove),
		Voided: list(r.Voided, func(v policy.Voided) VoidedApproval {
			return VoidedApproval{Person: newPerson(v.Person), Why: clip(v.Why)}
		}),
		Unsatisfiable: r.Unsatisfiable, Files: clipped(r.Files[:min(maxFiles, len(r.Files))]), FilesTotal: len(r.Files),
	}
}

// Approval is an approval that counts.
type Approval struct {
	Person Person    `json:"person"`
	Commit string    `json:"commit" doc:"The head that it was given on."`
	At     time.Time `json:"at,omitzero"`
	Place  string    `json:"place" example:"review" doc:"Where it was given."`
}

func newApproval(a policy.Approval) Approval {
	return Approval{Person: newPerson(a.Person), Commit: clip(a.Commit), At: utc(a.At), Place: clip(a.Place)}
}

// VoidedApproval is an approval that does not count any more, or never did.
type VoidedApproval struct {
	Person Person `json:"person"`
	Why    string `json:"why"`
}

// Rejection is a review that asks for changes.
type Rejection struct {
	Person Person    `json:"person"`
	At     time.Time `json:"at,omitzero"`
}

func newRejection(r policy.Rejection) Rejection {
	return Rejection{Person: newPerson(r.Person), At: utc(r.At)}
}

// Problem is why the rules alone do not decide.
type Problem struct {
	State string `json:"state" enum:"clear,waiting,blocked,undecided" doc:"What it makes of the gates."`
	Text  string `json:"text" doc:"May have several lines."`
}

func newProblem(p policy.Problem) Problem {
	return Problem{State: gateState(p.State), Text: clip(p.Text)}
}

// Proposed tells of a policy that the pull request brings.
type Proposed struct {
	Problems      []string `json:"problems" doc:"Why it is not valid; empty if it is."`
	Preconditions *Gate    `json:"preconditions,omitempty" doc:"What the gate would be under it; missing if it is not valid."`
	Approval      *Gate    `json:"approval,omitempty" doc:"The same for the approval."`
}

func newProposed(p *policy.Proposed) *Proposed {
	out := &Proposed{Problems: clipped(p.Problems)}
	if len(p.Problems) == 0 {
		preconditions, approval := newGate(p.Preconditions), newGate(p.Approval)
		out.Preconditions, out.Approval = &preconditions, &approval
	}
	return out
}

// File is a changed file.
type File struct {
	Path     string `json:"path" example:"platform-config/profile.yaml"`
	Previous string `json:"previous,omitempty" doc:"The old path of a renamed file."`
	Change   string `json:"change" enum:"added,modified,deleted,renamed,copied,unchanged" doc:"unchanged is a change of mode or of binary content only."`
}

func newFile(f pull.File) File {
	return File{Path: clip(f.Path), Previous: clip(f.Previous), Change: string(f.Change)}
}

// Change is one change of a verdict.
type Change struct {
	At            time.Time    `json:"at"`
	Head          string       `json:"head" doc:"The commit that the verdict is about."`
	Preconditions Gate         `json:"preconditions" doc:"The gate from then on."`
	Approval      Gate         `json:"approval" doc:"The gate from then on."`
	Rules         []RuleChange `json:"rules" doc:"The rules whose state changed."`
	Because       string       `json:"because,omitempty" example:"webhook" doc:"What made signalbox look."`
}

func newChange(c policy.Change) Change {
	return Change{
		At: utc(c.At), Head: clip(c.Head), Preconditions: newGate(c.Preconditions), Approval: newGate(c.Approval),
		Rules: list(c.Rules, func(r policy.RuleChange) RuleChange {
			return RuleChange{Name: clip(r.Name), From: string(r.From), To: string(r.To), Reason: clip(r.Reason)}
		}),
		Because: clip(c.Because),
	}
}

// RuleChange is how one rule changed.
type RuleChange struct {
	Name   string `json:"name"`
	From   string `json:"from,omitempty" enum:"met,not-applicable,unknown,unmet,overridden" doc:"Missing for a rule that is new."`
	To     string `json:"to,omitempty" enum:"met,not-applicable,unknown,unmet,overridden" doc:"Missing for a rule that is gone."`
	Reason string `json:"reason,omitempty"`
}
