package fact

import (
	"cmp"
	"strings"
	"time"
)

// DefaultKuredLock is the annotation in which kured keeps its lock, if its
// settings name no other.
const DefaultKuredLock = "weave.works/kured-node-lock"

// KuredQuery asks about the reboots that a kured carries out.
type KuredQuery struct {
	// Namespace and Name are those of its DaemonSet.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Annotation is where it keeps its lock; empty for [DefaultKuredLock].
	Annotation string `json:"annotation,omitempty"`
}

// KuredKey returns the key of the [Kured] fact of a query.
func KuredKey(cluster string, q KuredQuery) Key {
	name := strings.NewReplacer("%", "%25", "@", "%40").Replace(q.Name)
	if a := cmp.Or(q.Annotation, DefaultKuredLock); a != DefaultKuredLock {
		name += "@" + a
	}
	return Key{Source: SourceKube, Scope: cluster, Kind: KindKured, Namespace: q.Namespace, Name: name}
}

// Kured is what kured is doing on a cluster. While Watch is not synced, the
// rest is what was known last, or nothing.
type Kured struct {
	// Watch is the worse of the watches on the DaemonSet and on the nodes.
	Watch Watch `json:"watch"`
	// Missing says that there is no such DaemonSet.
	Missing bool `json:"missing,omitempty"`
	// Malformed says why the lock cannot be read, or that it is elsewhere and
	// what to write, or is empty.
	Malformed string `json:"malformed,omitempty"`
	// Locks are the holders of the lock that have not expired, by node.
	Locks []KuredLock `json:"locks,omitempty"`
	// Rebooting are the nodes that kured has marked and that took its lock, also
	// if that has expired; all that it has marked, while the lock cannot be read.
	Rebooting []NodeNote `json:"rebooting,omitempty"`
	// Required are the others that kured has marked: they need a reboot, and wait
	// for it. It marks none unless it was told to annotate nodes.
	Required []NodeNote `json:"required,omitempty"`
	// Unmarked says that kured was not told to annotate nodes, by its arguments.
	Unmarked bool `json:"unmarked,omitempty"`
}

// KuredLock is one holder of the lock.
type KuredLock struct {
	Node string `json:"node"`
	// Since is when it took the lock; zero if the lock does not say.
	Since time.Time `json:"since,omitzero"`
	// Until is when the lock ends by itself; zero for never.
	Until time.Time `json:"until,omitzero"`
	// Gone says that the cluster has no such node: nobody will release the lock.
	Gone bool `json:"gone,omitempty"`
}

// NodeNote is one node and since when something holds for it, zero if that is
// not known.
type NodeNote struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since,omitzero"`
}
