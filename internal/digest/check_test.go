package digest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/digest"
	"signalbox/internal/expression"
	"signalbox/internal/fact"
)

// Objects as the API servers give them, as far as they matter, and the default checks
// that they do not pass.
func TestDefaultChecks(t *testing.T) {
	const (
		node   = "nodes"
		volume = "volumes.longhorn.io"
		claim  = "persistentvolumeclaims"
		pv     = "persistentvolumes"
	)
	for name, tt := range map[string]struct {
		resource, object string
		want             []string
	}{
		"node": {node, `{kind: Node, spec: {podCIDR: 10.42.0.0/24}, status: {conditions: [
			{type: MemoryPressure, status: "False"}, {type: DiskPressure, status: "False"}, {type: PIDPressure, status: "False"},
			{type: Ready, status: "True", reason: KubeletReady}]}}`, nil},
		"node that is lost": {node, `{kind: Node, spec: {taints: [{key: node.kubernetes.io/unreachable}]}, status: {conditions: [
			{type: MemoryPressure, status: Unknown}, {type: DiskPressure, status: Unknown}, {type: PIDPressure, status: Unknown},
			{type: Ready, status: Unknown, reason: NodeStatusUnknown}]}}`, []string{"ready"}},
		"node that is cordoned and full": {node, `{kind: Node, spec: {unschedulable: true}, status: {conditions: [
			{type: DiskPressure, status: "True"}, {type: Ready, status: "False"}]}}`, []string{"cordoned", "disk-pressure", "ready"}},
		"node under pressure": {
			node, `{kind: Node, spec: {unschedulable: false}, status: {conditions: [
			{type: NetworkUnavailable, status: "True"}, {type: MemoryPressure, status: "True"}, {type: PIDPressure, status: "True"}, {type: Ready, status: "True"}]}}`,
			[]string{"memory-pressure", "network", "pid-pressure"},
		},
		"node without conditions": {node, `{kind: Node, metadata: {name: n}}`, []string{"ready"}},
		"node with odd ones":      {node, `{kind: Node, status: {conditions: [{lastHeartbeatTime: x}, {type: Ready}]}}`, []string{"ready"}},
		"volume": {volume, `{kind: Volume, status: {state: attached, robustness: healthy, conditions: [
			{type: Scheduled, status: "True"}, {type: WaitForBackingImage, status: "False"}, {type: TooManySnapshots, status: "False"}, {type: Restore, status: "False"}]}}`, nil},
		"volume that nothing uses": {volume, `{kind: Volume, status: {state: detached, robustness: unknown, conditions: [{type: Scheduled, status: "True"}]}}`, nil},
		"volume short of a replica": {volume, `{kind: Volume, status: {state: attached, robustness: degraded, conditions: [
			{type: Scheduled, status: "False", reason: ReplicaSchedulingFailure, message: insufficient storage}]}}`, []string{"volume-degraded", "volume-scheduled"}},
		"volume that attaches":          {volume, `{kind: Volume, status: {state: attaching, robustness: degraded}}`, nil},
		"volume without replicas":       {volume, `{kind: Volume, status: {state: detached, robustness: faulted}}`, []string{"volume-faulted"}},
		"volume of before Longhorn 1.3": {volume, `{kind: Volume, status: {state: attached, robustness: healthy, conditions: []}}`, nil},
		"volume just made":              {volume, `{kind: Volume, spec: {size: "1"}}`, nil},
		"claim":                         {claim, `{kind: PersistentVolumeClaim, status: {phase: Bound}}`, nil},
		"claim that waits":              {claim, `{kind: PersistentVolumeClaim, status: {phase: Pending}}`, []string{"claim-pending"}},
		"claim that is lost":            {claim, `{kind: PersistentVolumeClaim, status: {phase: Lost}}`, []string{"claim-lost"}},
		"claim just made":               {claim, `{kind: PersistentVolumeClaim}`, nil},
		"released":                      {pv, `{kind: PersistentVolume, status: {phase: Released}}`, nil},
		"failed":                        {pv, `{kind: PersistentVolume, status: {phase: Failed}}`, []string{"volume-failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(tt.object), &object); err != nil {
				t.Fatal(err)
			}
			var got []string
			asked := 0
			for _, c := range digest.DefaultChecks() {
				if c.Query.Resource != tt.resource {
					continue
				}
				asked++
				program, err := expression.Compile(c.Query.Test)
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				ok, err := program.Eval(object)
				if err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
				if !ok {
					got = append(got, c.Name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" || asked == 0 {
				t.Errorf("of %d checks, not passed (-want +got):\n%s", asked, diff)
			}
		})
	}
}

func TestDefaultChecksAreSound(t *testing.T) {
	names := map[string]bool{}
	for _, c := range digest.DefaultChecks() {
		if names[c.Name] || c.Name == "" || c.Text == "" || c.Noun == "" || c.Section != digest.Nodes && c.Section != digest.Storage {
			t.Errorf("%+v", c)
		}
		names[c.Name] = true
		if _, err := fact.ParseResource(c.Query.Resource); err != nil {
			t.Error(err)
		}
	}
	wishes := digest.Wishes([]string{"prod", "dev"}, append(digest.DefaultChecks(), digest.DefaultChecks()...), digest.DefaultKured())
	if want := 2 * (len(digest.DefaultChecks()) + 2); len(wishes) != want {
		t.Errorf("%d wishes, want %d", len(wishes), want)
	}
}

// asked is a world with one check of volumes, and the answer to it.
func asked(answer func(*fact.Objects)) *world {
	w := newWorld("prod")
	q := fact.ObjectsQuery{Resource: "volumes.longhorn.io", Test: "false"}
	w.Checks = []digest.Check{{Name: "healthy", Section: digest.Storage, Query: q, Severity: digest.Broken, Noun: "Longhorn volume", Text: "is degraded", Good: "are healthy"}}
	o := &fact.Objects{Query: q, Watch: fact.Watch{State: fact.WatchSynced}, Passing: fact.ObjectSet{Count: 3}}
	answer(o)
	w.put(fact.Fact{Key: fact.ObjectsKey("prod", q), Objects: o})
	return w
}

func notes(n int) (notes []fact.ObjectNote) {
	for i := range n {
		notes = append(notes, fact.ObjectNote{Namespace: "longhorn-system", Name: fmt.Sprintf("pvc-%02d", i), Since: since})
	}
	return notes
}

func TestObjects(t *testing.T) {
	for name, tt := range map[string]struct {
		answer  func(*fact.Objects)
		want    []string
		blind   string
		summary string
	}{
		"well": {func(*fact.Objects) {}, nil, "", "3 of 3 Longhorn volumes on prod are healthy"},
		"some": {
			func(o *fact.Objects) {
				o.Failing = fact.ObjectSet{Count: 1, Notes: notes(1)}
				o.Unclear = fact.ObjectSet{Count: 1, Notes: []fact.ObjectNote{{Name: "x", Why: "no such key: state", Since: since}}}
			},
			[]string{
				"broken storage/prod/healthy/longhorn-system/pvc-00: Longhorn volume longhorn-system/pvc-00 is degraded",
				"unclear storage/prod/healthy//x: Longhorn volume x cannot be judged: no such key: state",
			},
			"", "3 of 5 Longhorn volumes on prod are healthy",
		},
		"many": {
			func(o *fact.Objects) { o.Failing = fact.ObjectSet{Count: 14, Notes: notes(2)} },
			[]string{
				"broken storage/prod/healthy/longhorn-system/pvc-00: Longhorn volume longhorn-system/pvc-00 is degraded",
				"broken storage/prod/healthy/longhorn-system/pvc-01: Longhorn volume longhorn-system/pvc-01 is degraded",
				"broken storage/prod/healthy///more/broken: 12 more of kind Longhorn volume the same: is degraded",
			},
			"only 2 of the 14 Longhorn volumes on prod that do not pass \"healthy\" are named", "3 of 17 Longhorn volumes on prod are healthy",
		},
		"failing": {
			func(o *fact.Objects) {
				o.Watch = fact.Watch{State: fact.WatchFailing, Message: "forbidden"}
				o.Failing = fact.ObjectSet{Count: 1, Notes: notes(1)}
			},
			nil, "volumes.longhorn.io on prod cannot be watched: forbidden", "",
		},
		"not installed": {func(o *fact.Objects) { o.Watch.State = fact.WatchNotInstalled }, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			res := asked(tt.answer).find()
			if diff := cmp.Diff(tt.want, lines(res.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var blind, summary string
			for _, b := range res.Blind {
				blind += b.Why
				if b.Prefix != "storage/prod/healthy/" {
					t.Errorf("prefix %q", b.Prefix)
				}
			}
			for _, s := range res.Summaries[digest.Storage] {
				summary += s.Text
			}
			if blind != tt.blind || summary != tt.summary {
				t.Errorf("blind %q, want %q; summary %q, want %q", blind, tt.blind, summary, tt.summary)
			}
		})
	}
	w := asked(func(o *fact.Objects) { o.Failing = fact.ObjectSet{Count: 1, Notes: notes(1)} })
	w.Checks[0].Grace = 2 * time.Hour
	if got := w.find().Findings; len(got) != 0 {
		t.Errorf("within its grace: %v", lines(got))
	}
	clear(w.facts)
	w.put(fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{}})
	if got := w.find().Blind; len(got) != 2 || got[1].Why != "the list of volumes.longhorn.io on prod has not been read yet" {
		t.Errorf("not read: %+v", got)
	}
}

func TestKured(t *testing.T) {
	q := fact.KuredQuery{Namespace: "kube-system", Name: "kured"}
	at := "nodes/prod/kured/kube-system/kured/"
	for name, tt := range map[string]struct {
		kured          fact.Kured
		assumed, blind bool
		want           []string
	}{
		"nothing":              {fact.Kured{}, false, false, nil},
		"missing":              {fact.Kured{Missing: true}, false, false, []string{"unclear " + at + "missing: DaemonSet kube-system/kured does not exist, so nobody can tell whether a node reboots"}},
		"missing, and assumed": {fact.Kured{Missing: true}, true, false, nil},
		"malformed":            {fact.Kured{Malformed: "no JSON"}, false, false, []string{"unclear " + at + "lock: DaemonSet kube-system/kured has a lock that cannot be read: no JSON"}},
		"at work": {
			fact.Kured{
				Locks:     []fact.KuredLock{{Node: "n1", Since: now.Add(-time.Minute)}},
				Rebooting: []fact.NodeNote{{Name: "n1"}, {Name: "n2"}}, Required: []fact.NodeNote{{Name: "n3", Since: since}},
			},
			true, false,
			[]string{
				"notable " + at + "reboot/n1: Node n1 is being rebooted: it holds the lock of kured",
				"notable " + at + "reboot/n2: Node n2 is about to reboot", "notable " + at + "reboot/n3: Node n3 needs a reboot",
			},
		},
		"stuck": {
			fact.Kured{Locks: []fact.KuredLock{{Node: "n1", Since: since.Add(-time.Minute)}, {Node: "n2", Gone: true}}},
			true, false,
			[]string{
				"broken " + at + "lock/n1: Node n1 holds the lock of kured for more than an hour: its reboot does not end, and no other node reboots",
				"broken " + at + "lock/n2: Node n2 holds the lock of kured and does not exist: nobody will release it, and no other node reboots",
			},
		},
		"not seen":              {fact.Kured{Watch: fact.Watch{State: fact.WatchFailing}}, false, true, nil},
		"not seen, and assumed": {fact.Kured{Watch: fact.Watch{State: fact.WatchFailing}}, true, false, nil},
		"seen before":           {fact.Kured{Watch: fact.Watch{State: fact.WatchFailing}, Required: []fact.NodeNote{{Name: "n3"}}}, true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("prod")
			w.Kured = []digest.Kured{{Query: q, Assumed: tt.assumed}}
			if tt.kured.Watch.State == "" {
				tt.kured.Watch.State = fact.WatchSynced
			}
			w.put(fact.Fact{Key: fact.KuredKey("prod", q), Kured: &tt.kured})
			res := w.find()
			if diff := cmp.Diff(tt.want, lines(res.Findings)); diff != "" || len(res.Blind) > 0 != tt.blind {
				t.Errorf("blind %v; (-want +got):\n%s", res.Blind, diff)
			}
		})
	}
}
