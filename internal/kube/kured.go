package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"signalbox/internal/fact"
)

// kuredWish makes the fact of a kured. How it keeps its lock and marks nodes is
// in its pkg/daemonsetlock and cmd/kured.
type kuredWish struct {
	query fact.KuredQuery
	lock  reading
	nodes reading
}

// kuredDomains are the domains of the annotations of nodes: that of the
// releases so far, and that of its next.
var kuredDomains = []string{"weave.works", "kured.dev"}

func newKuredWish(q fact.KuredQuery) collector {
	annotation := cmp.Or(q.Annotation, fact.DefaultKuredLock)
	return &kuredWish{
		query: q,
		lock: reading{
			target{fact.Resource{Resource: "daemonsets", Group: "apps"}, q.Namespace, q.Name, ""},
			column{id: "kured lock " + q.Annotation, read: func(o map[string]any) cell {
				return cell{data: readKuredLock(o, annotation, q.Annotation == "")}
			}},
		},
		nodes: reading{
			target{resource: fact.Resource{Resource: "nodes"}},
			column{id: "kured node", read: readKuredNode},
		},
	}
}

func (k *kuredWish) reads() []reading { return []reading{k.lock, k.nodes} }

// annotationOf returns an annotation as it is.
func annotationOf(o map[string]any, name string) string {
	s, _ := field(o, "metadata", "annotations", name).(string)
	return s
}

// kuredLock is the lock as it was read.
type kuredLock struct {
	locks     []fact.KuredLock
	malformed string
	// unmarked says that kured was not told to mark nodes.
	unmarked bool
}

// readKuredLock reads the lock of a DaemonSet, and whether that is where it is.
// The default is read on both domains. implied says that no policy names it.
func readKuredLock(o map[string]any, annotation string, implied bool) kuredLock {
	lock := parseKuredLock(annotationOf(o, annotation))
	if annotation == fact.DefaultKuredLock {
		for _, domain := range kuredDomains {
			if name := domain + "/kured-node-lock"; name != annotation {
				other := parseKuredLock(annotationOf(o, name))
				lock.locks = append(lock.locks, other.locks...)
				lock.malformed = cmp.Or(lock.malformed, other.malformed)
			}
		}
	}
	settings := readKuredSettings(o)
	if wrong := settings.elsewhere(annotation, implied); wrong != "" {
		return kuredLock{malformed: wrong}
	}
	lock.unmarked = settings.unmarked()
	return lock
}

// maxLocks bounds the holders that are read of a lock: one for each node of a
// large cluster.
const maxLocks = 1000

// heldLock is one holder as kured writes it. TTL is in nanoseconds.
type heldLock struct {
	NodeID  *string       `json:"nodeID"`
	Created time.Time     `json:"created"`
	TTL     time.Duration `json:"TTL"`
}

// parseKuredLock reads the lock in both of its forms: that of one holder, and
// that of several, which is left in place without holders.
func parseKuredLock(s string) kuredLock {
	if strings.TrimSpace(s) == "" {
		return kuredLock{}
	}
	var form struct {
		heldLock
		MaxOwners *int        `json:"maxOwners"`
		Locks     *[]heldLock `json:"locks"`
	}
	if !bytes.HasPrefix(bytes.TrimSpace([]byte(s)), []byte("{")) {
		return kuredLock{malformed: "the lock is not a JSON object"}
	}
	if err := json.Unmarshal([]byte(s), &form); err != nil {
		return kuredLock{malformed: why("the lock cannot be read: " + err.Error())}
	}
	holders := []heldLock{form.heldLock}
	switch {
	case form.Locks != nil:
		holders = *form.Locks
	case form.MaxOwners != nil:
		holders = nil // "locks" is null once all are released.
	case form.NodeID == nil:
		return kuredLock{malformed: "the lock names no node"}
	}
	if len(holders) > maxLocks {
		return kuredLock{malformed: "the lock has too many holders"}
	}
	var out kuredLock
	for _, h := range holders {
		if h.NodeID == nil || *h.NodeID == "" {
			return kuredLock{malformed: "a holder of the lock names no node"}
		}
		l := fact.KuredLock{Node: clean(oneLine(*h.NodeID), maxName), Since: h.Created.UTC()}
		if h.TTL > 0 {
			l.Until = h.Created.Add(h.TTL).UTC()
		}
		out.locks = append(out.locks, l)
	}
	slices.SortFunc(out.locks, func(a, b fact.KuredLock) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Since.Compare(b.Since))
	})
	return out
}

// kuredNode is a node that kured has marked, since when; nil for one that it has
// not.
type kuredNode struct{ since time.Time }

// readKuredNode reads the marks of a node. When a node needs a reboot kured sets
// two marks at once: that a reboot is in progress, although it then waits for
// its hours, for what blocks it and for its lock, and that one was needed. It
// takes the first away after the reboot and leaves the other as a record, which
// alone does not say that a reboot is needed now.
func readKuredNode(o map[string]any) cell {
	for _, domain := range kuredDomains {
		if progress := annotationOf(o, domain+"/kured-reboot-in-progress"); progress != "" {
			return cell{data: kuredNode{timeOf(progress)}}
		}
	}
	return cell{}
}

// timeOf reads a time of RFC 3339, or is zero.
func timeOf(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func (k *kuredWish) project(c collected) (fact.Fact, time.Duration) {
	now := &fact.Kured{Watch: c.watch}
	f := fact.Fact{Since: c.since(), Kured: now}
	var prev *fact.Kured
	if c.prev != nil {
		prev = c.prev.Kured
	}
	var again time.Duration
	switch {
	case c.watch.State == fact.WatchSynced:
		f.Version, again = k.read(now, c)
	case c.watch.State != fact.WatchNotInstalled && prev != nil:
		*now = *prev
		now.Watch = c.watch
		now.Locks, again = unexpired(prev.Locks, c.now)
	}
	if prev != nil && kuredState(prev) == kuredState(now) {
		f.Since = c.prev.Since
	}
	return f, again
}

// kuredState is that of which a change is a new state.
func kuredState(k *fact.Kured) any {
	return [6]any{k.Watch.State, k.Missing, k.Malformed != "", len(k.Locks) > 0, len(k.Rebooting) > 0, len(k.Required) > 0}
}

// read fills in what is known of the lock and the nodes, and returns the
// version of that, and when the next lock expires.
func (k *kuredWish) read(now *fact.Kured, c collected) (version string, again time.Duration) {
	var lock kuredLock
	now.Missing = true
	ofLock := c.views[0].feed.rows.each(c.views[0].at, func(_ *row, cell cell) {
		now.Missing = false
		lock, _ = cell.data.(kuredLock)
	})
	now.Malformed, now.Unmarked = lock.malformed, lock.unmarked
	now.Locks, again = unexpired(lock.locks, c.now)
	// Whoever took the lock goes on with its reboot, also when the lock expires.
	unlocked := !now.Missing && now.Malformed == ""
	holders := map[string]bool{}
	for _, l := range lock.locks {
		holders[l.Node] = true
	}
	nodes := map[string]bool{}
	ofNodes := c.views[1].feed.rows.each(c.views[1].at, func(r *row, cell cell) {
		nodes[r.name] = true
		n, marked := cell.data.(kuredNode)
		switch note := (fact.NodeNote{Name: r.name, Since: n.since}); {
		case !marked:
		case unlocked && !holders[r.name]:
			now.Required = append(now.Required, note)
		default:
			now.Rebooting = append(now.Rebooting, note)
		}
	})
	for i := range now.Locks {
		now.Locks[i].Gone = !nodes[now.Locks[i].Node]
	}
	for _, notes := range [][]fact.NodeNote{now.Rebooting, now.Required} {
		slices.SortFunc(notes, func(a, b fact.NodeNote) int { return cmp.Compare(a.Name, b.Name) })
	}
	return together(ofLock, ofNodes), again
}

// unexpired returns the locks that hold now, and after what time the next of
// them expires; zero means never.
func unexpired(all []fact.KuredLock, now time.Time) (locks []fact.KuredLock, next time.Duration) {
	for _, l := range all {
		left := l.Until.Sub(now)
		if !l.Until.IsZero() && left <= 0 {
			continue
		}
		if !l.Until.IsZero() {
			next = earlier(next, left)
		}
		locks = append(locks, l)
	}
	return locks, next
}

// together returns a version for what is made of several resources: the sum
// grows with each, and is less for whoever lags in one and leads in none.
func together(versions ...string) string {
	sum := new(big.Int)
	for _, v := range versions {
		n, ok := new(big.Int).SetString(v, 10)
		if !ok {
			return ""
		}
		sum.Add(sum, n)
	}
	return sum.String()
}
