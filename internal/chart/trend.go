package chart

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"signalbox/internal/digest"
)

// Width and Height are those of the picture, in pixels. Its letters are large enough
// to be read where it is shown as wide as a phone.
const (
	Width  = 900
	Height = 480
)

// Days is how far back the picture goes.
const Days = 30

// longest is how far apart two samples may be to be joined.
const longest = 3 * time.Hour

// ErrNoSamples says that there is nothing to draw.
var ErrNoSamples = errors.New("there are no samples of the last 30 days")

// Trend draws the last 30 days as a PNG: above how many objects of Flux were ready,
// in percent, and below the open findings by section. Where nothing was sampled for
// longer than three hours, there is a gap. Samples are in the order of their time;
// those of other days are left out. Without any it gives [ErrNoSamples].
func Trend(samples []digest.Sample, now time.Time, dark bool) ([]byte, error) {
	samples = within(samples, now)
	if len(samples) == 0 {
		return nil, ErrNoSamples
	}
	look := light
	if dark {
		look = night
	}
	canvas := vgimg.NewWith(vgimg.UseWH(Width, Height), vgimg.UseDPI(72), vgimg.UseBackgroundColor(look.ground))
	c := draw.New(canvas)
	const middle = Height * 0.47
	p := panel{look: look, now: now.UTC()}
	p.ready(draw.Crop(c, 0, 0, Height-middle, 0), samples)
	p.open(draw.Crop(c, 0, 0, 0, -middle), samples)
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&b); err != nil {
		return nil, fmt.Errorf("draw the trend: %w", err)
	}
	return b.Bytes(), nil
}

// within returns the samples of the last days, in order.
func within(samples []digest.Sample, now time.Time) []digest.Sample {
	from := now.AddDate(0, 0, -Days)
	out := slices.DeleteFunc(slices.Clone(samples), func(s digest.Sample) bool { return s.At.Before(from) || s.At.After(now) })
	slices.SortStableFunc(out, func(a, b digest.Sample) int { return a.At.Compare(b.At) })
	return out
}

// panel draws one half of the picture.
type panel struct {
	look look
	now  time.Time
}

// Space around the area of a panel, in pixels.
const (
	left, right = 74, 22
	above       = 58
	below       = 34
)

// frame makes the axes of a panel and returns the area in which to draw.
func (p panel) frame(c draw.Canvas, least, most float64, ticks []plot.Tick) (*plot.Plot, draw.Canvas) {
	pl := plot.New()
	pl.X.Min, pl.X.Max = p.x(p.now.AddDate(0, 0, -Days)), p.x(p.now)
	pl.Y.Min, pl.Y.Max = least, most
	area := draw.Crop(c, left, -right, below, -above)
	toX, toY := pl.Transforms(&area)
	small := p.look.text(19, false)
	for _, t := range ticks {
		y := toY(t.Value)
		area.StrokeLine2(draw.LineStyle{Color: p.look.grid, Width: 1}, area.Min.X, y, area.Max.X, y)
		if t.Label != "" {
			right := small
			right.XAlign, right.YAlign = draw.XRight, draw.YCenter
			area.FillText(right, vg.Point{X: area.Min.X - 9, Y: y}, t.Label)
		}
	}
	for _, day := range p.days() {
		x := toX(p.x(day))
		area.StrokeLine2(draw.LineStyle{Color: p.look.grid, Width: 1}, x, area.Min.Y, x, area.Min.Y-5)
		middle := small
		middle.XAlign, middle.YAlign = draw.XCenter, draw.YTop
		area.FillText(middle, vg.Point{X: x, Y: area.Min.Y - 8}, day.Format("2 Jan"))
	}
	return pl, area
}

// days are the days that are named, every fifth.
func (p panel) days() []time.Time {
	var out []time.Time
	last := p.now.Truncate(24 * time.Hour)
	for i := Days - 1; i >= 0; i-- {
		if day := last.AddDate(0, 0, -i); i%5 == 1 {
			out = append(out, day)
		}
	}
	return out
}

// x is a time on the axis: hours, which a float64 holds exactly enough.
func (p panel) x(t time.Time) float64 { return t.Sub(p.now).Hours() }

// ready draws how many objects were ready.
func (p panel) ready(c draw.Canvas, samples []digest.Sample) {
	value := func(s digest.Sample) (float64, bool) {
		if s.Total <= 0 {
			return 0, false
		}
		return 100 * float64(s.Ready) / float64(s.Total), true
	}
	lowest := 100.0
	for _, s := range samples {
		if v, ok := value(s); ok {
			lowest = min(lowest, v)
		}
	}
	floor, ticks := percents(lowest)
	pl, area := p.frame(c, floor, 100, ticks)
	for _, run := range runs(samples, func(s digest.Sample) bool { _, ok := value(s); return ok }) {
		var upper []vg.Point
		for _, s := range run {
			v, _ := value(s)
			upper = append(upper, vg.Point{X: vg.Length(p.x(s.At)), Y: vg.Length(v)})
		}
		p.band(pl, area, upper, nil, p.look.ready, fade(p.look.ready, p.look.ground, 0.78))
	}
	last := samples[len(samples)-1]
	words := "no object of Flux is watched"
	title := "Ready"
	if v, ok := value(last); ok {
		title, words = "Ready "+percent(v), fmt.Sprintf("%d of %d objects of Flux", last.Ready, last.Total)
	}
	p.title(c, title, words)
}

// open draws the open findings, those of each section upon those of the one before.
func (p panel) open(c draw.Canvas, samples []digest.Sample) {
	highest := 0
	for _, s := range samples {
		highest = max(highest, total(s))
	}
	most, ticks := numbers(highest)
	pl, area := p.frame(c, 0, most, ticks)
	for _, run := range runs(samples, func(digest.Sample) bool { return true }) {
		lower := make([]vg.Point, len(run))
		for i, s := range run {
			lower[i].X = vg.Length(p.x(s.At))
		}
		for i, section := range digest.Sections() {
			upper := slices.Clone(lower)
			some := false
			for j, s := range run {
				upper[j].Y += vg.Length(max(0, s.Open[section]))
				some = some || s.Open[section] > 0
			}
			if some {
				p.band(pl, area, upper, lower, color.RGBA{}, p.look.sections[i])
			}
			lower = upper
		}
		// The ground line shows where there are samples at all.
		ground := []vg.Point{{X: lower[0].X}, {X: lower[len(lower)-1].X}}
		if len(lower) == 1 {
			ground = ground[:1]
		}
		p.band(pl, area, ground, ground, p.look.faint, color.RGBA{})
	}
	title := "1 open finding"
	if n := total(samples[len(samples)-1]); n != 1 {
		title = fmt.Sprintf("%d open findings", n)
	}
	p.title(c, title, "")
	p.legend(c, samples)
}

// total is how many findings were open.
func total(s digest.Sample) int {
	n := 0
	for _, open := range s.Open {
		n += max(0, open)
	}
	return n
}

// runs parts samples where they are too far apart, and where one has no value.
func runs(samples []digest.Sample, has func(digest.Sample) bool) [][]digest.Sample {
	var out [][]digest.Sample
	var run []digest.Sample
	for _, s := range samples {
		if len(run) > 0 && (!has(s) || s.At.Sub(run[len(run)-1].At) > longest) {
			out, run = append(out, run), nil
		}
		if has(s) {
			run = append(run, s)
		}
	}
	if len(run) > 0 {
		out = append(out, run)
	}
	return out
}

// percents returns the floor of the axis of readiness, and its ticks.
func percents(lowest float64) (floor float64, ticks []plot.Tick) {
	floors := []float64{90, 80, 60, 0}
	for _, floor = range floors {
		if lowest >= floor+(100-floor)*0.05 {
			break
		}
	}
	for i := range 3 {
		v := floor + (100-floor)*float64(i)/2
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.0f %%", v)})
	}
	return floor, ticks
}

// numbers returns the top of the axis of findings, and its ticks: whole numbers.
func numbers(highest int) (most float64, ticks []plot.Tick) {
	step := 1
	for i := 0; 4*step < highest; i++ {
		// 1, 2, 5, 10, 20, 50, ...
		step = []int{1, 2, 5}[i%3] * int(math.Pow10(i/3))
	}
	top := max(2, (highest+step-1)/step) * step
	for v := 0; v <= top; v += step {
		ticks = append(ticks, plot.Tick{Value: float64(v), Label: fmt.Sprint(v)})
	}
	return float64(top), ticks
}

// percent never rounds up to all.
func percent(v float64) string {
	if v = math.Floor(v*10) / 10; v == math.Trunc(v) {
		return fmt.Sprintf("%.0f %%", v)
	}
	return fmt.Sprintf("%.1f %%", v)
}

// fade mixes a color with another.
func fade(c, ground color.RGBA, part float64) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-part) + float64(b)*part)) }
	return color.RGBA{mix(c.R, ground.R), mix(c.G, ground.G), mix(c.B, ground.B), 0xff}
}
