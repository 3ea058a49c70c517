//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// TestDecisionApprove: who may approve does, in a comment or in a review, and
// all others are told who may.
func TestDecisionApprove(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: decisionPolicy}, settings{})
	alice, bob, carol, mallory := st.repo.Alice, st.repo.Bob, st.repo.Carol, st.repo.Mallory
	p := st.open(t, "approve", write("clusters/approve.yaml", "a: 1\n"))
	s, _ := p.shows(patience, "success", "pending")

	p.refused(p.say(bob, "/approve"), "the author of a pull request cannot decide about it. Others who may: alice, carol.")
	p.refused(p.say(mallory, "/approve"), "mallory is not among those who may approve this change: alice, carol.")
	p.refused(p.say(carol, "/approve 1234567"), "it names 1234567, and the head is "+s.head[:10])
	p.refused(p.say(carol, "/approved"), "There is no command /approved. Did you mean /approve?")
	p.shows(patience, "success", "pending", "Needs 1 approval by alice or carol")

	start := time.Now()
	comment := p.say(carol, "Looks good.\r\n\r\n/approve  \r\n")
	p.shows(patience, "success", "success", "Approved by carol")
	p.gets(comment, "+1")
	t.Logf("approved, shown after %s", time.Since(start))
	p.gets(p.say(carol, "/APPROVE cancel"), "+1")
	p.shows(patience, "success", "pending", "Needs 1 approval")
	p.gets(p.say(carol, "/approve "+strings.ToUpper(s.head[:8])), "+1")
	p.shows(patience, "success", "success", "Approved by carol")
	p.refused(p.say(carol, "/approve\n/approve cancel"), "the same comment says /approve cancel, which holds")
	p.shows(patience, "success", "pending", "Needs 1 approval")

	t.Run("in the text of a review", func(t *testing.T) {
		p.t = t
		say := func(by realserver.User, text string) {
			_, _, err := client(t, st.repo, by).CreatePullReview(st.repo.Owner, st.repo.Name, p.number, sdk.CreatePullReviewOptions{
				State: sdk.ReviewStateComment, Body: text, CommitID: s.head,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		say(bob, "/approve")
		eventually(t, patience, "the author is refused", func() error {
			n := strings.Count(strings.Join(p.replies(), "\n"), "the author of a pull request cannot decide")
			if n != 2 {
				return fmt.Errorf("%d replies say so", n)
			}
			return nil
		})
		say(alice, "I read it.\n\n/approve")
		p.shows(patience, "success", "success", "Approved by alice")
		p.gets(p.lastReview(), "+1")
		p.gets(p.say(alice, "/approve cancel"), "+1")
		p.shows(patience, "success", "pending", "Needs 1 approval")

		// Bob may write, so he can edit what alice said in a review.
		say(alice, "I will look at it.")
		p.rewrite(bob, p.lastReview(), "/approve")
		p.settle(bob)
		p.shows(patience, "success", "pending", "Needs 1 approval")
	})

	t.Run("one person is one approval", func(t *testing.T) {
		p.t = t
		review(t, st.repo, carol, p.number, sdk.ReviewStateApproved)
		p.shows(patience, "success", "success", "Approved by carol")
		p.gets(p.say(carol, "/approve"), "+1")
		p.gets(p.say(carol, "/approve cancel"), "+1")
		p.shows(patience, "success", "pending", "Needs 1 approval")
	})
}

// lastReview is the comment that takes the reactions to the newest review.
func (p *page) lastReview() int64 {
	p.t.Helper()
	all, _, err := p.reader.ListIssueTimeline(p.repo.Owner, p.repo.Name, p.number, sdk.ListIssueCommentOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	newest := int64(0)
	for _, c := range all {
		if c.Type == "review" {
			newest = max(newest, c.ID)
		}
	}
	return newest
}

// TestDecisionNoCommand: what only looks like a command runs nothing.
func TestDecisionNoCommand(t *testing.T) {
	t.Parallel()
	robot, err := world.User(t.Context(), world.Name(t))
	if err != nil {
		t.Fatal(err)
	}
	st := plantStage(t, seed.Options{Policy: decisionPolicy})
	alice, bob := st.repo.Alice, st.repo.Bob
	if _, err := client(t, st.repo, alice).AddTeamMember(st.repo.Ops, robot.Name); err != nil {
		t.Fatal(err)
	}
	st.bot = newBot(t, st.repo, settings{extra: "bots: [" + robot.Name + "]\n"})
	st.bot.start()
	st.push(t, "nothing", "origin/main", write("clusters/nothing.yaml", "a: 1\n"))
	pr, _, err := client(t, st.repo, alice).CreatePullRequest(st.repo.Owner, st.repo.Name, sdk.CreatePullRequestOption{
		Head: "nothing", Base: "main", Title: "/approve", Body: "/hold\n\n/approve-override because\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	// Alice wrote the description of what bob pushed.
	p := newPage(t, st.repo, pr.Index)
	p.shows(patience, "success", "pending", "Needs 1 approval by carol")
	carol := st.repo.Carol
	var said []int64
	for _, text := range []string{
		"```\n/approve\n```", "    /approve", "> /approve", "<!--\n/approve\n-->", "<!-- a template\n\n/approve\n\n-->", "- /approve",
		"you could /approve it", "`/approve`", "/etc/approve is wrong", "\\/approve", "//approve", "/ approve", "<details>\n/approve\n</details>",
	} {
		said = append(said, p.say(carol, text))
	}
	own := []int64{p.say(st.repo.Bot, "/approve"), p.say(st.repo.Bot, "/hold")}
	said = append(append(said, p.say(robot, "/approve")), own...)
	deleted := p.say(carol, "Never mind.")
	if _, err := client(t, st.repo, bob).DeleteIssueComment(st.repo.Owner, st.repo.Name, deleted); err != nil {
		t.Fatal(err)
	}
	p.settle(bob)
	for _, id := range said {
		if got, err := p.reactions(id); got != "" || err != nil {
			t.Errorf("comment %d got %q, %v", id, got, err)
		}
	}
	if all := p.replies(); len(all) != 1 {
		t.Errorf("%d replies, want the help alone: %q", len(all), all)
	}
	for _, id := range own {
		if _, err := client(t, st.repo, st.repo.Bot).DeleteIssueComment(st.repo.Owner, st.repo.Name, id); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("an edit of what another said", func(t *testing.T) {
		p.t = t
		old := said[0]
		p.rewrite(bob, old, "/approve")
		p.refused(old, "this comment was edited, and then nobody can tell who says it. Write the command in a new comment.")
		p.rewrite(bob, old, "/approve\n\n/hold")
		p.settle(bob)
		if n := strings.Count(strings.Join(p.replies(), "\n"), "this comment was edited"); n != 1 {
			t.Errorf("said %d times", n)
		}
		p.shows(patience, "success", "pending", "Needs 1 approval by carol")
	})

	t.Run("an edit of what counted", func(t *testing.T) {
		p.t = t
		comment := p.say(carol, "/approve")
		p.shows(patience, "success", "success", "Approved by carol")
		p.gets(comment, "+1")
		p.rewrite(bob, comment, "/hold\n\n/approve cancel")
		p.settle(bob)
		p.shows(patience, "success", "success", "Approved by carol")
		if _, err := client(t, st.repo, bob).DeleteIssueComment(st.repo.Owner, st.repo.Name, comment); err != nil {
			t.Fatal(err)
		}
		p.settle(bob)
		p.shows(patience, "success", "success", "Approved by carol")
	})
}

// TestDecisionOnce: each comment is dealt with once, however often and however
// late Gitea tells of it.
func TestDecisionOnce(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: decisionPolicy}, settings{})
	bob, carol := st.repo.Bob, st.repo.Carol
	p := st.open(t, "once", write("clusters/once.yaml", "a: 1\n"))
	p.shows(patience, "success", "pending")
	approved, refused := p.say(carol, "/approve"), p.say(bob, "/approve")
	p.gets(approved, "+1")
	p.gets(refused, "-1")
	repo, _, err := p.reader.GetRepo(st.repo.Owner, st.repo.Name)
	if err != nil {
		t.Fatal(err)
	}
	again := func(round int) {
		t.Helper()
		for i, id := range []int64{approved, refused} {
			h := hook{event: "issue_comment", kind: "pull_request_comment", id: fmt.Sprintf("told-again-%d-%d", round, i), body: fmt.Sprintf(
				`{"action":"created","is_pull":true,"issue":{"number":%d},"comment":{"id":%d,"body":"/approve","user":{"id":%d,"login":"carol"}},
				  "repository":{"id":%d,"name":%q,"owner":{"id":1,"login":%q}},"sender":{"id":%d,"login":"carol"}}`,
				p.number, id, carol.ID, repo.ID, repo.Name, st.repo.Owner, carol.ID)}
			if got := st.bot.deliver(t, h); got < 200 || got > 299 {
				t.Fatalf("answered with %d", got)
			}
		}
		p.settle(bob)
	}
	again(1)
	// What is told is not what counts: the real comment takes carol's back.
	p.gets(p.say(carol, "/approve cancel"), "+1")
	p.shows(patience, "success", "pending")
	again(2)

	if err := st.bot.stop(); err != nil {
		t.Fatal(err)
	}
	held, missed := p.say(bob, "/hold while it was down"), p.say(carol, "/approve")
	st.bot.start()
	p.gets(held, "+1")
	p.gets(missed, "+1")
	p.shows(patience, "success", "pending", "Held by bob", "while it was down")
	again(3)
	st.bot.restart()
	p.settle(bob)
	for _, id := range []int64{approved, held, missed} {
		if n := st.bot.carriedOut(id); n != 1 {
			t.Errorf("comment %d was carried out %d times", id, n)
		}
	}
	if n := strings.Count(strings.Join(p.replies(), "\n"), "the author of a pull request"); n != 1 {
		t.Errorf("the author is told %d times", n)
	}
	p.shows(patience, "success", "pending", "Held by bob")
	p.gets(p.say(bob, "/unhold"), "+1")
	p.shows(patience, "success", "success", "Approved by carol")
}
