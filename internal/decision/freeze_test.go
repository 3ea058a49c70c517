package decision_test

import (
	"testing"
	"time"

	"signalbox/internal/decision"
)

func TestFreezes(t *testing.T) {
	freeze := func(id string, lasts time.Duration) decision.Entry {
		e := entry(id, decision.Freeze, alice)
		e.Until = now.Add(lasts)
		return e
	}
	lift := func(id string, lifts ...string) decision.Entry {
		e := entry(id, decision.Unfreeze, carol)
		e.Lifts = lifts
		return e
	}
	elsewhere := freeze("2", 2*time.Hour)
	elsewhere.Number, elsewhere.Base, elsewhere.Head = 13, "dev", "x"
	tests := []struct {
		name   string
		ledger decision.Ledger
		want   string
	}{
		{"nothing", nil, "[]"},
		{"in force", decision.Ledger{freeze("1", time.Hour)}, "[1]"},
		{"to the last moment", decision.Ledger{freeze("1", time.Nanosecond)}, "[1]"},
		{"ended", decision.Ledger{freeze("1", 0)}, "[]"},
		{"said elsewhere in the repository", decision.Ledger{freeze("1", time.Hour), elsewhere}, "[1 2]"},
		{"the same person twice: both", decision.Ledger{freeze("1", time.Hour), freeze("2", time.Minute)}, "[1 2]"},
		{"one of two ended", decision.Ledger{freeze("1", time.Hour), freeze("2", -time.Minute)}, "[1]"},
		{"lifted", decision.Ledger{freeze("1", time.Hour), lift("3", "1")}, "[]"},
		{"one of two lifted", decision.Ledger{freeze("1", time.Hour), elsewhere, lift("3", "2")}, "[1]"},
		{"frozen again", decision.Ledger{freeze("1", time.Hour), lift("3", "1"), freeze("4", time.Hour)}, "[4]"},
		{"lifting nothing", decision.Ledger{freeze("1", time.Hour), lift("3")}, "[1]"},
		{"what comes later is not lifted before", decision.Ledger{lift("3", "1"), freeze("1", time.Hour)}, "[1]"},
		{"a hold is none, and is not lifted", decision.Ledger{entry("1", decision.Hold, alice), lift("3", "1")}, "[]"},
		{"a merge ends none", decision.Ledger{freeze("1", time.Hour), entry("2", decision.Merged, alice)}, "[1]"},
		{"a refused one is none", decision.Ledger{entry("1", decision.Refused, alice)}, "[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ids(tt.ledger.Freezes(now)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("an unfreeze lifts no hold", func(t *testing.T) {
		if got := ids(decision.Ledger{entry("1", decision.Hold, alice), lift("3", "1")}.Holds()); got != "[1]" {
			t.Errorf("got %s, want [1]", got)
		}
	})
	t.Run("a request to merge outlives it", func(t *testing.T) {
		if got, _ := (decision.Ledger{entry("1", decision.Merge, alice), freeze("2", time.Hour)}).MergeRequest(here); got.ID != "1" {
			t.Errorf("got %q, want 1", got.ID)
		}
	})
}
