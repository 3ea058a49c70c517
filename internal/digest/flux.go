package digest

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/fact"
)

// fluxKind is a kind of object of Flux that is watched.
type fluxKind struct {
	name, plural string
	// source says that it is a source of others.
	source bool
}

// lower is the kind as facts spell it.
func (k fluxKind) lower() string { return strings.ToLower(k.name) }

func fluxKinds() []fluxKind {
	return []fluxKind{
		{"GitRepository", "GitRepositories", true},
		{"OCIRepository", "OCIRepositories", true},
		{"Bucket", "Buckets", true},
		{"HelmRepository", "HelmRepositories", true},
		{"HelmChart", "HelmCharts", true},
		{"Kustomization", "Kustomizations", false},
		{"HelmRelease", "HelmReleases", false},
	}
}

// fluxObject is an object of Flux on one cluster.
type fluxObject struct {
	kind fluxKind
	fact.Fact
	// needs are the objects that it gets something from: its dependencies in their
	// order, then its source.
	needs []*fluxObject
	// missing is its source, if all of that kind are known and it is none of them.
	missing *fact.Ref
	// source is among needs, or nil.
	source *fluxObject

	// fault is what is the matter with it, or nil.
	fault *Finding
	// tier is how many objects, one after the other, it needs; 0 until it is asked.
	tier int
	// follows is what its fault follows from, or nil.
	follows *fluxObject
}

func (o *fluxObject) id(fault string) string {
	return id(Flux, o.Key.Scope, o.Key.Kind, o.Key.Namespace, o.Key.Name, fault)
}

// fluxName names an object within its cluster.
type fluxName struct{ kind, namespace, name string }

// fluxCluster are the objects of one cluster.
type fluxCluster struct {
	objects []*fluxObject
	named   map[fluxName]*fluxObject
	// known are the kinds of which every object is known.
	known map[string]bool
}

// flux finds what is the matter with the objects of Flux on a cluster.
func (f *finder) flux(cluster string) {
	if !f.wants(Flux) {
		return
	}
	c, ok := f.readFlux(cluster)
	if !ok {
		return
	}
	c.connect()
	total, ready, suspended := map[string]int{}, map[string]int{}, 0
	for _, o := range c.objects {
		if o.Flux.Suspended {
			suspended++
		} else {
			total[o.Key.Kind]++
			if o.ready() {
				ready[o.Key.Kind]++
			}
		}
		o.fault = f.fluxFault(o)
	}
	for _, root := range c.roots() {
		f.add(*root)
	}
	f.fluxSummary(cluster, total, ready, suspended)
}

// readFlux reads the objects of a cluster, of the kinds that are known completely.
// It tells of the others that nothing can be known.
func (f *finder) readFlux(cluster string) (c fluxCluster, ok bool) {
	watches, held := f.in.Facts.Lookup(fact.ClusterKey(cluster))
	if !held || watches.Cluster == nil {
		f.blind(Blind{Section: Flux, Cluster: cluster, Why: "it is not known yet what cluster " + cluster + " has"})
		return c, false
	}
	c.known, c.named = map[string]bool{}, map[fluxName]*fluxObject{}
	for _, kind := range fluxKinds() {
		w, watched := watches.Cluster.Kinds[kind.lower()]
		if w.State == fact.WatchNotInstalled {
			continue
		}
		why := blindBy(w, kind.plural, cluster)
		if !watched {
			why = fmt.Sprintf("signalbox does not watch %s on %s", kind.plural, cluster)
		}
		if why != "" {
			f.blind(Blind{Section: Flux, Cluster: cluster, Prefix: prefix(Flux, cluster, kind.lower()), Why: why})
			continue
		}
		c.known[kind.lower()] = true
		for _, held := range f.in.Facts.Select(fact.SourceKube, cluster, kind.lower()) {
			// A HelmRepository of type oci has no status: there is nothing to judge.
			if held.Absent || held.Flux == nil || kind.name == "HelmRepository" && held.Flux.Ready.Status == "" {
				if !held.Absent && held.Flux != nil {
					c.named[fluxName{held.Key.Kind, held.Key.Namespace, held.Key.Name}] = nil
				}
				continue
			}
			o := &fluxObject{kind: kind, Fact: held}
			c.objects = append(c.objects, o)
			c.named[fluxName{held.Key.Kind, held.Key.Namespace, held.Key.Name}] = o
		}
	}
	return c, true
}

// connect finds what each object needs.
func (c *fluxCluster) connect() {
	for _, o := range c.objects {
		for _, ref := range o.Flux.DependsOn {
			if need := c.named[fluxName{o.Key.Kind, ref.Namespace, ref.Name}]; need != nil {
				o.needs = append(o.needs, need)
			}
		}
	}
	for _, o := range c.objects {
		ref := o.Flux.Source
		if ref == nil {
			continue
		}
		kind := strings.ToLower(ref.Kind)
		source, there := c.named[fluxName{kind, ref.Namespace, ref.Name}]
		if !there && c.known[kind] {
			o.missing = ref
		}
		// Between a HelmRelease and the source of its chart is the HelmChart that Flux
		// makes of the two.
		if o.kind.name == "HelmRelease" && kind != "helmchart" {
			if chart := c.named[fluxName{"helmchart", ref.Namespace, o.Key.Namespace + "-" + o.Key.Name}]; chart != nil {
				if source != nil && chart.source == nil {
					chart.source = source
					chart.needs = append(chart.needs, source)
				}
				source = chart
			}
		}
		if source != nil {
			o.source = source
			o.needs = append(o.needs, source)
		}
	}
}

// ready reports whether an object is as it should be, its revision apart.
func (o *fluxObject) ready() bool {
	s := o.Flux
	return s.Ready.Status == fact.True && s.Generation == s.ObservedGeneration && !s.Stalled && !s.Deleting && o.Problem == "" && o.missing == nil
}

// fluxFault says what is the matter with an object, or is nil.
func (f *finder) fluxFault(o *fluxObject) *Finding {
	found := &Finding{
		Section: Flux, Cluster: o.Key.Scope, Since: o.Since,
		Subject: o.kind.name + " " + o.Key.Object(),
	}
	s, young := o.Flux, f.in.Now.Sub(o.Since) < grace
	// What is suspended while it does not work stays the same fault, so that nobody is
	// told that it recovered.
	fault := "not-ready"
	switch {
	case o.Problem != "":
		found.Severity, found.Text = Unclear, "cannot be read: "+o.Problem
	case s.Deleting && young:
		return nil
	case s.Deleting:
		fault, found.Severity = "deleting", Broken
		found.Text = "is being deleted, and something keeps it: look at its finalizers"
	case s.Suspended && s.Ready.Status == fact.False:
		found.Severity, found.Text = Notable, "is suspended, and was not ready"+because(s.Ready)
	case s.Suspended:
		fault, found.Severity, found.Text = "suspended", Notable, "is suspended"
	case o.missing != nil:
		found.Severity = Broken
		found.Text = fmt.Sprintf("has no source: %s %s/%s does not exist", o.missing.Kind, o.missing.Namespace, o.missing.Name)
		found.Since = notReadySince(o)
	case s.Ready.Status == fact.False:
		found.Severity, found.Text = Broken, "is not ready"+tried(s)+because(s.Ready)
		if s.Stalled {
			found.Text = "is stalled, and goes on only after a change" + tried(s) + because(s.Ready)
		}
	case s.Stalled:
		found.Severity, found.Text, found.Since = Broken, "is stalled, and goes on only after a change", time.Time{}
	case young && (s.Ready.Status != fact.True || s.Generation != s.ObservedGeneration):
		f.trying(o)
		return nil
	case s.Ready.Status == "":
		found.Severity, found.Text = Broken, "has never been reconciled"
	case s.Generation != s.ObservedGeneration:
		found.Severity, found.Text = Broken, "was changed, and its controller has not taken that up"
	case s.Ready.Status != fact.True:
		found.Severity, found.Text = Unclear, "has been reconciling for too long to tell"+because(s.Ready)
	default:
		since, behind := o.behind()
		if !behind || f.in.Now.Sub(since) < grace {
			if o.lags() {
				f.trying(o, "behind")
			}
			return nil
		}
		fault, found.Severity, found.Since = "behind", Broken, since
		found.Text = fmt.Sprintf("has applied %s, and its source %s %s has %s", short(s.Applied), o.source.kind.name, o.source.Key.Object(), short(o.source.Flux.Applied))
	}
	found.ID = o.id(fault)
	return found
}

// trying notes that a controller is at work on an object, so that nothing can be known
// of what was found there before, or of one fault.
func (f *finder) trying(o *fluxObject, fault ...any) {
	at := append([]any{o.Key.Scope, o.Key.Kind, o.Key.Namespace, o.Key.Name}, fault...)
	b := Blind{Section: Flux, Cluster: o.Key.Scope, Prefix: prefix(Flux, at...)}
	if len(fault) > 0 {
		b.Prefix = id(Flux, at...)
	}
	f.res.Trying = append(f.res.Trying, b)
}

// notReadySince is since when an object is not ready; zero for one that is.
func notReadySince(o *fluxObject) time.Time {
	if o.Flux.Ready.Status == fact.True {
		return time.Time{}
	}
	return o.Since
}

// behind reports whether a Kustomization that is ready has not applied what its
// source has, and since when that is certain. Since of a fact is about its
// readiness, and does not move with a revision; but a fact is written when
// something of it changes, so each side has been as it is since SeenAt at least.
// Where a source moves on more often than every few minutes, nothing is certain.
func (o *fluxObject) behind() (since time.Time, ok bool) {
	// What is tried now is under way, for as long as its own timeout allows.
	if !o.lags() || o.Flux.Attempted != "" && !differ(o.Flux.Attempted, o.source.Flux.Applied) {
		return since, false
	}
	since = o.SeenAt
	if o.source.SeenAt.After(since) {
		since = o.source.SeenAt
	}
	return since, true
}

// lags reports whether a Kustomization has not applied what its source has at this
// moment.
func (o *fluxObject) lags() bool {
	if o.kind.name != "Kustomization" || o.source == nil || o.source.Flux.Suspended {
		return false
	}
	has, want := o.Flux.Applied, o.source.Flux.Applied
	return has != "" && want != "" && differ(has, want)
}

// differ reports whether two revisions are certainly different ones.
func differ(a, b string) bool {
	ra, rb := fact.ParseRevision(a), fact.ParseRevision(b)
	switch {
	case ra.Commit != "" && rb.Commit != "":
		return ra.Commit != rb.Commit
	case ra.Commit != "" || rb.Commit != "":
		return false
	default:
		return a != b
	}
}

// because is the condition in words, after a colon.
func because(c fact.Condition) string {
	switch {
	case c.Message == "" && c.Reason == "":
		return ""
	case c.Message == "":
		return ": " + c.Reason
	case c.Reason == "":
		return ": " + c.Message
	default:
		return ": " + c.Reason + ": " + c.Message
	}
}

// tried names the commit that failed, if it is another than the applied one.
func tried(s *fact.Flux) string {
	if rev := fact.ParseRevision(s.Attempted); rev.Commit != "" && s.Attempted != s.Applied {
		return " at " + short(s.Attempted)
	}
	return ""
}

func (f *finder) fluxSummary(cluster string, total, ready map[string]int, suspended int) {
	var texts []string
	sources, sourcesReady, all := 0, 0, 0
	for _, k := range fluxKinds() {
		n, good := total[k.lower()], ready[k.lower()]
		switch {
		case k.source:
			sources, sourcesReady = sources+n, sourcesReady+good
		case n > 0:
			texts = append(texts, fmt.Sprintf("%d of %d %s", good, n, k.plural))
		}
		f.res.Counts.Ready += good
		f.res.Counts.Total += n
		all += n
	}
	if sources > 0 {
		texts = append(texts, fmt.Sprintf("%d of %d sources", sourcesReady, sources))
	}
	text := enumerate(texts) + " on " + cluster + " are ready"
	switch {
	case all == 0 && suspended == 0:
		return
	case all == 0:
		text = fmt.Sprintf("every object of Flux on %s is suspended (%d)", cluster, suspended)
	case suspended > 0:
		text += fmt.Sprintf("; %d more %s suspended", suspended, isAre(suspended))
	}
	f.summary(Flux, Summary{Cluster: cluster, Text: text})
}
