package digest

import (
	"cmp"
	"fmt"
	"time"

	"signalbox/internal/fact"
)

// checks asks the checks of one section on a cluster.
func (f *finder) checks(cluster string, s Section) {
	if !f.wants(s) {
		return
	}
	for _, c := range f.in.Checks {
		if c.Section == s {
			f.check(cluster, c)
		}
	}
}

// check finds the objects that do not pass a check. Only the first of them are named
// in a fact; where there are more, nothing is known of those that are named no more.
func (f *finder) check(cluster string, c Check) {
	noun := cmp.Or(c.Noun, c.Query.Resource)
	blind := Blind{Section: c.Section, Cluster: cluster, Prefix: prefix(c.Section, cluster, c.Name)}
	held, ok := f.in.Facts.Lookup(fact.ObjectsKey(cluster, c.Query))
	switch {
	case !ok || held.Absent || held.Objects == nil && held.Problem == "":
		blind.Why = fmt.Sprintf("the list of %s on %s has not been read yet", c.Query.Resource, cluster)
	case held.Problem != "":
		blind.Why = fmt.Sprintf("%s on %s cannot be read: %s", c.Query.Resource, cluster, held.Problem)
	case held.Objects.Watch.State == fact.WatchNotInstalled:
		return
	default:
		blind.Why = blindBy(held.Objects.Watch, c.Query.Resource, cluster)
	}
	if blind.Why != "" {
		f.blind(blind)
		return
	}
	o := held.Objects
	if c.Good != "" && o.Total() > 0 {
		f.summary(c.Section, Summary{Cluster: cluster, Text: fmt.Sprintf("%d of %s on %s %s", o.Passing.Count, plural(o.Total(), noun), cluster, c.Good)})
	}
	f.set(cluster, c, noun, o.Failing, c.Severity, c.Text)
	f.set(cluster, c, noun, o.Unclear, Unclear, "cannot be judged")
	if named := len(o.Failing.Notes) + len(o.Unclear.Notes); named < o.Failing.Count+o.Unclear.Count {
		blind.Why = fmt.Sprintf("only %d of the %s on %s that do not pass %q are named", named, plural(o.Failing.Count+o.Unclear.Count, noun), cluster, c.Name)
		f.blind(blind)
	}
}

// set makes a finding of each object of a set that is named, and one of the others.
func (f *finder) set(cluster string, c Check, noun string, set fact.ObjectSet, s Severity, text string) {
	for _, n := range set.Notes {
		if f.in.Now.Sub(n.Since) < c.Grace {
			continue
		}
		found := Finding{
			ID: id(c.Section, cluster, c.Name, n.Namespace, n.Name), Section: c.Section, Cluster: cluster, Severity: s,
			Subject: noun + " " + n.Object(), Text: text, Since: n.Since,
		}
		if n.Why != "" {
			found.Text += ": " + n.Why
		}
		f.add(found)
	}
	if more := set.Count - len(set.Notes); more > 0 {
		f.add(Finding{
			ID: id(c.Section, cluster, c.Name, "", "", "more", s), Section: c.Section, Cluster: cluster, Severity: s,
			Subject: fmt.Sprintf("%d more of kind %s", more, noun), Text: "the same: " + text,
		})
	}
}

// storage finds what is the matter with what data lies on.
func (f *finder) storage(cluster string) { f.checks(cluster, Storage) }

// nodes finds what is the matter with the nodes of a cluster, and what kured does
// with them.
func (f *finder) nodes(cluster string) {
	f.checks(cluster, Nodes)
	if !f.wants(Nodes) {
		return
	}
	for _, k := range f.in.Kured {
		f.kured(cluster, k)
	}
}

// kuredPrefix begins the IDs of what is found by a kured.
func kuredPrefix(cluster string, k Kured) string {
	key := fact.KuredKey(cluster, k.Query)
	return prefix(Nodes, cluster, "kured", key.Namespace, key.Name)
}

// kured finds the nodes that need a reboot, and what holds one up.
func (f *finder) kured(cluster string, k Kured) {
	key := fact.KuredKey(cluster, k.Query)
	name := key.Object()
	blind := Blind{Section: Nodes, Cluster: cluster, Prefix: kuredPrefix(cluster, k)}
	held, ok := f.in.Facts.Lookup(key)
	switch {
	case !ok || held.Absent || held.Kured == nil && held.Problem == "":
		blind.Why = fmt.Sprintf("kured %s on %s has not been read yet", name, cluster)
	case held.Problem != "":
		blind.Why = fmt.Sprintf("kured %s on %s cannot be read: %s", name, cluster, held.Problem)
	default:
		blind.Why = blindBy(held.Kured.Watch, "nodes and the DaemonSet "+name, cluster)
	}
	now := held.Kured
	if blind.Why != "" {
		if !k.Assumed || now != nil && len(now.Locks)+len(now.Rebooting)+len(now.Required) > 0 {
			f.blind(blind)
		}
		return
	}
	found := func(severity Severity, fault, node, text string) Finding {
		return Finding{
			ID: id(Nodes, cluster, "kured", key.Namespace, key.Name, fault, node), Section: Nodes, Cluster: cluster, Severity: severity,
			Subject: "Node " + node, Text: text,
		}
	}
	switch {
	case now.Missing && k.Assumed:
		return
	case now.Missing:
		missing := found(Unclear, "missing", "", "does not exist, so nobody can tell whether a node reboots")
		missing.Subject = "DaemonSet " + name
		f.add(missing)
		return
	case now.Malformed != "":
		malformed := found(Unclear, "lock", "", "has a lock that cannot be read: "+now.Malformed)
		malformed.Subject = "DaemonSet " + name
		f.add(malformed)
	}
	locked := map[string]bool{}
	for _, l := range now.Locks {
		if locked[l.Node] {
			continue
		}
		locked[l.Node] = true
		f.add(f.lock(l, found))
	}
	for _, n := range now.Rebooting {
		if !locked[n.Name] {
			about := found(Notable, "reboot", n.Name, "is about to reboot")
			about.Since = n.Since
			f.add(about)
		}
	}
	for _, n := range now.Required {
		if !locked[n.Name] {
			needs := found(Notable, "reboot", n.Name, "needs a reboot")
			needs.Since = n.Since
			f.add(needs)
		}
	}
}

// longLock is how long a reboot may take.
const longLock = time.Hour

// lock is a holder of kured's lock.
func (f *finder) lock(l fact.KuredLock, found func(severity Severity, fault, node, text string) Finding) Finding {
	out := found(Notable, "reboot", l.Node, "is being rebooted: it holds the lock of kured")
	switch {
	case l.Gone:
		out = found(Broken, "lock", l.Node, "holds the lock of kured and does not exist: nobody will release it, and no other node reboots")
	case !l.Since.IsZero() && f.in.Now.Sub(l.Since) > longLock:
		out = found(Broken, "lock", l.Node, "holds the lock of kured for more than an hour: its reboot does not end, and no other node reboots")
	}
	out.Since = l.Since
	return out
}
