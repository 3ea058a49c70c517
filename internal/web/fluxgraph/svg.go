package fluxgraph

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"

	"signalbox/internal/fact"
)

// Links are where the parts of a picture lead; the results are addresses.
type Links struct {
	// Object leads to the page with an object selected.
	Object func(ID) string
	// Group leads to the list of what is in a group.
	Group func(Node) string
}

// maxTitle bounds the message in the title of a node, in characters.
const maxTitle = 160

// SVG writes a picture. All that it holds from outside is escaped, and it has neither
// style nor script: the classes, which begin with "fg-", are for the page to colour.
//
// It is a group of links and no image to readers of screens, since an image has no
// links in it. The lines are hidden from them: what an object needs is for the page to
// list.
func (p *Picture) SVG(links Links) (template.HTML, error) {
	data := drawing{
		Picture: p, Right: p.Width, Label: p.label(),
		ClipWidth: boxWidth + 4, ClipHeight: boxHeight + 4,
		Paths: drawLines(p.Lines),
	}
	for _, t := range p.Tiers {
		name := "Tier " + strconv.Itoa(t.Tier)
		if t.Tier == 0 {
			name = "Sources"
		}
		data.Bands = append(data.Bands, drawnBand{t, name, p.Height})
	}
	for i, n := range p.View.Nodes {
		data.Boxes = append(data.Boxes, drawNode(n, p.Boxes[i], links))
	}
	var b strings.Builder
	if err := svgTemplate.Execute(&b, data); err != nil {
		return "", fmt.Errorf("draw the graph: %w", err)
	}
	return template.HTML(b.String()), nil //nolint:gosec // It was made by html/template.
}

func (p *Picture) label() string {
	return fmt.Sprintf("What depends on what: %s, of which %d stand for themselves", plural(p.View.Total, "object"), p.View.Total-p.View.Grouped)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

type drawing struct {
	*Picture
	Right                 int
	Label                 string
	ClipWidth, ClipHeight int
	Bands                 []drawnBand
	Paths                 []*drawnPath
	Boxes                 []drawnBox
}

type drawnBand struct {
	Band
	Name   string
	Height int
}

type drawnPath struct {
	Class string
	Heads bool
	D     strings.Builder
}

type drawnBox struct {
	Box
	Class, Href, Title string
	State              State
	Name, Detail       string
	Circle             bool
}

// drawLines makes one path of all lines of a kind, which keeps large pictures small,
// and one of their arrowheads. What is selected comes last, on top of the others.
func drawLines(lines []Line) []*drawnPath {
	var out []*drawnPath
	for i, l := range lines {
		class := ""
		if l.Source {
			class += " fg-source"
		}
		if l.Back {
			class += " fg-back"
		}
		if l.Selected {
			class += " fg-chosen"
		}
		if i == 0 || class != out[len(out)-2].Class {
			out = append(out, &drawnPath{Class: class}, &drawnPath{Class: class, Heads: true})
		}
		drawLine(l, &out[len(out)-2].D, &out[len(out)-1].D)
	}
	return out
}

func drawLine(l Line, line, heads *strings.Builder) {
	x1, x2 := l.X1, l.X2
	switch {
	case l.Back && l.Starts:
		x1 += arrow
		fmt.Fprintf(heads, "M%d %dl%d-4v8z", l.X1, l.Y1, arrow)
	case !l.Back && l.Ends:
		x2 -= arrow
		fmt.Fprintf(heads, "M%d %dl-%d-4v8z", l.X2, l.Y2, arrow)
	}
	bend, dy := (x2-x1)/2, l.Y2-l.Y1
	fmt.Fprintf(line, "M%d %d", x1, l.Y1)
	if dy == 0 {
		fmt.Fprintf(line, "h%d", x2-x1+l.Lane)
		return
	}
	fmt.Fprintf(line, "c%d 0 %d %d %d %d", bend, x2-x1-bend, dy, x2-x1, dy)
	if l.Lane > 0 {
		fmt.Fprintf(line, "h%d", l.Lane)
	}
}

// arrow is the length of an arrowhead, in pixels.
const arrow = 7

// Where the text of a box begins, in pixels, and how much goes into it, in columns of a
// terminal: a name stands in bold.
const (
	textLeft  = 34
	nameWidth = 18
	lineWidth = 25
)

func drawNode(n Node, at Box, links Links) drawnBox {
	d := drawnBox{Box: at, State: n.State, Circle: n.Circle, Class: "fg-node fg-" + string(n.State)}
	if n.Selected {
		d.Class += " fg-chosen"
	}
	if n.Object == nil {
		d.Class += " fg-group"
		d.Href = links.Group(n)
		d.Name = fmt.Sprintf("%d %s", n.Count, n.State.Word())
		switch {
		case n.Loose:
			d.Detail = KindName(n.Kind) + ", not used here"
			d.Title = fmt.Sprintf("%s of kind %s, state: %s. No object of Flux here uses them.", plural(n.Count, "object"), KindName(n.Kind), n.State.Word())
		default:
			d.Detail = "not shown one by one"
			d.Title = fmt.Sprintf("%s, state: %s. They are not shown one by one; the list below has them.", plural(n.Count, "object"), n.State.Word())
		}
		d.Name, d.Detail = fit(d.Name, nameWidth), fit(d.Detail, lineWidth)
		return d
	}
	o := n.Object
	if !n.Seed {
		d.Class += " fg-beside"
	}
	d.Href = links.Object(o.ID)
	d.Name = fit(Visible(o.Name), nameWidth)
	state := o.State.Word()
	d.Detail = state + " · " + fit(short(o.Kind)+" "+Visible(o.Namespace), lineWidth-len(state)-3)
	d.Title = title(n)
	return d
}

// short is a kind in few letters, as kubectl has it for most.
func short(kind string) string {
	switch kind {
	case "kustomization":
		return "ks"
	case "helmrelease":
		return "hr"
	case "gitrepository":
		return "git"
	case "ocirepository":
		return "oci"
	case "helmrepository":
		return "helm"
	case "helmchart":
		return "chart"
	default:
		return Visible(kind)
	}
}

func title(n Node) string {
	o := n.Object
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s: %s", KindName(o.Kind), Visible(o.Namespace), Visible(o.Name), o.State.Word())
	if o.Last != "" {
		b.WriteString(", last known: " + o.Last.Word())
	}
	if !o.Since.IsZero() {
		b.WriteString(" since " + o.Since.UTC().Format(time.RFC3339))
	}
	if o.Applied != "" {
		b.WriteString("\nrevision " + Revision(o.Applied))
	}
	if o.Why != "" && o.State != Ready {
		b.WriteString("\n" + cut(Visible(o.Why), maxTitle))
	}
	if n.Circle {
		b.WriteString("\nIt waits for itself, in a circle of dependencies.")
	}
	return b.String()
}

// shortCommit is how many letters of a commit are shown.
const shortCommit = 10

// Revision is a revision of Flux for people: the branch and the beginning of the
// commit, where there are such.
func Revision(s string) string {
	r := fact.ParseRevision(s)
	switch {
	case r.Commit == "":
		return cut(Visible(s), 60)
	case r.Branch == "":
		return r.Commit[:shortCommit]
	default:
		return cut(Visible(r.Branch), 40) + "@" + r.Commit[:shortCommit]
	}
}

// Visible makes what has no glyph of its own visible, so that a text cannot turn
// round or hide what stands beside it.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func cut(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}

// fit cuts a text to a width. Letters of the scripts of East Asia and pictures count
// double; what is wider all the same is clipped by the box.
func fit(s string, most int) string {
	width := 0
	last := 0
	for i, r := range s {
		w := 1
		if r >= 0x1100 {
			w = 2
		}
		if width+w > most {
			return s[:last] + "…"
		}
		if width+w < most {
			last = i + len(string(r))
		}
		width += w
	}
	return s
}

var svgTemplate = template.Must(template.New("graph").Parse(`<svg class="fg" role="group" aria-label="{{.Label}}" width="{{.Right}}" height="{{.Height}}" viewBox="0 0 {{.Right}} {{.Height}}">
<defs>
<clipPath id="fg-clip"><rect x="-2" y="-2" width="{{.ClipWidth}}" height="{{.ClipHeight}}"/></clipPath>
</defs>
{{range .Bands}}<g class="fg-tier" aria-hidden="true"><rect x="{{.X}}" y="6" width="{{.Width}}" height="22" rx="6"/><text x="{{.X}}" y="21" dx="10">{{.Name}}</text></g>
{{end}}<g class="fg-edges" aria-hidden="true">
{{range .Paths}}<path class="{{if .Heads}}fg-heads{{else}}fg-edge{{end}}{{.Class}}" d="{{.D.String}}"/>
{{end}}</g>
{{range .Boxes}}<a class="{{.Class}}" href="{{.Href}}"><g transform="translate({{.X}} {{.Y}})" clip-path="url(#fg-clip)"><title>{{.Title}}</title><rect width="{{.Width}}" height="{{.Height}}" rx="8"/><use href="#fg-s-{{.State}}" x="10" y="15" width="16" height="16"/><text class="fg-name" x="` + strconv.Itoa(textLeft) + `" y="20">{{.Name}}</text><text class="fg-what" x="` + strconv.Itoa(textLeft) + `" y="36">{{.Detail}}</text>{{if .Circle}}<path class="fg-circle" d="M184 8a5 5 0 1 0 2 4m0-5v4h-4"/>{{end}}</g></a>
{{end}}</svg>`))

// Shapes are the signs of the states, which have to stand once on a page that has
// pictures or signs. They are shapes, since fonts differ in what they have.
const Shapes template.HTML = `<svg class="fg-shapes" aria-hidden="true" width="0" height="0">
<symbol id="fg-s-ready" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="m4.5 8.3 2.4 2.4 4.6-5"/></symbol>
<symbol id="fg-s-not-ready" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="m5.2 5.2 5.6 5.6m0-5.6-5.6 5.6"/></symbol>
<symbol id="fg-s-stalled" viewBox="0 0 16 16"><path class="fg-fill" d="M5 .5h6L15.5 5v6L11 15.5H5L.5 11V5z"/><path d="M8 4v4.6M8 11.6v.4"/></symbol>
<symbol id="fg-s-missing" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="M4.5 8h7"/></symbol>
<symbol id="fg-s-unknown" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="M5.7 6.2a2.3 2.3 0 1 1 3.5 2C8.3 8.7 8 9 8 9.7M8 12v.3"/></symbol>
<symbol id="fg-s-waiting" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="M8 4v4.2l2.6 1.6"/></symbol>
<symbol id="fg-s-suspended" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="M6.2 5v6m3.6-6v6"/></symbol>
<symbol id="fg-s-no-status" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="M5 8h.1M8 8h.1M11 8h.1"/></symbol>
</svg>`

// Sign is the sign of a state for lists and legends; the word has to stand beside it,
// and [Shapes] on the page.
func Sign(s State) template.HTML {
	// States also come in addresses; only known ones have a shape.
	if s.rank() < 0 {
		return ""
	}
	return template.HTML(`<svg class="fg-sign fg-` + string(s) + `" aria-hidden="true" width="16" height="16"><use href="#fg-s-` + string(s) + `" width="16" height="16"/></svg>`) //nolint:gosec // It is made of constants.
}
