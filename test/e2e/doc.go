// Package e2e drives the program signalbox against the real servers: Gitea,
// a Kubernetes API server and the controllers of Flux. Its tests have the build
// tag e2e; "make e2e" builds the servers and runs them.
//
// A test plants a repository of its own, starts the program as an operator
// does, acts as people and as the cluster do, and reads what is posted on the
// pull request. Tests that stop Flux, or change what the whole cluster has, run
// one after the other and first; the others run at the same time.
package e2e
