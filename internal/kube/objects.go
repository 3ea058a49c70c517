package kube

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"signalbox/internal/fact"
)

// collectorOf returns what makes the fact of a wish. An error is why that can
// never be.
func collectorOf(wish fact.Wish) (collector, error) {
	switch {
	case wish.Objects != nil:
		return newObjectsWish(*wish.Objects)
	case wish.Kured != nil:
		return newKuredWish(*wish.Kured), nil
	case wish.Renovate != nil:
		return newRenovateWish(*wish.Renovate), nil
	default:
		return nil, errNoQuery
	}
}

// objectsWish makes the answer to a query.
type objectsWish struct {
	query fact.ObjectsQuery
	reading
}

func newObjectsWish(q fact.ObjectsQuery) (collector, error) {
	t, err := targetOf(q)
	if err != nil {
		return nil, err
	}
	c := column{id: "kstatus", read: kstatus}
	if q.Test != "" {
		c.id = "test " + q.Test
		if c.read, err = expressionTest(q.Test); err != nil {
			return nil, err
		}
	}
	return &objectsWish{q, reading{t, c}}, nil
}

// targetOf returns what a query reads.
func targetOf(q fact.ObjectsQuery) (target, error) {
	r, err := fact.ParseResource(q.Resource)
	if err != nil {
		return target{}, err
	}
	if _, err := labels.Parse(q.Selector); err != nil {
		return target{}, err
	}
	return target{r, q.Namespace, q.Name, q.Selector}, nil
}

func (o *objectsWish) reads() []reading { return []reading{o.reading} }

func (o *objectsWish) project(c collected) (fact.Fact, time.Duration) {
	f := fact.Fact{Since: c.since(), Objects: &fact.Objects{Query: o.query, Watch: c.watch}}
	var prev *fact.Objects
	if c.prev != nil {
		prev = c.prev.Objects
	}
	v := c.views[0]
	switch {
	case c.watch.State == fact.WatchSynced:
		f.Objects.Version = v.feed.GroupVersion().String()
		f.Version = tally(f.Objects, c.prev, v)
	case c.watch.State != fact.WatchNotInstalled && prev != nil:
		f.Objects.Version, f.Objects.Passing, f.Objects.Failing, f.Objects.Unclear = prev.Version, prev.Passing, prev.Failing, prev.Unclear
	}
	if prev != nil && pattern(prev) == pattern(f.Objects) {
		f.Since = c.prev.Since
	}
	return f, 0
}

// pattern is that of which a change is a new state: the watch, and which sets
// have objects in them.
func pattern(o *fact.Objects) any {
	return [4]any{o.Watch.State, o.Passing.Count > 0, o.Failing.Count > 0, o.Unclear.Count > 0}
}

// tally counts the objects in each set, and returns the version of the API
// server at which that is so.
func tally(o *fact.Objects, before *fact.Fact, v view) (version string) {
	prev, known := &fact.Objects{}, uint64(0)
	if before != nil && before.Objects != nil {
		prev, known = before.Objects, numbered(before.Version)
	}
	sets := map[verdict]*fact.ObjectSet{passing: &o.Passing, failed: &o.Failing, unclear: &o.Unclear}
	held := map[verdict]fact.ObjectSet{passing: prev.Passing, failed: prev.Failing, unclear: prev.Unclear}
	return v.feed.rows.each(v.at, func(r *row, c cell) {
		set := sets[c.verdict]
		set.Count++
		at, _ := slices.BinarySearchFunc(set.Notes, r.objectName, func(n fact.ObjectNote, o objectName) int {
			return cmp.Or(cmp.Compare(n.Namespace, o.namespace), cmp.Compare(n.Name, o.name))
		})
		if at >= fact.MaxNotes {
			return
		}
		note := fact.ObjectNote{Namespace: r.namespace, Name: r.name, Why: c.why, Since: wholeSeconds(time.Unix(0, c.since))}
		// Whoever wrote what is held had seen this, perhaps at another moment; two
		// replicas have to agree.
		if c.listed || c.version != 0 && c.version <= known {
			note.Since = heldSince(held[c.verdict], note)
		}
		set.Notes = slices.Insert(set.Notes, at, note)
		set.Notes = set.Notes[:min(len(set.Notes), fact.MaxNotes)]
	})
}

// heldSince returns since when an object that was listed in a set is known to
// be in it.
func heldSince(set fact.ObjectSet, n fact.ObjectNote) time.Time {
	for _, h := range set.Notes {
		if h.Namespace == n.Namespace && h.Name == n.Name {
			return h.Since
		}
	}
	return n.Since
}
