package conformance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// noCommit is the id of none: with it, a merge gets as far as it can.
var noCommit = strings.Repeat("1", 40)

// tryMerge merges as soon as Gitea has looked for conflicts.
func (e env) tryMerge(t *testing.T, c *gitea.Client, r pull.Repo, number int64, options pull.MergeOptions) error {
	t.Helper()
	var answer error
	must(t, poll(e.ctx, func() (bool, error) {
		answer = c.Merge(e.ctx, r, number, options)
		return !errors.Is(answer, pull.ErrStillChecking), nil
	}))
	return answer
}

func merge(t *testing.T, e env) {
	r := e.repo(t, "merge")
	number, head := e.open(t, r, "change")
	before, err := e.client.Pull(e.ctx, r, number)
	must(t, err)
	same(t, "who merged an open one", pull.Person{}, before.MergedBy)
	same(t, "merge commit of an open one", "", before.MergeCommit)

	must(t, e.tryMerge(t, e.client, r, number, pull.MergeOptions{
		Head: head, Title: "Merge a change", Message: "Approved-by: bob\nSignalbox: clear",
	}))
	got, err := e.client.Pull(e.ctx, r, number)
	must(t, err)
	tip, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	same(t, "state", pull.Merged, got.State)
	same(t, "who merged", e.bot, got.MergedBy)
	same(t, "merge commit", tip, got.MergeCommit)
	message, err := e.Message(e.ctx, r, tip)
	must(t, err)
	same(t, "message", "Merge a change\n\nApproved-by: bob\nSignalbox: clear", message)
	contained, err := e.client.Contains(e.ctx, r, tip, head)
	must(t, err)
	same(t, "whether the base contains the head", true, contained)

	err = e.client.Merge(e.ctx, r, number, pull.MergeOptions{Head: head})
	wantError(t, "a second merge", err, pull.ErrAlreadyMerged)
}

func mergeRefused(t *testing.T, e env) {
	r := e.repo(t, "refused")
	number, head := e.open(t, r, "change")
	refused := func(what string, c *gitea.Client, options pull.MergeOptions, want error, words string) {
		t.Helper()
		err := e.tryMerge(t, c, r, number, options)
		wantError(t, what, err, want)
		if err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %q lacks the words %q", what, err, words)
		}
	}
	bob := e.clientOf(t, e.bobToken)
	must(t, e.Grant(e.ctx, r, e.bob.Login, giteatest.Read))
	refused("by a reader", bob, pull.MergeOptions{Head: head}, pull.ErrNotAllowed, "User not allowed to merge PR")
	refused("of another head", e.client, pull.MergeOptions{Head: noCommit}, pull.ErrHeadMoved, "head")
	next := e.push(t, r, giteatest.Push{Branch: "change", Files: map[string]string{"more.yaml": "y: 1\n"}})
	// Until Gitea has looked for conflicts in the new head, it has another
	// answer; the error must not differ.
	err := e.client.Merge(e.ctx, r, number, pull.MergeOptions{Head: head})
	wantError(t, "a merge after a push", err, pull.ErrHeadMoved)

	must(t, e.EditPull(e.ctx, r, number, e.alice.Login, giteatest.Edit{Title: "WIP: later"}))
	refused("of a draft", e.client, pull.MergeOptions{Head: next}, pull.ErrNotAllowed, "Work in progress")
	must(t, e.EditPull(e.ctx, r, number, e.alice.Login, giteatest.Edit{Title: "Now"}))
	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, false))
	refused("of a closed one", e.client, pull.MergeOptions{Head: next}, pull.ErrNotAllowed, "closed")
	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, true))
	for what, options := range map[string]pull.MergeOptions{
		"without a head":        {},
		"of a shortened head":   {Head: next[:10]},
		"by an unknown method":  {Head: next, Method: "octopus"},
		"by marking it as done": {Head: next, Method: "manually-merged"},
	} {
		if err := e.client.Merge(e.ctx, r, number, options); err == nil || errors.Is(err, pull.ErrOutcomeUnknown) {
			t.Errorf("merge %s: error %v", what, err)
		}
	}
	must(t, e.Archive(e.ctx, r, true))
	refused("in an archive", e.client, pull.MergeOptions{Head: next}, pull.ErrNotAllowed, "archived")
	must(t, e.Archive(e.ctx, r, false))

	err = e.client.Merge(e.ctx, r, 99, pull.MergeOptions{Head: next})
	wantError(t, "a merge of a missing one", err, gitea.ErrNotFound)
	p, err := e.client.Pull(e.ctx, r, number)
	must(t, err)
	same(t, "state after all that", pull.Open, p.State)
	must(t, e.tryMerge(t, e.client, r, number, pull.MergeOptions{Head: next}))
}

// impatient returns a client of the bot that looks for a short time only
// whether there is a conflict.
func (e env) impatient(t *testing.T) *gitea.Client {
	t.Helper()
	c, err := gitea.New(gitea.Config{URL: e.URL(), Token: secret.New(e.botToken), MergeWait: 300 * time.Millisecond}, nil, nil)
	must(t, err)
	return c
}

func mergeConflict(t *testing.T, e env) {
	r := e.repo(t, "conflict")
	open := func(branch, content string) (int64, string) {
		t.Helper()
		head := e.push(t, r, giteatest.Push{Branch: branch, Files: map[string]string{"same.yaml": content}})
		number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.alice.Login, Title: branch, Head: branch})
		must(t, err)
		return number, head
	}
	first, firstHead := open("first", "a: 1\n")
	second, secondHead := open("second", "a: 2\n")
	must(t, e.tryMerge(t, e.client, r, first, pull.MergeOptions{Head: firstHead}))
	err := e.tryMerge(t, e.impatient(t), r, second, pull.MergeOptions{Head: secondHead})
	wantError(t, "a merge of a conflict", err, pull.ErrMergeConflict)
	p, err := e.client.Pull(e.ctx, r, second)
	must(t, err)
	same(t, "state after a conflict", pull.Open, p.State)

	// Solved, it merges.
	solved := e.push(t, r, giteatest.Push{Branch: "second", From: "main", Force: true, Files: map[string]string{"same.yaml": "a: 3\n"}})
	must(t, e.tryMerge(t, e.client, r, second, pull.MergeOptions{Head: solved}))

	// Changes of different lines of one file go together.
	one := e.push(t, r, giteatest.Push{Branch: "one", Files: map[string]string{
		"clusters/base/app.yaml": strings.Replace(base["clusters/base/app.yaml"], "b: 2", "b: 3", 1),
	}})
	two := e.push(t, r, giteatest.Push{Branch: "two", Files: map[string]string{
		"clusters/base/app.yaml": strings.Replace(base["clusters/base/app.yaml"], "g: 7", "g: 8", 1),
	}})
	for branch, head := range map[string]string{"one": one, "two": two} {
		number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.alice.Login, Title: branch, Head: branch})
		must(t, err)
		must(t, e.tryMerge(t, e.client, r, number, pull.MergeOptions{Head: head}))
	}
	got, err := e.client.RawFile(e.ctx, r, "main", "clusters/base/app.yaml")
	must(t, err)
	same(t, "a file after both", strings.NewReplacer("b: 2", "b: 3", "g: 7", "g: 8").Replace(base["clusters/base/app.yaml"]), string(got))
}

func mergeMethods(t *testing.T, e env) {
	r := e.repo(t, "methods")
	for _, method := range []string{"squash", "rebase", "rebase-merge", "fast-forward-only"} {
		number, head := e.open(t, r, method)
		must(t, e.tryMerge(t, e.client, r, number, pull.MergeOptions{Method: method, Head: head, Title: "Take " + method}))
		p, err := e.client.Pull(e.ctx, r, number)
		must(t, err)
		tip, err := e.Tip(e.ctx, r, "main")
		must(t, err)
		same(t, "merge commit of "+method, tip, p.MergeCommit)
		if method == "fast-forward-only" {
			same(t, "merge commit of a fast forward", head, tip)
		}
	}
}
