package precondition_test

import (
	"testing"

	"signalbox/internal/fact"
	"signalbox/internal/precondition"
)

func TestKured(t *testing.T) {
	query := fact.KuredQuery{Namespace: "kube-system", Name: "kured"}
	state := func(k fact.Kured) func(*world) {
		return func(w *world) {
			if k.Watch.State == "" {
				k.Watch.State = fact.WatchSynced
			}
			w.put(fact.Fact{Key: fact.KuredKey("prod", query), Kured: &k})
		}
	}
	const kind = `kured: {daemonSet: kube-system/kured}`
	required := fact.Kured{Required: []fact.NodeNote{{Name: "node-1", Since: since}}}
	runCases(t, nil, []kindCase{
		{name: "nothing", text: kind, world: state(fact.Kured{}), want: precondition.Met, reason: "no node of prod is rebooting"},
		{
			name: "the lock is held", text: kind, want: precondition.Unmet,
			world:  state(fact.Kured{Locks: []fact.KuredLock{{Node: "node-1", Since: since}}}),
			reason: "kured holds its lock for node-1 since 2026-09-07 02:44 UTC on prod",
		},
		{
			name: "several hold it", text: kind, want: precondition.Unmet,
			world:  state(fact.Kured{Locks: []fact.KuredLock{{Node: "node-1"}, {Node: "node-2"}}}),
			reason: "kured holds its lock for node-1, its lock for node-2 on prod",
		},
		{
			name: "the holder is gone", text: kind, want: precondition.Unmet,
			world:  state(fact.Kured{Locks: []fact.KuredLock{{Node: "node-9", Gone: true}}}),
			reason: "kured holds its lock for node-9, a node that is gone: nobody will release it on prod",
		},
		{
			name: "about to reboot", text: kind, want: precondition.Unmet,
			world:  state(fact.Kured{Rebooting: []fact.NodeNote{{Name: "node-1"}, {Name: "node-2"}}}),
			reason: "kured is about to reboot node-1, node-2 on prod",
		},
		{name: "a reboot is required", text: kind, world: state(required), want: precondition.Met, reason: "no node of prod is rebooting; node-1 needs a reboot"},
		{
			name: "a reboot is required, which is not allowed", text: `kured: {daemonSet: kube-system/kured, rebootRequired: deny}`, want: precondition.Unmet,
			world: state(required), reason: "kured will reboot node-1 on prod, as it is required",
		},
		{
			name: "a reboot would not be marked", text: `kured: {daemonSet: kube-system/kured, rebootRequired: deny}`, want: precondition.Unknown,
			world:  state(fact.Kured{Unmarked: true}),
			reason: "kured on prod does not mark the nodes that need a reboot, so nobody can tell whether one does: start it with --annotate-nodes, or write rebootRequired: allow",
		},
		{name: "a reboot would not be marked, and is allowed", text: kind, world: state(fact.Kured{Unmarked: true}), want: precondition.Met, reason: "no node of prod is rebooting"},
		{
			name: "the lock is elsewhere", text: kind, want: precondition.Unknown,
			world:  state(fact.Kured{Malformed: "kured keeps it in another annotation; write lockAnnotation: example.com/lock"}),
			reason: "the lock of kured on prod cannot be read: kured keeps it in another annotation; write lockAnnotation: example.com/lock",
		},
		{
			name: "no DaemonSet", text: kind, want: precondition.Unmet, world: state(fact.Kured{Missing: true}),
			reason: "DaemonSet kube-system/kured does not exist on prod, so nobody can tell whether a node is rebooting",
		},
		{
			name: "a lock that cannot be read", text: kind, want: precondition.Unknown, world: state(fact.Kured{Malformed: "unexpected end of JSON input"}),
			reason: "the lock of kured on prod cannot be read: unexpected end of JSON input",
		},
		{
			name: "forbidden", text: kind, want: precondition.Unknown,
			world:  state(fact.Kured{Watch: fact.Watch{State: fact.WatchFailing, Since: since, Message: "may not list nodes"}}),
			reason: "nodes and the DaemonSet kube-system/kured on prod cannot be watched since 2026-09-07 02:44 UTC: may not list nodes",
		},
		{
			name: "silent", text: kind, want: precondition.Unknown,
			world: func(w *world) {
				state(fact.Kured{})(w)
				w.put(fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{Silent: true, LastHeard: since}})
			},
			reason: "nothing has been heard from cluster prod since 2026-09-07 02:44 UTC",
		},
		{name: "not read yet", text: kind, want: precondition.Unknown, reason: "kured on prod has not been read yet"},
		{
			name: "another lock", text: `kured: {daemonSet: kube-system/kured, lockAnnotation: example.org/lock}`, want: precondition.Unknown,
			world: state(fact.Kured{}), reason: "kured on prod has not been read yet",
		},
	})
	problemCases(t, map[string][]string{
		`kured: {}`: {`p.yaml:1: kured.daemonSet: is missing (name it, such as kube-system/kured)`},
		`kured: {daemonSet: kured, rebootRequired: no}`: {
			`p.yaml:1: kured.daemonSet: "kured" does not name an object (write "namespace/name")`,
			`p.yaml:1: kured.rebootRequired: "no" is not known (known: allow, deny)`,
		},
	})
}
