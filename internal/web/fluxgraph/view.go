package fluxgraph

import (
	"cmp"
	"slices"
	"strings"
)

// Show is what a view shows by itself.
type Show string

// What a view can show.
const (
	// ShowAuto shows everything, if there is not too much, and problems otherwise.
	ShowAuto Show = ""
	// ShowAll shows everything, as far as there is room.
	ShowAll Show = "all"
	// ShowProblems shows what somebody should look at.
	ShowProblems Show = "problems"
)

// Bounds of what is shown by itself.
const (
	// many is how many objects are too many to show without being asked.
	many = 150
	// most is how many are shown at most when it is asked for.
	most = 300
	// looseMany is from how many on sources of one kind that are fine and that nothing
	// uses are a group also in a small graph, such as the charts that Flux makes for
	// HelmReleases.
	looseMany = 4
)

// Choice says what a view shows.
type Choice struct {
	Show Show
	// Text is words that "kind/namespace/name" must contain, in any letter case, and Namespace the namespace; empty for any.
	Text, Namespace string
	// Selected is shown whatever else is; the zero value selects nothing.
	Selected ID
}

// View is a part of a graph: objects by themselves, and the others in groups.
type View struct {
	Nodes []Node
	Edges []Edge
	// Total is how many objects the graph has, and Grouped how many of them are in
	// groups.
	Total, Grouped int
	// Problems says that what is fine is in groups because there was too much.
	Problems bool
	// Crowded is how many objects were asked for and are in groups nevertheless.
	Crowded int
}

// Node is an object, or a group of objects of one tier and one state.
type Node struct {
	// Object is nil for a group.
	Object *Object
	// Count is how many objects there are in a group, all of State and, if Kind is
	// not empty, of that kind; Loose says that nothing uses them.
	Count int
	State State
	Kind  string
	Loose bool

	Tier     int
	Selected bool
	// Seed says that the object was asked for, and is not merely beside one that was.
	Seed bool
	// Circle says that it waits for itself.
	Circle bool
}

// Edge goes from what is needed to what needs it, as indices of nodes.
type Edge struct {
	From, To int
	// Source says that it is a sourceRef and no dependsOn.
	Source bool
	// Back closes a circle: From is not to the left of To.
	Back bool
	// Count is how many references it stands for.
	Count int
}

// Matches reports whether an object fits a text and a namespace.
func (o *Object) Matches(text, namespace string) bool {
	if namespace != "" && o.Namespace != namespace {
		return false
	}
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if !strings.Contains(strings.ToLower(o.String()), word) {
			return false
		}
	}
	return true
}

// View chooses what is shown: the objects that are asked for, all that they need,
// and what directly needs them. The others are in groups.
func (g *Graph) View(c Choice) *View {
	v := &View{Total: len(g.objects)}
	show := c.Show
	filtered := c.Text != "" || c.Namespace != ""
	if show == ShowAuto && !filtered && len(g.objects) > many {
		show, v.Problems = ShowProblems, true
	}
	var seeds []int
	for i := range g.objects {
		o := &g.objects[i]
		if o.Matches(c.Text, c.Namespace) && (show != ShowProblems || o.State.Problem()) {
			seeds = append(seeds, i)
		}
	}
	room := many
	if show == ShowAll {
		room = most
	}
	var shown []int
	shown, v.Crowded = g.choose(seeds, c.Selected, room, show != ShowAll && !filtered)
	g.fill(v, shown, c.Selected)
	return v
}

// Why an object is shown by itself.
const (
	hidden = iota
	beside
	asked
)

// choose returns why each object is shown by itself, and how many that were asked for
// found no room.
func (g *Graph) choose(seeds []int, selected ID, room int, fold bool) (shown []int, crowded int) {
	shown = make([]int, len(g.objects))
	left := room
	take := func(i, why int) bool {
		switch {
		case shown[i] != hidden:
			shown[i] = max(shown[i], why)
			return true
		case left == 0:
			return false
		}
		left--
		shown[i] = why
		return true
	}
	if i, ok := g.index[selected]; ok {
		take(i, asked)
		g.surround(i, take)
	}
	// What is worst, and what comes first in the order of dependencies, is shown first
	// when there is not enough room: it is the cause of what follows.
	slices.SortStableFunc(seeds, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.objects[a].State.rank(), g.objects[b].State.rank()), cmp.Compare(g.tier[a], g.tier[b]))
	})
	loose := map[string]int{}
	for _, i := range seeds {
		if g.loose(i) {
			loose[g.objects[i].Kind]++
		}
	}
	for _, i := range seeds {
		if fold && g.loose(i) && loose[g.objects[i].Kind] >= looseMany {
			continue
		}
		if !take(i, asked) {
			crowded++
		}
	}
	for _, i := range seeds {
		if shown[i] == asked {
			g.surround(i, take)
		}
	}
	return shown, crowded
}

// loose reports whether an object is a source that is fine and that nothing uses.
func (g *Graph) loose(i int) bool {
	o := &g.objects[i]
	return !o.applies() && !o.State.Problem() && len(g.in[i]) == 0 && len(g.out[i]) == 0
}

// surround takes all that an object needs, and what needs it directly.
func (g *Graph) surround(i int, take func(i, why int) bool) {
	seen := map[int]bool{i: true}
	queue := []int{i}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, e := range g.in[v] {
			if from := g.edges[e].from; !seen[from] && take(from, beside) {
				seen[from] = true
				queue = append(queue, from)
			}
		}
	}
	for _, e := range g.out[i] {
		take(g.edges[e].to, beside)
	}
}

// group is what the objects of a group have in common.
type group struct {
	tier  int
	state State
	kind  string
	loose bool
}

// fill makes nodes and edges of what is shown and of groups of what is not.
func (g *Graph) fill(v *View, shown []int, selected ID) {
	at := make([]int, len(g.objects))
	groups := map[group]int{}
	for i := range g.objects {
		o := &g.objects[i]
		if shown[i] != hidden {
			at[i] = len(v.Nodes)
			v.Nodes = append(v.Nodes, Node{
				Object: o, Count: 1, State: o.State, Tier: g.tier[i], Circle: g.circle[i] != 0,
				Seed: shown[i] == asked, Selected: o.ID == selected,
			})
			continue
		}
		key := group{tier: g.tier[i], state: o.State}
		if g.loose(i) {
			key.kind, key.loose = o.Kind, true
		}
		n, ok := groups[key]
		if !ok {
			n = len(v.Nodes)
			groups[key] = n
			v.Nodes = append(v.Nodes, Node{State: key.state, Kind: key.kind, Loose: key.loose, Tier: key.tier})
		}
		at[i] = n
		v.Nodes[n].Count++
		v.Nodes[n].Circle = v.Nodes[n].Circle || g.circle[i] != 0
		v.Grouped++
	}
	counts := map[link]int{}
	for _, e := range g.edges {
		to := link{from: at[e.from], to: at[e.to], source: e.source, back: e.back}
		// A circle within one group is no line; the group is marked.
		if to.from != to.to {
			counts[to]++
		}
	}
	for l, n := range counts {
		v.Edges = append(v.Edges, Edge{From: l.from, To: l.to, Source: l.source, Back: l.back, Count: n})
	}
	slices.SortFunc(v.Edges, func(a, b Edge) int {
		return compareLinks(link{a.From, a.To, a.Source, a.Back}, link{b.From, b.To, b.Source, b.Back})
	})
}
