package fluxgraph_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/fact"
	"signalbox/internal/web/fluxgraph"
)

var now = time.Date(2026, 9, 7, 12, 0, 0, 0, time.UTC)

func synced() map[string]fact.Watch {
	m := map[string]fact.Watch{}
	for _, k := range fluxgraph.Kinds() {
		m[k] = fact.Watch{State: fact.WatchSynced, Since: now}
	}
	return m
}

// object is the fact of a ready object, edited.
func object(kind, name string, edit func(*fact.Flux)) fact.Fact {
	f := fact.Fact{
		Key: fact.Kube("prod", kind, "flux-system", name), Since: now,
		Flux: &fact.Flux{Generation: 1, ObservedGeneration: 1, Ready: fact.Condition{Status: fact.True, Reason: "ReconciliationSucceeded"}},
	}
	if edit != nil {
		edit(f.Flux)
	}
	return f
}

// needs sets what an object needs; its source is the GitRepository "repo".
func needs(names ...string) func(*fact.Flux) {
	return func(f *fact.Flux) {
		f.Source = &fact.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "repo"}
		for _, n := range names {
			f.DependsOn = append(f.DependsOn, fact.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: n})
		}
	}
}

func ks(name string) fluxgraph.ID {
	return fluxgraph.ID{Kind: "kustomization", Namespace: "flux-system", Name: name}
}

func graphOf(facts ...fact.Fact) *fluxgraph.Graph {
	return fluxgraph.New(fluxgraph.Read(fluxgraph.Known{Facts: facts, Kinds: synced()}))
}

var links = fluxgraph.Links{
	Object: func(id fluxgraph.ID) string { return "?object=" + url.QueryEscape(id.String()) },
	Group:  func(n fluxgraph.Node) string { return "?state=" + string(n.State) },
}

func TestStates(t *testing.T) {
	condition := func(status, reason string) func(*fact.Flux) {
		return func(f *fact.Flux) { f.Ready = fact.Condition{Status: status, Reason: reason, Message: "some\n text"} }
	}
	tests := []struct {
		name string
		kind string
		edit func(*fact.Flux)
		want fluxgraph.State
		why  string
	}{
		{"ready", "Kustomization", nil, fluxgraph.Ready, "ReconciliationSucceeded"},
		{"failed", "Kustomization", condition(fact.False, "BuildFailed"), fluxgraph.NotReady, "BuildFailed: some text"},
		{"waits", "Kustomization", condition(fact.False, "DependencyNotReady"), fluxgraph.Waiting, "DependencyNotReady: some text"},
		{"works for too long", "HelmRelease", condition(fact.Unknown, "Progressing"), fluxgraph.Unknown, "it has been reconciling for too long to tell: Progressing: some text"},
		{"suspended and failed", "Kustomization", func(f *fact.Flux) { condition(fact.False, "BuildFailed")(f); f.Suspended = true }, fluxgraph.Suspended, "BuildFailed: some text"},
		{"deleted and suspended", "Kustomization", func(f *fact.Flux) { f.Deleting, f.Suspended = true, true }, fluxgraph.NotReady, "it is being deleted"},
		{"stalled", "HelmRelease", func(f *fact.Flux) { condition(fact.False, "RetriesExceeded")(f); f.Stalled = true }, fluxgraph.Stalled, "RetriesExceeded: some text"},
		{"changed and not taken up", "Kustomization", func(f *fact.Flux) { f.Generation = 2 }, fluxgraph.NotReady, "its latest change (generation 2) has not been taken up by the controller (at 1)"},
		{"new", "Kustomization", func(f *fact.Flux) { f.Ready = fact.Condition{} }, fluxgraph.NotReady, "it has not been reconciled yet"},
		{"of type oci", "HelmRepository", func(f *fact.Flux) { f.Ready = fact.Condition{} }, fluxgraph.NoStatus, "a HelmRepository of type oci reports none"},
		{"word that is not known", "Kustomization", condition("Perhaps", ""), fluxgraph.Unknown, "it has been reconciling for too long to tell: some text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := fluxgraph.Read(fluxgraph.Known{Facts: []fact.Fact{object(tt.kind, "x", tt.edit)}, Kinds: synced()})
			if len(got) != 1 || got[0].State != tt.want || got[0].Why != tt.why {
				t.Errorf("got %+v, want %s: %s", got, tt.want, tt.why)
			}
		})
	}
}

// TestNothingKnownIsNotGood takes away what the knowledge of a ready object rests on.
func TestNothingKnownIsNotGood(t *testing.T) {
	failing := synced()
	failing["kustomization"] = fact.Watch{State: fact.WatchFailing, Since: now.Add(-time.Hour), Message: "forbidden"}
	syncing := synced()
	syncing["kustomization"] = fact.Watch{State: fact.WatchSyncing, Since: now}
	unread := object("Kustomization", "apps", nil)
	unread.Problem = "it is no object"
	bare := unread
	bare.Flux = nil
	for name, tt := range map[string]struct {
		known fluxgraph.Known
		why   string
		last  fluxgraph.State
	}{
		"silent":      {fluxgraph.Known{Kinds: synced(), Silent: true, SilentSince: now}, "nothing is heard", fluxgraph.Ready},
		"failing":     {fluxgraph.Known{Kinds: failing}, "cannot be read: forbidden", fluxgraph.Ready},
		"syncing":     {fluxgraph.Known{Kinds: syncing}, "not arrived", fluxgraph.Ready},
		"not watched": {fluxgraph.Known{}, "does not watch", fluxgraph.Ready},
		"problem":     {fluxgraph.Known{Kinds: synced(), Facts: []fact.Fact{unread}}, "it is no object", fluxgraph.Ready},
		"no value":    {fluxgraph.Known{Kinds: synced(), Facts: []fact.Fact{bare}}, "it is no object", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.known.Facts == nil {
				tt.known.Facts = []fact.Fact{object("Kustomization", "apps", nil)}
			}
			got := fluxgraph.Read(tt.known)
			if len(got) != 1 || got[0].State != fluxgraph.Unknown || got[0].Last != tt.last || !strings.Contains(got[0].Why, tt.why) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWhatIsOnlyNamed(t *testing.T) {
	kinds := synced()
	kinds["ocirepository"] = fact.Watch{State: fact.WatchFailing, Message: "forbidden"}
	artifact := object("Kustomization", "c", func(f *fact.Flux) { f.Source = &fact.Ref{Kind: "ExternalArtifact", Namespace: "a", Name: "b"} })
	registry := object("Kustomization", "d", func(f *fact.Flux) { f.Source = &fact.Ref{Kind: "OCIRepository", Namespace: "a", Name: "b"} })
	gone := object("Kustomization", "gone", nil)
	gone.Absent, gone.Flux = true, nil
	got := fluxgraph.Read(fluxgraph.Known{Kinds: kinds, Facts: []fact.Fact{object("Kustomization", "a", needs("gone")), gone, artifact, registry}})
	states := map[string]fluxgraph.State{}
	for _, o := range got {
		states[o.String()] = o.State
	}
	want := map[string]fluxgraph.State{
		"kustomization/flux-system/a": fluxgraph.Ready, "kustomization/flux-system/gone": fluxgraph.Missing, "gitrepository/flux-system/repo": fluxgraph.Missing,
		"kustomization/flux-system/c": fluxgraph.Ready, "externalartifact/a/b": fluxgraph.Unknown,
		"kustomization/flux-system/d": fluxgraph.Ready, "ocirepository/a/b": fluxgraph.Unknown,
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCircles(t *testing.T) {
	g := graphOf(
		object("GitRepository", "repo", nil), object("Kustomization", "a", needs("c")), object("Kustomization", "b", needs("a")),
		object("Kustomization", "c", needs("b")), object("Kustomization", "after", needs("c")), object("Kustomization", "self", needs("self")),
	)
	want := [][]fluxgraph.ID{{ks("a"), ks("b"), ks("c")}, {ks("self")}}
	got := g.Circles()
	slices.SortFunc(got, func(a, b []fluxgraph.ID) int { return len(b) - len(a) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	v := g.View(fluxgraph.Choice{})
	back := 0
	for _, e := range v.Edges {
		if e.Back {
			back++
		}
	}
	var in []string
	for _, n := range v.Nodes {
		if n.Circle {
			in = append(in, n.Object.Name)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "self"}, in); diff != "" || back != 1 {
		t.Errorf("%d edges go back; (-want +got):\n%s", back, diff)
	}
}

func TestDependents(t *testing.T) {
	g := graphOf(object("GitRepository", "repo", nil), object("Kustomization", "a", needs()), object("Kustomization", "c", needs("a", "a")), object("Kustomization", "b", needs("a")))
	var got []string
	for _, o := range g.Dependents(ks("a")) {
		got = append(got, o.Name)
	}
	if diff := cmp.Diff([]string{"b", "c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// large is a cluster of n Kustomizations in tiers of a tenth of them, of which every
// hundredth failed.
func large(n int) []fact.Fact {
	facts := []fact.Fact{object("GitRepository", "repo", nil)}
	for i := range n {
		var on []string
		if tier := n / 10; i >= tier {
			on = []string{fmt.Sprintf("app-%04d", i-tier), fmt.Sprintf("app-%04d", (i-tier)/7)}
		}
		facts = append(facts, object("Kustomization", fmt.Sprintf("app-%04d", i), func(f *fact.Flux) {
			needs(on...)(f)
			f.Applied = "main@sha1:" + strings.Repeat("0123456789", 4)
			f.Ready.Message = "Applied revision: " + f.Applied
			if i%100 == 99 {
				f.Ready = fact.Condition{Status: fact.False, Reason: "HealthCheckFailed", Message: strings.Repeat("timeout waiting for it ", 30)}
			}
		}))
	}
	return facts
}

func TestLargeClusters(t *testing.T) {
	g := graphOf(large(2000)...)
	for name, tt := range map[string]struct {
		choice    fluxgraph.Choice
		problems  bool
		crowded   bool
		atMost    int
		sizeBelow int
	}{
		"by itself":    {choice: fluxgraph.Choice{}, problems: true, atMost: 150, sizeBelow: 135 << 10},
		"problems":     {choice: fluxgraph.Choice{Show: fluxgraph.ShowProblems}, atMost: 150, sizeBelow: 135 << 10},
		"all":          {choice: fluxgraph.Choice{Show: fluxgraph.ShowAll}, crowded: true, atMost: 300, sizeBelow: 265 << 10},
		"text":         {choice: fluxgraph.Choice{Text: "app-00"}, atMost: 150, sizeBelow: 135 << 10},
		"too much":     {choice: fluxgraph.Choice{Text: "app-1"}, crowded: true, atMost: 150, sizeBelow: 135 << 10},
		"one in a lot": {choice: fluxgraph.Choice{Selected: ks("app-1500")}, problems: true, atMost: 150, sizeBelow: 135 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			v := g.View(tt.choice)
			if v.Problems != tt.problems || v.Crowded > 0 != tt.crowded || v.Total != 2001 || v.Total-v.Grouped > tt.atMost {
				t.Errorf("view %+v", *v)
			}
			svg, err := v.Layout().SVG(links)
			if err != nil || len(svg) > tt.sizeBelow {
				t.Errorf("%d bytes, want fewer than %d; %v", len(svg), tt.sizeBelow, err)
			}
			if tt.choice.Selected.Name != "" && !slices.ContainsFunc(v.Nodes, func(n fluxgraph.Node) bool { return n.Selected && n.Object.Name == "app-1500" }) {
				t.Error("what is selected is not shown")
			}
		})
	}
}

// TestTheCauseIsShownFirst breaks the source of everything: then everything is a
// problem, and the source must not drown.
func TestTheCauseIsShownFirst(t *testing.T) {
	facts := large(2000)
	facts[0].Flux.Ready = fact.Condition{Status: fact.False, Reason: "GitOperationFailed"}
	for _, f := range facts[1:] {
		f.Flux.Ready = fact.Condition{Status: fact.False, Reason: "DependencyNotReady"}
	}
	v := graphOf(facts...).View(fluxgraph.Choice{})
	if !slices.ContainsFunc(v.Nodes, func(n fluxgraph.Node) bool { return n.Object != nil && n.Object.Name == "repo" }) {
		t.Error("the source is in a group")
	}
	if v.Crowded != 2001-150 || v.Grouped != 2001-150 {
		t.Errorf("crowded %d, grouped %d", v.Crowded, v.Grouped)
	}
}

func TestChartsOfNobodyAreAGroup(t *testing.T) {
	facts := []fact.Fact{object("GitRepository", "repo", nil), object("Kustomization", "a", needs())}
	for i := range 9 {
		facts = append(facts, object("HelmChart", fmt.Sprintf("c%d", i), nil))
	}
	facts = append(facts, object("HelmChart", "broken", func(f *fact.Flux) { f.Ready.Status = fact.False }))
	g := graphOf(facts...)
	v := g.View(fluxgraph.Choice{})
	at := slices.IndexFunc(v.Nodes, func(n fluxgraph.Node) bool { return n.Object == nil })
	if at < 0 || v.Nodes[at].Count != 9 || !v.Nodes[at].Loose || v.Nodes[at].Kind != "helmchart" || v.Grouped != 9 || v.Crowded != 0 {
		t.Errorf("view %+v", *v)
	}
	if v := g.View(fluxgraph.Choice{Show: fluxgraph.ShowAll}); v.Grouped != 0 {
		t.Errorf("all, with %d in groups", v.Grouped)
	}
}

// drawGraph draws a random cluster: any dependencies, circles and dangling ones too.
func drawGraph(t *rapid.T) *fluxgraph.Graph {
	n := rapid.IntRange(0, 260).Draw(t, "objects")
	name := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, max(1, n)), func(i int) string { return fmt.Sprint("app-", i) }),
		rapid.StringN(1, 12, 40),
	)
	var facts []fact.Fact
	for i := range n {
		kind := rapid.SampledFrom(append(fluxgraph.Kinds(), "kustomization", "kustomization", "kustomization")).Draw(t, "kind")
		who := fmt.Sprint("app-", i)
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			who = name.Draw(t, "name")
		}
		facts = append(facts, object(kind, who, func(f *fact.Flux) {
			f.Ready.Status = rapid.SampledFrom([]string{fact.True, fact.True, fact.True, fact.False, fact.Unknown, ""}).Draw(t, "ready")
			f.Suspended = rapid.IntRange(0, 20).Draw(t, "suspended") == 0
			if kind != "kustomization" && kind != "helmrelease" {
				return
			}
			f.Source = &fact.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: name.Draw(t, "source")}
			for range rapid.IntRange(0, 3).Draw(t, "dependencies") {
				f.DependsOn = append(f.DependsOn, fact.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: name.Draw(t, "on")})
			}
		}))
	}
	return graphOf(facts...)
}

func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		c := fluxgraph.Choice{
			Show: rapid.SampledFrom([]fluxgraph.Show{fluxgraph.ShowAuto, fluxgraph.ShowAll, fluxgraph.ShowProblems}).Draw(t, "show"),
			Text: rapid.SampledFrom([]string{"", "", "app-1", "kustomization 2"}).Draw(t, "text"),
		}
		v := g.View(c)
		checkCounts(t, g, v)
		p := v.Layout()
		checkPlaces(t, v, p)
		svg, err := p.SVG(links)
		if err != nil {
			t.Fatal(err)
		}
		checkXML(t, string(svg), len(v.Nodes))
		again, err := g.View(c).Layout().SVG(links)
		if err != nil || again != svg {
			t.Fatalf("the same view was drawn in another way (%v)", err)
		}
	})
}

// checkCounts checks that every object is shown once, by itself or in a group of its
// state.
func checkCounts(t *rapid.T, g *fluxgraph.Graph, v *fluxgraph.View) {
	want, got := fluxgraph.Count(g.Objects()), fluxgraph.Counts{}
	alone := map[fluxgraph.ID]int{}
	grouped := 0
	for _, n := range v.Nodes {
		got[n.State] += n.Count
		if n.Object == nil {
			grouped += n.Count
			continue
		}
		alone[n.Object.ID]++
		if n.Object.State != n.State || alone[n.Object.ID] > 1 {
			t.Fatalf("%s is %s, shown as %s", n.Object.ID, n.Object.State, n.State)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || grouped != v.Grouped || v.Total != len(g.Objects()) {
		t.Fatalf("%d of %d in groups, said %d (-want +got):\n%s", grouped, v.Total, v.Grouped, diff)
	}
	references := 0
	for _, o := range g.Objects() {
		for _, d := range g.Dependents(o.ID) {
			if d.Source != nil && *d.Source == o.ID {
				references++
			}
			if slices.Contains(d.DependsOn, o.ID) {
				references++
			}
		}
	}
	drawn := 0
	for _, e := range v.Edges {
		drawn += e.Count
	}
	if v.Grouped == 0 && len(g.Circles()) == 0 && drawn != references {
		t.Fatalf("%d references are drawn, of %d", drawn, references)
	}
}

func checkPlaces(t *rapid.T, v *fluxgraph.View, p *fluxgraph.Picture) {
	for i, a := range p.Boxes {
		if a.X < 0 || a.Y < 0 || a.X+a.Width > p.Width || a.Y+a.Height > p.Height {
			t.Fatalf("%+v is outside of the picture of %dx%d", a, p.Width, p.Height)
		}
		for j, b := range p.Boxes[:i] {
			if a.X < b.X+b.Width && b.X < a.X+a.Width && a.Y < b.Y+b.Height && b.Y < a.Y+a.Height {
				t.Fatalf("boxes %d and %d overlap: %+v %+v", i, j, a, b)
			}
			if (v.Nodes[i].Tier < v.Nodes[j].Tier) != (a.X < b.X) && v.Nodes[i].Tier != v.Nodes[j].Tier {
				t.Fatalf("tiers %d and %d stand the wrong way round", v.Nodes[i].Tier, v.Nodes[j].Tier)
			}
		}
	}
	for _, e := range v.Edges {
		from, to := p.Boxes[e.From], p.Boxes[e.To]
		if e.Back {
			from, to = to, from
		}
		if from.X+from.Width >= to.X {
			t.Fatalf("an edge does not go right: %+v", e)
		}
	}
	for _, l := range p.Lines {
		if l.X1 >= l.X2 {
			t.Fatalf("a line does not go right: %+v", l)
		}
		for _, b := range p.Boxes {
			if l.Lane > 0 && l.Y2 > b.Y && l.Y2 < b.Y+b.Height && l.X2 < b.X+b.Width && b.X < l.X2+l.Lane {
				t.Fatalf("a line passes through a box: %+v %+v", l, b)
			}
		}
	}
}

// checkXML checks that a picture is well-formed XML with as many links as nodes, and
// nothing that a page with a strict policy would not take.
func checkXML(t interface{ Fatalf(string, ...any) }, svg string, nodes int) {
	d := xml.NewDecoder(strings.NewReader(svg))
	d.Entity = xml.HTMLEntity
	count := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "a":
			count++
		case "script", "style", "image", "foreignObject":
			t.Fatalf("there is a %s", start.Name.Local)
		}
		for _, a := range start.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Fatalf("there is %s=%q", a.Name.Local, a.Value)
			}
		}
	}
	if count != nodes {
		t.Fatalf("%d links for %d nodes", count, nodes)
	}
}

func TestHostileNames(t *testing.T) {
	evil := `</title></text><script>alert(1)</script>"'><a href="javascript:alert(1)">` + "\u202e\x00\xff𒐫"
	g := graphOf(object("GitRepository", evil, nil), object("Kustomization", evil, func(f *fact.Flux) {
		f.Source = &fact.Ref{Kind: evil, Namespace: evil, Name: evil}
		f.DependsOn = []fact.Ref{{Kind: evil, Namespace: evil, Name: evil}}
		f.Ready.Message, f.Applied, f.Attempted = evil, evil, evil
	}))
	v := g.View(fluxgraph.Choice{})
	svg, err := v.Layout().SVG(links)
	if err != nil {
		t.Fatal(err)
	}
	checkXML(t, string(svg), len(v.Nodes))
	for _, bad := range []string{"<script", "\u202e", "\x00", "\xff", `"javascript:`} {
		if strings.Contains(string(svg), bad) {
			t.Errorf("%q got through:\n%s", bad, svg)
		}
	}
	if fluxgraph.Sign(fluxgraph.State(evil)) != "" {
		t.Error("a state that there is not has a sign")
	}
}

func TestRevision(t *testing.T) {
	commit := strings.Repeat("0123456789", 4)
	for in, want := range map[string]string{
		"main@sha1:" + commit: "main@0123456789", "sha1:" + commit: "0123456789", "6.5.1": "6.5.1", "": "", "a\u202eb": "a\uFFFDb",
	} {
		if got := fluxgraph.Revision(in); got != want {
			t.Errorf("Revision(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("kustomization/flux-system/apps")
	f.Add("a//b/c")
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := fluxgraph.ParseID(s)
		if !ok {
			return
		}
		if again, ok := fluxgraph.ParseID(id.String()); !ok || again != id {
			t.Errorf("%q is %+v, which is written %q", s, id, id)
		}
	})
}

func BenchmarkLargeCluster(b *testing.B) {
	facts := large(2000)
	for _, show := range []fluxgraph.Show{fluxgraph.ShowAuto, fluxgraph.ShowAll} {
		b.Run("show="+string(show), func(b *testing.B) {
			for b.Loop() {
				if _, err := graphOf(facts...).View(fluxgraph.Choice{Show: show}).Layout().SVG(links); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
