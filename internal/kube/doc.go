// Package kube reads the Flux objects of one Kubernetes cluster, and what is
// wished beside them, and keeps small facts ([fact.Fact]) of them up to date.
//
// A [Watcher] watches one cluster; several clusters are several watchers. For
// each kind it follows the CustomResourceDefinition first and starts an
// informer when that is established, so a kind may be missing, come and go.
// Facts are written by [Project], which keeps the last settled state of an
// object while its controller passes through Progressing: a healthy cluster
// writes nothing.
//
// What is not of Flux is collected only while somebody wishes for it
// ([Watcher.Wish]): objects of any kind by a test, kured, and Renovate as a
// CronJob. All wishes for the same objects share one list and watch, of each
// object little more than the results of the tests is kept, and a fact is
// written at most every 200 ms. Secrets are never read. Their state of the watch
// stands in the fact itself.
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
// [RequiredRules], and for what is wished [WishRules].
//
// To test code that uses a Watcher, give it the stand-in cluster of package
// kubetest.
package kube
