package gitea

import (
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	start := time.Date(2026, 9, 6, 22, 14, 30, 0, time.UTC)
	b := budget{calls: 10}
	for _, step := range []struct {
		after time.Duration
		spend int
		left  int
	}{
		{0, 0, 10},
		{0, 4, 6},
		{30 * time.Second, 1, 5}, // the next minute
		{59 * time.Minute, 0, 5},
		{60 * time.Minute, 0, 9}, // the first minute is an hour old
		{61 * time.Minute, 12, -2},
		{60 * time.Minute, 0, -2}, // a clock that was set back forgets nothing
		{121 * time.Minute, 0, 10},
		{1000 * time.Hour, 3, 7},
	} {
		now := start.Add(step.after)
		for range step.spend {
			b.spend(now)
		}
		if left := b.left(now); left != step.left {
			t.Errorf("after %s: %d left, want %d", step.after, left, step.left)
		}
	}
}
