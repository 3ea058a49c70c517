// Package kubetest is a stand-in for a Kubernetes cluster with Flux, in memory.
//
// A [Cluster] gives a dynamic client for a kube.Watcher. Unlike the fake of
// client-go it keeps the promises that an informer builds on: each change has
// a resourceVersion, a watch resumes where it left off, sends bookmarks and
// begins with the present state if asked to, an object that was created again
// has another uid, and a request ends with its context. It serves reads only;
// objects are changed with the methods of Cluster and [Object], which write
// what the controllers of Flux write.
//
// All methods may be called by several goroutines. Nothing runs in the
// background except one goroutine for each open watch, so it works within
// testing/synctest; nothing needs a testing.T.
package kubetest
