package fluxgraph

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Sizes, in pixels.
const (
	boxWidth   = 194
	boxHeight  = 46
	columnGap  = 44
	rowGap     = 12
	laneHeight = 6
	// margin is around everything, and head above the columns for their names.
	margin = 12
	head   = 34
)

// Picture is a view with a place for everything.
type Picture struct {
	View          *View
	Width, Height int
	// Boxes are the nodes of the view, in the same order.
	Boxes []Box
	// Tiers are the columns with their names, from left to right.
	Tiers []Band
	// Lines are parts of edges. An edge that passes a column does so in a lane, which
	// edges from the same node share.
	Lines []Line
}

// Box is the place of a node.
type Box struct{ X, Y, Width, Height int }

// Band is the columns of one tier.
type Band struct{ Tier, X, Width int }

// Line goes from the right end of a box or lane to the left end of another.
type Line struct {
	X1, Y1, X2, Y2 int
	// Lane is how far it goes on to the right after X2, through a column.
	Lane int
	// Starts and Ends say that it leaves a box and that it reaches one.
	Starts, Ends bool
	Source, Back bool
	// Selected says that it belongs to an edge of what is selected.
	Selected bool
}

// item is a box or, where node is negative, a lane in a column.
type item struct {
	node    int
	column  int
	height  float64
	weight  float64
	y       float64
	in, out []int
}

// segment joins items of two columns, one beside the other.
type segment struct {
	from, to     int
	source, back bool
}

type layout struct {
	view     *View
	items    []item
	columns  [][]int
	segments map[segment]bool // with whether it is of what is selected
}

// Layout gives everything its place. The same view always gets the same.
func (v *View) Layout() *Picture {
	l := &layout{view: v, segments: map[segment]bool{}}
	l.setColumns()
	l.join()
	l.order()
	l.place()
	return l.picture()
}

// setColumns gives each tier as many columns as keep the picture about half again as
// wide as it is high.
func (l *layout) setColumns() {
	rows := max(10, int(math.Ceil(1.8*math.Sqrt(float64(len(l.view.Nodes))))))
	nodes := l.view.Nodes
	needed, first := make([]bool, len(nodes)), make([]int, len(nodes))
	for i := range first {
		first[i] = len(nodes)
	}
	for _, e := range l.view.Edges {
		needed[e.From] = true
		if !e.Source && !e.Back {
			first[e.To] = min(first[e.To], e.From)
		}
	}
	tiers := map[int][]int{}
	for i, n := range nodes {
		tiers[n.Tier] = append(tiers[n.Tier], i)
	}
	l.items = make([]item, len(nodes))
	for _, tier := range slices.Sorted(maps.Keys(tiers)) {
		nodes := tiers[tier]
		// What others need stands next to them, and what needs the same stands together.
		slices.SortStableFunc(nodes, func(a, b int) int {
			return cmp.Or(boolCompare(needed[a], needed[b]), cmp.Compare(first[a], first[b]))
		})
		count := (len(nodes) + rows - 1) / rows
		each := (len(nodes) + count - 1) / count
		for part := range slices.Chunk(nodes, each) {
			for _, n := range part {
				l.items[n] = item{node: n, column: len(l.columns), height: boxHeight, weight: 1}
			}
			l.columns = append(l.columns, slices.Clone(part))
		}
	}
}

// lane names the way of one node's edges through a column.
type lane struct {
	from, column int
	source, back bool
}

// join makes the segments of the edges, and the lanes between them.
func (l *layout) join() {
	lanes := map[lane]int{}
	for _, e := range l.view.Edges {
		selected := l.view.Nodes[e.From].Selected || l.view.Nodes[e.To].Selected
		from, to := e.From, e.To
		if e.Back {
			// What closes a circle would go to the left, and is laid the other way round.
			from, to = to, from
		}
		last := from
		for column := l.items[from].column + 1; column < l.items[to].column; column++ {
			key := lane{from, column, e.Source, e.Back}
			at, ok := lanes[key]
			if !ok {
				at = len(l.items)
				lanes[key] = at
				l.items = append(l.items, item{node: -1, column: column, height: laneHeight, weight: 4})
				l.columns[column] = append(l.columns[column], at)
			}
			l.connect(segment{last, at, e.Source, e.Back}, selected)
			last = at
		}
		l.connect(segment{last, to, e.Source, e.Back}, selected)
	}
}

func (l *layout) connect(s segment, selected bool) {
	was, ok := l.segments[s]
	l.segments[s] = was || selected
	if !ok {
		l.items[s.from].out = append(l.items[s.from].out, s.to)
		l.items[s.to].in = append(l.items[s.to].in, s.from)
	}
}

// sweeps is how often the columns are gone over in each direction.
const sweeps = 6

// order sorts each column by the middle of the places of what its items are joined
// to, over and over, and keeps the order that had the fewest crossings.
func (l *layout) order() {
	place := make([]float64, len(l.items))
	number := func(column []int) {
		for i, at := range column {
			place[at] = float64(i) / float64(max(1, len(column)-1))
		}
	}
	for _, c := range l.columns {
		number(c)
	}
	best, fewest := l.copyColumns(), l.crossings()
	for range sweeps {
		for i := range l.columns {
			l.sortColumn(l.columns[i], place, func(it *item) []int { return it.in })
			number(l.columns[i])
		}
		for i := range slices.Backward(l.columns) {
			l.sortColumn(l.columns[i], place, func(it *item) []int { return it.out })
			number(l.columns[i])
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.copyColumns(), n
		}
		if fewest == 0 {
			break
		}
	}
	l.columns = best
}

func (l *layout) copyColumns() [][]int {
	out := make([][]int, len(l.columns))
	for i, c := range l.columns {
		out[i] = slices.Clone(c)
	}
	return out
}

func (l *layout) sortColumn(column []int, place []float64, joined func(*item) []int) {
	middle := make(map[int]float64, len(column))
	for _, at := range column {
		middle[at] = mean(joined(&l.items[at]), place, place[at])
	}
	slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
}

// mean is the middle of some places, or another where there are none.
func mean(of []int, place []float64, none float64) float64 {
	if len(of) == 0 {
		return none
	}
	sum := 0.0
	for _, at := range of {
		sum += place[at]
	}
	return sum / float64(len(of))
}

// crossings counts how often segments cross.
func (l *layout) crossings() int {
	position := make([]int, len(l.items))
	for _, c := range l.columns {
		for i, at := range c {
			position[at] = i
		}
	}
	total := 0
	for i, c := range l.columns {
		if i+1 == len(l.columns) {
			break
		}
		// A segment crosses each earlier one that ends further down; a Fenwick tree
		// counts those.
		tree := make([]int, len(l.columns[i+1])+1)
		added := 0
		for _, at := range c {
			var ends []int
			for _, to := range l.items[at].out {
				ends = append(ends, position[to])
			}
			for _, end := range ends {
				total += added
				for k := end + 1; k > 0; k -= k & -k {
					total -= tree[k]
				}
			}
			for _, end := range ends {
				added++
				for k := end + 1; k < len(tree); k += k & -k {
					tree[k]++
				}
			}
		}
	}
	return total
}

// place moves every item as near to the middle of what it is joined to as the order
// of its column and the gaps allow, by least squares.
func (l *layout) place() {
	for _, c := range l.columns {
		l.settle(c, func(int) float64 { return 0 })
	}
	y := make([]float64, len(l.items))
	update := func() {
		for i := range l.items {
			y[i] = l.items[i].y
		}
	}
	for range sweeps {
		for _, c := range l.columns {
			update()
			l.settle(c, func(at int) float64 { return mean(l.items[at].in, y, y[at]) })
		}
		for _, c := range slices.Backward(l.columns) {
			update()
			l.settle(c, func(at int) float64 { return mean(l.items[at].out, y, y[at]) })
		}
	}
}

// settle solves the places of one column: of all that keep the order and the gaps,
// those with the least sum of squares of distances to the wanted middles. It is
// isotonic regression, by pooling adjacent violators.
func (l *layout) settle(column []int, wanted func(at int) float64) {
	type pool struct {
		sum, weight float64
		count       int
	}
	var pools []pool
	offset := make([]float64, len(column))
	for i, at := range column {
		it := &l.items[at]
		if i > 0 {
			before := &l.items[column[i-1]]
			offset[i] = offset[i-1] + (before.height+it.height)/2 + rowGap
		}
		p := pool{(wanted(at) - offset[i]) * it.weight, it.weight, 1}
		for len(pools) > 0 {
			q := pools[len(pools)-1]
			if q.sum/q.weight <= p.sum/p.weight {
				break
			}
			p = pool{p.sum + q.sum, p.weight + q.weight, p.count + q.count}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, p)
	}
	i := 0
	for _, p := range pools {
		for range p.count {
			l.items[column[i]].y = p.sum/p.weight + offset[i]
			i++
		}
	}
}

// picture rounds the places and moves them so that they begin at the margin.
func (l *layout) picture() *Picture {
	p := &Picture{View: l.view, Boxes: make([]Box, len(l.view.Nodes)), Width: 2 * margin, Height: head + 2*margin}
	top := math.Inf(1)
	for _, it := range l.items {
		top = min(top, it.y-it.height/2)
	}
	x := func(column int) int { return margin + column*(boxWidth+columnGap) }
	y := func(at int) int { return head + margin + int(math.Round(l.items[at].y-top)) }
	for i := range p.Boxes {
		p.Boxes[i] = Box{x(l.items[i].column), y(i) - boxHeight/2, boxWidth, boxHeight}
	}
	for i, it := range l.items {
		p.Width = max(p.Width, x(it.column)+boxWidth+margin)
		p.Height = max(p.Height, y(i)+int(it.height/2)+margin)
	}
	for i, n := range l.view.Nodes {
		at := slices.IndexFunc(p.Tiers, func(b Band) bool { return b.Tier == n.Tier })
		b := p.Boxes[i]
		if at < 0 {
			p.Tiers = append(p.Tiers, Band{n.Tier, b.X, b.Width})
			continue
		}
		t := &p.Tiers[at]
		end := max(t.X+t.Width, b.X+b.Width)
		t.X = min(t.X, b.X)
		t.Width = end - t.X
	}
	slices.SortFunc(p.Tiers, func(a, b Band) int { return cmp.Compare(a.Tier, b.Tier) })
	for s, selected := range l.segments {
		from, to := &l.items[s.from], &l.items[s.to]
		line := Line{
			X1: x(from.column) + boxWidth, Y1: y(s.from), X2: x(to.column), Y2: y(s.to),
			Starts: from.node >= 0, Ends: to.node >= 0, Source: s.source, Back: s.back, Selected: selected,
		}
		if to.node < 0 {
			line.Lane = boxWidth
		}
		p.Lines = append(p.Lines, line)
	}
	slices.SortFunc(p.Lines, func(a, b Line) int {
		return cmp.Or(
			boolCompare(b.Selected, a.Selected), boolCompare(b.Back, a.Back), boolCompare(b.Source, a.Source), cmp.Compare(a.X1, b.X1), cmp.Compare(a.Y1, b.Y1),
			cmp.Compare(a.X2, b.X2), cmp.Compare(a.Y2, b.Y2),
		)
	})
	return p
}
