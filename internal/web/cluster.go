package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/web/fluxgraph"
)

// clusterState is what is known of a cluster.
type clusterState struct {
	Name string
	// Sign says whether it is heard from, and whether its kinds are known.
	Sign sign
	// Heard says that it is heard from; Since is when that began, or when it was last
	// heard from, zero if that is not known or never was.
	Heard bool
	Since time.Time
	// Watches are the kinds that are watched, in the order of [fluxgraph.Kinds].
	Watches []watchState
	Counts  []stateCount
	Objects int
	// Problems are the objects that somebody should look at.
	Problems int

	graph *fluxgraph.Graph
}

// Blind are the kinds of which not everything is known.
func (c *clusterState) Blind() []watchState {
	var out []watchState
	for _, w := range c.Watches {
		if w.Blind {
			out = append(out, w)
		}
	}
	return out
}

// Absent are the names of the kinds that the cluster does not have.
func (c *clusterState) Absent() string {
	var out []string
	for _, w := range c.Watches {
		if w.State == fact.WatchNotInstalled {
			out = append(out, w.Kind)
		}
	}
	return strings.Join(out, ", ")
}

// Watched are how many kinds are known completely.
func (c *clusterState) Watched() int {
	n := 0
	for _, w := range c.Watches {
		if w.State == fact.WatchSynced {
			n++
		}
	}
	return n
}

// watchState is how far a kind is known.
type watchState struct {
	Kind  string
	State fact.WatchState
	// Blind says that what there is may be more or other than what is shown.
	Blind   bool
	Text    string
	Message string
	Since   time.Time
}

// stateCount is how many objects are in a state.
type stateCount struct {
	fluxState
	Count int
}

// clusterNow reads what is known of a cluster.
func (s *Server) clusterNow(name string) *clusterState {
	c := &clusterState{Name: name}
	known := fluxgraph.Known{Silent: true}
	beat, ok := s.Facts.Lookup(fact.HeartbeatKey(name))
	if ok && beat.Heartbeat != nil && beat.Problem == "" {
		c.Heard, c.Since = !beat.Heartbeat.Silent, beat.Since
		known.Silent = beat.Heartbeat.Silent
		if known.Silent {
			c.Since = beat.Heartbeat.LastHeard
			known.SilentSince = c.Since
		}
	}
	if f, ok := s.Facts.Lookup(fact.ClusterKey(name)); ok && f.Cluster != nil && f.Problem == "" {
		known.Kinds = f.Cluster.Kinds
	}
	for _, kind := range fluxgraph.Kinds() {
		known.Facts = append(known.Facts, s.Facts.Select(fact.SourceKube, name, kind)...)
		w, ok := known.Kinds[kind]
		c.Watches = append(c.Watches, watchOf(kind, w, ok))
	}
	c.graph = fluxgraph.New(fluxgraph.Read(known))
	counts := fluxgraph.Count(c.graph.Objects())
	for _, state := range slices.Backward(fluxgraph.States()) {
		if n := counts[state]; n > 0 {
			c.Counts = append(c.Counts, stateCount{fluxState{state}, n})
		}
	}
	c.Objects, c.Problems = len(c.graph.Objects()), counts.Problems()
	c.Sign = c.sign(counts)
	return c
}

// sign is the worst of what is known; nothing that is not known is good.
func (c *clusterState) sign(counts fluxgraph.Counts) sign {
	switch {
	case !c.Heard && c.Since.IsZero():
		return sign{"undecided", "?", "not heard from yet"}
	case !c.Heard:
		return sign{"undecided", "?", "silent"}
	case counts[fluxgraph.NotReady]+counts[fluxgraph.Stalled]+counts[fluxgraph.Missing] > 0:
		return sign{"blocked", "✕", "not ready"}
	case len(c.Blind()) > 0 || counts[fluxgraph.Unknown] > 0:
		return sign{"undecided", "?", "not known completely"}
	case counts[fluxgraph.Waiting] > 0:
		return sign{"waiting", "◷", "waiting"}
	case c.Objects == 0:
		return sign{"none", "–", "has no objects of Flux"}
	case counts[fluxgraph.Suspended] > 0:
		return sign{"waiting", "‖", "ready, some suspended"}
	default:
		return sign{"clear", "✓", "ready"}
	}
}

func watchOf(kind string, w fact.Watch, ok bool) watchState {
	out := watchState{Kind: fluxgraph.KindName(kind), State: w.State, Message: w.Message, Since: w.Since, Blind: true}
	switch {
	case !ok:
		out.Text = "it is not known yet whether the cluster has this kind"
	case w.State == fact.WatchSynced:
		out.Text, out.Blind = "known completely", false
	case w.State == fact.WatchNotInstalled:
		out.Text, out.Blind = "not installed", false
	case w.State == fact.WatchSyncing:
		out.Text = "its first list has not arrived"
	default:
		out.Text = "cannot be read"
	}
	return out
}

// objectRow is a line of the table of objects.
type objectRow struct {
	fluxgraph.Object
	URL string
	// Here says that it is selected.
	Here bool
}

// KindName is its kind as Flux spells it.
func (r objectRow) KindName() string { return fluxgraph.KindName(r.Kind) }

// Look is its state as it is shown.
func (r objectRow) Look() fluxState { return fluxState{r.State} }

// LastWord is the state that was known last, or empty.
func (r objectRow) LastWord() string { return r.Last.Word() }

// Revision is the revision that is applied.
func (r objectRow) Revision() string { return fluxgraph.Revision(r.Applied) }

// maxBrief bounds the message of an object in a list, in characters.
const maxBrief = 240

// Brief is why it is so, on one line.
func (r objectRow) Brief() string { return clip(clean(r.Why), maxBrief) }

// rows are the objects that fit a filter, the worst first.
func (q clusterQuery) rows(g *fluxgraph.Graph) []objectRow {
	var out []objectRow
	for _, o := range g.Objects() {
		switch {
		case !o.Matches(q.Text, q.Namespace):
		case q.Kind != "" && o.Kind != q.Kind:
		case q.State != "" && o.State != q.State:
		case q.Show == fluxgraph.ShowProblems && !o.State.Problem():
		case q.Tier >= 0 && g.Tier(o.ID) != q.Tier:
		default:
			out = append(out, objectRow{Object: o, URL: q.objectURL(o.ID), Here: o.ID == q.Selected})
		}
	}
	order := fluxgraph.States()
	slices.SortStableFunc(out, func(a, b objectRow) int {
		return cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State))
	})
	return out
}
