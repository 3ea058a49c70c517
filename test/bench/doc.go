// Package bench measures signalbox between the real servers. Its benchmarks
// have the build tag e2e; "make bench-servers" runs them.
package bench
