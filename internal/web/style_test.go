package web_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var colors = regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`)

// luminance is that of WCAG 2, for a color as "#rrggbb".
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// TestContrast: whatever is written can be read, in light and in dark.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("static/app.css")
	if err != nil {
		t.Fatal(err)
	}
	color := map[string][]string{}
	for _, m := range colors.FindAllStringSubmatch(string(css), -1) {
		color[m[1]] = m[2:]
	}
	pairs := [][2]string{{"on-accent", "accent"}, {"page", "text"}}
	for _, over := range []string{"page", "card", "well"} {
		for _, text := range []string{"text", "muted", "accent"} {
			pairs = append(pairs, [2]string{text, over})
		}
	}
	for _, state := range []string{"clear", "waiting", "blocked", "undecided", "overridden"} {
		pairs = append(pairs, [2]string{state, state + "-back"}, [2]string{state, "card"}, [2]string{state, "page"})
	}
	for _, pair := range pairs {
		text, over := color[pair[0]], color[pair[1]]
		if text == nil || over == nil {
			t.Errorf("the style has no %s or no %s", pair[0], pair[1])
			continue
		}
		for i, scheme := range []string{"light", "dark"} {
			a, b := luminance(t, text[i]), luminance(t, over[i])
			if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < 4.5 {
				t.Errorf("%s on %s in %s has a contrast of %.2f, want 4.5", pair[0], pair[1], scheme, got)
			}
		}
	}
}
