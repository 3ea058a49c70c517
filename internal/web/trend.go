package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// Sizes of a trend, in units of its view box.
const (
	trendWidth  = 420
	trendHeight = 150
	trendLeft   = 38
	trendRight  = 8
	trendTop    = 10
	trendFoot   = 24
	// trendSteps is into how many moments the time is divided.
	trendSteps = 180
)

// series is numbers over time. Of what falls into one step, the worst is drawn.
type series struct {
	Name, Unit string
	// Top is the end of the scale; zero is the highest number, rounded up.
	Top float64
	// Bars says that it is a count, of which more is worse; else less is.
	Bars   bool
	points []point
}

type point struct {
	at    time.Time
	value float64
}

func (s *series) add(at time.Time, value float64) { s.points = append(s.points, point{at, value}) }

// draw returns the series as a picture, with its colors left to the style of the page.
// It is made of numbers only.
func (s *series) draw(now time.Time) template.HTML {
	low, top := s.scale()
	inner, height := float64(trendWidth-trendLeft-trendRight), float64(trendHeight-trendTop-trendFoot)
	x := func(at time.Time) float64 {
		return trendLeft + inner*(1-now.Sub(at).Seconds()/trendTime.Seconds())
	}
	y := func(v float64) float64 { return trendTop + height*(1-(v-low)/(top-low)) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="trend" role="img" aria-label="%s" viewBox="0 0 %d %d">`, template.HTMLEscapeString(s.label()), trendWidth, trendHeight)
	for _, v := range []float64{low, (low + top) / 2, top} {
		fmt.Fprintf(&b, `<path class="trend-grid" d="M%d %.1fH%d"/><text class="trend-text" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			trendLeft, y(v), trendWidth-trendRight, trendLeft-6, y(v)+4, strconv.FormatFloat(v, 'f', -1, 64)+s.Unit)
	}
	for days := trendDays; days >= 0; days -= 10 {
		at := now.AddDate(0, 0, -days)
		anchor := "middle"
		switch days {
		case 0:
			anchor = "end"
		case trendDays:
			anchor = "start"
		}
		fmt.Fprintf(&b, `<text class="trend-text" x="%.1f" y="%d" text-anchor="%s">%s</text>`, x(at), trendHeight-6, anchor, at.UTC().Format("2 Jan"))
	}
	for _, run := range s.runs(now) {
		var d strings.Builder
		for i, p := range run {
			switch {
			case i == 0:
				fmt.Fprintf(&d, "M%.1f %.1f", x(p.at), y(p.value))
			case s.Bars:
				fmt.Fprintf(&d, "H%.1fV%.1f", x(p.at), y(p.value))
			default:
				fmt.Fprintf(&d, "L%.1f %.1f", x(p.at), y(p.value))
			}
		}
		line := d.String()
		if len(run) == 1 {
			line += "h1"
		}
		fmt.Fprintf(&b, `<path class="trend-area" d="%sV%.1fH%.1fz"/><path class="trend-line" d="%s"/>`, line, y(low), x(run[0].at), line)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // It is made of numbers and constants.
}

// scale returns the ends of the scale. Readiness seldom falls far, so its scale begins
// where it was lowest, and says so.
func (s *series) scale() (low, top float64) {
	least, most := math.Inf(1), 0.0
	for _, p := range s.points {
		least, most = min(least, p.value), max(most, p.value)
	}
	if s.Top > 0 {
		low = max(0, math.Floor(min(least, s.Top-2)/10)*10)
		if math.IsInf(least, 1) {
			low = 0
		}
		return low, s.Top
	}
	return 0, max(4, math.Ceil(most/4)*4)
}

// runs are the worst points of each step, in pieces without a break: where nothing was
// counted, nothing is drawn.
func (s *series) runs(now time.Time) [][]point {
	step := trendTime / trendSteps
	var out [][]point
	last := -2
	for _, p := range s.points {
		at := int((trendTime - now.Sub(p.at)) / step)
		switch n := len(out) - 1; {
		case at == last:
			was := &out[n][len(out[n])-1]
			if p.value > was.value == s.Bars {
				was.value = p.value
			}
		case at-last <= maxBreak && n >= 0:
			out[n] = append(out[n], p)
		default:
			out = append(out, []point{p})
		}
		last = at
	}
	return out
}

// maxBreak is how many steps may be between two samples that are joined: six is a day.
const maxBreak = 7

// label says in words what the picture shows.
func (s *series) label() string {
	if len(s.points) == 0 {
		return s.Name + ": nothing was counted"
	}
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range s.points {
		least, most = min(least, p.value), max(most, p.value)
	}
	number := func(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) + s.Unit }
	return fmt.Sprintf("%s in the last %d days: between %s and %s, now %s", s.Name, trendDays, number(least), number(most), number(s.points[len(s.points)-1].value))
}
