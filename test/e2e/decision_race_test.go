//go:build e2e

package e2e

import (
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver/seed"
)

// TestDecisionRace: an approval is of what its author saw.
func TestDecisionRace(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: decisionPolicy}, settings{})
	bob, carol := st.repo.Bob, st.repo.Carol

	// Every push of the scenes is at a different moment of the work on the
	// comment: it is heard, acted upon, shown.
	for name, wait := range map[string]time.Duration{"at once": 0, "heard": 700 * time.Millisecond, "acted upon": 2500 * time.Millisecond} {
		t.Run("approved, then pushed and merged, "+name, func(t *testing.T) {
			t.Parallel()
			st := st.alone(t)
			branch := "race-" + world.Name(t)
			p := st.open(t, branch, write("clusters/"+branch+".yaml", "a: 1\n"))
			p.shows(patience, "success", "pending")
			head := st.commit(t, branch, "", write("clusters/"+branch+".yaml", "a: 2\n"))
			comment := p.say(carol, "/approve")
			<-time.After(wait)
			if err := st.clone.Push(t.Context(), branch); err != nil {
				t.Fatal(err)
			}
			pushed := time.Now()
			merge := p.say(bob, "/merge")
			t.Logf("asked to merge %s after the push", time.Since(pushed))
			t.Logf("the approval got %s", p.ends(comment))
			t.Logf("the merge got %s", p.ends(merge))
			p.neverClears(head, patience, "success", "pending", head[:10])
			p.still(bob)
			p.shows(patience, "success", "pending", "eeds 1 approval")
		})
	}

	t.Run("pushed, then approved and merged", func(t *testing.T) {
		t.Parallel()
		st := st.alone(t)
		p := st.open(t, "race-before", write("clusters/race-before.yaml", "a: 1\n"))
		s, _ := p.shows(patience, "success", "pending")
		head := st.push(t, "race-before", "", write("clusters/race-before.yaml", "a: 2\n"))
		named, comment := p.say(carol, "/approve "+s.head[:10]), p.say(carol, "/approve "+head)
		p.refused(named, "it names "+s.head[:10]+", and the head is "+head[:10]+" now.")
		p.gets(comment, "+1")
		p.shows(patience, "success", "success", "Approved by carol", head[:10])
		head = st.push(t, "race-before", "", write("clusters/race-before.yaml", "a: 3\n"))
		// Gitea notes the push a moment after it took it: either the head that
		// carol could see is approved, or none.
		got := p.ends(p.say(carol, "/approve"))
		p.settle(bob)
		want := map[string]string{"+1": "success", "-1": "pending"}[got]
		t.Logf("the approval right after the push got %s", got)
		p.shows(patience, "success", want, head[:10])
	})

	t.Run("one head in two pull requests", func(t *testing.T) {
		t.Parallel()
		st := st.alone(t)
		st.push(t, "race-base", "origin/main", write("docs/base.md", "A.\n"))
		st.push(t, "race-twin", "origin/main", write("clusters/race-twin.yaml", "a: 1\n"))
		first, second := st.request(t, "race-twin", "main"), st.request(t, "race-twin", "race-base")
		first.shows(patience, "success", "pending")
		second.shows(patience, "success", "pending")
		first.say(carol, "/approve")
		second.say(bob, "/hold the other first")
		first.shows(patience, "success", "success", "Approved by carol")
		second.shows(patience, "success", "pending", "Held by bob", "Needs 1 approval")

		// And with a change of its base: bound to where it was given.
		first.close()
		second.gets(second.say(carol, "/unhold\n/approve"), "+1")
		second.shows(patience, "success", "success", "Approved by carol")
		second.retarget("main")
		second.shows(patience, "success", "pending", "into `main`", "carol: was given for race-base, not main")
		second.retarget("race-base")
		second.settle(bob)
		second.shows(patience, "success", "pending", "into `race-base`", "carol: was given before the base was changed")
		second.gets(second.say(carol, "/approve"), "+1")
		second.shows(patience, "success", "success", "Approved by carol")
	})

	t.Run("a rebase", func(t *testing.T) {
		t.Parallel()
		st := st.alone(t)
		kept := st.open(t, "race-kept", write("clusters/race-kept.yaml", "a: 1\n"))
		strict := st.open(t, "race-strict", write("strict/race.yaml", "a: 1\n"))
		for _, p := range []*page{kept, strict} {
			p.shows(patience, "success", "pending")
			p.say(carol, "/approve")
		}
		kept.shows(patience, "success", "success", "Approved by carol")
		strict.shows(patience, "success", "success", "Approved by carol")
		mainMoves(t, st, "docs/race.md", "A.\n")
		for branch, p := range map[string]*page{"race-kept": kept, "race-strict": strict} {
			head := st.rebase(t, branch)
			eventually(t, patience, "the rebased head is shown", func() error { return p.decided(head) })
		}
		kept.shows(patience, "success", "success", "Approved by carol")
		strict.shows(patience, "success", "pending", "carol: was given on")
		// The same once more with a line that was not there.
		mainMoves(t, st, "docs/race.md", "B.\n")
		st.commit(t, "race-kept", "", write("clusters/sneaked.yaml", "a: 1\n"))
		head := st.rebase(t, "race-kept")
		kept.neverClears(head, patience, "success", "pending", "carol: was given on", "the diff is another")
	})
}

// rebase rebases a branch onto main and pushes it.
func (st *stage) rebase(t *testing.T, branch string) string {
	t.Helper()
	ctx := t.Context()
	if err := st.clone.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.clone.Checkout(ctx, branch); err != nil {
		t.Fatal(err)
	}
	if err := st.clone.Rebase(ctx, "origin/main"); err != nil {
		t.Fatal(err)
	}
	if err := st.clone.ForcePush(ctx, branch); err != nil {
		t.Fatal(err)
	}
	head, err := st.clone.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// retarget changes the base of the pull request.
func (p *page) retarget(base string) {
	p.t.Helper()
	p.edit(sdk.EditPullRequestOption{Base: base})
}

// TestDecisionPeople: a decision is an account's, whatever it is called, and
// counts while that account may decide.
func TestDecisionPeople(t *testing.T) {
	t.Parallel()
	name := world.Name(t)
	dave, err := world.User(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	st := plantStage(t, seed.Options{Policy: decisionPolicy})
	alice := client(t, st.repo, st.repo.Alice)
	if _, err := alice.AddTeamMember(st.repo.Ops, dave.Name); err != nil {
		t.Fatal(err)
	}
	st.bot = newBot(t, st.repo, settings{extra: "timing: {reconcile: 2s}\n"})
	st.bot.start()
	p := st.open(t, "people", write("clusters/people.yaml", "a: 1\n"))
	p.shows(patience, "success", "pending")
	p.say(dave, "/approve")
	p.shows(patience, "success", "success", "Approved by "+name)

	admin, err := world.Gitea.Admin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	renamed := name + "-x"
	if _, err := admin.AdminRenameUser(name, sdk.RenameUserOption{NewUsername: renamed}); err != nil {
		t.Fatal(err)
	}
	p.shows(patience, "success", "success", "Approved by "+renamed)
	if _, err := alice.RemoveTeamMember(st.repo.Ops, renamed); err != nil {
		t.Fatal(err)
	}
	p.shows(patience, "success", "pending", "Needs 1 approval by alice or carol")
	p.say(st.repo.Carol, "/approve")
	p.gets(p.say(st.repo.Bob, "/merge cancel"), "+1")
	p.shows(patience, "success", "success", "Approved by carol")
	// Out of the team right before the merge.
	if _, err := alice.RemoveTeamMember(st.repo.Ops, st.repo.Carol.Name); err != nil {
		t.Fatal(err)
	}
	p.gets(p.say(st.repo.Bob, "/merge"), "+1")
	p.shows(patience, "success", "pending", "Needs 1 approval by alice", "bob asked to merge")
	p.still(st.repo.Bob)
}
