package digest

import (
	"slices"
	"time"

	"signalbox/internal/fact"
)

// Check asks on each cluster whether objects of some kind are as they should be: an
// object that does not pass the test of the query is a finding.
type Check struct {
	// Name is unique among the checks, and part of the IDs of its findings.
	Name string
	// Section is [Nodes] or [Storage].
	Section  Section
	Query    fact.ObjectsQuery
	Severity Severity
	// Noun is what an object is called, such as "Node"; empty takes the resource of the
	// query.
	Noun string
	// Text says what is the matter with an object that does not pass, such as "is not
	// ready". Where kstatus judges, because the query has no test, its words are added.
	Text string
	// Grace is how long an object may not pass before that is a finding.
	Grace time.Duration
	// Good, if set, is how the objects that pass are told in all, such as "are ready".
	Good string
}

// Kured is a kured that is looked for on each cluster.
type Kured struct {
	Query fact.KuredQuery
	// Assumed says that nobody named it: where there is none, that is no finding.
	Assumed bool
}

// The conditions of the checks, in CEL. A field that is missing is as good as one
// that says that all is well, except for the readiness of a node.
const (
	nodeReady   = `object.?status.conditions.orValue([]).exists(c, c.?type.orValue("") == "Ready" && c.?status.orValue("") == "True")`
	schedulable = `!object.?spec.unschedulable.orValue(false)`
	// Longhorn: a volume that nothing uses is detached, and its robustness unknown.
	notDegraded  = `object.?status.state.orValue("") != "attached" || object.?status.robustness.orValue("") != "degraded"`
	notFaulted   = `object.?status.robustness.orValue("") != "faulted"`
	scheduled    = `!object.?status.conditions.orValue([]).exists(c, c.?type.orValue("").lowerAscii() == "scheduled" && c.?status.orValue("") == "False")`
	claimNotLost = `object.?status.phase.orValue("") != "Lost"`
	claimBound   = `object.?status.phase.orValue("") != "Pending"`
	notFailed    = `object.?status.phase.orValue("") != "Failed"`
)

// condition is the test that a condition of a node is not True.
func condition(name string) string {
	return `!object.?status.conditions.orValue([]).exists(c, c.?type.orValue("") == "` + name + `" && c.?status.orValue("") == "True")`
}

// DefaultChecks are those that are asked where nothing else is configured. A kind
// that a cluster does not have is no finding.
func DefaultChecks() []Check {
	node := func(name, test string, s Severity, text, good string) Check {
		return Check{Name: name, Section: Nodes, Query: fact.ObjectsQuery{Resource: "nodes", Test: test}, Severity: s, Noun: "Node", Text: text, Good: good}
	}
	storage := func(name, resource, noun, test string, s Severity, text string) Check {
		return Check{Name: name, Section: Storage, Query: fact.ObjectsQuery{Resource: resource, Test: test}, Severity: s, Noun: noun, Text: text}
	}
	const (
		volumes, volume = "volumes.longhorn.io", "Longhorn volume"
		claims, claim   = "persistentvolumeclaims", "PersistentVolumeClaim"
	)
	all := []Check{
		node("ready", nodeReady, Broken, "is not ready", "are ready"),
		node("memory-pressure", condition("MemoryPressure"), Broken, "runs out of memory", ""),
		node("disk-pressure", condition("DiskPressure"), Broken, "runs out of disk", ""),
		node("pid-pressure", condition("PIDPressure"), Broken, "runs out of process ids", ""),
		node("network", condition("NetworkUnavailable"), Broken, "has no network", ""),
		node("cordoned", schedulable, Notable, "is cordoned", ""),
		storage("volume-faulted", volumes, volume, notFaulted, Broken, "is faulted: no replica of it is usable"),
		storage("volume-degraded", volumes, volume, notDegraded, Broken, "is degraded: a replica of it is missing"),
		storage("volume-scheduled", volumes, volume, scheduled, Broken, "cannot be scheduled: there is no place for a replica"),
		storage("claim-lost", claims, claim, claimNotLost, Broken, "is lost: its volume is gone"),
		storage("claim-pending", claims, claim, claimBound, Notable, "is pending: nothing has bound it to a volume"),
		storage("volume-failed", "persistentvolumes", "PersistentVolume", notFailed, Broken, "has failed: it could not be reclaimed"),
	}
	for i := range all {
		switch all[i].Name {
		case "volume-degraded":
			all[i].Good = "are not degraded"
		case "claim-lost":
			all[i].Good = "have their volume or wait for it"
		case "claim-pending":
			all[i].Grace = grace
		}
	}
	return all
}

// DefaultKured are the kureds that are looked for where none is configured: in the
// namespaces of its manifests and of its chart.
func DefaultKured() []Kured {
	return []Kured{
		{Query: fact.KuredQuery{Namespace: "kube-system", Name: "kured"}, Assumed: true},
		{Query: fact.KuredQuery{Namespace: "kured", Name: "kured"}, Assumed: true},
	}
}

// Wishes are the facts that [Find] reads of clusters, and that are collected only
// while they are wished for.
func Wishes(clusters []string, checks []Check, kured []Kured) []fact.Wish {
	var wishes []fact.Wish
	for _, cluster := range clusters {
		for _, c := range checks {
			wishes = append(wishes, fact.WishObjects(cluster, c.Query))
		}
		for _, k := range kured {
			wishes = append(wishes, fact.WishKured(cluster, k.Query))
		}
	}
	seen := map[fact.Key]bool{}
	return slices.DeleteFunc(wishes, func(w fact.Wish) bool {
		twice := seen[w.Key]
		seen[w.Key] = true
		return twice
	})
}
