//go:build e2e

package e2e

import (
	"testing"
	"time"

	"signalbox/test/realserver/seed"
)

// overridePolicy has a precondition that is never known, and overrides that end
// soon enough to wait for.
const overridePolicy = `version: 1
preconditions:
  - name: nobody is ready
    paths: ["clusters/**"]
    flux: {kustomization: nowhere/nobody}
approvals:
  - name: keepers
    paths: ["clusters/**"]
    from: {teams: [ops], users: [alice]}
`

// TestDecisionOverride: an override passes what is open now, and ends.
func TestDecisionOverride(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: overridePolicy + "override: {from: {users: [alice]}, ttl: 1h}\n"}, settings{})
	alice, bob, carol, mallory := st.repo.Alice, st.repo.Bob, st.repo.Carol, st.repo.Mallory

	t.Run("given, cancelled and ended by a push", func(t *testing.T) {
		t.Parallel()
		st := st.alone(t)
		p := st.open(t, "override", write("clusters/override.yaml", "a: 1\n"))
		p.shows(patience, "pending", "pending")
		first, second, third := p.say(carol, "/approve-override now"), p.say(bob, "/approve-override now"), p.say(mallory, "/approve-override now")
		without := p.say(alice, "/approve-override")
		p.refused(first, "carol is not among those who may override: alice.")
		p.refused(second, "the author of a pull request cannot decide about it. Those who may: alice.")
		p.refused(third, "mallory is not among those who may override: alice.")
		p.refused(without, "an override needs a reason")
		p.gets(p.say(alice, "/approve-override the disk is full"), "+1")
		p.shows(patience, "success", "success", "Overridden by alice", "the disk is full", "precondition: nobody is ready")
		p.gets(p.say(alice, "/approve-override cancel"), "+1")
		p.shows(patience, "pending", "pending")
		p.gets(p.say(alice, "/approve-override again"), "+1")
		p.shows(patience, "success", "success", "Overridden by alice", "again")
		head := st.push(t, "override", "", write("clusters/override.yaml", "a: 2\n"))
		p.neverClears(head, patience, "pending", "pending", head[:10])
	})

	t.Run("a change of the base ends it, also there and back", func(t *testing.T) {
		t.Parallel()
		st := st.alone(t)
		st.push(t, "override-base", "origin/main", write("docs/base.md", "A.\n"))
		p := st.open(t, "override-there", write("clusters/there.yaml", "a: 1\n"))
		p.shows(patience, "pending", "pending")
		p.gets(p.say(alice, "/approve-override now"), "+1")
		p.shows(patience, "success", "success", "Overridden by alice")
		p.retarget("override-base")
		p.shows(patience, "pending", "pending", "into `override-base`")
		p.retarget("main")
		p.settle(bob)
		p.shows(patience, "pending", "pending", "into `main`")
	})
}

// TestDecisionOverrideEnds: an override ends after its time, also while nobody
// looks.
func TestDecisionOverrideEnds(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second
	st := newStage(t, seed.Options{Policy: overridePolicy + "override: {from: {users: [alice]}, ttl: " + ttl.String() + "}\n"}, settings{})
	alice := st.repo.Alice
	p := st.open(t, "ends", write("clusters/ends.yaml", "a: 1\n"))
	q := st.open(t, "ends-too", write("clusters/ends-too.yaml", "a: 1\n"))
	p.shows(patience, "pending", "pending")
	q.shows(patience, "pending", "pending")
	given := time.Now()
	p.say(alice, "/approve-override for a moment")
	p.shows(patience, "success", "success", "Overridden by alice")
	p.shows(patience, "pending", "pending")
	if took := time.Since(given); took < ttl-2*time.Second {
		t.Errorf("it ended after %s", took)
	} else {
		t.Logf("of %s, ended after %s", ttl, took)
	}

	q.say(alice, "/approve-override for a moment")
	q.shows(patience, "success", "success", "Overridden by alice")
	given = time.Now()
	if err := st.bot.stop(); err != nil {
		t.Fatal(err)
	}
	// The time that passes is what this is about.
	<-time.After(time.Until(given.Add(ttl)))
	st.bot.start()
	_, took := q.shows(patience, "pending", "pending")
	t.Logf("ended while down, shown %s after the start", took)
}

// TestDecisionOverrideTwo: where two people are asked for, one is not enough,
// nor is one twice.
func TestDecisionOverrideTwo(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: overridePolicy + "override: {from: {users: [alice, carol]}, ttl: 1h, secondPerson: true}\n"}, settings{})
	alice, bob, carol := st.repo.Alice, st.repo.Bob, st.repo.Carol
	p := st.open(t, "two", write("clusters/two.yaml", "a: 1\n"))
	p.shows(patience, "pending", "pending")
	p.say(alice, "/approve-override the disk is full")
	p.gets(p.say(alice, "/approve-override it is really full"), "+1")
	p.settle(bob)
	p.shows(patience, "pending", "pending", "it is really full")
	p.gets(p.say(carol, "/approve-override I saw it"), "+1")
	p.shows(patience, "success", "success", "Overridden by alice", "Overridden by carol")
	p.gets(p.say(carol, "/approve-override cancel"), "+1")
	p.shows(patience, "pending", "pending")
}
