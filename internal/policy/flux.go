package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// object names the object of a flux check.
type object struct {
	field, kind, ref string
}

// objects returns those that are given; a valid check has one.
func (c *FluxCheck) objects() []object {
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

func (c *FluxCheck) validate(v *validator, at yamlfile.Path) {
	given := c.objects()
	if len(given) != 1 {
		v.add(at, `give exactly one, such as kustomization: flux-system/apps`, "names %d objects", len(given))
		return
	}
	o := given[0]
	namespace, name, ok := strings.Cut(o.ref, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		v.add(at.At(o.field), `write "namespace/name"`, "%q does not name an object", o.ref)
	}
	switch {
	case c.Contains != "" && c.Contains != containsBase:
		v.add(at.At("contains"), "write contains: base", "%q is not known", c.Contains)
	case c.Contains != "" && o.kind != "Kustomization" && o.kind != "GitRepository":
		v.add(at.At("contains"), "ask it of a kustomization or a gitRepository", "a %s follows no branch of Git", o.kind)
	}
}

// evaluate implements check with the rules of Flux for what is ready: see
// https://fluxcd.io/flux/components/kustomize/kustomizations/#kustomization-status.
func (c *FluxCheck) evaluate(e *evaluation, cluster string, known *fact.Cluster) Check {
	o := c.objects()[0]
	if finding, ok := watched(o.kind, cluster, known); !ok {
		return finding
	}
	namespace, name, _ := strings.Cut(o.ref, "/")
	f, ok := e.fact(fact.Kube(cluster, o.kind, namespace, name))
	if !ok || f.Flux == nil {
		finding := Check{State: Unmet, Reason: fmt.Sprintf("%s %s does not exist on %s", o.kind, o.ref, cluster)}
		if ok || f.Absent {
			finding.Since = f.Since
		}
		return finding
	}
	finding := Check{State: Met, Since: f.Since, Evidence: fluxEvidence(o, f)}
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
		if state, why := c.containsBase(e, f.Flux); state != Met {
			finding.State, finding.Reason = state, subject+" "+why
			return finding
		}
	}
	if settled := f.Since.Add(c.Settle.D()); c.Settle > 0 && e.in.Now.Before(settled) {
		e.again(settled)
		finding.State = Unmet
		finding.Reason = fmt.Sprintf("%s has been Ready only since %s; it must stay so until %s", subject, stamp(f.Since), stamp(settled.Add(time.Minute-1)))
		return finding
	}
	finding.Reason = subject + " is Ready" + atRevision(f.Flux)
	return finding
}

// watched reports whether all objects of a kind are known, and if not, a
// finding that says why.
func watched(kind, cluster string, known *fact.Cluster) (Check, bool) {
	w, ok := known.Kinds[strings.ToLower(kind)]
	finding := Check{State: Unknown, Since: w.Since}
	switch {
	case !ok:
		finding.Reason = fmt.Sprintf("signalbox does not watch %s on %s", kind, cluster)
	case w.State == fact.WatchSynced:
		return Check{}, true
	case w.State == fact.WatchNotInstalled:
		finding.Reason = fmt.Sprintf("cluster %s has no %s: its CustomResourceDefinition is not installed", cluster, kind)
	case w.State == fact.WatchSyncing:
		finding.Reason = fmt.Sprintf("the list of %s objects on %s has not arrived yet", kind, cluster)
	default:
		finding.Reason = fmt.Sprintf("%s objects on %s cannot be watched since %s: %s", kind, cluster, stamp(w.Since), w.Message)
	}
	return finding, false
}

// readiness decides whether an object is ready, and says why not.
func readiness(f *fact.Flux) (ResultState, string) {
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

// containsBase decides whether the applied revision contains the tip of the
// base branch.
func (c *FluxCheck) containsBase(e *evaluation, f *fact.Flux) (ResultState, string) {
	base := e.in.Snapshot.Pull.Base
	rev := fact.ParseRevision(f.Applied)
	if rev.Commit == "" && f.Origin != "" {
		rev = fact.ParseRevision(f.Origin)
	}
	switch {
	case f.Applied == "":
		return Unmet, "has applied no revision yet"
	case rev.Commit == "":
		return Unknown, fmt.Sprintf("has applied %s, which names no commit", f.Applied)
	case rev.Branch != "" && rev.Branch != base.Name:
		return Unmet, fmt.Sprintf("follows %s, not %s", rev.Branch, base.Name)
	}
	switch answer, ok := e.contains(Ask{Applied: rev.Commit, Needed: base.SHA}); {
	case !ok:
		return Unknown, fmt.Sprintf("has applied %s, and it is not known whether that contains %s of %s", short(rev.Commit), short(base.SHA), base.Name)
	case answer == Foreign:
		return Unmet, fmt.Sprintf("has applied %s, which is no commit of this repository", short(rev.Commit))
	case answer == NotContained:
		return Unmet, fmt.Sprintf("has applied %s, which does not contain the tip %s of %s yet", short(rev.Commit), short(base.SHA), base.Name)
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

// maxReason bounds the message of a controller within a reason, in runes; the
// evidence has all of it.
const maxReason = 240

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

// oneLine folds the message of a controller into one line of bounded length.
func oneLine(message string) string {
	text := strings.Join(strings.Fields(message), " ")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason]) + "…"
	}
	return text
}

func fluxEvidence(o object, f fact.Fact) []Evidence {
	ev := []Evidence{{"object", o.kind + " " + o.ref}}
	add := func(label, value string) {
		if value != "" {
			ev = append(ev, Evidence{label, value})
		}
	}
	ready := f.Flux.Ready
	if ready.Status != "" {
		add("Ready", strings.TrimSuffix(ready.Status+" ("+ready.Reason+")", " ()"))
	}
	add("message", ready.Message)
	add("applied revision", f.Flux.Applied)
	if f.Flux.Attempted != f.Flux.Applied {
		add("attempted revision", f.Flux.Attempted)
	}
	add("since", stamp(f.Since))
	return ev
}

// short abbreviates a commit id for people.
func short(sha string) string {
	if len(sha) > 10 {
		return sha[:10]
	}
	return sha
}
