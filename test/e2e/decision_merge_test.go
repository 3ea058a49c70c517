//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// isMerge tells a request to merge.
func isMerge(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/merge")
}

// isStatus tells a request to post a status.
func isStatus(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/statuses/")
}

// mergesAsked counts the requests to merge this that were made since a time,
// without those that Gitea put off before it merged.
func (p *page) mergesAsked(tap *realserver.Tap, since time.Time) int {
	all, putOff := 0, 0
	for _, r := range tap.Requests() {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.Path, fmt.Sprintf("/pulls/%d/merge", p.number)) || r.At.Before(since) {
			continue
		}
		if r.Status == http.StatusOK {
			putOff = all
		}
		all++
	}
	return all - putOff
}

// lock protects main: nobody pushes, only signalbox merges, and only with both
// of its statuses.
func lock(t *testing.T, repo *seed.Repository, edit func(*sdk.CreateBranchProtectionOption)) {
	t.Helper()
	o := sdk.CreateBranchProtectionOption{
		BranchName: "main", RuleName: "main",
		EnableMergeWhitelist: true, MergeWhitelistUsernames: []string{repo.Bot.Name},
		EnableStatusCheck:       true,
		StatusCheckContexts:     []string{"signalbox / preconditions (main)", "signalbox / approval (main)"},
		BlockAdminMergeOverride: true,
	}
	if edit != nil {
		edit(&o)
	}
	if _, _, err := client(t, repo, repo.Alice).CreateBranchProtection(repo.Owner, repo.Name, o); err != nil {
		t.Fatal(err)
	}
}

// TestDecisionMerge: on a locked branch signalbox alone merges, once, what is
// clear at the head that was asked for.
func TestDecisionMerge(t *testing.T) {
	t.Parallel()
	st := plantStage(t, seed.Options{Policy: decisionPolicy})
	lock(t, st.repo, nil)
	tap := newTap(t)
	st.bot = newBot(t, st.repo, settings{gitea: tap.URL()})
	st.bot.start()
	alice, bob, carol, mallory := st.repo.Alice, st.repo.Bob, st.repo.Carol, st.repo.Mallory

	t.Run("waits until it is clear", func(t *testing.T) {
		p := st.open(t, "waits", write("clusters/waits.yaml", "a: 1\n"))
		s, _ := p.shows(patience, "success", "pending")
		p.refused(p.say(mallory, "/merge"), "may write to "+st.repo.String())
		p.gets(p.say(bob, "/merge"), "+1")
		p.replies("signalbox merges this as soon as it is clear.", "keepers: needs 1 approval by alice or carol")
		p.shows(patience, "success", "pending", "bob asked to merge")
		p.still(bob)
		for _, u := range []realserver.User{alice, bob} {
			ok, _, err := client(t, st.repo, u).MergePullRequest(st.repo.Owner, st.repo.Name, p.number, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge})
			if ok {
				t.Fatalf("%s merged by hand", u.Name)
			}
			t.Logf("%s by hand: %v", u.Name, err)
		}
		start := time.Now()
		p.say(carol, "/approve")
		p.merged(s.head)
		t.Logf("approved, merged after %s", time.Since(start))
		p.replies("Merged " + s.head[:10] + " as bob asked.")
	})

	t.Run("two ask at once", func(t *testing.T) {
		p := st.open(t, "twice", write("clusters/twice.yaml", "a: 1\n"))
		s, _ := p.shows(patience, "success", "pending")
		p.gets(p.say(carol, "/approve"), "+1")
		asked := time.Now()
		var both sync.WaitGroup
		for _, u := range []realserver.User{bob, alice} {
			c := client(t, st.repo, u)
			both.Go(func() {
				if _, _, err := c.CreateIssueComment(st.repo.Owner, st.repo.Name, p.number, sdk.CreateIssueCommentOption{Body: "/merge"}); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		p.merged(s.head)
		p.replies("Merged " + s.head[:10] + " as ")
		// Another pull request is merged after it, so all about the first is done.
		q := st.open(t, "after-twice", write("docs/after-twice.md", "A.\n"))
		q.say(bob, "/merge")
		q.replies(" as bob asked.")
		if n := p.mergesAsked(tap, asked); n != 1 {
			t.Errorf("%d requests to merge", n)
		}
		if n := strings.Count(strings.Join(p.replies(), "\n"), "Merged "); n != 1 {
			t.Errorf("told %d times", n)
		}
	})

	t.Run("what ends a request", func(t *testing.T) {
		for name, end := range map[string]func(st *stage, p *page){
			"cancel": func(st *stage, p *page) { p.gets(p.say(bob, "/merge cancel"), "+1") },
			"hold": func(st *stage, p *page) {
				p.gets(p.say(bob, "/hold"), "+1")
				p.refused(p.say(bob, "/merge"), "it is held by bob.")
				p.gets(p.say(bob, "/unhold"), "+1")
			},
			"push": func(st *stage, p *page) { st.push(t, "end-push", "", write("clusters/end-push.yaml", "a: 2\n")) },
			"retarget": func(st *stage, p *page) {
				st.push(t, "staging", "origin/main", write("docs/staging.md", "Staging.\n"))
				p.edit(sdk.EditPullRequestOption{Base: "staging"})
				p.edit(sdk.EditPullRequestOption{Base: "main"})
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				st := st.alone(t)
				p := st.open(t, "end-"+name, write("clusters/end-"+name+".yaml", "a: 1\n"))
				p.shows(patience, "success", "pending")
				p.gets(p.say(bob, "/merge"), "+1")
				end(st, p)
				p.settle(bob)
				p.gets(p.say(carol, "/approve"), "+1")
				p.shows(patience, "success", "success", "Approved by carol")
				p.still(bob)
				head := p.pull().Head.Sha
				p.say(bob, "/merge")
				p.merged(head)
			})
		}
	})
}

// TestDecisionMergeRefused: what Gitea says is understood, and told.
func TestDecisionMergeRefused(t *testing.T) {
	t.Parallel()
	st := plantStage(t, seed.Options{Policy: decisionPolicy})
	tap := newTap(t)
	st.bot = newBot(t, st.repo, settings{gitea: tap.URL()})
	st.bot.start()
	bob, carol := st.repo.Bob, st.repo.Carol

	t.Run("a conflict", func(t *testing.T) {
		p := st.open(t, "conflict", write("clusters/conflict.yaml", "a: 1\n"))
		p.shows(patience, "success", "pending")
		mainMoves(t, st, "clusters/conflict.yaml", "a: 2\n")
		p.gets(p.say(carol, "/approve"), "+1")
		p.gets(p.say(bob, "/merge"), "+1")
		p.replies("was not merged as bob asked", "conflict", "The request has ended; /merge asks again.")
		p.still(bob)
	})

	t.Run("answers that pass", func(t *testing.T) {
		for name, a := range map[string]realserver.Answer{
			"still checking": {Status: http.StatusMethodNotAllowed, Body: `{"message":"Please try again later"}`},
			"base moved":     {Status: http.StatusConflict, Body: `{"message":"merge push out of date"}`},
			"head moved":     {Status: http.StatusConflict, Body: `{"message":"head out of date"}`},
			"broken":         {Status: http.StatusInternalServerError, Body: `{"message":"disk on fire"}`},
		} {
			t.Run(name, func(t *testing.T) {
				branch := strings.ReplaceAll(name, " ", "-")
				p := st.open(t, branch, write("clusters/"+branch+".yaml", "a: 1\n"))
				s, _ := p.shows(patience, "success", "pending")
				first := make(chan struct{}, 1)
				first <- struct{}{}
				tap.Intercept(func(r *http.Request) *realserver.Answer {
					if !isMerge(r) {
						return nil
					}
					select {
					case <-first:
						answer := a
						return &answer
					default:
						return nil
					}
				})
				defer tap.Intercept(nil)
				p.say(bob, "/merge")
				p.say(carol, "/approve")
				p.merged(s.head)
				all := strings.Join(p.replies("Merged "), "\n")
				if strings.Contains(all, "was not merged") {
					t.Errorf("it is told as a failure:\n%s", all)
				}
			})
		}
	})

	t.Run("a push just before Gitea merges", func(t *testing.T) {
		p := st.open(t, "moved", write("clusters/moved.yaml", "a: 1\n"))
		p.shows(patience, "success", "pending")
		held, release := holdRequest(tap, isMerge)
		defer tap.Intercept(nil)
		p.say(carol, "/approve")
		p.say(bob, "/merge")
		<-held
		head := st.push(t, "moved", "", write("clusters/moved.yaml", "a: 2\n"))
		release()
		p.neverClears(head, patience, "success", "pending", "carol: was given on", "the diff is another")
		p.still(bob)
	})

	// From here on main is protected.
	t.Run("not on the whitelist, then a status of another is missing", func(t *testing.T) {
		p := st.open(t, "locked", write("clusters/locked.yaml", "a: 1\n"))
		p.shows(patience, "success", "pending")
		p.gets(p.say(carol, "/approve"), "+1")
		lock(t, st.repo, func(o *sdk.CreateBranchProtectionOption) { o.MergeWhitelistUsernames = []string{st.repo.Alice.Name} })
		p.say(bob, "/merge")
		all := p.replies("was not merged as bob asked")
		t.Logf("told: %s", all[len(all)-1])
		alice := client(t, st.repo, st.repo.Alice)
		if _, _, err := alice.EditBranchProtection(st.repo.Owner, st.repo.Name, "main", sdk.EditBranchProtectionOption{
			MergeWhitelistUsernames: []string{st.repo.Bot.Name},
			StatusCheckContexts:     []string{"signalbox / *", "ci / test"},
		}); err != nil {
			t.Fatal(err)
		}
		p.say(bob, "/merge")
		all = p.replies("was not merged as bob asked", "equired status check")
		t.Logf("told: %s", all[len(all)-1])
		head := p.pull().Head.Sha
		if _, _, err := client(t, st.repo, bob).CreateStatus(st.repo.Owner, st.repo.Name, head, sdk.CreateStatusOption{State: sdk.StatusSuccess, Context: "ci / test"}); err != nil {
			t.Fatal(err)
		}
		p.say(bob, "/merge")
		p.merged(head)
	})
}

// TestDecisionMergeKilled: killed in the middle of a merge, signalbox looks
// what became of it.
func TestDecisionMergeKilled(t *testing.T) {
	t.Parallel()
	st := plantStage(t, seed.Options{Policy: decisionPolicy})
	tap := newTap(t)
	st.bot = newBot(t, st.repo, settings{gitea: tap.URL()})
	st.bot.start()
	bob, carol := st.repo.Bob, st.repo.Carol
	for name, x := range map[string]*trap{
		"before":             {method: http.MethodPost, path: "/merge"},
		"after":              {method: http.MethodPost, path: "/merge", done: true},
		"before the outcome": {method: http.MethodPost, path: "/issues/%d/comments"},
		"after the outcome":  {method: http.MethodPost, path: "/issues/%d/comments", done: true},
	} {
		t.Run(name, func(t *testing.T) {
			branch := "killed-" + strings.ReplaceAll(name, " ", "-")
			p := st.open(t, branch, write("clusters/"+branch+".yaml", "a: 1\n"))
			s, _ := p.shows(patience, "success", "pending")
			p.gets(p.say(carol, "/approve"), "+1")
			p.shows(patience, "success", "success")
			x.path = strings.ReplaceAll(x.path, "%d", fmt.Sprint(p.number))
			x.set(tap, world.Gitea.URL())
			p.say(bob, "/merge")
			st.bot.dies(t, x, tap)
			killed := time.Now()
			if merged := p.pull().HasMerged; merged != (name != "before") {
				t.Fatalf("merged: %v", merged)
			}
			st.bot.start()
			p.merged(s.head)
			p.replies("Merged " + s.head[:10] + " as bob asked.")
			st.bot.restart()
			// Another is merged after it, so all about the first is done.
			q := st.open(t, branch+"-after", write("docs/"+branch+".md", "A.\n"))
			q.say(bob, "/merge")
			q.replies(" as bob asked.")
			if n := strings.Count(strings.Join(p.replies(), "\n"), "Merged "); n != 1 {
				t.Errorf("told %d times", n)
			}
			want := 0
			if name == "before" {
				want = 1
			}
			if n := p.mergesAsked(tap, killed); n != want {
				t.Errorf("%d requests to merge after the restart, want %d", n, want)
			}
		})
	}
}

// TestDecisionHoldDuringMerge: a hold is heard, or the merge was done before.
func TestDecisionHoldDuringMerge(t *testing.T) {
	t.Parallel()
	st := plantStage(t, seed.Options{Policy: decisionPolicy})
	tap := newTap(t)
	st.bot = newBot(t, st.repo, settings{gitea: tap.URL()})
	st.bot.start()
	alice, bob, carol := st.repo.Alice, st.repo.Bob, st.repo.Carol

	t.Run("before the last check", func(t *testing.T) {
		p := st.open(t, "last", write("clusters/last.yaml", "a: 1\n"))
		p.shows(patience, "success", "pending")
		p.gets(p.say(bob, "/merge"), "+1")
		p.shows(patience, "success", "pending", "bob asked to merge")
		// Between the look at the comments and the merge come the statuses.
		held, release := holdRequest(tap, isStatus)
		defer tap.Intercept(nil)
		p.say(carol, "/approve")
		<-held
		hold := p.say(alice, "/hold not now")
		release()
		p.gets(hold, "+1")
		p.shows(patience, "success", "pending", "Held by alice", "not now")
		p.still(bob)
	})

	t.Run("before the last check, a review asks for changes", func(t *testing.T) {
		p := st.open(t, "rejected", write("clusters/rejected.yaml", "a: 1\n"))
		p.shows(patience, "success", "pending")
		p.gets(p.say(bob, "/merge"), "+1")
		p.shows(patience, "success", "pending", "bob asked to merge")
		held, release := holdRequest(tap, isStatus)
		defer tap.Intercept(nil)
		p.say(carol, "/approve")
		<-held
		review(t, st.repo, alice, p.number, sdk.ReviewStateRequestChanges)
		release()
		p.shows(patience, "success", "failure", "alice asks for changes")
		p.still(bob)
	})

	t.Run("the merge is on its way", func(t *testing.T) {
		p := st.open(t, "way", write("clusters/way.yaml", "a: 1\n"))
		s, _ := p.shows(patience, "success", "pending")
		held, release := holdRequest(tap, isMerge)
		defer tap.Intercept(nil)
		p.say(carol, "/approve")
		p.say(bob, "/merge")
		<-held
		hold := p.say(alice, "/hold not now")
		release()
		p.merged(s.head)
		p.refused(hold, "it is merged already.")
	})
}

// holdRequest keeps requests back until they are released.
func holdRequest(tap *realserver.Tap, which func(*http.Request) bool) (held <-chan struct{}, release func()) {
	h, r := make(chan struct{}), make(chan struct{})
	var once sync.Once
	tap.Intercept(func(req *http.Request) *realserver.Answer {
		if which(req) {
			once.Do(func() { close(h) })
			select {
			case <-r:
			case <-req.Context().Done():
			}
		}
		return nil
	})
	return h, func() {
		tap.Intercept(nil)
		close(r)
	}
}
