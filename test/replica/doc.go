// Package replica tests several signalboxes on one NATS cluster of three servers: that every effect comes
// once, that nothing is lost when a process, a server or the network between them goes, and how long it
// takes until all goes on. The tests need the build tag e2e.
package replica
