package chart_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"signalbox/internal/chart"
	"signalbox/internal/digest"
)

var now = time.Date(2026, 9, 7, 7, 0, 0, 0, time.UTC)

// month is a month in which much happened, sampled every hour.
func month() []digest.Sample {
	r := rand.New(rand.NewPCG(1, 2))
	var out []digest.Sample
	for h := 24 * 30; h >= 0; h-- {
		at := now.Add(-time.Duration(h) * time.Hour)
		s := digest.Sample{At: at, Counts: digest.Counts{Ready: 214, Total: 214, Open: map[digest.Section]int{}}}
		switch {
		case h > 600 && h < 640:
			s.Ready, s.Open[digest.Flux] = 214-r.IntN(20), 14
			s.Open[digest.Storage] = 2
		case h > 380 && h < 420:
			continue // nobody was there
		case h > 300 && h < 330:
			s.Open[digest.Nodes], s.Open[digest.Storage] = 1, 4
			s.Ready = 210
		case h < 200 && h > 60:
			s.Open[digest.Pipelines] = 1
			if h < 100 {
				s.Open[digest.Gate] = 1
			}
		case h < 12:
			s.Ready, s.Open[digest.Flux], s.Open[digest.Gate] = 213, 1, 1
		}
		out = append(out, s)
	}
	return out
}

func decode(t *testing.T, text []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestTrend(t *testing.T) {
	for _, dark := range []bool{false, true} {
		text, err := chart.Trend(month(), now, dark)
		if err != nil {
			t.Fatal(err)
		}
		// To be looked at: CHART=/tmp go test ./internal/chart
		if dir := os.Getenv("CHART"); dir != "" {
			name := map[bool]string{false: "light.png", true: "dark.png"}[dark]
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if b := decode(t, text).Bounds(); b.Dx() != chart.Width || b.Dy() != chart.Height {
			t.Errorf("%v", b)
		}
		again, err := chart.Trend(month(), now, dark)
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("the same samples give another picture: %v", err)
		}
		if len(text) > 150_000 {
			t.Errorf("%d bytes", len(text))
		}
	}
}

// differences counts the pixels of the lower half, and of the upper, that differ.
func differences(t *testing.T, a, b []digest.Sample) (upper, lower int) {
	t.Helper()
	pa, err := chart.Trend(a, now, false)
	if err != nil {
		t.Fatal(err)
	}
	pb, err := chart.Trend(b, now, false)
	if err != nil {
		t.Fatal(err)
	}
	ia, ib := decode(t, pa), decode(t, pb)
	for y := range chart.Height {
		for x := range chart.Width {
			if ia.At(x, y) != ib.At(x, y) {
				if y < chart.Height*47/100 {
					upper++
				} else {
					lower++
				}
			}
		}
	}
	return upper, lower
}

func hours(n int, change func(*digest.Sample)) []digest.Sample {
	var out []digest.Sample
	for h := n; h >= 0; h-- {
		s := digest.Sample{At: now.Add(-time.Duration(h) * time.Hour), Counts: digest.Counts{Ready: 10, Total: 10, Open: map[digest.Section]int{digest.Flux: 1}}}
		change(&s)
		out = append(out, s)
	}
	return out
}

func TestWhatIsDrawn(t *testing.T) {
	same := hours(100, func(*digest.Sample) {})
	if u, l := differences(t, same, hours(100, func(s *digest.Sample) { s.Open[digest.Flux] = 3 })); u != 0 || l < 1000 {
		t.Errorf("more findings change %d and %d pixels", u, l)
	}
	if u, l := differences(t, same, hours(100, func(s *digest.Sample) { s.Open = map[digest.Section]int{digest.Gate: 1} })); u != 0 || l < 1000 {
		t.Errorf("findings of another section change %d and %d pixels", u, l)
	}
	if u, l := differences(t, same, hours(100, func(s *digest.Sample) { s.Ready = 5 })); u < 1000 || l != 0 {
		t.Errorf("fewer ready objects change %d and %d pixels", u, l)
	}
	gap := append(append([]digest.Sample{}, same[:40]...), same[60:]...)
	if u, l := differences(t, same, gap); u < 500 || l < 100 {
		t.Errorf("a gap changes %d and %d pixels", u, l)
	}
	// Three hours are joined.
	near := append(append([]digest.Sample{}, same[:40]...), same[42:]...)
	if u, l := differences(t, same, near); u+l != 0 {
		t.Errorf("a short gap changes %d and %d pixels", u, l)
	}
	if u, l := differences(t, same[100:], same[99:]); u+l == 0 {
		t.Error("a single sample is not drawn")
	}
}

func TestOddSamples(t *testing.T) {
	old := digest.Sample{At: now.AddDate(0, 0, -31)}
	future := digest.Sample{At: now.Add(time.Minute)}
	for _, samples := range [][]digest.Sample{nil, {old}, {future}} {
		if _, err := chart.Trend(samples, now, false); !errors.Is(err, chart.ErrNoSamples) {
			t.Errorf("%v", err)
		}
	}
	for name, s := range map[string]digest.Sample{
		"empty": {At: now}, "negative": {At: now, Counts: digest.Counts{Ready: -1, Total: -1, Open: map[digest.Section]int{digest.Flux: -4}}},
		"huge": {At: now, Counts: digest.Counts{Ready: 1, Total: 1_000_000_000, Open: map[digest.Section]int{digest.Flux: 1_000_000_000, "odd": 3}}},
	} {
		before := s
		before.At = now.Add(-time.Hour)
		if _, err := chart.Trend([]digest.Sample{before, s}, now, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAlt(t *testing.T) {
	for name, tt := range map[string]struct {
		samples []digest.Sample
		want    string
	}{
		"none":    {nil, "There are no samples of the last 30 days."},
		"a month": {month(), "The last 30 days, until 7 September 07:00 UTC. Ready now: 99.5 % of the objects of Flux (213 of 214); the least were 91.1 % on 12 August. Open findings now: 2 (flux 1, gate 1); the most were 16 on 11 August. Nothing was sampled for 40 hours in all."},
		"well":    {hours(3, func(s *digest.Sample) { s.Open = nil }), "The last 30 days, until 7 September 07:00 UTC. Ready now: 100 % of the objects of Flux (10 of 10). Open findings now: 0."},
		"no Flux": {hours(3, func(s *digest.Sample) { s.Ready, s.Total, s.Open = 0, 0, nil }), "The last 30 days, until 7 September 07:00 UTC. No object of Flux is watched now. Open findings now: 0."},
	} {
		if got := chart.Alt(tt.samples, now); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
