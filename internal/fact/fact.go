package fact

import (
	"reflect"
	"strings"
	"time"
)

// Fact is what is known of one thing. At most one of the pointers is set; all
// are nil when the thing is absent, and may be when there is a problem.
type Fact struct {
	Key Key `json:"key"`
	// UID and Version order the values of one thing: for Kubernetes the
	// object's uid and resourceVersion. Both are empty where the writer is the
	// only one and the last value wins.
	UID     string `json:"uid,omitempty"`
	Version string `json:"version,omitempty"`
	// Since is when the thing came into the state that the fact describes, as
	// far back as signalbox can tell, in UTC.
	Since time.Time `json:"since"`
	// SeenAt is when the source was read for this value, in UTC.
	SeenAt time.Time `json:"seenAt"`
	// Absent says that the thing was there and is gone, or that its kind was
	// listed completely without it.
	Absent bool `json:"absent,omitempty"`
	// Problem says why the thing cannot be read now, in plain words; it is
	// unknown then, and the value is what was known last, or nil. Since is when
	// the problem began.
	Problem string `json:"problem,omitempty"`

	Flux      *Flux      `json:"flux,omitempty"`
	Cluster   *Cluster   `json:"cluster,omitempty"`
	Heartbeat *Heartbeat `json:"heartbeat,omitempty"`

	Protection *Protection `json:"protection,omitempty"`

	Objects  *Objects  `json:"objects,omitempty"`
	Kured    *Kured    `json:"kured,omitempty"`
	Renovate *Renovate `json:"renovate,omitempty"`
	Statuses *Statuses `json:"statuses,omitempty"`
	Runs     *Runs     `json:"runs,omitempty"`
	Actions  *Actions  `json:"actions,omitempty"`
	Pull     *Pull     `json:"pull,omitempty"`
}

// Same reports whether two facts say the same about the same thing. When it
// was read and at which version does not count; since when does.
func (f Fact) Same(o Fact) bool {
	f.Version, o.Version = "", ""
	f.SeenAt, o.SeenAt = time.Time{}, time.Time{}
	f.Since, o.Since = f.Since.UTC(), o.Since.UTC()
	return reflect.DeepEqual(f, o)
}

// Newer reports whether f may replace old: it has a version that is at least
// as new, or belongs to a different object of the same name, or one of the two
// has no version. Versions are decimal numbers of any length, as Kubernetes
// has them since 1.35 (KEP-5504).
//
// A different uid counts as newer although two uids have no order: the reader
// of the older object will see the newer one next, and the last word is right.
func (f Fact) Newer(old Fact) bool {
	if f.Version == "" || old.Version == "" || f.UID != old.UID {
		return true
	}
	return compareVersions(f.Version, old.Version) >= 0
}

// Replaces reports whether f is to be held instead of old: it says something else and
// is not older.
func (f Fact) Replaces(old Fact) bool { return !f.Same(old) && f.Newer(old) }

// ReplacesAfterList is Replaces for what the first complete list of a source has shown,
// which wins whatever the versions. An API server that was restored from a backup counts
// its versions from lower again; then the held version is lowered too, or what comes
// next would look old.
func (f Fact) ReplacesAfterList(old Fact) bool { return !f.Same(old) || !f.Newer(old) }

// compareVersions compares decimal numbers of any length, and anything else as
// text.
func compareVersions(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) && digits(a) && digits(b) {
		if len(a) < len(b) {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

func digits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// Ref names an object on the same cluster.
type Ref struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Flux is the state of an object of a Flux API group, such as a Kustomization
// or a GitRepository.
type Flux struct {
	Generation         int64 `json:"generation"`
	ObservedGeneration int64 `json:"observedGeneration"`
	Suspended          bool  `json:"suspended,omitempty"`
	Deleting           bool  `json:"deleting,omitempty"`
	// Ready is the settled Ready condition. While the controller passes through
	// Progressing with the generation and the applied revision unchanged, the
	// last settled state stands, up to a limit; after that Ready is Unknown
	// with the reason of the controller.
	Ready Condition `json:"ready"`
	// Stalled is set when the controller says that it cannot go on without a
	// change.
	Stalled bool `json:"stalled,omitempty"`
	// Applied is the revision last applied with success, in the spelling of
	// Flux; Attempted is the one last tried. For a source, Applied is the
	// revision of its artifact. See [ParseRevision].
	Applied   string `json:"applied,omitempty"`
	Attempted string `json:"attempted,omitempty"`
	// Origin is the commit that an OCI artifact was made from, if known.
	Origin string `json:"origin,omitempty"`
	// Source is the source object; nil for a source.
	Source *Ref `json:"source,omitempty"`
	// Path is spec.path of a Kustomization.
	Path string `json:"path,omitempty"`
	// DependsOn are the objects of the same kind that it waits for.
	DependsOn []Ref `json:"dependsOn,omitempty"`
}

// Status values of a condition, as in Kubernetes.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// Condition is a Kubernetes condition. An empty Status means that the object
// has no such condition.
type Condition struct {
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Cluster says which kinds of objects of a cluster are known completely.
type Cluster struct {
	// Kinds maps a lower-case kind to the state of its watch. A kind that is
	// not in the map is not watched.
	Kinds map[string]Watch `json:"kinds,omitempty"`
}

// Heartbeat says whether a cluster is heard from. Every fact of a silent
// cluster is unknown.
type Heartbeat struct {
	// Silent is set when nothing was heard from the cluster for longer than the
	// configured time.
	Silent bool `json:"silent,omitempty"`
	// LastHeard is when the cluster was last heard from before it fell silent;
	// zero while it is not silent, or if it was never heard from.
	LastHeard time.Time `json:"lastHeard,omitzero"`
}

// Protection says whether what signalbox posts can be gone round on a branch.
type Protection struct {
	// Gaps are the ways round, in plain words, or none.
	Gaps []string `json:"gaps,omitempty"`
}

// WatchState is how far a kind of object is known.
type WatchState string

// The states of a watch.
const (
	// WatchSynced means that all objects of the kind are known.
	WatchSynced WatchState = "synced"
	// WatchSyncing means that the first list has not arrived.
	WatchSyncing WatchState = "syncing"
	// WatchNotInstalled means that the cluster has no such kind.
	WatchNotInstalled WatchState = "not-installed"
	// WatchFailing means that list or watch fails; see the message.
	WatchFailing WatchState = "failing"
)

// Watch is the state of the watch on one kind.
type Watch struct {
	State WatchState `json:"state"`
	Since time.Time  `json:"since"`
	// Message says what is wrong, in one line, or is empty.
	Message string `json:"message,omitempty"`
}
