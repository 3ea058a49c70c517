//go:build e2e

package e2e

import (
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// approvalPolicy asks for approvals alone, which need no cluster.
const approvalPolicy = `version: 1
approvals:
  - name: keepers
    paths: ["clusters/**"]
    from: {teams: [ops], users: [alice]}
    survive: identical-diff
  - name: strict keepers
    paths: ["strict/**"]
    from: {users: [alice, carol]}
`

// TestApprovalsOfAnotherChange: what was approved is what was seen.
func TestApprovalsOfAnotherChange(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{})
	ctx := t.Context()

	t.Run("a push voids, whatever its dates", func(t *testing.T) {
		p := st.open(t, "voided", write("clusters/voided.yaml", "a: 1\n"))
		_, took := p.shows(patience, "success", "pending", "Needs 1 approval by alice or carol")
		t.Logf("opened, shown after %s", took)
		review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
		s, took := p.shows(patience, "success", "success", "Approved by carol")
		t.Logf("approved, shown after %s", took)
		change := write("clusters/voided.yaml", "a: 2\n")
		change.Date = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
		head := st.push(t, "voided", "", change)
		_, took = p.neverClears(head, patience, "success", "pending", "carol: was given on "+s.head[:10], "the diff is another")
		t.Logf("pushed, void after %s", took)

		// An approval of the former head that arrives now is of the former head.
		_, _, err := client(t, st.repo, st.repo.Alice).CreatePullReview(st.repo.Owner, st.repo.Name, p.number, sdk.CreatePullReviewOptions{
			State: sdk.ReviewStateApproved, CommitID: s.head,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.neverClears(head, patience, "success", "pending", "carol: was given on "+s.head[:10], "alice: was given on "+s.head[:10])
	})

	t.Run("a rebase with an identical diff keeps them where the rule says so", func(t *testing.T) {
		kept := st.open(t, "kept", write("clusters/kept.yaml", "a: 1\n"))
		strict := st.open(t, "strict", write("strict/a.yaml", "a: 1\n"))
		for _, p := range []*page{kept, strict} {
			review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
			p.shows(patience, "success", "success", "Approved by carol")
		}
		st.push(t, "unrelated", "origin/main", write("docs/unrelated.md", "Nothing.\n"))
		if err := st.clone.Push(ctx, "main"); err != nil {
			t.Fatal(err)
		}
		for _, branch := range []string{"kept", "strict"} {
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
		}
		head, err := st.clone.Git(ctx, "rev-parse", "kept")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, "the rebased head is shown", func() error { return kept.decided(head) })
		kept.shows(patience, "success", "success", "Approved by carol")
		strict.shows(patience, "success", "pending", "carol: was given on")
	})

	t.Run("an update of the branch keeps them only if its resolution changes nothing", func(t *testing.T) {
		st.push(t, "lines", "origin/main", write("clusters/lines.yaml", "a: 1\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\n"))
		if err := st.clone.Push(ctx, "main"); err != nil {
			t.Fatal(err)
		}
		p := st.open(t, "updated", write("clusters/lines.yaml", "a: 2\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\n"))
		p.shows(patience, "success", "pending")
		review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
		p.shows(patience, "success", "success", "Approved by carol")

		mainMoves(t, st, "docs/more.md", "More.\n")
		head := mergeMain(t, st, "updated", nil)
		eventually(t, patience, "the clean merge is shown", func() error { return p.decided(head) })
		p.shows(patience, "success", "success", "Approved by carol")

		mainMoves(t, st, "clusters/lines.yaml", "a: 3\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\n")
		head = mergeMain(t, st, "updated", map[string]string{"clusters/lines.yaml": "a: 4\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\n"})
		p.neverClears(head, patience, "success", "pending", "carol: was given on", "the diff is another")
	})

	t.Run("nothing is left to approve", func(t *testing.T) {
		p := st.open(t, "reverted", write("clusters/reverted.yaml", "a: 1\n"))
		p.shows(patience, "success", "pending", "Needs 1 approval")
		head := st.push(t, "reverted", "", realserver.Change{Message: "Take it back", Remove: []string{"clusters/reverted.yaml"}})
		p.shows(patience, "success", "success", head[:10], "Clear to merge")
	})

	// A branch whose name means something in addresses and patterns.
	const staging = "release/1.0#50%25+x"
	t.Run("a change of the base voids", func(t *testing.T) {
		st.push(t, staging, "origin/main", write("docs/staging.md", "Staging.\n"))
		st.push(t, "fix/#1&more", "origin/main", write("clusters/retargeted.yaml", "a: 1\n"))
		p := st.request(t, "fix/#1&more", staging)
		p.shows(patience, "success", "pending")
		review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
		s, _ := p.shows(patience, "success", "success", "Approved by carol")
		p.edit(sdk.EditPullRequestOption{Base: "main"})
		_, took := p.neverClears(s.head, patience, "success", "pending", "carol: was given for "+staging+"; the base was changed to main since")
		t.Logf("retargeted, void after %s", took)
		// There and back is a change too: what lies between is not known.
		p.edit(sdk.EditPullRequestOption{Base: staging})
		p.shows(patience, "success", "pending", "carol: was given for "+staging+"; the base was changed to main since")
		review(t, st.repo, st.repo.Alice, p.number, sdk.ReviewStateApproved)
		p.shows(patience, "success", "success", "Approved by alice")
	})

	t.Run("one head in two pull requests", func(t *testing.T) {
		head := st.push(t, "twin", "origin/main", write("clusters/twin.yaml", "a: 1\n"))
		first, second := st.request(t, "twin", "main"), st.request(t, "twin", staging)
		first.shows(patience, "success", "pending", "into `main`")
		second.shows(patience, "success", "pending", "into `"+staging+"`")
		review(t, st.repo, st.repo.Carol, first.number, sdk.ReviewStateApproved)
		first.shows(patience, "success", "success", "Approved by carol")
		review(t, st.repo, st.repo.Carol, second.number, sdk.ReviewStateRequestChanges)
		second.shows(patience, "success", "failure", "carol asks for changes")
		first.shows(patience, "success", "success", "Approved by carol")
		statuses, err := first.statuses(head)
		if err != nil {
			t.Fatal(err)
		}
		if len(statuses) != 4 {
			t.Errorf("the commit has %d contexts, want two for each base: %v", len(statuses), statuses)
		}
	})
}

// TestWhatNoEventTells: reviews, teams and lost webhooks are looked at again
// every now and then.
func TestWhatNoEventTells(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{extra: "timing: {reconcile: 2s}\n"})
	p := st.open(t, "dismissed", write("clusters/dismissed.yaml", "a: 1\n"))
	p.shows(patience, "success", "pending")

	r := review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
	p.shows(patience, "success", "success", "Approved by carol")
	alice := client(t, st.repo, st.repo.Alice)
	if _, err := alice.DismissPullReview(st.repo.Owner, st.repo.Name, p.number, r.ID, sdk.DismissPullReviewOptions{Message: "not yet"}); err != nil {
		t.Fatal(err)
	}
	_, took := p.shows(patience, "success", "pending", "Needs 1 approval by alice or carol")
	t.Logf("dismissed, noticed after %s with a reconcile every 2s", took)

	review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
	p.shows(patience, "success", "success", "Approved by carol")
	if _, err := alice.RemoveTeamMember(st.repo.Ops, st.repo.Carol.Name); err != nil {
		t.Fatal(err)
	}
	_, took = p.shows(patience, "success", "pending", "Needs 1 approval by alice")
	t.Logf("left the team, noticed after %s with a reconcile every 2s", took)
}

// TestFromAFork: a change may come from somebody who may only read.
func TestFromAFork(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{})
	ctx := t.Context()
	mallory := client(t, st.repo, st.repo.Mallory)
	fork, _, err := mallory.CreateFork(st.repo.Owner, st.repo.Name, sdk.CreateForkOption{})
	if err != nil {
		t.Fatal(err)
	}
	clone, err := world.Gitea.Clone(ctx, st.repo.Mallory, fork.FullName, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	push := func(text string) string {
		t.Helper()
		head, err := clone.Commit(ctx, write("clusters/fork.yaml", text))
		if err != nil {
			t.Fatal(err)
		}
		if err := clone.Push(ctx, "offer"); err != nil {
			t.Fatal(err)
		}
		return head
	}
	head := push("a: 1\n")
	pr, _, err := mallory.CreatePullRequest(st.repo.Owner, st.repo.Name, sdk.CreatePullRequestOption{
		Head: fork.Owner.UserName + ":offer", Base: "main", Title: "An offer",
	})
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t, st.repo, pr.Index)
	p.shows(patience, "success", "pending", head[:10], "Needs 1 approval by alice or carol")
	review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
	p.shows(patience, "success", "success", "Approved by carol")
	head = push("a: 2\n")
	p.neverClears(head, patience, "success", "pending", "carol: was given on")

	// Gitea closes a pull request whose fork goes, whoever hears of it.
	if _, err := mallory.DeleteRepo(fork.Owner.UserName, fork.Name); err != nil {
		t.Fatal(err)
	}
	st.bot.restart()
	st.bot.says(t, `"msg":"pull request left"`)
}

// TestRenamedRepository: a repository that is called otherwise is the same one,
// and no other becomes it by taking its name.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{extra: "timing: {reconcile: 3s}\n"})
	p := st.open(t, "renamed", write("clusters/renamed.yaml", "a: 1\n"))
	s, _ := p.shows(patience, "success", "pending")
	id := s.comments[0].ID
	alice := client(t, st.repo, st.repo.Alice)
	old, name := st.repo.Name, "home-of-gitops"
	if _, _, err := alice.EditRepo(st.repo.Owner, old, sdk.EditRepoOption{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := alice.CreateOrgRepo(st.repo.Owner, sdk.CreateRepoOption{Name: old, AutoInit: true, DefaultBranch: "main"}); err != nil {
		t.Fatal(err)
	}
	st.repo.Name = name
	review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
	s, took := p.shows(patience, "success", "success", "Approved by carol")
	t.Logf("renamed, approved and shown after %s", took)
	if s.comments[0].ID != id {
		t.Errorf("the comment is %d, was %d", s.comments[0].ID, id)
	}
	if hooks, _, err := alice.ListRepoHooks(st.repo.Owner, old, sdk.ListHooksOptions{}); err != nil || len(hooks) > 0 {
		t.Errorf("the new repository of the old name has %d webhooks, %v", len(hooks), err)
	}
}

// TestPolicyInAPullRequest: nobody profits from a policy that is not in force.
func TestPolicyInAPullRequest(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{})

	t.Run("its author is an approver only under its own policy", func(t *testing.T) {
		change := write(seed.PolicyPath, `version: 1
approvals:
  - name: keepers
    paths: ["clusters/**", ".gitea/**"]
    from: {users: [bob, mallory]}
`, "clusters/own.yaml", "a: 1\n")
		p := st.open(t, "own-approvers", change)
		p.shows(patience, "success", "pending", "It is judged by the policy of `main`", "Needs 1 approval by alice or carol")
		review(t, st.repo, st.repo.Mallory, p.number, sdk.ReviewStateApproved)
		p.shows(patience, "success", "pending", "Needs 1 approval by alice or carol", "🟢 approval – approved by mallory")
		// One who may decides about the policy as about the rest.
		review(t, st.repo, st.repo.Alice, p.number, sdk.ReviewStateApproved)
		p.shows(patience, "success", "success", "Approved by alice")
	})

	t.Run("taking the policy away takes an approval", func(t *testing.T) {
		p := st.open(t, "no-policy", realserver.Change{Message: "Decide nothing", Remove: []string{seed.PolicyPath}})
		p.shows(patience, "success", "pending", "the policy of signalbox", "Needs 1 approval by alice or carol")
	})

	t.Run("one that is not valid is told on its pull request", func(t *testing.T) {
		p := st.open(t, "bad-proposal", write(seed.PolicyPath, "version: 1\napprovals:\n  - name: keepers\n    path: [\"clusters/**\"]\n"))
		p.shows(patience, "failure", "pending", "the new one is not valid", "approvals[0].path: unknown field")
		st.push(t, "bad-proposal", "", write(seed.PolicyPath, approvalPolicy+"# Better.\n"))
		p.shows(patience, "success", "pending", "It is judged by the policy of `main`")
	})

	t.Run("one that is not valid on the base blocks until it is mended", func(t *testing.T) {
		st.push(t, "odd", "origin/main", write(seed.PolicyPath, "version: 1\napprovals: everybody\n"))
		st.push(t, "into-odd", "origin/odd", write("clusters/odd.yaml", "a: 1\n"))
		p := st.request(t, "into-odd", "odd")
		p.shows(patience, "failure", "failure", "the policy on odd is not valid, so nothing can pass", seed.PolicyPath)
		// Mended by a push to the base.
		st.push(t, "mended", "origin/odd", write(seed.PolicyPath, approvalPolicy))
		if err := st.clone.Push(t.Context(), "odd"); err != nil {
			t.Fatal(err)
		}
		_, took := p.shows(patience, "success", "pending", "Needs 1 approval by alice or carol")
		t.Logf("base mended, shown after %s", took)
	})
}

// mainMoves pushes a file to main.
func mainMoves(t *testing.T, st *stage, file, text string) string {
	t.Helper()
	sha := st.push(t, "next-main", "origin/main", write(file, text))
	if err := st.clone.Push(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	return sha
}

// mergeMain merges main into a branch and pushes it. Files replace what git
// makes of them.
func mergeMain(t *testing.T, st *stage, branch string, resolved map[string]string) string {
	t.Helper()
	ctx := t.Context()
	if err := st.clone.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.clone.Checkout(ctx, branch); err != nil {
		t.Fatal(err)
	}
	_, err := st.clone.Git(ctx, "merge", "--quiet", "--no-ff", "--no-commit", "origin/main")
	if conflict := err != nil; conflict != (len(resolved) > 0) {
		t.Fatalf("merge main into %s: %v", branch, err)
	}
	head, err := st.clone.Commit(ctx, realserver.Change{Message: "Merge main into " + branch, Write: resolved})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.clone.Push(ctx, branch); err != nil {
		t.Fatal(err)
	}
	return head
}
