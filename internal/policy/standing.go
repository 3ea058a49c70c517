package policy

import (
	"time"

	"signalbox/internal/pull"
)

// Standing is how an open pull request stands: what was last seen of it, what
// signalbox thinks of it now, and how it came to that.
type Standing struct {
	Pull  pull.Pull
	Files []pull.File
	// Verdict is the zero value while EvaluatedAt is zero: there is none yet.
	Verdict     Verdict
	EvaluatedAt time.Time
	// History is how the verdict changed, the oldest first.
	History []Change
	// Observed says that signalbox posts nothing on it and decides nothing.
	Observed bool
}

// MaxHistory bounds the history of a verdict; the oldest changes are dropped, and more
// of them where they are large.
const MaxHistory = 200

// Change is one change of a verdict.
type Change struct {
	At   time.Time `json:"at"`
	Head string    `json:"head"`
	// Preconditions and Approval are the gates from then on.
	Preconditions Gate `json:"preconditions"`
	Approval      Gate `json:"approval"`
	// Rules are those whose state changed, in the order of the verdict.
	Rules []RuleChange `json:"rules,omitempty"`
	// Because is what made signalbox look, such as "webhook" or "fact".
	Because string `json:"because,omitempty"`
}

// State is the worse of the two gates.
func (c Change) State() GateState { return Worst(c.Preconditions.State, c.Approval.State) }

// RuleChange is how one rule changed. From is empty for a rule that is new, and
// To for one that is gone.
type RuleChange struct {
	Name   string      `json:"name"`
	From   ResultState `json:"from,omitempty"`
	To     ResultState `json:"to,omitempty"`
	Reason string      `json:"reason,omitempty"`
}
