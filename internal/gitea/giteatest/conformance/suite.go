package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// patience bounds each case.
const patience = 2 * time.Minute

// Run runs the suite on a backend. It makes accounts and repositories with
// names of its own and leaves them.
func Run(t *testing.T, backend Backend) {
	e := newEnv(t, backend)
	for _, c := range []struct {
		name string
		run  func(*testing.T, env)
	}{
		{"identity", identity},
		{"pull request", pullRequest},
		{"lists of pull requests", pullList},
		{"fork", fork},
		{"files", files},
		{"many files", manyFiles},
		{"diff", diff},
		{"diff of text", diffText},
		{"reviews", reviews},
		{"hidden reviews", hiddenReviews},
		{"timeline", timeline},
		{"forced push", forcedPush},
		{"comments", comments},
		{"comments since", commentsSince},
		{"kept issue", keptIssue},
		{"statuses", statuses},
		{"raw files", rawFiles},
		{"ancestry", ancestry},
		{"shadowed commits", shadowed},
		{"teams", teams},
		{"rights", rights},
		{"permissions", permissions},
		{"permissions by teams", teamPermissions},
		{"accounts", accounts},
		{"reactions", reactions},
		{"merge", merge},
		{"merge refused", mergeRefused},
		{"merge conflict", mergeConflict},
		{"merge methods", mergeMethods},
		{"protected merge", protectedMerge},
		{"protection", protection},
		{"protection by patterns", protectionPatterns},
		{"required contexts", requiredContexts},
		{"setting protection", setProtection},
		{"setting protection beside patterns", setProtectionBeside},
		{"people in protections", protectionPeople},
		{"rename", rename},
		{"deleted account", deletedAccount},
		{"webhook registration", hookRegistration},
		{"webhook events", hookEvents},
		{"events of runs", runEvents},
		{"facts of statuses", statusFacts},
		{"facts of pull requests", pullFacts},
		{"runs that wait", waitingRuns},
		{"runs that end", endedRuns},
		{"what runs workflows", workshop},
		{"runs of Renovate", renovateRuns},
		{"files of Renovate", renovateFiles},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, e.within(t)) })
	}
}

// env is what a case works with: the people alice and bob, who may write, and
// the bot, who administers.
type env struct {
	Backend

	ctx             context.Context
	prefix          string
	alice, bob, bot pull.Person
	bobToken        string
	botToken        string
	client          *gitea.Client
}

func newEnv(t *testing.T, b Backend) env {
	t.Helper()
	var random [3]byte
	// It never fails, see crypto/rand.
	_, _ = rand.Read(random[:])
	e := env{Backend: b, prefix: hex.EncodeToString(random[:]) + "-"}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for login, who := range map[string]*pull.Person{"alice": &e.alice, "bob": &e.bob, "bot": &e.bot} {
		p, tok, err := b.CreateUser(ctx, e.prefix+login)
		must(t, err)
		*who = p
		switch login {
		case "bob":
			e.bobToken = tok
		case "bot":
			e.botToken = tok
		}
	}
	e.client = e.clientOf(t, e.botToken)
	return e
}

// within returns the environment for one case.
func (e env) within(t *testing.T) env {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the case took too long"))
	t.Cleanup(cancel)
	e.ctx = ctx
	return e
}

func (e env) clientOf(t *testing.T, token string) *gitea.Client {
	t.Helper()
	c, err := gitea.New(gitea.Config{URL: e.URL(), Token: secret.New(token), Pause: time.Millisecond}, nil, nil)
	must(t, err)
	return c
}

// base are the files that a repository starts with.
var base = map[string]string{
	"README.md":                  "Home\n",
	"clusters/base/app.yaml":     "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\ng: 7\nh: 8\n",
	"clusters/base/old name.txt": "one\ntwo\nthree\nfour\n",
	"run.sh":                     "#!/bin/sh\n",
	".gitea/signalbox.yaml":      "version: 1\n",
}

// repo makes a repository that bot owns and alice and bob may write to.
func (e env) repo(t *testing.T, name string) pull.Repo {
	t.Helper()
	r, err := e.CreateRepo(e.ctx, e.bot.Login, e.prefix+name, base)
	must(t, err)
	must(t, e.Grant(e.ctx, r, e.alice.Login, giteatest.Write))
	must(t, e.Grant(e.ctx, r, e.bob.Login, giteatest.Write))
	return r
}

// push pushes one change to a branch as alice.
func (e env) push(t *testing.T, r pull.Repo, p giteatest.Push) string {
	t.Helper()
	if p.As == "" {
		p.As = e.alice.Login
	}
	sha, err := e.Push(e.ctx, r, p)
	must(t, err)
	return sha
}

// open opens a pull request of alice with one changed file and returns its
// number and head.
func (e env) open(t *testing.T, r pull.Repo, branch string) (int64, string) {
	t.Helper()
	head := e.push(t, r, giteatest.Push{Branch: branch, Files: map[string]string{branch + ".yaml": "x: 1\n"}})
	number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.alice.Login, Title: "Change " + branch, Body: "Because.", Head: branch})
	must(t, err)
	return number, head
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// eventually asks until the answer is yes.
func (e env) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := poll(e.ctx, func() (bool, error) { return ok(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
