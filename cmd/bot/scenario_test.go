package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// clusterChange is a change that the policy of the tests is about.
var clusterChange = map[string]string{"clusters/base/new.yaml": "c: 1\n"}

// ready makes platform-config Ready.
func (w *world) ready() {
	w.t.Helper()
	base, err := w.forge.Tip(w.t.Context(), w.repo, "main")
	w.must(err)
	w.cluster.Kustomization("flux-system", "platform-config").Ready("main@sha1:" + base)
}

func (w *world) approve(number int64, as string) int64 {
	w.t.Helper()
	id, err := w.forge.Review(w.t.Context(), w.repo, number, as, giteatest.Approve, "")
	w.must(err)
	return id
}

func (w *world) push(branch string, files map[string]string) string {
	w.t.Helper()
	sha, err := w.forge.Push(w.t.Context(), w.repo, giteatest.Push{Branch: branch, As: "bob", Files: files, Message: "more"})
	w.must(err)
	return sha
}

// quiet waits until signalbox has nothing to do: all webhooks were delivered
// and the number of evaluations stays the same.
func (w *world) quiet() {
	w.t.Helper()
	w.must(w.forge.Settle(w.t.Context()))
	same, last := 0, -1
	w.eventually("signalbox comes to rest", func() string {
		n := w.evaluations()
		if n != last {
			same, last = 0, n
		}
		same++
		// Twice the longest debounce of the tests.
		if same < 40 {
			return "it is at work"
		}
		return ""
	})
}

// evaluations counts the evaluations so far.
func (w *world) evaluations() int {
	w.t.Helper()
	families, err := w.app.registry.Gather()
	w.must(err)
	n := 0.0
	for _, f := range families {
		if f.GetName() == "signalbox_evaluations_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return int(n)
}

func TestCallsToGiteaAreFew(t *testing.T) {
	w := newWorld(t, worldOptions{files: map[string]string{policy.Path: strings.Replace(testPolicy, "teams: [maintainers], ", "", 1)}})
	w.ready()
	w.start(worldOptions{})
	w.quiet()
	files := map[string]string{"clusters/base/new.yaml": "c: 1\n"}
	for i := range 49 {
		files[fmt.Sprintf("apps/app-%d.yaml", i)] = "a: 1\n"
	}

	// What is asked once in a life, such as who signalbox is.
	w.shows(w.open("warm", map[string]string{"docs/a.md": "a\n"}), "success", "success")
	_, err := w.forge.Push(t.Context(), w.repo, giteatest.Push{Branch: "main", As: "alice", Files: map[string]string{"README.md": "b\n"}, Message: "a base without a known policy"})
	w.must(err)
	w.ready()
	w.quiet()

	w.forge.ResetCalls()
	number := w.open("cdi", files)
	w.quiet()
	calls := w.forge.Calls()
	t.Logf("first evaluation: %v", calls)
	if n := w.forge.TotalCalls(); n > 7 {
		t.Errorf("the first evaluation of 50 files took %d calls, the bound is 7: %v", n, calls)
	}
	w.shows(number, "success", "pending")

	w.forge.ResetCalls()
	config := w.cluster.Kustomization("flux-system", "platform-config")
	evaluated := w.evaluations()
	config.Progressing()
	w.ready()
	w.quiet()
	if n := w.forge.TotalCalls(); n != 0 || w.evaluations() != evaluated {
		t.Errorf("passing through Progressing took %d calls and %d evaluations: %v", n, w.evaluations()-evaluated, w.forge.Calls())
	}

	w.cluster.Kustomization("flux-system", "unrelated").Ready("main@sha1:x").Failing("BuildFailed", "no")
	w.quiet()
	if n := w.forge.TotalCalls(); n != 0 || w.evaluations() != evaluated {
		t.Errorf("a fact that nobody reads took %d calls and %d evaluations", n, w.evaluations()-evaluated)
	}

	config.Failing("BuildFailed", "kustomize build failed")
	w.quiet()
	t.Logf("changed verdict: %v", w.forge.Calls())
	if n := w.forge.TotalCalls(); n > 4 {
		t.Errorf("a changed verdict took %d calls, the bound is 4: %v", n, w.forge.Calls())
	}
	w.shows(number, "pending", "pending", "kustomize build failed")
}

func TestAFactWakesItsReadersOnly(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{})
	reader := w.open("reader", clusterChange)
	other := w.open("other", map[string]string{"docs/a.md": "a\n"})
	w.shows(reader, "success", "pending")
	w.shows(other, "success", "success")
	w.quiet()

	before := w.evaluations()
	w.cluster.Kustomization("flux-system", "platform-config").Suspended()
	w.shows(reader, "pending", "pending", "is suspended")
	w.quiet()
	if n := w.evaluations() - before; n != 1 {
		t.Errorf("%d evaluations, want the one of the reader", n)
	}
	w.shows(other, "success", "success")
}

func TestWhatOthersDoToOurPosts(t *testing.T) {
	w := newWorld(t, worldOptions{})
	ctx := t.Context()
	w.start(worldOptions{})
	number := w.open("cdi", clusterChange)
	s := w.shows(number, "pending", "pending")
	p, err := w.eyes.Pull(ctx, w.repo, number)
	w.must(err)

	t.Run("a forged status is replaced and told", func(t *testing.T) {
		w.must(w.forge.SetStatus(ctx, w.repo, p.Head.SHA, "bob", pull.Status{
			Context: render.PreconditionsContext("main"), State: "success", Description: "all is well",
		}))
		w.shows(number, "pending", "pending", `bob posted the status "signalbox / preconditions (main)" as success`)
	})
	t.Run("an edited comment is restored", func(t *testing.T) {
		w.must(w.forge.EditComment(ctx, w.repo, s.comments[0].ID, "carol", "Everything is fine, merge it."))
		w.shows(number, "pending", "pending", "Waiting for")
	})
	t.Run("a deleted comment is made again", func(t *testing.T) {
		w.must(w.forge.DeleteComment(ctx, w.repo, s.comments[0].ID, "carol"))
		w.shows(number, "pending", "pending", "Waiting for")
	})
	t.Run("a comment in our words by another is not ours", func(t *testing.T) {
		w.quiet()
		_, err := w.forge.Comment(ctx, w.repo, number, "bob", s.comments[0].Body)
		w.must(err)
		w.push("cdi", map[string]string{"clusters/base/x.yaml": "x\n"})
		w.shows(number, "pending", "pending", "Waiting for")
	})
}

func TestApprovalsFollowTheDiff(t *testing.T) {
	w := newWorld(t, worldOptions{})
	ctx := t.Context()
	w.ready()
	w.start(worldOptions{})
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	w.approve(number, "carol")
	w.shows(number, "success", "success")

	t.Run("a rebase with the same diff keeps them", func(t *testing.T) {
		_, err := w.forge.Push(ctx, w.repo, giteatest.Push{Branch: "main", As: "alice", Files: map[string]string{"README.md": "hello\n"}, Message: "elsewhere"})
		w.must(err)
		w.ready()
		sha, err := w.forge.Push(ctx, w.repo, giteatest.Push{Branch: "cdi", From: "main", Force: true, As: "bob", Files: clusterChange, Message: "cdi"})
		w.must(err)
		w.eventually("the rebased head is shown", func() string {
			p, err := w.eyes.Pull(ctx, w.repo, number)
			if err != nil || p.Head.SHA != sha {
				return fmt.Sprintf("head %s, %v", p.Head.SHA, err)
			}
			return ""
		})
		w.shows(number, "success", "success", sha[:10], "Approved by carol")
	})
	t.Run("a dismissed one is found by the reconciler", func(t *testing.T) {
		w.quiet()
		id := w.approve(number, "carol")
		w.quiet()
		w.must(w.forge.Dismiss(ctx, w.repo, number, id, "alice"))
		w.must(w.app.reconciler.Handle(ctx, tick(t)))
		w.shows(number, "success", "pending", "Needs 1 approval")
	})
	t.Run("another base voids them", func(t *testing.T) {
		w.approve(number, "alice")
		w.shows(number, "success", "success")
		_, err := w.forge.Push(ctx, w.repo, giteatest.Push{Branch: "next", From: "main", As: "alice", Message: "next"})
		w.must(err)
		w.must(w.forge.Retarget(ctx, w.repo, number, "bob", "next"))
		w.shows(number, "success", "pending", "the base was changed to next since")
		w.must(w.forge.Retarget(ctx, w.repo, number, "bob", "main"))
		w.shows(number, "success", "pending", "the base was changed to next since")
	})
}

func TestOneHeadInTwoPullRequests(t *testing.T) {
	w := newWorld(t, worldOptions{})
	ctx := t.Context()
	w.ready()
	_, err := w.forge.Push(ctx, w.repo, giteatest.Push{Branch: "next", From: "main", As: "alice", Message: "next"})
	w.must(err)
	w.start(worldOptions{})
	one := w.open("cdi", clusterChange)
	w.shows(one, "success", "pending")

	t.Run("with different bases each has its own statuses", func(t *testing.T) {
		two, err := w.forge.OpenPull(ctx, w.repo, giteatest.NewPull{As: "bob", Title: "again", Head: "cdi", Base: "next"})
		w.must(err)
		w.shows(two, "success", "pending")
		w.approve(one, "alice")
		w.shows(one, "success", "success")
		w.quiet()
		w.shows(two, "success", "pending")
	})
	t.Run("with the same base the worse verdict is posted", func(t *testing.T) {
		_, err := w.forge.Push(ctx, w.repo, giteatest.Push{Branch: "twin", From: "cdi", As: "bob"})
		w.must(err)
		twin, err := w.forge.OpenPull(ctx, w.repo, giteatest.NewPull{As: "bob", Title: "twin", Head: "twin", Base: "main"})
		w.must(err)
		w.shows(twin, "success", "pending", "Needs 1 approval")
		w.approve(twin, "carol")
		w.shows(twin, "success", "success")
	})
}

func TestThePolicyOfTheBaseDecides(t *testing.T) {
	w := newWorld(t, worldOptions{})
	ctx := t.Context()
	w.ready()
	w.start(worldOptions{})
	t.Run("a pull request that adds its author as approver does not profit", func(t *testing.T) {
		number := w.open("grant", map[string]string{policy.Path: strings.Replace(testPolicy, "[alice]", "[alice, bob]", 1)})
		w.shows(number, "success", "pending", "the policy of signalbox", "Needs 1 approval by alice or carol", "This pull request changes the policy.")
	})
	t.Run("an invalid one on the head blocks its pull request", func(t *testing.T) {
		number := w.open("broken", map[string]string{policy.Path: "version: 1\nprecondition: []\n"})
		w.shows(number, "failure", "pending", "the new one is not valid", `unknown field (did you mean "preconditions"?)`)
	})
	t.Run("an invalid one on the base blocks all", func(t *testing.T) {
		number := w.open("any", map[string]string{"docs/x.md": "x\n"})
		w.shows(number, "success", "success")
		_, err := w.forge.Push(ctx, w.repo, giteatest.Push{Branch: "main", As: "alice", Files: map[string]string{policy.Path: "version: 3\n"}, Message: "oops"})
		w.must(err)
		w.shows(number, "failure", "failure", "the policy on main is not valid", "version 3 is not known")
	})
}

func TestGiteaFails(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{})
	w.quiet()
	t.Run("what cannot be read is undecided once it lasts, and recovers", func(t *testing.T) {
		w.forge.Fail(func(r *http.Request) *giteatest.Response {
			if strings.HasSuffix(r.URL.Path, "/files") {
				return &giteatest.Response{Code: http.StatusInternalServerError, Body: "{}"}
			}
			return nil
		})
		number := w.open("cdi", clusterChange)
		w.shows(number, "error", "error", "signalbox could not decide", "list files of ops/home-gitops#1")
		w.forge.Fail(nil)
		w.shows(number, "success", "pending")
	})
}

func TestRestart(t *testing.T) {
	w := newWorld(t, worldOptions{})
	ctx := t.Context()
	w.ready()
	w.start(worldOptions{})
	number := w.open("cdi", clusterChange)
	first := w.shows(number, "success", "pending")
	w.stop()

	// While nobody listens: a push, an approval, a new pull request.
	w.push("cdi", map[string]string{"clusters/base/y.yaml": "y\n"})
	w.approve(number, "alice")
	later := w.open("later", clusterChange)
	w.must(w.forge.Settle(ctx))
	w.start(worldOptions{})
	again := w.shows(number, "success", "success", "Approved by alice")
	w.shows(later, "success", "pending")
	if diff := cmp.Diff(first.comments[0].ID, again.comments[0].ID); diff != "" {
		t.Errorf("the comment is another one (-before +after):\n%s", diff)
	}
}

func TestStateIsLost(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{})
	number := w.open("cdi", clusterChange)
	first := w.shows(number, "success", "pending")
	w.stop()
	w.dir = t.TempDir()
	w.start(worldOptions{})
	w.quiet()
	again := w.shows(number, "success", "pending")
	if first.comments[0].ID != again.comments[0].ID {
		t.Error("the comment of an earlier life was not found")
	}
}

func TestObserveOnly(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{adjust: observe})
	number := w.open("cdi", clusterChange)
	w.quiet()
	if w.evaluations() == 0 {
		t.Fatal("nothing was evaluated")
	}
	s, err := w.look(number)
	w.must(err)
	if s.preconditions.State != "" || s.approval.State != "" || len(s.comments) > 0 {
		t.Errorf("something was posted: %+v", s)
	}
}

// TestGapsOfTheProtectionAreShown: Gitea tells nobody when the protection of a
// branch is changed.
func TestGapsOfTheProtectionAreShown(t *testing.T) {
	w := newWorld(t, worldOptions{})
	ctx := t.Context()
	w.ready()
	w.start(worldOptions{})
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending", "Gitea does not hold main to this: nothing protects the branch.")

	w.must(w.forge.Protect(ctx, w.repo, pull.Protection{
		Rule: "main", StatusCheck: true, BindsAdmins: true, Merge: pull.Access{Allowed: true},
		Contexts: []string{pull.QuotePattern(render.PreconditionsContext("main")), pull.QuotePattern(render.ApprovalContext("main"))},
	}))
	w.must(w.app.reconciler.Handle(ctx, tick(t)))
	w.eventually("the gap is closed", func() string {
		s, err := w.look(number)
		if err != nil || len(s.comments) != 1 || strings.Contains(s.comments[0].Body, "does not hold") {
			return fmt.Sprint(s, err)
		}
		return ""
	})
}
