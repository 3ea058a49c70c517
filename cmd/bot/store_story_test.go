package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// This file is also compiled with an older signalbox, whose store it makes: see
// tools/store. So it uses only what the worlds of both have.

// beside is what Gitea and the chat have beside a store: what signalbox put there.
type beside struct {
	// At is the time at which people did everything.
	At time.Time `json:"at"`
	// Comments are signalbox's by pull request.
	Comments map[int64][]pull.Comment `json:"comments"`
	Statuses map[string][]pull.Status `json:"statuses"`
	Posts    []shownPost              `json:"posts"`
	// Ledger is the ledger as text.
	Ledger []string `json:"ledger"`
}

// shownPost is a message in the chat.
type shownPost struct {
	ID     string    `json:"id"`
	Thread string    `json:"thread,omitempty"`
	Cause  string    `json:"cause"`
	Room   chat.Room `json:"room"`
	Body   chat.Body `json:"body"`
}

// The pull requests of the story.
const (
	storyApproved int64 = 1 + iota
	storyHeld
	storySurvived
)

// storyWorld is a world in which everything that people do has the same ids and commits
// each time, as all of it is done at one time.
func storyWorld(t *testing.T, at time.Time) *lounge {
	t.Helper()
	ctx := t.Context()
	forge, err := giteatest.New(giteatest.Options{Clock: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(forge.Close)
	w := &world{t: t, forge: forge, cluster: kubetest.New(), dir: t.TempDir()}
	var eyes string
	for _, login := range []string{"alice", "bob", "carol", "mallory", "signalbox"} {
		p, token, err := forge.CreateUser(ctx, login)
		w.must(err)
		switch login {
		case "signalbox":
			w.bot, w.token = p, token
		case "alice":
			eyes = token
		}
	}
	w.must(forge.CreateOrg(ctx, owner))
	w.must(forge.SetTeam(ctx, owner, "maintainers", "carol", "signalbox"))
	w.repo, err = forge.CreateRepo(ctx, owner, repoName, map[string]string{policy.Path: testPolicy, "clusters/base/platform.yaml": "a: 1\n"})
	w.must(err)
	for _, login := range []string{"bob", "carol"} {
		w.must(forge.Grant(ctx, w.repo, login, giteatest.Write))
	}
	for _, login := range []string{"alice", "signalbox"} {
		w.must(forge.Grant(ctx, w.repo, login, giteatest.Admin))
	}
	w.eyes, err = gitea.New(gitea.Config{URL: forge.URL(), Token: secret.New(eyes)}, nil, nil)
	w.must(err)
	return &lounge{world: w, parlor: &parlor{}, room: chat.Room{Platform: chat.Slack, ID: "C1"}}
}

// begin is what people do before signalbox looks: one pull request is approved by a
// command, one is held, and one approved by a review, of which the identity of the diff
// counts.
func (l *lounge) begin() {
	l.t.Helper()
	l.ready()
	l.open("approved", map[string]string{"clusters/base/one.yaml": "c: 1\n"})
	l.open("held", map[string]string{"docs/two.md": "two\n"})
	l.open("survived", map[string]string{"clusters/base/three.yaml": "c: 3\n"})
	l.say(storyApproved, "carol", "/approve")
	l.say(storyApproved, "mallory", "/approve")
	l.say(storyHeld, "alice", "/hold the node is away")
	l.approve(storySurvived, "alice")
}

// standsAsTold waits until all of it shows.
func (l *lounge) standsAsTold() {
	l.t.Helper()
	l.shows(storyApproved, "success", "success", "Approved by carol")
	l.shows(storyHeld, "success", "pending", "the node is away")
	l.shows(storySurvived, "success", "success")
	for number := storyApproved; number <= storySurvived; number++ {
		l.card(number)
	}
}

// ledgerText is the ledger as it can be compared.
func (l *lounge) ledgerText() (out []string) {
	for number := int64(1); number <= storySurvived; number++ {
		for _, e := range l.app.ledger.Entries(pull.Ref{RepoID: l.repo.ID, Number: number}) {
			text, err := json.Marshal(e)
			l.must(err)
			out = append(out, fmt.Sprintf("%d %s", e.Seq, text))
		}
	}
	slices.Sort(out)
	return out
}

// ownComments are signalbox's comments on a pull request, oldest first.
func (l *lounge) ownComments(number int64) []pull.Comment {
	l.t.Helper()
	all, err := l.eyes.Comments(l.t.Context(), l.repo, number)
	l.must(err)
	all = slices.DeleteFunc(all, func(c pull.Comment) bool { return !c.Author.Is(l.bot) })
	slices.SortFunc(all, func(a, b pull.Comment) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// outside is what there is beside the store.
func (l *lounge) outside(at time.Time) beside {
	l.t.Helper()
	out := beside{At: at, Comments: map[int64][]pull.Comment{}, Statuses: map[string][]pull.Status{}, Ledger: l.ledgerText()}
	for number := storyApproved; number <= storySurvived; number++ {
		out.Comments[number] = l.ownComments(number)
		statuses, err := l.eyes.Statuses(l.t.Context(), l.repo, l.head(number))
		l.must(err)
		out.Statuses[l.head(number)] = statuses
	}
	for _, s := range l.parlor.posts {
		out.Posts = append(out.Posts, shownPost{s.id, s.thread, s.cause, s.room, s.body})
	}
	return out
}

// put puts there what signalbox had put there, in the same order.
func (l *lounge) put(had beside) {
	l.t.Helper()
	type commented struct {
		number int64
		pull.Comment
	}
	var all []commented
	for number, comments := range had.Comments {
		for _, c := range comments {
			all = append(all, commented{number, c})
		}
	}
	slices.SortFunc(all, func(a, b commented) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range all {
		if id := l.say(c.number, "signalbox", c.Body); id != c.ID {
			l.t.Fatalf("the stand-in for Gitea gives comment %d the id %d: make the store anew with tools/store", c.ID, id)
		}
	}
	for head, statuses := range had.Statuses {
		for _, s := range statuses {
			l.must(l.forge.SetStatus(l.t.Context(), l.repo, head, "signalbox", s))
		}
	}
	for _, p := range had.Posts {
		l.parlor.posts = append(l.parlor.posts, said{id: p.ID, thread: p.Thread, cause: p.Cause, room: p.Room, body: p.Body})
	}
	l.parlor.n = len(had.Posts)
}

// storeEnv names the folder in which TestMakeStore leaves a store.
const storeEnv = "SIGNALBOX_MAKE_STORE"

// TestMakeStore leaves a store of this signalbox after the story, and what there is
// beside it. tools/store runs it.
func TestMakeStore(t *testing.T) {
	out := os.Getenv(storeEnv)
	if out == "" {
		t.Skip("only tools/store makes a store")
	}
	at := time.Now().UTC().Truncate(time.Second)
	l := storyWorld(t, at)
	l.dir = filepath.Join(out, "store")
	l.begin()
	l.open2()
	l.standsAsTold()
	l.hears(l.says("bob", fmt.Sprintf("hold home-gitops#%d", storyApproved)), "done")
	l.hears(l.says("bob", fmt.Sprintf("unhold home-gitops#%d", storyApproved)), "done")
	l.hears(l.says("bob", "subscribe home-gitops docs/**"), "docs/**")
	l.standsAsTold()
	l.quiet()
	text, err := json.MarshalIndent(l.outside(at), "", " ")
	l.must(err)
	if strings.Contains(string(text), l.token) {
		t.Error("a token is in it")
	}
	l.stop()
	l.must(os.WriteFile(filepath.Join(out, "beside.json"), text, 0o600))
}
