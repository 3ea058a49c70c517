package policy

import (
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

// GateState is the state of one of the two commit statuses.
type GateState string

// The states of a gate, from the best to the worst.
const (
	// Clear: everything is met or overridden.
	Clear GateState = "clear"
	// Waiting: something is unmet or unknown that can become true without a
	// push.
	Waiting GateState = "waiting"
	// Blocked: the change or the policy needs somebody's hand.
	Blocked GateState = "blocked"
	// Undecided: signalbox could not decide.
	Undecided GateState = "undecided"
)

var gateRank = map[GateState]int{Clear: 0, Waiting: 1, Blocked: 2, Undecided: 3}

// Worst returns the worse of two gate states.
func Worst(a, b GateState) GateState {
	if gateRank[b] > gateRank[a] {
		return b
	}
	return a
}

type (
	// ResultState is the state of one rule.
	ResultState = precondition.State
	// Check is one finding of a precondition, such as on one cluster.
	Check = precondition.Check
	// Evidence is one thing that was looked at.
	Evidence = precondition.Evidence
	// Ask is a question of ancestry.
	Ask = precondition.Ask
	// Answer is what is known of an [Ask].
	Answer = precondition.Answer
)

// The states of a rule.
const (
	Met           = precondition.Met
	NotApplicable = precondition.NotApplicable
	Unknown       = precondition.Unknown
	Unmet         = precondition.Unmet
	Overridden    = precondition.Overridden
)

// Gate is the verdict of one commit status: its state and the first reason, in
// plain words and one line.
type Gate struct {
	State  GateState `json:"state"`
	Reason string    `json:"reason"`
}

// Verdict is what signalbox thinks of a pull request. Everything in it follows
// from the input of [Evaluate]; two verdicts of the same truth are deeply
// equal, except for LookAgain.
type Verdict struct {
	Ref  pull.Ref `json:"ref"`
	Head string   `json:"head"`
	Base string   `json:"base"`

	Preconditions Gate `json:"preconditions"`
	Approval      Gate `json:"approval"`

	Results   []Result         `json:"results,omitempty"`
	Approvals []ApprovalResult `json:"approvals,omitempty"`
	// Rejections are reviews that ask for changes and still stand.
	Rejections []Rejection `json:"rejections,omitempty"`
	// Holds and Overrides are the decisions in force, with the people as they
	// are called now; Merge is the request to merge, or nil.
	Holds     []decision.Entry `json:"holds,omitempty"`
	Overrides []decision.Entry `json:"overrides,omitempty"`
	Merge     *decision.Entry  `json:"merge,omitempty"`
	// Freezes are those of the repository's freezes in force that end last, the
	// last first.
	Freezes []decision.Entry `json:"freezes,omitempty"`
	// Problems make the verdict blocked or undecided whatever the rules say.
	Problems []Problem `json:"problems,omitempty"`
	// Proposed is set when the pull request changes the policy.
	Proposed *Proposed `json:"proposed,omitempty"`
	// Notes are what people should know beside the verdict, such as that
	// somebody else posted a status in its name. Evaluate leaves it empty.
	Notes []string `json:"notes,omitempty"`
	// Gaps are the ways round signalbox that the protection of the base branch
	// leaves, in plain words. They decide nothing.
	Gaps []string `json:"gaps,omitempty"`
	// Policies are the names of the policies in force.
	Policies []string `json:"policies,omitempty"`

	// Reads are the facts that were looked up, present or not, without
	// repetition: a change of any of them asks for another evaluation.
	Reads []fact.Key `json:"reads,omitempty"`
	// Wishes are those of them that are collected only while they are wished for.
	Wishes []fact.Wish `json:"wishes,omitempty"`
	// Asks are the questions of ancestry that had no answer in the input. While
	// there is one, the verdict is not final.
	Asks []Ask `json:"asks,omitempty"`
	// LookAgain is when time alone may change the verdict; zero for never.
	LookAgain time.Time `json:"lookAgain,omitzero"`
}

// State is the worse of the two gates.
func (v *Verdict) State() GateState { return Worst(v.Preconditions.State, v.Approval.State) }

// Result is the state of one precondition.
type Result struct {
	Name   string      `json:"name"`
	Policy string      `json:"policy"`
	State  ResultState `json:"state"`
	// Reason is one line: why the state is what it is. Brief is the same for where
	// there is little room, or empty.
	Reason string `json:"reason"`
	Brief  string `json:"brief,omitempty"`
	// Checks are the single findings, one for each cluster.
	Checks []Check `json:"checks,omitempty"`
}

// ApprovalResult is the state of one approval rule.
type ApprovalResult struct {
	Name   string      `json:"name"`
	Policy string      `json:"policy"`
	State  ResultState `json:"state"`
	Reason string      `json:"reason"`
	Need   int         `json:"need"`
	By     []Approval  `json:"by,omitempty"`
	// CanApprove are the logins of those who still can, sorted.
	CanApprove []string `json:"canApprove,omitempty"`
	Voided     []Voided `json:"voided,omitempty"`
	// Unsatisfiable says that too few people are entitled, the author apart.
	Unsatisfiable bool `json:"unsatisfiable,omitempty"`
	// Files are the changed files that the rule is about, for evidence.
	Files []string `json:"files,omitempty"`
}

// Approval is an approval that counts.
type Approval struct {
	Person pull.Person `json:"person"`
	Commit string      `json:"commit"`
	At     time.Time   `json:"at"`
	// Place is where it was given: "review", or that of a decision.
	Place string `json:"place"`
}

// Voided is an approval that does not count any more, or never did.
type Voided struct {
	Person pull.Person `json:"person"`
	Why    string      `json:"why"`
}

// Rejection is a review that asks for changes.
type Rejection struct {
	Person pull.Person `json:"person"`
	At     time.Time   `json:"at"`
}

// Problem is why the rules alone do not decide.
type Problem struct {
	State GateState `json:"state"`
	// Text is in plain words and may have several lines.
	Text string `json:"text"`
}

// Proposed tells of a policy that the pull request brings.
type Proposed struct {
	// Problems are set if it is not valid.
	Problems []string `json:"problems,omitempty"`
	// Preconditions and Approval are what the gates would be under it.
	Preconditions Gate `json:"preconditions"`
	Approval      Gate `json:"approval"`
}
