package chart

import (
	"fmt"
	"image/color"
	"slices"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"signalbox/internal/digest"
)

// look is the colors of a picture.
type look struct {
	ground, ink, faint, grid, ready color.RGBA
	// sections are in the order of a digest. They can be told apart by people who do
	// not see every color (after Okabe and Ito), and lie in this order upon each other.
	sections []color.RGBA
}

var (
	light = look{
		ground: rgb(0xffffff), ink: rgb(0x1f2328), faint: rgb(0x6e7781), grid: rgb(0xe1e5ea), ready: rgb(0x1a7f56),
		sections: []color.RGBA{rgb(0xd55e00), rgb(0xe69f00), rgb(0x0072b2), rgb(0x56b4e9), rgb(0x8a63a6)},
	}
	night = look{
		ground: rgb(0x0d1117), ink: rgb(0xe6edf3), faint: rgb(0x8d96a0), grid: rgb(0x2a313a), ready: rgb(0x3fb984),
		sections: []color.RGBA{rgb(0xe8703a), rgb(0xf0b440), rgb(0x3b8fd6), rgb(0x7cc7f2), rgb(0xb08fcc)},
	}
)

func rgb(v uint32) color.RGBA {
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}

// text is how letters of a size look.
func (l look) text(size vg.Length, strong bool) draw.TextStyle {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	s := draw.TextStyle{Color: l.faint, Font: f, Handler: text.Plain{Fonts: font.DefaultCache}}
	if strong {
		s.Color, s.Font.Weight = l.ink, xfont.WeightBold
	}
	return s
}

// title writes what a panel shows and its last value, and some words beside.
func (p panel) title(c draw.Canvas, title, words string) {
	style := p.look.text(25, true)
	style.YAlign = draw.YCenter
	at := vg.Point{X: 16, Y: c.Max.Y - 26}
	c.FillText(style, at, title)
	beside := p.look.text(20, false)
	beside.YAlign = draw.YCenter
	c.FillText(beside, vg.Point{X: at.X + style.Width(title) + 14, Y: at.Y - 1}, words)
}

// legend names the sections, each with its last value if there is room for that, from
// the right.
func (p panel) legend(c draw.Canvas, samples []digest.Sample) {
	const square, gap = 16, 20
	last := samples[len(samples)-1]
	style := p.look.text(20, false)
	style.YAlign = draw.YCenter
	sections := digest.Sections()
	label := func(i int, counted bool) string {
		if n := last.Open[sections[i]]; n > 0 && counted {
			return fmt.Sprintf("%s %d", sections[i], n)
		}
		return string(sections[i])
	}
	width := vg.Length(0)
	for i := range sections {
		width += style.Width(label(i, true)) + square + 7 + gap
	}
	const room = Width * 0.7
	x, y := c.Max.X-right, c.Max.Y-26
	for i, section := range slices.Backward(sections) {
		text, s := label(i, width < room), style
		if last.Open[section] > 0 {
			s.Color = p.look.ink
		}
		x -= s.Width(text)
		c.FillText(s, vg.Point{X: x, Y: y - 1}, text)
		x -= square + 7
		c.FillPolygon(p.look.sections[i], []vg.Point{{X: x, Y: y - square/2}, {X: x + square, Y: y - square/2}, {X: x + square, Y: y + square/2}, {X: x, Y: y + square/2}})
		x -= gap
	}
}

// band fills what is between two lines and draws the upper one, both as steps: a value
// holds until the next. A lower of nil is the bottom. A single sample is a dot. What
// has no color is not drawn.
func (p panel) band(pl *plot.Plot, area draw.Canvas, upper, lower []vg.Point, line, fill color.RGBA) {
	toX, toY := pl.Transforms(&area)
	on := func(at vg.Point) vg.Point { return vg.Point{X: toX(float64(at.X)), Y: toY(float64(at.Y))} }
	if len(upper) == 1 {
		dot := line
		if dot.A == 0 {
			dot = fill
		}
		area.DrawGlyphNoClip(draw.GlyphStyle{Color: dot, Radius: 3.5, Shape: draw.CircleGlyph{}}, on(upper[0]))
		return
	}
	top := steps(upper, on)
	bottom := []vg.Point{{X: top[0].X, Y: area.Min.Y}, {X: top[len(top)-1].X, Y: area.Min.Y}}
	if lower != nil {
		bottom = steps(lower, on)
	}
	slices.Reverse(bottom)
	outline := append(slices.Clone(top), bottom...)
	if fill.A > 0 {
		area.FillPolygon(fill, outline)
	}
	if line.A > 0 {
		area.StrokeLines(draw.LineStyle{Color: line, Width: 2.5}, top)
	}
}

// steps are the corners of a line of steps, as they are drawn.
func steps(line []vg.Point, on func(vg.Point) vg.Point) []vg.Point {
	var out []vg.Point
	for i, at := range line {
		if i > 0 {
			out = append(out, on(vg.Point{X: at.X, Y: line[i-1].Y}))
		}
		out = append(out, on(at))
	}
	return out
}
