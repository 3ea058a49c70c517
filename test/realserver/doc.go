// Package realserver builds and runs the real peers of signalbox for tests: Gitea, etcd with
// kube-apiserver, Flux's source-controller and kustomize-controller, the Matrix homeserver Dendrite, clusters
// of nats-server, and Renovate. No container runtime is needed.
//
// Each program is a module of its own under test/servers, because their dependencies disagree. [Build]
// compiles what is missing into a cache outside of the repository (several minutes the first time on a
// small machine, milliseconds afterwards). The Start functions do this themselves. Renovate is the one that
// is not in Go: npm installs it, and a machine without Node.js is told so.
//
// Promises:
//   - Every server listens on 127.0.0.1 only, on ports that no other harness on this machine was given.
//   - A Start function returns when the server answers, or with the end of its log in the error.
//   - The context of a Start function bounds the start alone: the server runs until its Stop.
//   - Nothing outlives the test. Stop ends a server gracefully and then by force, together with the
//     processes it started. On Linux the kernel kills the servers when the process that started them dies
//     in any other way.
//   - Kill ends a server without warning, and Restart brings it back with the same ports and data.
//     Neither may run at the same time as another of Stop, Kill and Restart of that server.
//
// Most tests want a [World], started once per test binary by [RunTests]; package seed fills it with a
// GitOps repository, package bot runs signalbox in it, package actions takes the jobs of workflows, and
// package browser opens pages in Chromium.
// [Proxy] and [Tap] stand between signalbox and a server to break the connection, to answer with errors or
// to count requests, and leave everybody else's connections alone.
//
// [Renovate] runs the program once on a repository, with a [StartRegistry] of the test instead of the
// internet.
//
// There is no kubelet and no kube-controller-manager: a Deployment never becomes ready (useful for a
// failing health check), a deleted namespace stays Terminating, and owner references delete nothing. Take
// a fresh name instead of deleting and creating again.
//
// The package's own tests start all of it and need the build tag e2e:
//
//	go test -tags e2e ./test/realserver/...
package realserver
