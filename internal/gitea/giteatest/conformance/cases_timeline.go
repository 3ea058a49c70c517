package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// retargeted finds a change of the base.
func retargeted(from, to string) func(pull.Moment) bool {
	return func(m pull.Moment) bool { return m.Kind == pull.MomentRetarget && m.From == from && m.To == to }
}

func timeline(t *testing.T, e env) {
	r := e.repo(t, "timeline")
	number, head := e.open(t, r, "change")
	e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "release", Files: map[string]string{"rel": "1\n"}})
	read := func() []pull.Moment {
		t.Helper()
		list, err := e.client.Timeline(e.ctx, r, number)
		must(t, err)
		for i, m := range list {
			if m.Kind == pull.MomentReview && m.CommentID == 0 {
				t.Errorf("moment %d has no id to react to: %+v", i, m)
			} else if m.Kind == pull.MomentReview {
				list[i].CommentID = 0
			}
		}
		return list
	}
	push := func(commits ...string) pull.Moment { return pull.Moment{Kind: pull.MomentPush, Commits: commits} }
	review := func(id int64) pull.Moment { return pull.Moment{Kind: pull.MomentReview, ReviewID: id} }
	want := []pull.Moment{push(head)}
	e.settles(t, "timeline of a new pull request", want, read)

	first, err := e.Review(e.ctx, r, number, e.bob.Login, giteatest.Approve, "ok")
	must(t, err)
	next := e.push(t, r, giteatest.Push{Branch: "change", Files: map[string]string{"more.yaml": "y: 1\n"}})
	want = append(want, review(first), push(next))
	e.settles(t, "timeline after a push", want, read)
	// More than a page.
	for i := range 60 {
		id, err := e.Comment(e.ctx, r, number, e.bob.Login, fmt.Sprint("comment ", i))
		must(t, err)
		want = append(want, pull.Moment{Kind: pull.MomentComment, CommentID: id})
	}
	second, err := e.Review(e.ctx, r, number, e.bob.Login, giteatest.Remark, "hm")
	must(t, err)
	want = append(want, review(second))
	e.settles(t, "timeline", want, read)

	// Gitea forgets the pushes before a change of the base, and notes one after.
	must(t, e.Retarget(e.ctx, r, number, e.alice.Login, "release"))
	want = append(without(want, pull.MomentPush), pull.Moment{Kind: pull.MomentRetarget, From: "main", To: "release"}, push(head, next))
	e.settles(t, "timeline after a change of the base", want, read)
}

// forcedPush replaces commits: one that stays, one that goes, one that is new.
func forcedPush(t *testing.T, e env) {
	r := e.repo(t, "forced")
	number, first := e.open(t, r, "change")
	second := e.push(t, r, giteatest.Push{Branch: "change", Files: map[string]string{"more.yaml": "y: 1\n"}})
	third := e.push(t, r, giteatest.Push{
		Branch: "change", From: first, Force: true, Files: map[string]string{"other.yaml": "z: 1\n"},
	})
	e.settles(t, "timeline after a forced push", []pull.Moment{
		{Kind: pull.MomentPush, Commits: []string{first}},
		{Kind: pull.MomentPush, Commits: []string{third}},
		{Kind: pull.MomentPush, Commits: []string{second, third}, Forced: true},
	}, func() []pull.Moment {
		got, err := e.client.Timeline(e.ctx, r, number)
		must(t, err)
		return got
	})
}

// settles reads until what is read is as wanted: Gitea notes a push in the
// timeline a moment after the head has moved.
func (e env) settles(t *testing.T, what string, want []pull.Moment, read func() []pull.Moment) {
	t.Helper()
	ctx, cancel := context.WithTimeout(e.ctx, 20*time.Second)
	defer cancel()
	var got []pull.Moment
	// Where the time is up, the difference says more.
	_ = poll(ctx, func() (bool, error) {
		got = read()
		return cmp.Equal(want, got), nil
	})
	same(t, what, want, got)
}

func without(list []pull.Moment, kind pull.MomentKind) []pull.Moment {
	var out []pull.Moment
	for _, m := range list {
		if m.Kind != kind {
			out = append(out, m)
		}
	}
	return out
}
