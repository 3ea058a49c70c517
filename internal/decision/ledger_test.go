package decision_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

var (
	now   = time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	alice = pull.Person{ID: 1, Login: "alice"}
	carol = pull.Person{ID: 3, Login: "carol"}
	here  = decision.Target{Base: "main", Head: "h", Now: now}
)

// entry makes an entry for the target of the tests.
func entry(id string, kind decision.Kind, by pull.Person) decision.Entry {
	return decision.Entry{
		ID: id, Kind: kind, By: by, Repo: pull.Repo{ID: 7}, Number: 12, Base: "main", Head: "h",
		At: now, Until: now.Add(time.Hour),
	}
}

func ids(entries []decision.Entry) string {
	s := []string{}
	for _, e := range entries {
		s = append(s, e.ID)
	}
	return fmt.Sprint(s)
}

func TestApprovals(t *testing.T) {
	tests := []struct {
		name   string
		ledger decision.Ledger
		want   string
	}{
		{"two people", decision.Ledger{entry("1", decision.Approve, alice), entry("2", decision.Approve, carol)}, "[1 2]"},
		{"twice counts once, the later", decision.Ledger{entry("1", decision.Approve, alice), entry("2", decision.Approve, alice)}, "[2]"},
		{"taken back", decision.Ledger{entry("1", decision.Approve, alice), entry("2", decision.ApproveCancel, alice)}, "[]"},
		{"taken back by another", decision.Ledger{entry("1", decision.Approve, alice), entry("2", decision.ApproveCancel, carol)}, "[1]"},
		{"given again", decision.Ledger{entry("1", decision.Approve, alice), entry("2", decision.ApproveCancel, alice), entry("3", decision.Approve, alice)}, "[3]"},
		{"a refused one is none", decision.Ledger{entry("1", decision.Refused, alice)}, "[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ids(tt.ledger.Approvals()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestReviewsAndCommandsInOneOrder(t *testing.T) {
	back := entry("1", decision.ApproveCancel, alice)
	back.Reviews = []int64{5}
	again := entry("2", decision.Approve, alice)
	again.Reviews = []int64{5, 6}
	l := decision.Ledger{back, again}
	for review, want := range map[int64]bool{5: true, 6: false} {
		if got := l.Withdrawn(alice, review); got != want {
			t.Errorf("review %d withdrawn: %v", review, got)
		}
	}
	if l.Withdrawn(carol, 5) {
		t.Error("one person withdrew the review of another")
	}
	for review, want := range map[int64]bool{6: true, 7: false} {
		if got := l.ApprovedAfter(alice, review); got != want {
			t.Errorf("approved after review %d: %v", review, got)
		}
	}
}

func TestOverrides(t *testing.T) {
	edit := func(e decision.Entry, f func(*decision.Entry)) decision.Entry {
		f(&e)
		return e
	}
	o := entry("1", decision.Override, alice)
	tests := []struct {
		name   string
		ledger decision.Ledger
		want   string
	}{
		{"in force", decision.Ledger{o}, "[1]"},
		{"ended", decision.Ledger{edit(o, func(e *decision.Entry) { e.Until = now })}, "[]"},
		{"for another head", decision.Ledger{edit(o, func(e *decision.Entry) { e.Head = "x" })}, "[]"},
		{"for another base", decision.Ledger{edit(o, func(e *decision.Entry) { e.Base = "x" })}, "[]"},
		{"the base was changed and changed back", decision.Ledger{edit(o, func(e *decision.Entry) { e.Retargets = 2 })}, "[]"},
		{"cancelled by another", decision.Ledger{o, entry("2", decision.OverrideCancel, carol)}, "[]"},
		{"given again", decision.Ledger{o, entry("2", decision.OverrideCancel, carol), entry("3", decision.Override, alice)}, "[3]"},
		{"the later replaces the earlier", decision.Ledger{o, entry("2", decision.Override, alice)}, "[2]"},
		{"two people", decision.Ledger{o, entry("2", decision.Override, carol)}, "[1 2]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ids(tt.ledger.Overrides(here)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	lift := func(ids ...string) decision.Entry {
		e := entry("9", decision.Unhold, alice)
		e.Lifts = ids
		return e
	}
	other := entry("2", decision.Hold, carol)
	other.Head = "an earlier head"
	l := decision.Ledger{entry("1", decision.Hold, alice), other}
	if got := ids(l.Holds()); got != "[1 2]" {
		t.Errorf("holds %s, want both: they outlive pushes", got)
	}
	if got := ids(append(slices.Clone(l), lift("1")).Holds()); got != "[2]" {
		t.Errorf("after lifting one: %s", got)
	}
	if got := ids(append(slices.Clone(l), lift("1", "2"), entry("3", decision.Hold, alice)).Holds()); got != "[3]" {
		t.Errorf("a later hold: %s", got)
	}
}

func TestMergeRequest(t *testing.T) {
	m := entry("1", decision.Merge, alice)
	moved := m
	moved.Head = "x"
	tests := []struct {
		name   string
		ledger decision.Ledger
		want   string
	}{
		{"asked for", decision.Ledger{m}, "1"},
		{"asked twice is one, the first", decision.Ledger{m, entry("2", decision.Merge, carol)}, "1"},
		{"before a push", decision.Ledger{moved}, ""},
		{"cancelled", decision.Ledger{m, entry("2", decision.MergeCancel, carol)}, ""},
		{"held since", decision.Ledger{m, entry("2", decision.Hold, carol)}, ""},
		{"done", decision.Ledger{m, entry("2", decision.Merged, alice)}, ""},
		{"failed and asked again", decision.Ledger{m, entry("2", decision.MergeFailed, alice), entry("3", decision.Merge, alice)}, "3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := tt.ledger.MergeRequest(here); got.ID != tt.want {
				t.Errorf("got %q, want %q", got.ID, tt.want)
			}
		})
	}
}

// TestNothingOutlivesItsEnd holds the rules against any ledger.
func TestNothingOutlivesItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		people := []pull.Person{alice, carol}
		n := rapid.IntRange(0, 12).Draw(t, "entries")
		var l decision.Ledger
		for i := range n {
			e := entry(fmt.Sprint(i), rapid.SampledFrom(decision.Kinds()).Draw(t, "kind"), rapid.SampledFrom(people).Draw(t, "by"))
			e.Head = rapid.SampledFrom([]string{"h", "x"}).Draw(t, "head")
			e.Base = rapid.SampledFrom([]string{"main", "dev"}).Draw(t, "base")
			e.Until = now.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "until")) * time.Hour)
			e.Retargets = rapid.IntRange(0, 1).Draw(t, "retargets")
			l = append(l, e)
		}
		for _, e := range l.Overrides(here) {
			if e.Kind != decision.Override || !e.Fits(here) || !now.Before(e.Until) {
				t.Fatalf("override in force: %+v", e)
			}
			if slices.ContainsFunc(l[slices.IndexFunc(l, func(o decision.Entry) bool { return o.ID == e.ID }):], func(o decision.Entry) bool { return o.Kind == decision.OverrideCancel }) {
				t.Fatalf("override %s was cancelled", e.ID)
			}
		}
		if m, ok := l.MergeRequest(here); ok {
			after := l[slices.IndexFunc(l, func(o decision.Entry) bool { return o.ID == m.ID })+1:]
			if !m.Fits(here) || slices.ContainsFunc(after, func(o decision.Entry) bool {
				return o.Kind == decision.MergeCancel || o.Kind == decision.Hold || o.Kind == decision.Merged || o.Kind == decision.MergeFailed
			}) {
				t.Fatalf("merge request in force: %+v", m)
			}
		}
		seen := map[int64]bool{}
		for _, e := range l.Approvals() {
			if e.Kind != decision.Approve || seen[e.By.ID] {
				t.Fatalf("approvals: %+v", l.Approvals())
			}
			seen[e.By.ID] = true
		}
	})
}

func TestCheck(t *testing.T) {
	good := entry("1", decision.Approve, alice)
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	frozen := entry("1", decision.Freeze, alice)
	if err := frozen.Check(); err != nil {
		t.Error(err)
	}
	if frozen.Until = frozen.At; frozen.Check() == nil {
		t.Error("a freeze without an end was accepted")
	}
	for name, spoil := range map[string]func(*decision.Entry){
		"no id":     func(e *decision.Entry) { e.ID = "" },
		"bad kind":  func(e *decision.Entry) { e.Kind = "approves" },
		"no pull":   func(e *decision.Entry) { e.Number = 0 },
		"no person": func(e *decision.Entry) { e.By.ID = 0 },
		"no time":   func(e *decision.Entry) { e.At = time.Time{} },
	} {
		bad := good
		spoil(&bad)
		if bad.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestLinked(t *testing.T) {
	link := func(kind decision.Kind, id int64) decision.Entry {
		return decision.Entry{Kind: kind, By: pull.Person{ID: id}, User: "slack/U1"}
	}
	for name, tt := range map[string]struct {
		ledger decision.Ledger
		want   int64
	}{
		"nobody":             {nil, 0},
		"the last one":       {decision.Ledger{link(decision.Link, 1), link(decision.Link, 2)}, 2},
		"taken back":         {decision.Ledger{link(decision.Link, 1), link(decision.Unlink, 1)}, 0},
		"taken back, and on": {decision.Ledger{link(decision.Link, 1), link(decision.Unlink, 1), link(decision.Link, 3)}, 3},
	} {
		e, ok := tt.ledger.Linked()
		if e.By.ID != tt.want || ok != (tt.want != 0) {
			t.Errorf("%s: it is %d, %t, want %d", name, e.By.ID, ok, tt.want)
		}
	}
}
