// Package digest says how things stand, from facts that are already there: what
// is not as it should be on the clusters, in the pipelines and at the gate
// itself, since when, and what changed since the last time it was said.
//
// It is pure: [Find] makes findings of facts, and [Make] a report of findings
// and the report before.
package digest
