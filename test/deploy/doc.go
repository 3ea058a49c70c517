// Package deploy installs signalbox on a real API server as docs/install.md says, and runs it
// there with the token and the rights of its own account.
//
// There is no kubelet and no container runtime: [node] does with a Deployment what they would do, as far as
// signalbox can tell. It makes a root folder of what the Containerfile copies, mounts what the pod
// asks for, and starts the program in it as the user of the pod, with the environment and the
// arguments of the pod. That needs root.
//
// The tests need the build tag e2e:
//
//	go test -tags "e2e goolm" ./test/deploy
package deploy
