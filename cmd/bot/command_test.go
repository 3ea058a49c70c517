package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"signalbox/internal/decision"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// deciding is the policy of the tests with an override list, and merging.
const deciding = testPolicy + `
override: {from: {users: [alice]}, ttl: 1h}
merge: {enabled: true}
`

func newDecidingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, worldOptions{files: map[string]string{policy.Path: deciding}})
	w.ready()
	w.start(worldOptions{})
	return w
}

// say comments on a pull request.
func (w *world) say(number int64, as, text string) int64 {
	w.t.Helper()
	id, err := w.forge.Comment(w.t.Context(), w.repo, number, as, text)
	w.must(err)
	return id
}

// reacts waits for signalbox's final reaction to a comment.
func (w *world) reacts(comment int64, want string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("comment %d gets %s", comment, want), func() string {
		got, err := w.forge.Reactions(w.t.Context(), w.repo, comment)
		if err != nil || len(got) != 1 || got[0].Content != want || got[0].Login != "signalbox" {
			return fmt.Sprintf("it has %v, %v", got, err)
		}
		return ""
	})
}

// replies waits for an answer of signalbox that holds a text, and returns the
// number of its answers.
func (w *world) replies(number int64, text string) int {
	w.t.Helper()
	n := 0
	w.eventually(fmt.Sprintf("a reply says %q", text), func() string {
		all, err := w.eyes.Comments(w.t.Context(), w.repo, number)
		if err != nil {
			return err.Error()
		}
		found := false
		n = 0
		var bodies []string
		for _, c := range all {
			if c.Author.Is(w.bot) && strings.HasPrefix(c.Body, "<!-- signalbox reply") {
				n++
				found = found || strings.Contains(plain(c.Body), text)
				bodies = append(bodies, c.Body)
			}
		}
		if !found {
			return "the replies are " + strings.Join(bodies, "\n---\n")
		}
		return ""
	})
	return n
}

// decided waits until the ledger of a pull request holds just these kinds.
func (w *world) decided(number int64, kinds string) {
	w.t.Helper()
	w.eventually("the ledger holds "+kinds, func() string {
		var have []string
		for _, e := range w.app.ledger.Entries(pull.Ref{RepoID: w.repo.ID, Number: number}) {
			have = append(have, string(e.Kind))
		}
		if got := strings.Join(have, " "); got != kinds {
			return "it holds " + got
		}
		return ""
	})
}

func TestApproveByCommand(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")

	w.reacts(w.say(number, "carol", "Looks good.\r\n\r\n/approve  "), "+1")
	w.shows(number, "success", "success", "Approved by carol")

	t.Run("those who may not are told who may", func(t *testing.T) {
		w.reacts(w.say(number, "bob", "/approve"), "-1")
		w.replies(number, "the author of a pull request cannot decide about it. Others who may: alice, carol.")
		w.reacts(w.say(number, "mallory", "/approve"), "-1")
		w.replies(number, "mallory is not among those who may approve this change: alice, carol.")
	})
	t.Run("taken back", func(t *testing.T) {
		w.reacts(w.say(number, "carol", "/approve cancel"), "+1")
		w.shows(number, "success", "pending", "Needs 1 approval")
	})
	t.Run("with the SHA of another head it is refused", func(t *testing.T) {
		w.reacts(w.say(number, "alice", "/approve 1234567"), "-1")
		w.replies(number, "it names 1234567, and the head is")
	})
	t.Run("a push voids it, and a comment before the push approves nothing", func(t *testing.T) {
		p, err := w.eyes.Pull(t.Context(), w.repo, number)
		w.must(err)
		w.reacts(w.say(number, "alice", "/approve "+strings.ToUpper(p.Head.SHA[:12])), "+1")
		w.shows(number, "success", "success")
		w.push("cdi", map[string]string{"clusters/base/z.yaml": "z\n"})
		w.shows(number, "success", "pending", "was pushed since, and the diff is another")
	})
	t.Run("in the text of a review", func(t *testing.T) {
		_, err := w.forge.Review(t.Context(), w.repo, number, "alice", giteatest.Remark, "I read it.\n\n/approve")
		w.must(err)
		w.shows(number, "success", "success", "Approved by alice")
	})
}

func TestPushRightAfterAComment(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	w.quiet()
	// Both reach Gitea before signalbox looks.
	w.forge.Down(true)
	comment := w.say(number, "alice", "/approve")
	w.push("cdi", map[string]string{"clusters/base/z.yaml": "z\n"})
	w.forge.Down(false)
	w.must(w.app.reconciler.Handle(t.Context(), tick(t)))
	w.reacts(comment, "-1")
	w.replies(number, "the change became another after it was written")
	w.shows(number, "success", "pending", "Needs 1 approval")
}

func TestWhatIsNoCommand(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	for _, text := range []string{"```\n/approve\n```", "> /approve", "<!--\n/approve\n-->", "you could /approve it", "/etc/hosts is wrong"} {
		w.say(number, "alice", text)
	}
	old := w.say(number, "alice", "I will look at it.")
	w.quiet()
	w.must(w.forge.EditComment(t.Context(), w.repo, old, "bob", "/approve"))
	w.reacts(old, "-1")
	w.replies(number, "this comment was edited, and then nobody can tell who says it.")
	w.reacts(w.say(number, "alice", "/approved"), "-1")
	if n := w.replies(number, "There is no command /approved. Did you mean /approve?"); n != 2 {
		t.Errorf("%d replies, want 2", n)
	}
	w.quiet()
	w.shows(number, "success", "pending", "Needs 1 approval")
}

// TestForgedWithinTheSecond: Gitea's times do not tell an edit from a comment
// of the same second.
func TestForgedWithinTheSecond(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	comment := w.say(number, "alice", "I will look at it.")
	w.must(w.forge.EditComment(t.Context(), w.repo, comment, "bob", "/approve"))
	w.reacts(comment, "-1")
	w.replies(number, "this comment was edited, and then nobody can tell who says it.")
	w.shows(number, "success", "pending", "Needs 1 approval")
	w.quiet()
	for _, e := range w.app.ledger.Entries(pull.Ref{RepoID: w.repo.ID, Number: number}) {
		if e.Kind == decision.Approve {
			t.Errorf("the ledger has an approval by %s", e.By.Login)
		}
	}
}

func TestHold(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.say(number, "alice", "/approve")
	w.shows(number, "success", "success")
	w.reacts(w.say(number, "bob", "/hold until the backup ran"), "+1")
	w.shows(number, "success", "pending", "Held by bob", "until the backup ran")
	w.reacts(w.say(number, "mallory", "/unhold"), "-1")
	w.reacts(w.say(number, "mallory", "/hold"), "-1")
	w.replies(number, "only those who may write to ops/home-gitops can do that.")
	w.push("cdi", map[string]string{"clusters/base/z.yaml": "z\n"})
	w.shows(number, "success", "pending", "Held by bob")
	w.reacts(w.say(number, "carol", "/unhold\n/approve"), "+1")
	w.shows(number, "success", "success")
	w.reacts(w.say(number, "bob", "/unhold\n/hold"), "-1")
	w.shows(number, "success", "pending", "Held by bob")
}

func TestOverrideByCommand(t *testing.T) {
	w := newDecidingWorld(t)
	w.cluster.Kustomization("flux-system", "platform-config").Suspended()
	number := w.open("cdi", clusterChange)
	w.shows(number, "pending", "pending")
	w.reacts(w.say(number, "carol", "/approve-override now"), "-1")
	w.replies(number, "carol is not among those who may override: alice.")
	w.reacts(w.say(number, "alice", "/approve-override"), "-1")
	w.replies(number, "an override needs a reason")
	w.reacts(w.say(number, "alice", "/approve-override the disk is full"), "+1")
	w.shows(number, "success", "success", "Overridden by alice", "the disk is full")
	w.reacts(w.say(number, "alice", "/approve-override cancel"), "+1")
	w.shows(number, "pending", "pending")
	w.reacts(w.say(number, "alice", "/approve-override again"), "+1")
	w.shows(number, "success", "success")
	w.push("cdi", map[string]string{"clusters/base/z.yaml": "z\n"})
	w.shows(number, "pending", "pending")
}

func TestMergeByCommand(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	merged := func(number int64) func() string {
		return func() string {
			p, err := w.eyes.Pull(t.Context(), w.repo, number)
			if err != nil || p.State != pull.Merged {
				return fmt.Sprintf("it is %s, %v", p.State, err)
			}
			return ""
		}
	}
	w.reacts(w.say(number, "mallory", "/merge"), "-1")
	w.reacts(w.say(number, "bob", "/merge"), "+1")
	w.replies(number, "signalbox merges this as soon as it is clear.")
	w.shows(number, "success", "pending", "bob asked to merge")
	w.say(number, "alice", "/approve")
	w.eventually("it is merged", merged(number))
	w.replies(number, "as bob asked.")

	t.Run("a push ends the request", func(t *testing.T) {
		number := w.open("second", map[string]string{"clusters/base/second.yaml": "x\n"})
		w.reacts(w.say(number, "bob", "/merge"), "+1")
		w.push("second", map[string]string{"clusters/base/z.yaml": "z\n"})
		w.say(number, "alice", "/approve")
		w.shows(number, "success", "success")
		w.quiet()
		if merged(number)() == "" {
			t.Error("it was merged")
		}
	})
	t.Run("a hold ends the request, and only a new one merges", func(t *testing.T) {
		number := w.open("third", map[string]string{"clusters/base/third.yaml": "x\n"})
		w.reacts(w.say(number, "bob", "/merge"), "+1")
		w.reacts(w.say(number, "carol", "/hold"), "+1")
		w.say(number, "alice", "/approve")
		w.shows(number, "success", "pending", "Held by carol")
		w.reacts(w.say(number, "alice", "/unhold"), "+1")
		w.shows(number, "success", "success")
		w.quiet()
		if merged(number)() == "" {
			t.Error("it was merged")
		}
		w.say(number, "bob", "/merge")
		w.eventually("it is merged", merged(number))
	})
	t.Run("what Gitea refuses is told", func(t *testing.T) {
		number := w.open("fourth", map[string]string{"clusters/base/fourth.yaml": "x\n"})
		w.forge.Fail(func(r *http.Request) *giteatest.Response {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/merge") {
				return &giteatest.Response{Code: http.StatusMethodNotAllowed, Body: `{"message":"Not all required status checks successful"}`}
			}
			return nil
		})
		w.say(number, "alice", "/approve\n/merge")
		w.replies(number, "Not all required status checks successful")
		w.forge.Fail(nil)
	})
}

func TestMergeWhoseAnswerIsLost(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	lost := make(chan struct{}, 10)
	w.forge.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/merge") {
			// Gitea merges, and the answer never comes.
			if _, err := w.forge.Merge(t.Context(), w.repo, number, "signalbox"); err != nil {
				t.Error(err)
			}
			lost <- struct{}{}
			return &giteatest.Response{Code: http.StatusOK, Break: true}
		}
		return nil
	})
	w.say(number, "alice", "/approve\n/merge")
	<-lost
	w.replies(number, "as alice asked.")
	if n := len(lost); n != 0 {
		t.Errorf("it was asked to merge %d times more", n)
	}
	w.decided(number, "approve merge merged")
}

// TestHoldDuringMerge holds that a hold is heard, or told that it is too late.
func TestHoldDuringMerge(t *testing.T) {
	w := newDecidingWorld(t)
	// hold holds a pull request right before a request of signalbox is answered.
	hold := func(number int64, path string) <-chan int64 {
		said := make(chan int64, 1)
		var once sync.Once
		w.forge.Fail(func(r *http.Request) *giteatest.Response {
			if r.Method == http.MethodPost && strings.Contains(r.URL.Path, path) {
				once.Do(func() {
					id, err := w.forge.Comment(t.Context(), w.repo, number, "carol", "/hold not now")
					if err != nil {
						t.Error(err)
					}
					said <- id
				})
			}
			return nil
		})
		return said
	}
	t.Run("before the last check", func(t *testing.T) {
		number := w.open("cdi", clusterChange)
		w.reacts(w.say(number, "bob", "/merge"), "+1")
		w.shows(number, "success", "pending", "bob asked to merge")
		said := hold(number, "/statuses/")
		w.say(number, "alice", "/approve")
		w.reacts(<-said, "+1")
		w.shows(number, "success", "pending", "Held by carol")
		w.quiet()
		p, err := w.eyes.Pull(t.Context(), w.repo, number)
		w.must(err)
		if p.State != pull.Open {
			t.Errorf("it is %s", p.State)
		}
	})
	t.Run("too late", func(t *testing.T) {
		number := w.open("second", map[string]string{"clusters/base/second.yaml": "x\n"})
		w.shows(number, "success", "pending")
		said := hold(number, "/merge")
		w.say(number, "alice", "/approve\n/merge")
		w.reacts(<-said, "-1")
		w.replies(number, "/hold not now was not carried out: it is merged already.")
		w.replies(number, "as alice asked.")
	})
}

func TestCommandsOnceOverRestarts(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	w.reacts(w.say(number, "carol", "/approve"), "+1")
	w.say(number, "bob", "/approve")
	w.replies(number, "the author of a pull request")
	w.stop()
	hold := w.say(number, "alice", "/hold while it was down")
	w.must(w.forge.Settle(t.Context()))
	w.start(worldOptions{})
	w.reacts(hold, "+1")
	w.shows(number, "success", "pending", "Held by alice")
	w.quiet()
	if n := w.replies(number, "the author of a pull request"); n != 1 {
		t.Errorf("%d replies, want the one", n)
	}
	w.decided(number, "approve refused hold")
}

// TestTeamMembershipEnds holds that a right is asked when it counts, not only
// when it was used.
func TestTeamMembershipEnds(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.say(number, "carol", "/approve")
	w.shows(number, "success", "success")
	w.quiet()
	w.must(w.forge.SetTeam(t.Context(), owner, "maintainers", "signalbox"))
	w.must(w.app.reconciler.Handle(t.Context(), tick(t)))
	w.shows(number, "success", "pending", "Needs 1 approval by alice")
}
