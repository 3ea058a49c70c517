package doctor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/doctor"
	"signalbox/internal/fact"
)

// What a precondition reads too is not assumed, and each thing is looked at once.
func TestAddStanding(t *testing.T) {
	nodes := fact.WishObjects("prod", fact.ObjectsQuery{Resource: "nodes", Test: "true"})
	volumes := fact.WishObjects("prod", fact.ObjectsQuery{Resource: "volumes.longhorn.io"})
	list := []doctor.Wished{{Wish: nodes, For: []string{"no node reboots"}}}
	got := doctor.AddStanding(list, []fact.Wish{nodes, volumes}, true)
	want := []doctor.Wished{
		{Wish: nodes, For: []string{"no node reboots", doctor.ForDigests}},
		{Wish: volumes, For: []string{doctor.ForDigests}, Assumed: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
