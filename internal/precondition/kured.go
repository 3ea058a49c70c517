package precondition

import (
	"fmt"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// Kured asks that no node is being rebooted by kured, on each target cluster:
// nobody holds its lock, and no node is marked by one that took it.
//
// Kured marks nodes only where it runs with --annotate-nodes. A node that is
// marked and has not taken the lock needs a reboot, and waits for it. That a node
// needs a reboot is also a metric of kured, which signalbox does not read.
type Kured struct {
	// DaemonSet is kured's, as "namespace/name".
	DaemonSet string `yaml:"daemonSet" json:"daemonSet" jsonschema:"required"`
	// LockAnnotation is where it keeps its lock, if it was told another place
	// than weave.works/kured-node-lock.
	LockAnnotation string `yaml:"lockAnnotation" json:"lockAnnotation,omitempty"`
	// RebootRequired says what a node means that only needs a reboot: "allow"
	// (the default) shows it, "deny" waits for the reboot, and for kured to mark
	// nodes.
	RebootRequired string `yaml:"rebootRequired" json:"rebootRequired,omitempty" jsonschema:"enum=allow,enum=deny"`
}

// Values of [Kured.RebootRequired].
const (
	rebootAllow = "allow"
	rebootDeny  = "deny"
)

// Validate implements [Kind].
func (c *Kured) Validate(v *Validator, at yamlfile.Path) {
	if c.DaemonSet == "" {
		v.Add(at.At("daemonSet"), "name it, such as kube-system/kured", "is missing")
	} else {
		v.object(at.At("daemonSet"), c.DaemonSet)
	}
	switch c.RebootRequired {
	case "":
		c.RebootRequired = rebootAllow
	case rebootAllow, rebootDeny:
	default:
		v.Add(at.At("rebootRequired"), yamlfile.Suggest(c.RebootRequired, []string{rebootAllow, rebootDeny}), "%q is not known", c.RebootRequired)
	}
	if strings.ContainsAny(c.LockAnnotation, " \t\r\n") {
		v.Add(at.At("lockAnnotation"), "", "%q is not the name of an annotation", c.LockAnnotation)
	}
}

// Evaluate implements [Kind].
func (c *Kured) Evaluate(e *Evaluation, clusters []string) []Check {
	return e.onEach(clusters, func(cluster string) Check { return c.on(e, cluster) })
}

func (c *Kured) on(e *Evaluation, cluster string) Check {
	namespace, name, _ := strings.Cut(c.DaemonSet, "/")
	w := fact.WishKured(cluster, fact.KuredQuery{Namespace: namespace, Name: name, Annotation: c.LockAnnotation})
	f, finding, ok := e.wished(w, "kured on "+cluster)
	if !ok {
		return finding
	}
	k := f.Kured
	if missed, ok := synced(k.Watch, "nodes and the DaemonSet "+c.DaemonSet, cluster); !ok {
		missed.ReadAt = f.SeenAt
		return missed
	}
	finding.Evidence = kuredEvidence(c, k)
	finding.Since = f.Since
	finding.State, finding.Reason = c.judge(k, cluster)
	return finding
}

func (c *Kured) judge(k *fact.Kured, cluster string) (State, string) {
	switch {
	case k.Missing:
		return Unmet, fmt.Sprintf("DaemonSet %s does not exist on %s, so nobody can tell whether a node is rebooting", c.DaemonSet, cluster)
	case k.Malformed != "":
		return Unknown, fmt.Sprintf("the lock of kured on %s cannot be read: %s", cluster, oneLine(k.Malformed))
	case len(k.Locks) > 0:
		return Unmet, fmt.Sprintf("kured holds %s on %s", lockText(k.Locks), cluster)
	case len(k.Rebooting) > 0:
		return Unmet, fmt.Sprintf("kured is about to reboot %s on %s", nodeNames(k.Rebooting), cluster)
	case len(k.Required) > 0 && c.RebootRequired == rebootDeny:
		return Unmet, fmt.Sprintf("kured will reboot %s on %s, as it is required", nodeNames(k.Required), cluster)
	case k.Unmarked && c.RebootRequired == rebootDeny:
		return Unknown, fmt.Sprintf("kured on %s does not mark the nodes that need a reboot, so nobody can tell whether one does: start it with --annotate-nodes, or write rebootRequired: allow", cluster)
	case len(k.Required) > 0:
		return Met, fmt.Sprintf("no node of %s is rebooting; %s needs a reboot", cluster, nodeNames(k.Required))
	default:
		return Met, fmt.Sprintf("no node of %s is rebooting", cluster)
	}
}

func lockText(locks []fact.KuredLock) string {
	var texts []string
	for _, l := range locks {
		text := "its lock for " + l.Node
		if !l.Since.IsZero() {
			text += " since " + stamp(l.Since)
		}
		if l.Gone {
			text += ", a node that is gone: nobody will release it"
		}
		texts = append(texts, text)
	}
	return listed(texts, len(texts))
}

func nodeNames(nodes []fact.NodeNote) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return listed(names, len(names))
}

func kuredEvidence(c *Kured, k *fact.Kured) []Evidence {
	var ev evidence
	ev.add("object", "DaemonSet "+c.DaemonSet)
	for _, l := range k.Locks {
		var parts evidence
		parts.addTime("since", l.Since)
		parts.addTime("ends by itself", l.Until)
		if l.Gone {
			parts.add("node", "the cluster has none of this name")
		}
		ev = append(ev, Evidence{Label: "lock", Value: l.Node, Parts: parts})
	}
	nodes := func(label string, notes []fact.NodeNote) {
		for _, n := range notes {
			text := n.Name
			if !n.Since.IsZero() {
				text += " since " + stamp(n.Since)
			}
			ev.add(label, text)
		}
	}
	nodes("about to reboot", k.Rebooting)
	nodes("needs a reboot", k.Required)
	return ev
}
