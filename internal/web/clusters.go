package web

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/web/fluxgraph"
)

// clusters lists the clusters of the configuration.
func (s *Server) clusters(w http.ResponseWriter, v *visit) error {
	var data struct{ Clusters []*clusterState }
	for _, name := range s.Clusters {
		data.Clusters = append(data.Clusters, s.clusterNow(name))
	}
	return s.show(w, v, page{Template: "clusters", Title: "Clusters", Nav: "/clusters", Live: "all", Data: data})
}

// clusterQuery is what is asked of the page of a cluster.
type clusterQuery struct {
	fluxgraph.Choice
	Kind  string
	State fluxgraph.State
	// Tier is -1 for any.
	Tier int

	path   string
	values url.Values
}

func (s *Server) clusterQueryOf(name string, values url.Values) clusterQuery {
	q := clusterQuery{path: s.path("/clusters/" + url.PathEscape(name)), values: values, Tier: -1}
	q.Text, q.Namespace = strings.TrimSpace(values.Get("q")), strings.TrimSpace(values.Get("namespace"))
	q.Kind = strings.ToLower(values.Get("kind"))
	if show := fluxgraph.Show(values.Get("show")); show == fluxgraph.ShowAll || show == fluxgraph.ShowProblems {
		q.Show = show
	}
	if state := fluxgraph.State(values.Get("state")); slices.Contains(fluxgraph.States(), state) {
		q.State = state
	}
	if tier, err := strconv.Atoi(values.Get("tier")); err == nil && tier >= 0 {
		q.Tier = tier
	}
	q.Selected, _ = fluxgraph.ParseID(values.Get("object"))
	return q
}

// Filtered reports whether anything narrows the table.
func (q clusterQuery) Filtered() bool {
	return q.Text != "" || q.Namespace != "" || q.Kind != "" || q.State != "" || q.Tier >= 0 || q.Show == fluxgraph.ShowProblems
}

func (q clusterQuery) address(values url.Values) string {
	if len(values) == 0 {
		return q.path
	}
	return q.path + "?" + values.Encode()
}

func (q clusterQuery) objectURL(id fluxgraph.ID) string {
	return q.address(with(q.values, "object", id.String())) + "#object"
}

func (q clusterQuery) groupURL(n fluxgraph.Node) string {
	return q.address(with(q.values, "state", string(n.State), "tier", strconv.Itoa(n.Tier), "kind", n.Kind, "page", "")) + "#objects"
}

func (q clusterQuery) stateURL(state fluxgraph.State) string {
	return q.address(with(q.values, "state", string(state), "page", "", "tier", "")) + "#objects"
}

// clusterPage is what the page of a cluster shows.
type clusterPage struct {
	*clusterState
	Query    clusterQuery
	Filtered bool
	// All is the page without a filter, and Everything the same with all objects in
	// the graph.
	All, Everything string
	Shapes          template.HTML
	Graph           template.HTML
	View            *fluxgraph.View
	Shown           int
	Circles         []string
	Legend          []fluxState
	Chips           []stateChip
	Rows            []objectRow
	Pager           pager
	Object          *objectPage
	// Lost is the name of an object that was asked for and is not there.
	Lost         string
	Shows, Kinds []option
	States       []option
	Namespaces   []string
	Deselect     string
}

// stateChip leads to the objects in a state.
type stateChip struct {
	stateCount
	URL  string
	Here bool
}

// cluster shows one cluster.
func (s *Server) cluster(w http.ResponseWriter, v *visit) error {
	name := v.PathValue("name")
	if !slices.Contains(s.Clusters, name) {
		return errNotFound
	}
	c := s.clusterNow(name)
	q := s.clusterQueryOf(name, v.URL.Query())
	data := clusterPage{
		clusterState: c, Query: q, Filtered: q.Filtered(), Shapes: fluxgraph.Shapes, View: c.graph.View(q.Choice),
		All: q.path, Everything: q.address(with(q.values, "show", "all", "page", "")), Deselect: q.address(with(q.values, "object", "")),
		Shows:  options(string(q.Show), "", "what fits", "problems", "problems", "all", "everything"),
		States: options(string(q.State), "", "any state"), Kinds: options(q.Kind, "", "any kind"),
	}
	var err error
	if data.Graph, err = data.View.Layout().SVG(fluxgraph.Links{Object: q.objectURL, Group: q.groupURL}); err != nil {
		return err
	}
	data.Shown = data.View.Total - data.View.Grouped
	for _, circle := range c.graph.Circles() {
		data.Circles = append(data.Circles, describeCircle(circle))
	}
	for _, n := range c.Counts {
		data.Legend = append(data.Legend, n.fluxState)
		data.Chips = append(data.Chips, stateChip{n, q.stateURL(n.State), n.State == q.State})
	}
	for _, state := range fluxgraph.States() {
		data.States = append(data.States, option{string(state), state.Word(), state == q.State})
	}
	for _, kind := range fluxgraph.Kinds() {
		data.Kinds = append(data.Kinds, option{kind, fluxgraph.KindName(kind), kind == q.Kind})
	}
	data.Namespaces = namespaces(c.graph)
	data.Rows, data.Pager = paginate(q.rows(c.graph), q.values, func(u url.Values) string { return q.address(u) + "#objects" })
	if asked := q.values.Get("object"); asked != "" {
		if data.Object = s.objectOf(v, c, q); data.Object == nil {
			data.Lost = asked
		}
	}
	return s.show(w, v, page{
		Template: "cluster", Title: "Cluster " + name, Nav: "/clusters", Live: url.Values{"cluster": {name}}.Encode(), Data: data,
	})
}

// maxNamespaces bounds the namespaces that a field proposes.
const maxNamespaces = 100

func namespaces(g *fluxgraph.Graph) []string {
	seen := map[string]bool{}
	var out []string
	for _, o := range g.Objects() {
		// What cannot be written into a field is not proposed for it.
		if !seen[o.Namespace] && o.Namespace != "" && clean(o.Namespace) == o.Namespace {
			seen[o.Namespace] = true
			out = append(out, o.Namespace)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxNamespaces)]
}

// maxCircle bounds how many objects of a circle are named.
const maxCircle = 8

func describeCircle(ids []fluxgraph.ID) string {
	var names []string
	for _, id := range ids[:min(len(ids), maxCircle)] {
		names = append(names, fluxgraph.KindName(id.Kind)+" "+id.Namespace+"/"+id.Name)
	}
	if more := len(ids) - maxCircle; more > 0 {
		names = append(names, strconv.Itoa(more)+" more")
	}
	return strings.Join(names, ", ")
}

// maxDependents bounds the dependents of an object that are named.
const maxDependents = 50

// objectPage is what is shown of the object that is selected.
type objectPage struct {
	objectRow
	Fact fact.Fact
	// Known says that the cluster has it, or had it when it was last read.
	Known      bool
	Circle     bool
	Source     *objectRow
	DependsOn  []objectRow
	NeededBy   []objectRow
	MoreNeedIt int
	Pulls      []policy.Standing
	// Message is what the controller says, with its lines, and Reason its word.
	Message, Reason string
	// Explained is what signalbox makes of it, if that is not the same.
	Explained string
}

// objectOf returns what is shown of the selected object, or nil if there is none.
func (s *Server) objectOf(v *visit, c *clusterState, q clusterQuery) *objectPage {
	o, ok := c.graph.Object(q.Selected)
	if !ok {
		return nil
	}
	row := func(o fluxgraph.Object) objectRow { return objectRow{Object: o, URL: q.objectURL(o.ID)} }
	p := &objectPage{objectRow: row(o), Explained: o.Why}
	key := fact.Kube(c.Name, o.Kind, o.Namespace, o.Name)
	if f, ok := s.Facts.Lookup(key); ok && !f.Absent {
		p.Fact, p.Known = f, true
		if f.Flux != nil {
			p.Message, p.Reason = f.Flux.Ready.Message, f.Flux.Ready.Reason
		}
		if text := clean(p.Message); text != "" && strings.Contains(clean(o.Why), text) || o.Why == p.Reason {
			p.Explained = ""
		}
	}
	for _, circle := range c.graph.Circles() {
		p.Circle = p.Circle || slices.Contains(circle, o.ID)
	}
	if o.Source != nil {
		if source, ok := c.graph.Object(*o.Source); ok {
			r := row(source)
			p.Source = &r
		}
	}
	for _, id := range o.DependsOn {
		if on, ok := c.graph.Object(id); ok {
			p.DependsOn = append(p.DependsOn, row(on))
		}
	}
	dependents := c.graph.Dependents(o.ID)
	p.MoreNeedIt = max(0, len(dependents)-maxDependents)
	for _, d := range dependents[:min(len(dependents), maxDependents)] {
		p.NeededBy = append(p.NeededBy, row(d))
	}
	for _, ref := range s.Pulls.Readers(key) {
		if !v.sight.repo(ref.RepoID) {
			continue
		}
		if standing, ok := s.Pulls.Get(ref); ok {
			p.Pulls = append(p.Pulls, standing)
		}
	}
	return p
}
