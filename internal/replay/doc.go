// Package replay evaluates a recording again: what would have been decided, with the
// policies of then or another one. It needs no bus, no forge and no cluster, and gives
// the same answer each time.
//
// What is decided of a pull request is decided by what a recording holds of it: the
// inputs of its last record, the facts, the decisions and the time. As signalbox does,
// it looks again when a record, a decision or a fact that was looked up changes, and at
// the time that a verdict named.
package replay
