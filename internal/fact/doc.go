// Package fact holds what is true now: one value for one thing, such as a Flux
// Kustomization on a cluster or the reachability of that cluster. A fact is
// replaced, never appended to; its history is no business of this package.
//
// A fact is a projection: the few fields that a rule can ask for, never the
// object itself, and nothing secret.
//
// Facts are ordered by their source ([Fact.Newer]), not by the clock, so that
// a replica that lags cannot put an old value back.
package fact
