// Package kube reads the Flux objects of one Kubernetes cluster and keeps a
// small [fact.Fact] of each up to date.
//
// A [Watcher] watches one cluster; several clusters are several watchers. For
// each kind it follows the CustomResourceDefinition first and starts an
// informer when that is established, so a kind may be missing, come and go.
// Facts are written by [Project], which keeps the last settled state of an
// object while its controller passes through Progressing: a healthy cluster
// writes nothing.
//
// What can be known is told by the fact of the cluster: the state of the watch
// on each kind, written when it changes. A cluster that cannot be reached, a
// missing kind, refused credentials and a missing right are states there, never
// an error of [Watcher.Run]. Only a successful probe of the API server counts
// as a heartbeat ([Sink]); silence is judged by whoever reads the heartbeats.
//
// A fact is written at least once per change and in the order of the object's
// resourceVersion; a write that fails is tried again until it succeeds or a
// newer state replaced it. Objects of one key are never handled twice at once.
// A Watcher does not write to the cluster and needs no more than
// [RequiredRules].
//
// To test code that uses a Watcher, give it the stand-in cluster of package
// kubetest.
package kube
