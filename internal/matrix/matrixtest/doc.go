// Package matrixtest is a homeserver in memory. It serves the part of Matrix's
// client-server API that the adapter and the people in tests use, without
// encryption.
//
// A [Server] is a handler: serve it with net/http/httptest. Its methods may be called
// from several goroutines.
package matrixtest
