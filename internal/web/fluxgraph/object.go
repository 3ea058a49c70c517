package fluxgraph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/fact"
)

// State is how an object stands.
type State string

// The states, from the worst to the best.
const (
	// Stalled: the controller cannot go on without a change.
	Stalled State = "stalled"
	// NotReady: the controller failed, or has not taken up what was changed.
	NotReady State = "not-ready"
	// Missing: another object names it, and the cluster has no such object.
	Missing State = "missing"
	// Unknown: it cannot be known how it stands.
	Unknown State = "unknown"
	// Waiting: a dependency of it is not ready.
	Waiting State = "waiting"
	// Suspended: somebody told Flux to leave it alone.
	Suspended State = "suspended"
	// NoStatus: a HelmRepository that reports none, as one of type oci never does.
	NoStatus State = "no-status"
	// Ready: the controller says so of its latest generation.
	Ready State = "ready"
)

// States are all states, from the worst to the best.
func States() []State {
	return []State{Stalled, NotReady, Missing, Unknown, Waiting, Suspended, NoStatus, Ready}
}

// Word is the state in words.
func (s State) Word() string {
	switch s {
	case NotReady:
		return "not ready"
	case NoStatus:
		return "no status"
	default:
		return string(s)
	}
}

// Problem reports whether somebody should look at an object in this state.
func (s State) Problem() bool { return s != Ready && s != NoStatus }

func (s State) rank() int { return slices.Index(States(), s) }

// ID names an object on its cluster.
type ID struct {
	// Kind is in lower case, as facts spell it.
	Kind, Namespace, Name string
}

// String returns "kind/namespace/name", which [ParseID] reads.
func (id ID) String() string { return id.Kind + "/" + id.Namespace + "/" + id.Name }

// ParseID reads "kind/namespace/name".
func ParseID(s string) (ID, bool) {
	kind, rest, ok := strings.Cut(s, "/")
	namespace, name, ok2 := strings.Cut(rest, "/")
	return ID{strings.ToLower(kind), namespace, name}, ok && ok2 && kind != "" && name != ""
}

// Kinds are the kinds of Flux that are watched, in lower case, in the order in which
// pages show them.
func Kinds() []string {
	return []string{"kustomization", "helmrelease", "gitrepository", "ocirepository", "helmrepository", "helmchart", "bucket"}
}

// KindName returns a kind as Flux spells it, and one that is not of Flux as it is, by
// [Visible].
func KindName(kind string) string {
	switch kind {
	case "kustomization":
		return "Kustomization"
	case "helmrelease":
		return "HelmRelease"
	case "gitrepository":
		return "GitRepository"
	case "ocirepository":
		return "OCIRepository"
	case "helmrepository":
		return "HelmRepository"
	case "helmchart":
		return "HelmChart"
	case "bucket":
		return "Bucket"
	case "externalartifact":
		return "ExternalArtifact"
	default:
		return Visible(kind)
	}
}

func (id ID) applies() bool { return id.Kind == "kustomization" || id.Kind == "helmrelease" }

func compareIDs(a, b ID) int {
	return cmp.Or(
		cmp.Compare(kindRank(a.Kind), kindRank(b.Kind)),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

func kindRank(kind string) int {
	if i := slices.Index(Kinds(), kind); i >= 0 {
		return i
	}
	return len(Kinds())
}

// Object is one object. Its texts come from outside.
type Object struct {
	ID
	State State
	// Last is the state that was known last of an object whose state is Unknown
	// because nothing can be read of it now, or empty.
	Last State
	// Why says more than the state, in one line, or is empty.
	Why string
	// Since is when it came into its state; zero if that is not known.
	Since time.Time
	// Applied and Attempted are revisions as Flux spells them.
	Applied, Attempted string
	// Source is what it applies; nil for a source.
	Source    *ID
	DependsOn []ID
}

// Known is what is known of a cluster.
type Known struct {
	// Facts are those of the kinds of Flux; others and absent ones do not count.
	Facts []fact.Fact
	// Kinds are the states of the watches, by kind in lower case.
	Kinds map[string]fact.Watch
	// Silent says that nothing is heard from the cluster, since when it is not
	// zero.
	Silent      bool
	SilentSince time.Time
}

// Read makes objects of facts, sorted by kind, namespace and name. What an object
// names and the cluster does not have is an object too, whose state is Missing, or
// Unknown where its kind is not known completely.
func Read(k Known) []Object {
	var out []Object
	seen := map[ID]bool{}
	for _, f := range k.Facts {
		id := ID{f.Key.Kind, f.Key.Namespace, f.Key.Name}
		if f.Absent || f.Key.Source != fact.SourceKube || f.Flux == nil && f.Problem == "" || seen[id] {
			continue
		}
		seen[id] = true
		out = append(out, k.object(id, f))
	}
	for _, o := range out {
		for _, id := range o.needs() {
			if !seen[id] {
				seen[id] = true
				out = append(out, k.named(id, o.ID))
			}
		}
	}
	slices.SortFunc(out, func(a, b Object) int { return compareIDs(a.ID, b.ID) })
	return out
}

// needs are the objects that an object names.
func (o *Object) needs() []ID {
	if o.Source == nil {
		return o.DependsOn
	}
	return append([]ID{*o.Source}, o.DependsOn...)
}

func (k Known) object(id ID, f fact.Fact) Object {
	o := Object{ID: id, Since: f.Since}
	if f.Flux != nil {
		o.Applied, o.Attempted = f.Flux.Applied, f.Flux.Attempted
		if s := f.Flux.Source; s != nil {
			o.Source = &ID{strings.ToLower(s.Kind), s.Namespace, s.Name}
		}
		for _, r := range f.Flux.DependsOn {
			o.DependsOn = append(o.DependsOn, ID{cmp.Or(strings.ToLower(r.Kind), id.Kind), r.Namespace, r.Name})
		}
		o.State, o.Why = stateOf(id, f.Flux)
	}
	if why, since := k.blind(id.Kind); why != "" {
		o.Last, o.State, o.Why, o.Since = o.State, Unknown, why, since
	} else if f.Problem != "" {
		o.Last, o.State, o.Why = o.State, Unknown, oneLine(f.Problem)
	}
	return o
}

// blind says why nothing can be known of a kind now, and since when, or nothing.
func (k Known) blind(kind string) (why string, since time.Time) {
	if k.Silent {
		return "nothing is heard from the cluster", k.SilentSince
	}
	w, ok := k.Kinds[kind]
	switch {
	case !ok:
		return "signalbox does not watch this kind here", time.Time{}
	case w.State == fact.WatchSynced:
		return "", time.Time{}
	case w.State == fact.WatchSyncing:
		return "the list of this kind has not arrived yet", w.Since
	case w.State == fact.WatchNotInstalled:
		return "the cluster does not have this kind any more", w.Since
	default:
		return strings.TrimSuffix("this kind cannot be read: "+oneLine(w.Message), ": "), w.Since
	}
}

// named is an object that is only named by another.
func (k Known) named(id, by ID) Object {
	o := Object{ID: id, State: Missing, Why: fmt.Sprintf("%s %s/%s names it, and the cluster does not have it", KindName(by.Kind), Visible(by.Namespace), Visible(by.Name))}
	if why, since := k.blind(id.Kind); why != "" && k.Kinds[id.Kind].State != fact.WatchNotInstalled {
		o.State, o.Why, o.Since = Unknown, why, since
	}
	return o
}

// stateOf follows what the precondition flux takes for ready.
func stateOf(id ID, f *fact.Flux) (State, string) {
	text := conditionText(f.Ready)
	switch {
	case f.Deleting:
		return NotReady, "it is being deleted"
	case f.Suspended && f.Ready.Status == fact.True:
		return Suspended, ""
	case f.Suspended:
		return Suspended, text
	case f.Ready.Status == "" && id.Kind == "helmrepository":
		return NoStatus, "a HelmRepository of type oci reports none"
	case f.Ready.Status == "":
		return NotReady, "it has not been reconciled yet"
	case f.Stalled:
		return Stalled, text
	case f.Ready.Status == fact.False && f.Ready.Reason == "DependencyNotReady":
		return Waiting, text
	case f.Ready.Status == fact.False:
		return NotReady, text
	case f.Generation != f.ObservedGeneration:
		return NotReady, fmt.Sprintf("its latest change (generation %d) has not been taken up by the controller (at %d)", f.Generation, f.ObservedGeneration)
	case f.Ready.Status == fact.True:
		return Ready, text
	default:
		return Unknown, strings.TrimSuffix("it has been reconciling for too long to tell: "+text, ": ")
	}
}

func conditionText(c fact.Condition) string {
	text := oneLine(c.Message)
	switch {
	case text == "":
		return c.Reason
	case c.Reason == "":
		return text
	default:
		return c.Reason + ": " + text
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
