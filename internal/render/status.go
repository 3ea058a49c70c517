package render

import (
	"strings"

	"signalbox/internal/policy"
)

// Names of the two commit statuses. The base branch is part of the context,
// because statuses belong to a commit and two pull requests can share one.
const (
	preconditionsContext = "signalbox / preconditions"
	approvalContext      = "signalbox / approval"
)

// PreconditionsContext is the context of the status of the preconditions.
func PreconditionsContext(base string) string { return preconditionsContext + " (" + base + ")" }

// ApprovalContext is the context of the status of the approvals.
func ApprovalContext(base string) string { return approvalContext + " (" + base + ")" }

// maxDescription bounds the description of a commit status, in runes: longer
// ones are not shown whole anywhere.
const maxDescription = 140

// Description is the line of a commit status.
func Description(reason string) string { return clip(oneLine(reason), maxDescription) }

// statusStates maps the state of a gate to that of a commit status.
var statusStates = map[policy.GateState]string{
	policy.Clear:     "success",
	policy.Waiting:   "pending",
	policy.Blocked:   "failure",
	policy.Undecided: "error",
}

// StatusState is the state of a commit status. A state that is not known is an
// error, never a success.
func StatusState(s policy.GateState) string {
	if state, ok := statusStates[s]; ok {
		return state
	}
	return "error"
}

// OwnContext reports whether a context is one of signalbox's.
func OwnContext(context string) bool {
	return strings.HasPrefix(context, preconditionsContext+" (") || strings.HasPrefix(context, approvalContext+" (")
}
