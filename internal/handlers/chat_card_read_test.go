package handlers

import (
	"testing"
	"time"
)

func TestCardRead(t *testing.T) {
	since := time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		card Card
		at   time.Time
		want bool
	}{
		"before":                {Card{Since: since}, since.Add(-time.Second), false},
		"at once":               {Card{Since: since}, since, false},
		"nobody is that quick":  {Card{Since: since}, since.Add(Glance - 1), false},
		"after a glance":        {Card{Since: since}, since.Add(Glance), true},
		"not certain":           {Card{Head: "a"}, since, false},
		"a time that is absent": {Card{Since: since}, time.Time{}, false},
	} {
		if got := c.card.read(c.at, Glance); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if c := (Card{Since: since}); c.read(since.Add(-1), 0) || !c.read(since, 0) {
		t.Error("what was said before counts, or what was said since does not")
	}
}
