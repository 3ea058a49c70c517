package fact

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// ObjectsQuery asks which objects of one kind on a cluster pass a test.
type ObjectsQuery struct {
	// Resource names the kind as kubectl does: "nodes",
	// "volumes.longhorn.io", or with its version "volumes.v1beta2.longhorn.io".
	Resource string `json:"resource"`
	// Namespace is empty for objects of every namespace, or of none.
	Namespace string `json:"namespace,omitempty"`
	// Name is that of the only object that is meant, or empty.
	Name string `json:"name,omitempty"`
	// Selector is a label selector in the form of kubectl, or empty.
	Selector string `json:"selector,omitempty"`
	// Test is a CEL expression over the variable "object". If it is empty, an
	// object passes when it is Current by the rules of kstatus.
	Test string `json:"test,omitempty"`
}

// ObjectsKey returns the key of the [Objects] fact of a query.
func ObjectsKey(cluster string, q ObjectsQuery) Key {
	sum := sha256.Sum256([]byte(strings.Join([]string{q.Name, q.Selector, q.Test}, "\x00")))
	return Key{
		Source: SourceKube, Scope: cluster, Kind: KindObjects,
		Namespace: q.Namespace, Name: q.Resource + "/" + hex.EncodeToString(sum[:8]),
	}
}

// Objects is the answer to an [ObjectsQuery]. While Watch is not synced, the
// rest is what was known last, or nothing.
type Objects struct {
	Query ObjectsQuery `json:"query"`
	Watch Watch        `json:"watch"`
	// Version is the version of the API that was read, such as
	// "longhorn.io/v1beta2".
	Version string `json:"version,omitempty"`

	Passing ObjectSet `json:"passing,omitzero"`
	Failing ObjectSet `json:"failing,omitzero"`
	// Unclear are the objects on which the test could not be evaluated.
	Unclear ObjectSet `json:"unclear,omitzero"`
}

// Total is how many objects there are.
func (o *Objects) Total() int { return o.Passing.Count + o.Failing.Count + o.Unclear.Count }

// MaxNotes bounds the notes of an [ObjectSet].
const MaxNotes = 10

// ObjectSet is some objects, of which the first by namespace and name are named.
type ObjectSet struct {
	Count int          `json:"count"`
	Notes []ObjectNote `json:"notes,omitempty"`
}

// ObjectNote is one object.
type ObjectNote struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Why is in plain words and one line: what kstatus says, or why the test
	// could not be evaluated. It may be empty.
	Why string `json:"why,omitempty"`
	// Since is when the object was first seen to be in this set, or when it says
	// itself that it came into this state.
	Since time.Time `json:"since"`
}

// Object returns "namespace/name", or the name alone.
func (n ObjectNote) Object() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}
