package main

import (
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// TestClockJumps: whatever the clock of the machine does, what was decided stays as it
// was, ends at its time and no other, and a command is neither lost nor obeyed twice.
func TestClockJumps(t *testing.T) {
	var ahead atomic.Int64
	w := newWorld(t, worldOptions{files: map[string]string{policy.Path: deciding}})
	w.ready()
	w.start(worldOptions{
		ripen: 500 * time.Millisecond,
		clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	number := w.open("cdi", clusterChange)
	ref := pull.Ref{RepoID: w.repo.ID, Number: number}
	jump := func(d time.Duration) {
		ahead.Store(int64(d))
		w.must(w.app.bus.Work().Soon(t.Context(), work.Item{Ref: ref, Kind: work.Full}))
	}
	w.shows(number, "success", "pending")

	// Heard at a time that has not come yet, when the clock is right again.
	hold := w.say(number, "bob", "/hold until the backup ran")
	w.reacts(hold, "eyes")
	jump(-24 * time.Hour)
	w.reacts(hold, "+1")
	w.shows(number, "success", "pending", "Held by bob")
	jump(0)
	w.reacts(w.say(number, "bob", "/unhold"), "+1")

	w.reacts(w.say(number, "alice", "/approve-override the disk is full"), "+1")
	w.shows(number, "success", "success", "Overridden by alice")
	jump(8 * 24 * time.Hour)
	w.shows(number, "success", "pending", "Needs 1 approval")
	jump(-8 * 24 * time.Hour)
	w.shows(number, "success", "success", "Overridden by alice")
	jump(0)
	w.reacts(w.say(number, "alice", "/approve-override cancel"), "+1")
	w.shows(number, "success", "pending", "Needs 1 approval")

	w.reacts(w.say(number, "alice", "/approve"), "+1")
	for _, d := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour, 0} {
		jump(d)
		w.quiet()
		w.shows(number, "success", "success", "Approved by alice")
	}
	kinds := map[decision.Kind]int{}
	for _, e := range w.app.ledger.Entries(ref) {
		kinds[e.Kind]++
	}
	for _, k := range []decision.Kind{decision.Hold, decision.Unhold, decision.Override, decision.OverrideCancel, decision.Approve} {
		if kinds[k] != 1 || len(kinds) != 5 {
			t.Errorf("the ledger has %v", kinds)
		}
	}
}
