// Package decision holds what people decided about pull requests: approvals,
// holds, overrides, merges and freezes, as entries of a ledger that only grows,
// and the rules of which of them are in force.
//
// An entry is bound to everything that it was given for: the repository and
// the pull request, the base branch, the head and the identity of the diff; to
// the person, the place and the time; and to the cause, so that the same cause
// has one effect however often it is seen. Nothing is ever taken out: what
// ends a decision is another entry, a push, a changed base, or time.
//
// The rules are pure functions of the entries of one pull request, and those of
// freezes of the entries of one repository. Whether a person may decide at all is
// not theirs: people lose rights, so package policy asks that each time an entry
// is counted.
package decision
