package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// ready reports whether nothing but the head keeps the bot from merging.
func (e env) ready(t *testing.T, r pull.Repo, number int64) bool {
	t.Helper()
	var ready bool
	must(t, poll(e.ctx, func() (bool, error) {
		err := e.client.Merge(e.ctx, r, number, pull.MergeOptions{Head: noCommit})
		switch {
		case errors.Is(err, pull.ErrNotAllowed):
			return true, nil
		case errors.Is(err, pull.ErrHeadMoved):
			// Without these words it is still looking for conflicts.
			ready = strings.Contains(err.Error(), "head out of date")
			return ready, nil
		}
		return false, err
	}))
	return ready
}

func protectedMerge(t *testing.T, e env) {
	r := e.repo(t, "protected")
	number, head := e.open(t, r, "change")
	lock := pull.Protection{
		Rule: "main", Merge: pull.Access{Limited: true, Users: []string{e.bot.Login, e.bob.Login}},
		StatusCheck: true, Contexts: []string{"ci"}, BindsAdmins: true,
	}
	must(t, e.Protect(e.ctx, r, lock))
	refused := func(what string, err error, words string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v, want %q", what, err, words)
		}
	}
	err := e.tryMerge(t, e.client, r, number, pull.MergeOptions{Head: head})
	wantError(t, "a merge without a status", err, pull.ErrNotAllowed)
	refused("a merge without a status", err, "Not all required status checks successful")
	_, err = e.Merge(e.ctx, r, number, e.alice.Login)
	refused("a merge by a writer who is not in the list", err, "User not allowed to merge PR")
	must(t, e.Grant(e.ctx, r, e.alice.Login, giteatest.Admin))
	_, err = e.ForceMerge(e.ctx, r, number, e.alice.Login)
	refused("a merge by force by an administrator who is not in the list", err, "User not allowed to merge PR")
	_, err = e.ForceMerge(e.ctx, r, number, e.bot.Login)
	refused("a merge by force by the owner", err, "Not all required status checks successful")
	for _, as := range []string{e.bot.Login, e.alice.Login} {
		if _, err = e.Push(e.ctx, r, giteatest.Push{As: as, Branch: "main", Files: map[string]string{"x": "1\n"}}); err == nil {
			t.Errorf("%s could push", as)
		}
	}

	must(t, e.SetStatus(e.ctx, r, head, e.bob.Login, pull.Status{Context: "ci", State: "failure"}))
	same(t, "ready with a failure", false, e.ready(t, r, number))
	must(t, e.SetStatus(e.ctx, r, head, e.bob.Login, pull.Status{Context: "ci", State: "success"}))
	same(t, "ready with a success", true, e.ready(t, r, number))
	lock.Approvals, lock.BlockOnRejected = 1, true
	must(t, e.Protect(e.ctx, r, lock))
	same(t, "ready without an approval", false, e.ready(t, r, number))
	_, err = e.Review(e.ctx, r, number, e.bob.Login, giteatest.Approve, "")
	must(t, err)
	same(t, "ready with an approval", true, e.ready(t, r, number))
	_, err = e.Review(e.ctx, r, number, e.bot.Login, giteatest.RequestChanges, "No.")
	must(t, err)
	same(t, "ready with changes requested", false, e.ready(t, r, number))

	// Who is in the list and may only read now.
	lock.Approvals, lock.BlockOnRejected = 0, false
	must(t, e.Protect(e.ctx, r, lock))
	must(t, e.Grant(e.ctx, r, e.bob.Login, giteatest.Read))
	err = e.tryMerge(t, e.clientOf(t, e.bobToken), r, number, pull.MergeOptions{Head: head})
	wantError(t, "a merge by a reader in the list", err, pull.ErrNotAllowed)

	// Where administrators are not bound, one of the list merges against all.
	lock.BindsAdmins, lock.Contexts = false, []string{"never"}
	must(t, e.Protect(e.ctx, r, lock))
	same(t, "ready without another status", false, e.ready(t, r, number))
	_, err = e.ForceMerge(e.ctx, r, number, e.bot.Login)
	must(t, err)
}

func requiredContexts(t *testing.T, e env) {
	r := e.repo(t, "contexts")
	number, head := e.open(t, r, "change")
	odd := "signalbox / approval ({x},[y]*?)"
	for context, state := range map[string]string{
		"signalbox / preconditions (main)": "success", odd: "success", "ci/build": "failure", "ci/lint": "skipped",
	} {
		must(t, e.SetStatus(e.ctx, r, head, e.alice.Login, pull.Status{Context: context, State: state}))
	}
	lock := pull.Protection{Rule: "main", StatusCheck: true}
	for _, tt := range []struct {
		patterns []string
		want     bool
	}{
		{nil, false},
		{[]string{"signalbox / preconditions (main)"}, true},
		{[]string{pull.QuotePattern(odd)}, true},
		{[]string{odd}, false},
		{[]string{"signalbox*"}, true},
		{[]string{"signalbox*", "none"}, false},
		{[]string{"*"}, false},
		{[]string{"ci/*"}, false},
		{[]string{"ci/l*"}, true},
		{[]string{"ci/{lint,test}"}, true},
		{[]string{"ci/[!b]*"}, true},
		{[]string{"[", "ci/lint"}, true},
		{[]string{"["}, false},
	} {
		lock.Contexts = tt.patterns
		must(t, e.Protect(e.ctx, r, lock))
		same(t, fmt.Sprintf("ready with %q", tt.patterns), tt.want, e.ready(t, r, number))
	}
}
