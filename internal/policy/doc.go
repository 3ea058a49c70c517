// Package policy holds the rules that a pull request must meet and the
// evaluation of them.
//
// A policy [File] is read from the base branch of a pull request with [Load];
// the operator's configuration may hold another in the same form. [Evaluate]
// is a pure function: it reads a snapshot of a pull request, the policies in
// force and the facts, and returns a [Verdict] that names every fact it read,
// the questions it could not answer, and when time alone could change it.
//
// What cannot be known is [Unknown], and Unknown never passes.
//
// The kinds of preconditions are in package precondition.
package policy
