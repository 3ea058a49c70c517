// Package api serves what the pages show as JSON, for scripts and dashboards:
// everything under /api/v1/. It only reads; deciding needs a person, and a token is
// none.
//
// What it answers with are types of this package, which stay as they are when those
// inside signalbox change: a field may be added, and none is renamed, taken out or
// given another meaning within a version. What they are is in
// deploy/schema/openapi.yaml, made by a test, and served at /api/v1/openapi.yaml.
package api
