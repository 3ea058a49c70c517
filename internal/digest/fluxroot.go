package digest

import (
	"cmp"
	"regexp"
	"slices"

	"signalbox/internal/fact"
)

// roots returns the faults of a cluster: each once, and those that follow from
// another under the one that they all come from. Causes are in the order of
// dependencies.
func (c *fluxCluster) roots() []*Finding {
	var faulty []*fluxObject
	for _, o := range c.objects {
		if o.fault != nil {
			o.follows = o.cause()
			faulty = append(faulty, o)
		}
	}
	if len(faulty) == 0 {
		return nil
	}
	for _, o := range faulty {
		o.depth()
	}
	order(faulty)
	breakCircles(faulty)
	var out []*Finding
	for _, o := range faulty {
		if o.follows == nil {
			out = append(out, o.fault)
		}
	}
	for _, o := range faulty {
		if o.follows == nil {
			continue
		}
		root := o.root()
		root.fault.Under = append(root.fault.Under, o.fault.clean())
	}
	return out
}

// order sorts by tier, then by kind and name.
func order(objects []*fluxObject) {
	slices.SortFunc(objects, func(a, b *fluxObject) int {
		return cmp.Or(
			cmp.Compare(a.tier, b.tier), cmp.Compare(a.Key.Kind, b.Key.Kind),
			cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name),
		)
	})
}

// underWay is the tier of an object while it is being found.
const underWay = -1

// depth finds the tier of an object: 1 for one that needs no other. In a circle,
// what is needed again counts for nothing.
func (o *fluxObject) depth() int {
	switch o.tier {
	case 0:
	case underWay:
		return 0
	default:
		return o.tier
	}
	o.tier = underWay
	deepest := 0
	for _, need := range o.needs {
		deepest = max(deepest, need.depth())
	}
	o.tier = deepest + 1
	return o.tier
}

// breakCircles makes the first object of each circle of faults the cause of the
// others in it.
func breakCircles(faulty []*fluxObject) {
	// walk is the number of the walk that came by an object first.
	walk := map[*fluxObject]int{}
	for i, o := range faulty {
		at := o
		for ; at != nil && walk[at] == 0; at = at.follows {
			walk[at] = i + 1
		}
		if at == nil || walk[at] != i+1 {
			continue
		}
		circle := []*fluxObject{at}
		for p := at.follows; p != at; p = p.follows {
			circle = append(circle, p)
		}
		order(circle)
		first := circle[0]
		first.follows = nil
		first.fault.Text = "waits in a circle of dependencies" + because(first.Flux.Ready)
	}
}

// root returns the object from whose fault that of an object follows in the end.
// There is no circle any more.
func (o *fluxObject) root() *fluxObject {
	if o.follows == nil {
		return o
	}
	o.follows = o.follows.root()
	return o.follows
}

const reasonDependency = "DependencyNotReady"

// sourceReasons are those with which the controllers of Flux blame a source.
// ArtifactFailed is not among them: it is also of a path that is not in the
// artifact, and only the message tells.
var sourceReasons = map[string]bool{
	"SourceNotReady": true, "SourceUnavailable": true, "NoSourceArtifact": true,
}

var (
	// blamedObject is how the controllers name the dependency that they wait for.
	blamedObject = regexp.MustCompile(`dependency '([^'/]+)/([^']+)'`)
	blamesSource = regexp.MustCompile(`(?i)\bsource\b|\bHelmChart\b|\bartifact not found\b|\bno artifact\b`)
)

// cause returns what the fault of an object follows from, by what its own condition
// says, or nil.
func (o *fluxObject) cause() *fluxObject {
	ready := o.Flux.Ready
	if o.Flux.Suspended || o.Flux.Deleting || o.missing != nil || ready.Status == fact.True {
		return nil
	}
	if ready.Reason == reasonDependency {
		return o.blamed()
	}
	if o.source != nil && o.source.fault != nil && (sourceReasons[ready.Reason] || blamesSource.MatchString(ready.Message)) {
		return o.source
	}
	return nil
}

// blamed returns the dependency that keeps an object waiting: the one that its
// message names, or the first that has a fault if that one has none any more. It is
// nil if the message names one that does not exist.
func (o *fluxObject) blamed() *fluxObject {
	var first *fluxObject
	named := blamedObject.FindStringSubmatch(o.Flux.Ready.Message)
	exists := named == nil
	for _, need := range o.needs {
		if need == o.source || need == o {
			continue
		}
		if named != nil && need.Key.Namespace == named[1] && need.Key.Name == named[2] {
			if exists = true; need.fault != nil {
				return need
			}
		}
		if first == nil && need.fault != nil {
			first = need
		}
	}
	if !exists {
		return nil
	}
	return first
}
