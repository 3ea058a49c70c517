// Package precondition holds the kinds of preconditions that a policy can ask
// for, one file each.
//
// A kind is a Go type with the fields that people write, a check of those
// fields, and an evaluation that reads facts and nothing else. It says of each
// finding what was looked at, and what cannot be known is [Unknown], which
// never passes. [Evaluation] notes what was read, so that whoever holds the
// finding knows when to make it again.
//
// To add a kind, write its file and its field in [Kinds], and collect its fact
// in the adapter that owns the source. Its page in docs/preconditions is
// generated from the comments of its type and the example beside them:
// "go test ./docs -run TestPreconditionPages -update".
package precondition
