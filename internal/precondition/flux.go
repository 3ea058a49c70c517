package precondition

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// Flux asks that one object of Flux is Ready: not being deleted, not suspended,
// its latest generation observed, and its Ready condition True. Exactly one kind
// of object is given, as "namespace/name".
//
// An object that passes through Progressing, as every healthy one does at each
// interval, stays what it was before, up to its own timeout. An object that does
// not exist is unmet. A cluster that is not heard from, a kind that is not
// installed and a right that is missing are unknown.
type Flux struct {
	// Kustomization is one of kustomize.toolkit.fluxcd.io.
	Kustomization string `yaml:"kustomization" json:"kustomization,omitempty"`
	// HelmRelease is one of helm.toolkit.fluxcd.io.
	HelmRelease string `yaml:"helmRelease" json:"helmRelease,omitempty"`
	// GitRepository is one of source.toolkit.fluxcd.io, as are all that follow.
	GitRepository string `yaml:"gitRepository" json:"gitRepository,omitempty"`
	// OCIRepository is a source of artifacts in a registry.
	OCIRepository string `yaml:"ociRepository" json:"ociRepository,omitempty"`
	// HelmRepository is a source of charts. One of type oci has no status, and is
	// never Ready.
	HelmRepository string `yaml:"helmRepository" json:"helmRepository,omitempty"`
	// HelmChart is a chart of a source.
	HelmChart string `yaml:"helmChart" json:"helmChart,omitempty"`
	// Bucket is a source in an object store.
	Bucket string `yaml:"bucket" json:"bucket,omitempty"`
	// Contains asks that the applied revision contains a commit, by ancestry and
	// not by time: "base" is the tip of the base branch. It needs a kustomization
	// or a gitRepository.
	Contains string `yaml:"contains" json:"contains,omitempty" jsonschema:"enum=base"`
	// Settle is how long the object must have been Ready without a break.
	Settle yamlfile.Duration `yaml:"settle" json:"settle,omitempty"`
}

// containsBase is the value of [Flux.Contains].
const containsBase = "base"

// Object returns the object that a valid check asks about.
func (c *Flux) Object() (kind, namespace, name string) {
	o := c.objects()[0]
	namespace, name, _ = strings.Cut(o.ref, "/")
	return o.kind, namespace, name
}

// object names the object of a flux check.
type object struct {
	field, kind, ref string
}

// objects returns those that are given; a valid check has one.
func (c *Flux) objects() []object {
	var given []object
	for _, o := range []object{
		{"kustomization", "Kustomization", c.Kustomization},
		{"helmRelease", "HelmRelease", c.HelmRelease},
		{"gitRepository", "GitRepository", c.GitRepository},
		{"ociRepository", "OCIRepository", c.OCIRepository},
		{"helmRepository", "HelmRepository", c.HelmRepository},
		{"helmChart", "HelmChart", c.HelmChart},
		{"bucket", "Bucket", c.Bucket},
	} {
		if o.ref != "" {
			given = append(given, o)
		}
	}
	return given
}

// Validate implements [Kind].
func (c *Flux) Validate(v *Validator, at yamlfile.Path) {
	given := c.objects()
	if len(given) != 1 {
		v.Add(at, `give exactly one, such as kustomization: flux-system/apps`, "names %d objects", len(given))
		return
	}
	o := given[0]
	namespace, name, ok := strings.Cut(o.ref, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		v.Add(at.At(o.field), `write "namespace/name"`, "%q does not name an object", o.ref)
	}
	switch {
	case c.Contains != "" && c.Contains != containsBase:
		v.Add(at.At("contains"), "write contains: base", "%q is not known", c.Contains)
	case c.Contains != "" && o.kind != "Kustomization" && o.kind != "GitRepository":
		v.Add(at.At("contains"), "ask it of a kustomization or a gitRepository", "a %s follows no branch of Git", o.kind)
	}
}

// Evaluate implements [Kind] with the rules of Flux for what is ready: see
// https://fluxcd.io/flux/components/kustomize/kustomizations/#kustomization-status.
func (c *Flux) Evaluate(e *Evaluation, clusters []string) []Check {
	return e.onEach(clusters, func(cluster string) Check { return c.on(e, cluster) })
}

func (c *Flux) on(e *Evaluation, cluster string) Check {
	o := c.objects()[0]
	if finding, ok := e.watched(o.kind, cluster); !ok {
		return finding
	}
	namespace, name, _ := strings.Cut(o.ref, "/")
	f, ok := e.Fact(fact.Kube(cluster, o.kind, namespace, name))
	if !ok || f.Flux == nil {
		finding := Check{State: Unmet, Reason: fmt.Sprintf("%s %s does not exist on %s", o.kind, o.ref, cluster)}
		if ok || f.Absent {
			finding.Since = f.Since
		}
		return finding
	}
	finding := Check{State: Met, Since: f.Since, ReadAt: f.SeenAt, Evidence: fluxEvidence(o, f)}
	subject := fmt.Sprintf("%s %s on %s", o.kind, o.ref, cluster)
	if state, why := readiness(f.Flux); state != Met {
		finding.State, finding.Reason = state, subject+" "+why
		if f.Flux.Ready.Status == fact.False && !f.Flux.Suspended && !f.Flux.Deleting {
			// The words of the controller are what a person needs first.
			finding.Brief = fmt.Sprintf("%s on %s is not Ready: %s", name, cluster, cmp.Or(oneLine(f.Flux.Ready.Message), f.Flux.Ready.Reason))
		}
		return finding
	}
	if c.Contains == containsBase {
		base := e.Snapshot.Pull.Base
		if state, why := e.applied(f.Flux, base.Name, base.SHA, "the tip "+short(base.SHA)); state != Met {
			finding.State, finding.Reason = state, subject+" "+why
			return finding
		}
	}
	if settled := f.Since.Add(c.Settle.D()); c.Settle > 0 && e.Now.Before(settled) {
		e.Again(settled)
		finding.State = Unmet
		finding.Reason = fmt.Sprintf("%s has been Ready only since %s; it must stay so until %s", subject, stamp(f.Since), stamp(settled.Add(time.Minute-1)))
		return finding
	}
	finding.Reason = subject + " is Ready" + atRevision(f.Flux)
	return finding
}

// watched reports whether all objects of a kind of Flux are known, and if not,
// a finding that says why.
func (e *Evaluation) watched(kind, cluster string) (Check, bool) {
	known, ok := e.Fact(fact.ClusterKey(cluster))
	if !ok || known.Cluster == nil {
		return Check{State: Unknown, Reason: fmt.Sprintf("it is not known yet what cluster %s has", cluster)}, false
	}
	w, ok := known.Cluster.Kinds[strings.ToLower(kind)]
	switch {
	case !ok:
		return Check{State: Unknown, Reason: fmt.Sprintf("signalbox does not watch %s on %s", kind, cluster)}, false
	case w.State == fact.WatchNotInstalled:
		return Check{
			State: Unknown, Since: w.Since,
			Reason: fmt.Sprintf("cluster %s has no %s: its CustomResourceDefinition is not installed", cluster, kind),
		}, false
	}
	return synced(w, kind+" objects", cluster)
}

// readiness decides whether an object is ready, and says why not.
func readiness(f *fact.Flux) (State, string) {
	switch {
	case f.Deleting:
		return Unmet, "is being deleted"
	case f.Suspended:
		return Unmet, "is suspended"
	case f.Ready.Status == "":
		return Unmet, "has not been reconciled yet"
	case f.Ready.Status == fact.False:
		return Unmet, "is not Ready" + atRevision(f) + tried(f) + ": " + conditionText(f.Ready)
	case f.Generation != f.ObservedGeneration:
		return Unmet, fmt.Sprintf("is not Ready: its latest change (generation %d) has not been taken up by the controller (at %d)", f.Generation, f.ObservedGeneration)
	case f.Ready.Status == fact.True:
		return Met, ""
	default:
		return Unknown, "has been reconciling for too long to tell: " + conditionText(f.Ready)
	}
}

// applied decides whether the applied revision of an object that follows a
// branch contains a commit of it. Named says what the commit is.
func (e *Evaluation) applied(f *fact.Flux, branch, commit, named string) (State, string) {
	return e.appliedOf(f, Ask{Needed: commit}, branch, named)
}

// appliedOf is applied for a question that names its repository.
func (e *Evaluation) appliedOf(f *fact.Flux, ask Ask, branch, named string) (State, string) {
	rev := fact.ParseRevision(f.Applied)
	if rev.Commit == "" && f.Origin != "" {
		rev = fact.ParseRevision(f.Origin)
	}
	switch {
	case f.Applied == "":
		return Unmet, "has applied no revision yet"
	case rev.Commit == "":
		return Unknown, fmt.Sprintf("has applied %s, which names no commit", f.Applied)
	case rev.Branch != "" && rev.Branch != branch:
		return Unmet, fmt.Sprintf("follows %s, not %s", rev.Branch, branch)
	}
	ask.Applied = rev.Commit
	switch answer, ok := e.contains(ask); {
	case !ok:
		return Unknown, fmt.Sprintf("has applied %s, and it is not known whether that contains %s of %s", short(rev.Commit), short(ask.Needed), branch)
	case answer == Foreign:
		return Unmet, fmt.Sprintf("has applied %s, which is no commit of this repository", short(rev.Commit))
	case answer == NotContained:
		return Unmet, fmt.Sprintf("has applied %s, which does not contain %s of %s yet", short(rev.Commit), named, branch)
	}
	return Met, ""
}

// atRevision names the commit that was applied last.
func atRevision(f *fact.Flux) string {
	if rev := fact.ParseRevision(f.Applied); rev.Commit != "" {
		return " at " + short(rev.Commit)
	}
	return ""
}

// tried names the commit that failed, if it is another than the applied one.
func tried(f *fact.Flux) string {
	rev := fact.ParseRevision(f.Attempted)
	if rev.Commit == "" || f.Attempted == f.Applied {
		return ""
	}
	return " (tried " + short(rev.Commit) + ")"
}

// conditionText is the condition in one line.
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

func fluxEvidence(o object, f fact.Fact) []Evidence {
	var ev evidence
	ev.add("object", o.kind+" "+o.ref)
	ready := f.Flux.Ready
	if ready.Status != "" {
		ev.add("Ready", strings.TrimSuffix(ready.Status+" ("+ready.Reason+")", " ()"))
	}
	ev.add("message", ready.Message)
	ev.add("applied revision", f.Flux.Applied)
	if f.Flux.Attempted != f.Flux.Applied {
		ev.add("attempted revision", f.Flux.Attempted)
	}
	return ev
}
