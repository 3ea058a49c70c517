package handlers

import (
	"slices"

	"signalbox/internal/policy"
)

// setVerdict sets the verdict, and notes the change if it is another one for people.
func (r *run) setVerdict(v policy.Verdict) {
	changes := RuleChanges(r.record.Verdict, v)
	was := r.record.Verdict
	r.record.Verdict = v
	if was.Head == v.Head && was.Preconditions.State == v.Preconditions.State && was.Approval.State == v.Approval.State && len(changes) == 0 {
		return
	}
	history := r.record.History
	// What is read from the records is shared: it is not appended to in place.
	history = slices.Concat(history[max(0, len(history)-policy.MaxHistory+1):], []policy.Change{{
		At: r.Now().UTC(), Head: v.Head, Preconditions: v.Preconditions, Approval: v.Approval, Rules: changes, Because: r.item.Reason,
	}})
	r.record.History = bounded(history)
}

// maxHistoryText bounds the texts of a history, in bytes. The record of each open pull
// request is in memory, and is written whole as one message: a cluster that comes and
// goes changes every rule each time.
const maxHistoryText = 64 << 10

// bounded leaves out the oldest changes of a history that is too large. The newest is
// always there.
func bounded(history []policy.Change) []policy.Change {
	size := 0
	for i := range slices.Backward(history) {
		if size += changeSize(&history[i]); size > maxHistoryText && i < len(history)-1 {
			return slices.Clone(history[i+1:])
		}
	}
	return history
}

// changeSize is about how many bytes a change takes.
func changeSize(c *policy.Change) int {
	const fixed, rule = 200, 60
	size := fixed + len(c.Head) + len(c.Preconditions.Reason) + len(c.Approval.Reason)
	for i := range c.Rules {
		size += rule + len(c.Rules[i].Name) + len(c.Rules[i].Reason)
	}
	return size
}

// ruleState is a rule with its state.
type ruleState struct {
	name, policy, reason string
	state                policy.ResultState
}

// ruleStates are the rules of a verdict, preconditions first.
func ruleStates(v policy.Verdict) []ruleState {
	var out []ruleState
	for _, x := range v.Results {
		out = append(out, ruleState{x.Name, x.Policy, x.Reason, x.State})
	}
	for _, x := range v.Approvals {
		out = append(out, ruleState{x.Name, x.Policy, x.Reason, x.State})
	}
	return out
}

// RuleChanges are the rules that are in another state, new or gone, in the order of
// the new verdict and then of the old.
func RuleChanges(was, now policy.Verdict) []policy.RuleChange {
	type key struct{ name, policy string }
	before := map[key]policy.ResultState{}
	for _, x := range ruleStates(was) {
		before[key{x.name, x.policy}] = x.state
	}
	var out []policy.RuleChange
	for _, x := range ruleStates(now) {
		k := key{x.name, x.policy}
		if from := before[k]; from != x.state {
			out = append(out, policy.RuleChange{Name: x.name, From: from, To: x.state, Reason: x.reason})
		}
		delete(before, k)
	}
	for _, x := range ruleStates(was) {
		if from, gone := before[key{x.name, x.policy}]; gone {
			out = append(out, policy.RuleChange{Name: x.name, From: from})
		}
	}
	return out
}
