package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// docsChange is a change that no rule of the tests is about.
func docsChange(name string) map[string]string { return map[string]string{"docs/" + name: name} }

// ref names a pull request of the world.
func (w *world) ref(number int64) pull.Ref { return pull.Ref{RepoID: w.repo.ID, Number: number} }

// state is what Gitea says of a pull request.
func (w *world) state(number int64) pull.State {
	w.t.Helper()
	p, err := w.eyes.Pull(w.t.Context(), w.repo, number)
	w.must(err)
	return p.State
}

// merged waits until a pull request is merged.
func (w *world) merged(number int64) {
	w.t.Helper()
	w.eventually("it is merged", func() string {
		if s := w.state(number); s != pull.Merged {
			return "it is " + string(s)
		}
		return ""
	})
}

// soon is a time shortly ahead, as a command says it, after which a freeze ends.
func soon() string { return time.Now().Add(4 * time.Second).UTC().Format(time.RFC3339) }

func TestFreezeStopsTheRepository(t *testing.T) {
	w := newDecidingWorld(t)
	one, two := w.open("one", docsChange("one")), w.open("two", docsChange("two"))
	w.shows(one, "success", "success")
	w.shows(two, "success", "success")

	w.reacts(w.say(one, "carol", "/freeze 2h etcd is being restored"), "+1")
	s := w.shows(two, "pending", "success", "Frozen by carol** since", "etcd is being restored. carol, an approver, or who may override ends it with /unfreeze. Said on [pull request 1](<")
	if !strings.HasPrefix(s.preconditions.Description, "frozen until 20") || !strings.HasSuffix(s.preconditions.Description, " UTC by carol") {
		t.Errorf("the status says %q", s.preconditions.Description)
	}
	w.shows(one, "pending", "success", "Frozen by carol")

	t.Run("a new pull request is frozen too", func(t *testing.T) {
		w.shows(w.open("three", docsChange("three")), "pending", "success", "Frozen by carol")
	})
	t.Run("it outlives a push, a restart, and the pull request where it was said", func(t *testing.T) {
		w.push("two", docsChange("more"))
		w.shows(two, "pending", "success", "Frozen by carol")
		w.must(w.forge.SetOpen(t.Context(), w.repo, one, "bob", false))
		w.quiet()
		w.stop()
		w.start(worldOptions{})
		w.push("two", docsChange("and more"))
		w.quiet()
		w.shows(two, "pending", "success", "Frozen by carol")
	})
	t.Run("it is lifted elsewhere, by who froze", func(t *testing.T) {
		w.reacts(w.say(two, "carol", "/unfreeze"), "+1")
		s := w.shows(two, "success", "success")
		if strings.Contains(s.comments[0].Body, "🧊") {
			t.Errorf("the comment still tells of it:\n%s", s.comments[0].Body)
		}
		w.shows(3, "success", "success")
	})
	w.decided(one, "freeze")
	w.decided(two, "unfreeze")
	f, u := w.app.ledger.Entries(w.ref(one))[0], w.app.ledger.Entries(w.ref(two))[0]
	if f.Reason != "etcd is being restored" || f.Until.Sub(f.At) != 2*time.Hour || len(u.Lifts) != 1 || u.Lifts[0] != f.ID {
		t.Errorf("the entries are %+v and %+v", f, u)
	}
}

func TestFreezeWithoutAPolicy(t *testing.T) {
	w := newWorld(t, worldOptions{files: map[string]string{policy.Path: "version: 1\n"}})
	w.start(worldOptions{})
	one, two := w.open("one", docsChange("one")), w.open("two", docsChange("two"))
	w.shows(two, "success", "success")
	w.reacts(w.say(one, "carol", "/freeze 1d"), "+1")
	w.shows(one, "pending", "success", "Frozen by carol")
	w.shows(two, "pending", "success", "Frozen by carol")
}

func TestFreezeEndsByItself(t *testing.T) {
	w := newDecidingWorld(t)
	one, two := w.open("one", docsChange("one")), w.open("two", docsChange("two"))
	w.shows(one, "success", "success")
	w.shows(two, "success", "success")
	w.reacts(w.say(one, "carol", "/freeze until "+soon()+" for a moment"), "+1")
	w.shows(two, "pending", "success", "for a moment")
	// Nothing happens but time.
	w.shows(one, "success", "success")
	w.shows(two, "success", "success")
	w.decided(one, "freeze")
}

func TestFreezeIsRefused(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("one", docsChange("one"))
	w.shows(number, "success", "success")
	for text, why := range map[string]string{
		"/freeze":                         "a freeze has an end: write /freeze 2h REASON",
		"/freeze etcd is being restored":  "it does not say for how long: write /freeze 2h REASON",
		"/freeze 15d":                     "a freeze lasts 14 days at most.",
		"/freeze until Monday":            "after until comes a time with its zone, such as 2026-12-01T08:00Z",
		"/freeze until 2020-01-01T00:00Z": "it would have ended at 2020-01-01 00:00 UTC already.",
		"/freeze until 9999-01-01T00:00Z": "a freeze lasts 14 days at most, so until 20",
		"/unfreeze":                       "the repository is not frozen.",
	} {
		w.reacts(w.say(number, "carol", text), "-1")
		w.replies(number, why)
	}
	w.reacts(w.say(number, "mallory", "/freeze 2h"), "-1")
	w.replies(number, "/freeze 2h was not carried out: only those who may write to ops/home-gitops can do that.")

	t.Run("to the author of a pull request who may not write", func(t *testing.T) {
		ctx := t.Context()
		w.must(w.forge.Grant(ctx, w.repo, "bob", giteatest.Read))
		w.reacts(w.say(number, "bob", "/freeze 3h"), "-1")
		w.replies(number, "/freeze 3h was not carried out: only those who may write to ops/home-gitops can do that.")
		w.must(w.forge.Grant(ctx, w.repo, "bob", giteatest.Write))
	})
	w.quiet()
	w.shows(number, "success", "success")
	if freezes := w.app.ledger.Freezes(w.repo.ID); len(freezes) > 0 {
		t.Errorf("the ledger has %+v", freezes)
	}
}

func TestUnfreezeByThoseWhoMay(t *testing.T) {
	w := newDecidingWorld(t)
	// An approval rule, with carol among the approvers, is about this change.
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	w.reacts(w.say(number, "alice", "/freeze 2h first"), "+1")
	w.shows(number, "pending", "pending", "Frozen by alice")

	w.reacts(w.say(number, "mallory", "/unfreeze"), "-1")
	w.replies(number, "/unfreeze was not carried out: mallory is not among those who may end the freeze: alice, carol.")
	w.reacts(w.say(number, "bob", "/unfreeze"), "-1")
	w.replies(number, "bob is not among those who may end the freeze: alice, carol.")

	t.Run("the author ends no freeze but their own", func(t *testing.T) {
		w.reacts(w.say(number, "bob", "/freeze 3h second"), "+1")
		w.shows(number, "pending", "pending", "Frozen by bob", "Frozen by alice")
		w.reacts(w.say(number, "bob", "/unfreeze"), "+1")
		w.replies(number, "The repository is still frozen by alice until")
		w.replies(number, "Those who may end that: alice, carol.")
		s := w.shows(number, "pending", "pending", "Frozen by alice")
		if strings.Contains(s.comments[0].Body, "Frozen by bob") {
			t.Errorf("bob's freeze is still there:\n%s", s.comments[0].Body)
		}
	})
	t.Run("an approver ends all", func(t *testing.T) {
		w.reacts(w.say(number, "bob", "/freeze 3h third"), "+1")
		w.shows(number, "pending", "pending", "third")
		w.reacts(w.say(number, "carol", "/unfreeze"), "+1")
		w.shows(number, "success", "pending")
	})
	t.Run("as seen from the pull request: no rule names carol for this one, and alice may override", func(t *testing.T) {
		other := w.open("docs", docsChange("x"))
		w.shows(other, "success", "success")
		w.reacts(w.say(number, "bob", "/freeze 1h fourth"), "+1")
		w.shows(other, "pending", "success", "fourth")
		w.reacts(w.say(other, "carol", "/unfreeze"), "-1")
		w.replies(other, "carol is not among those who may end the freeze: alice, bob.")
		w.reacts(w.say(other, "alice", "/unfreeze"), "+1")
		w.shows(other, "success", "success")
	})
	t.Run("in one comment the freeze wins", func(t *testing.T) {
		w.reacts(w.say(number, "alice", "/unfreeze\n/merge\n/freeze 30m fifth"), "-1")
		w.replies(number, "/unfreeze was not carried out: the same comment says /freeze, which holds.")
		w.replies(number, "/merge was not carried out: the same comment says /freeze, which holds.")
		w.shows(number, "pending", "pending", "fifth")
	})
}

func TestFreezeIsOverridden(t *testing.T) {
	w := newDecidingWorld(t)
	one, two := w.open("one", docsChange("one")), w.open("two", docsChange("two"))
	w.shows(one, "success", "success")
	w.shows(two, "success", "success")
	w.reacts(w.say(one, "carol", "/freeze 2h"), "+1")
	w.shows(one, "pending", "success")
	w.reacts(w.say(one, "alice", "/approve-override this mends it"), "+1")
	w.shows(one, "success", "success", "Overridden by alice", "It passes: precondition: the repository is not frozen.")
	w.shows(two, "pending", "success")
	// What was not in force was not overridden.
	w.reacts(w.say(two, "carol", "/freeze 1h again"), "+1")
	w.shows(one, "pending", "success", "again")
}

func TestFreezeKeepsAMergeWaiting(t *testing.T) {
	w := newDecidingWorld(t)
	one, two := w.open("one", docsChange("one")), w.open("two", docsChange("two"))
	w.shows(one, "success", "success")
	w.shows(two, "success", "success")
	w.reacts(w.say(one, "carol", "/freeze 2h"), "+1")
	w.shows(two, "pending", "success")
	w.reacts(w.say(two, "bob", "/merge"), "+1")
	w.replies(two, "signalbox merges this as soon as it is clear.")
	w.shows(two, "pending", "success", "bob asked to merge")
	w.quiet()
	if s := w.state(two); s != pull.Open {
		t.Fatalf("it is %s while the repository is frozen", s)
	}
	w.reacts(w.say(one, "carol", "/unfreeze"), "+1")
	w.merged(two)
	w.replies(two, "as bob asked.")

	t.Run("and it happens when the freeze ended by itself", func(t *testing.T) {
		three := w.open("three", docsChange("three"))
		w.shows(three, "success", "success")
		w.reacts(w.say(one, "carol", "/freeze until "+soon()), "+1")
		w.shows(three, "pending", "success")
		w.say(three, "bob", "/merge")
		w.merged(three)
	})
}

// TestFreezeBeforeTheMerge: a freeze that is entered between the last read and
// the merge is seen.
func TestFreezeBeforeTheMerge(t *testing.T) {
	w := newDecidingWorld(t)
	number, other := w.open("cdi", clusterChange), w.open("other", docsChange("x"))
	w.shows(number, "success", "pending")
	w.shows(other, "success", "success")
	w.reacts(w.say(number, "bob", "/merge"), "+1")
	w.shows(number, "success", "pending", "bob asked to merge")
	w.quiet()
	var once sync.Once
	w.forge.Fail(func(r *http.Request) *giteatest.Response {
		// The verdict that lets it pass is being posted.
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/statuses/") {
			once.Do(func() {
				if _, err := w.app.ledger.Append(t.Context(), w.frozenOn(other, 1000)); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	})
	w.say(number, "alice", "/approve")
	w.shows(number, "pending", "success", "Frozen by carol")
	w.quiet()
	if s := w.state(number); s != pull.Open {
		t.Errorf("it is %s", s)
	}
	w.decided(number, "merge approve")
}

// frozenOn is the entry of a freeze that carol said in a comment.
func (w *world) frozenOn(number, comment int64) decision.Entry {
	now := time.Now().UTC().Truncate(time.Second)
	return decision.Entry{
		ID: fmt.Sprintf("%s/0", decision.CommentID(comment)), Kind: decision.Freeze, By: pull.Person{ID: 3, Login: "carol"},
		Place: "comment", Command: "/freeze 2h", Repo: w.repo, Number: number, Base: "main", Head: "x", At: now, Until: now.Add(2 * time.Hour),
	}
}

// TestFreezeWhoseWriterWasKilled: the entry is in the ledger, and its writer was
// ended before it asked for the other pull requests. Whoever takes the work over
// asks.
func TestFreezeWhoseWriterWasKilled(t *testing.T) {
	for name, next := range map[string]func(w *world, one int64){
		"and the work is done again": func(*world, int64) {},
		"and the pull request is closed": func(w *world, one int64) {
			w.must(w.forge.SetOpen(t.Context(), w.repo, one, "bob", false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDecidingWorld(t)
			one, two := w.open("one", docsChange("one")), w.open("two", docsChange("two"))
			w.shows(one, "success", "success")
			w.shows(two, "success", "success")
			w.quiet()
			// Nothing that signalbox asks is answered, so the entry is there first.
			w.forge.Down(true)
			comment := w.say(one, "carol", "/freeze 2h")
			_, err := w.app.ledger.Append(t.Context(), w.frozenOn(one, comment))
			w.must(err)
			next(w, one)
			w.forge.Down(false)
			w.must(w.app.bus.Work().Soon(t.Context(), work.Item{Ref: w.ref(one), Kind: work.Retry}))
			w.shows(two, "pending", "success", "Frozen by carol")
			w.decided(one, "freeze")
		})
	}
}

// TestFreezeMeanwhile: a pull request that is looked at for the first time is in
// no index yet when the freeze is entered.
func TestFreezeMeanwhile(t *testing.T) {
	w := newDecidingWorld(t)
	one := w.open("one", docsChange("one"))
	w.shows(one, "success", "success")
	w.quiet()
	held, release := w.holdComment()
	defer release()
	two := w.open("two", docsChange("two"))
	<-held
	_, err := w.app.ledger.Append(t.Context(), w.frozenOn(one, 1000))
	w.must(err)
	release()
	w.shows(two, "pending", "success", "Frozen by carol")
}
