package fluxgraph

import (
	"cmp"
	"slices"
)

// Graph is the objects of a cluster and what depends on what.
type Graph struct {
	objects []Object
	index   map[ID]int
	edges   []link
	// in and out are indices of edges, by object.
	in, out [][]int
	// tier is the column of each object: one more than the greatest of what it
	// needs, at least 1 for what applies something and 0 for a source.
	tier []int
	// circle is the number of the circle that an object is in, from 1, or 0.
	circle  []int
	circles [][]ID
}

// link goes from what is needed to what needs it.
type link struct {
	from, to int
	source   bool
	// back marks one that closes a circle and does not count for the tiers.
	back bool
}

// New makes a graph of objects, as [Read] returns them.
func New(objects []Object) *Graph {
	g := &Graph{
		objects: objects, index: make(map[ID]int, len(objects)),
		in: make([][]int, len(objects)), out: make([][]int, len(objects)),
		tier: make([]int, len(objects)), circle: make([]int, len(objects)),
	}
	for i, o := range objects {
		g.index[o.ID] = i
	}
	for i, o := range objects {
		if o.Source != nil {
			g.connect(*o.Source, i, true)
		}
		for _, id := range o.DependsOn {
			g.connect(id, i, false)
		}
	}
	g.findCircles()
	g.breakCircles()
	g.setTiers()
	return g
}

// Objects are those of the graph, in its order.
func (g *Graph) Objects() []Object { return g.objects }

// Object returns one by its name.
func (g *Graph) Object(id ID) (Object, bool) {
	i, ok := g.index[id]
	if !ok {
		return Object{}, false
	}
	return g.objects[i], true
}

// Dependents are the objects that need one directly, in the order of the graph.
func (g *Graph) Dependents(id ID) []Object {
	i, ok := g.index[id]
	if !ok {
		return nil
	}
	var at []int
	for _, e := range g.out[i] {
		at = append(at, g.edges[e].to)
	}
	slices.Sort(at)
	var out []Object
	for _, j := range slices.Compact(at) {
		out = append(out, g.objects[j])
	}
	return out
}

// Tier is the tier of an object, or -1 if there is no such object.
func (g *Graph) Tier(id ID) int {
	i, ok := g.index[id]
	if !ok {
		return -1
	}
	return g.tier[i]
}

// Circles are the groups of objects that wait for each other, and so for ever.
func (g *Graph) Circles() [][]ID { return g.circles }

func (g *Graph) connect(id ID, to int, source bool) {
	from, ok := g.index[id]
	if !ok || slices.ContainsFunc(g.in[to], func(e int) bool { return g.edges[e].from == from && g.edges[e].source == source }) {
		return
	}
	e := len(g.edges)
	g.edges = append(g.edges, link{from: from, to: to, source: source})
	g.out[from] = append(g.out[from], e)
	g.in[to] = append(g.in[to], e)
}

// findCircles finds the strongly connected components of more than one object, and
// the objects that need themselves: the algorithm of Tarjan, without recursion, as a
// chain may be as long as there are objects.
func (g *Graph) findCircles() {
	n := len(g.objects)
	number, low, on := make([]int, n), make([]int, n), make([]bool, n)
	var stack []int
	next := 1
	for root := range n {
		if number[root] != 0 {
			continue
		}
		path := []step{{node: root}}
		for len(path) > 0 {
			top := &path[len(path)-1]
			v := top.node
			if top.edge == 0 {
				number[v], low[v], on[v] = next, next, true
				next++
				stack = append(stack, v)
			}
			if top.edge < len(g.out[v]) {
				w := g.edges[g.out[v][top.edge]].to
				top.edge++
				if number[w] == 0 {
					path = append(path, step{node: w})
				} else if on[w] {
					low[v] = min(low[v], number[w])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1].node
				low[up] = min(low[up], low[v])
			}
			if low[v] == number[v] {
				at := slices.Index(stack, v)
				for _, w := range stack[at:] {
					on[w] = false
				}
				g.addCircle(stack[at:])
				stack = stack[:at]
			}
		}
	}
}

// step is a node on the path of a search, with the next of its edges.
type step struct{ node, edge int }

func (g *Graph) addCircle(members []int) {
	if len(members) == 1 {
		v := members[0]
		if !slices.ContainsFunc(g.out[v], func(e int) bool { return g.edges[e].to == v }) {
			return
		}
	}
	var ids []ID
	for _, v := range members {
		g.circle[v] = len(g.circles) + 1
		ids = append(ids, g.objects[v].ID)
	}
	slices.SortFunc(ids, compareIDs)
	g.circles = append(g.circles, ids)
}

// breakCircles marks the edges that a search meets on its way back, so that the
// others form no circle.
func (g *Graph) breakCircles() {
	const (
		fresh = iota
		open
		done
	)
	state := make([]int, len(g.objects))
	for root := range g.objects {
		if state[root] != fresh || g.circle[root] == 0 {
			continue
		}
		state[root] = open
		path := []step{{node: root}}
		for len(path) > 0 {
			top := &path[len(path)-1]
			if top.edge == len(g.out[top.node]) {
				state[top.node] = done
				path = path[:len(path)-1]
				continue
			}
			e := &g.edges[g.out[top.node][top.edge]]
			top.edge++
			switch {
			case g.circle[e.to] != g.circle[e.from]:
			case state[e.to] == open:
				e.back = true
			case state[e.to] == fresh:
				state[e.to] = open
				path = append(path, step{node: e.to})
			}
		}
	}
}

// setTiers gives each object its tier in the order of dependencies (Kahn).
func (g *Graph) setTiers() {
	wait := make([]int, len(g.objects))
	var ready []int
	for i, o := range g.objects {
		if o.applies() {
			g.tier[i] = 1
		}
		for _, e := range g.in[i] {
			if !g.edges[e].back {
				wait[i]++
			}
		}
		if wait[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		v := ready[0]
		ready = ready[1:]
		for _, e := range g.out[v] {
			l := g.edges[e]
			if l.back {
				continue
			}
			g.tier[l.to] = max(g.tier[l.to], g.tier[v]+1)
			if wait[l.to]--; wait[l.to] == 0 {
				ready = append(ready, l.to)
			}
		}
	}
}

// Counts are how many objects are in each state.
type Counts map[State]int

// Count counts objects by state.
func Count(objects []Object) Counts {
	c := Counts{}
	for _, o := range objects {
		c[o.State]++
	}
	return c
}

// Problems is how many of the counted objects somebody should look at.
func (c Counts) Problems() int {
	n := 0
	for s, k := range c {
		if s.Problem() {
			n += k
		}
	}
	return n
}

// compareLinks sorts by ends, so that what is drawn is always the same.
func compareLinks(a, b link) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), boolCompare(a.source, b.source), boolCompare(a.back, b.back))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
