package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

func reviews(t *testing.T, e env) {
	r := e.repo(t, "reviews")
	number, head := e.open(t, r, "change")
	read := func() []pull.Review {
		t.Helper()
		list, err := e.client.Reviews(e.ctx, r, number)
		must(t, err)
		for i := range list {
			if list[i].SubmittedAt.IsZero() {
				t.Errorf("review %d has no time", list[i].ID)
			}
			list[i].SubmittedAt = time.Time{}
		}
		return list
	}
	same(t, "reviews of a new pull request", []pull.Review{}, read())

	_, err := e.Review(e.ctx, r, number, e.alice.Login, giteatest.Approve, "mine")
	if err == nil {
		t.Error("the author could approve")
	}
	rejected, err := e.Review(e.ctx, r, number, e.bob.Login, giteatest.RequestChanges, "No.")
	must(t, err)
	remark, err := e.Review(e.ctx, r, number, e.alice.Login, giteatest.Remark, "Why?")
	must(t, err)
	next := e.push(t, r, giteatest.Push{Branch: "change", Files: map[string]string{"more.yaml": "y: 1\n"}})
	approved, err := e.Review(e.ctx, r, number, e.bob.Login, giteatest.Approve, "")
	must(t, err)
	want := []pull.Review{
		// A later word of the same person dismisses the earlier one.
		{ID: rejected, Author: e.bob, State: pull.ChangesRequested, Body: "No.", Commit: head, Dismissed: true},
		{ID: remark, Author: e.alice, State: pull.Commented, Body: "Why?", Commit: head},
		{ID: approved, Author: e.bob, State: pull.Approved, Commit: next, Official: true},
	}
	same(t, "reviews", want, read())

	must(t, e.Dismiss(e.ctx, r, number, approved, e.bot.Login))
	want[2].Dismissed = true
	same(t, "reviews after one was dismissed", want, read())

	_, err = e.client.Reviews(e.ctx, r, 99)
	wantError(t, "reviews of a missing pull request", err, gitea.ErrNotFound)
}

func hiddenReviews(t *testing.T, e env) {
	r := e.repo(t, "hidden")
	number, head := e.open(t, r, "change")
	// More remarks than two pages hold stand between the approval and what
	// comes after it; nobody but bob sees them.
	approved, err := e.Review(e.ctx, r, number, e.bob.Login, giteatest.Approve, "ok")
	must(t, err)
	const remarks = 120
	must(t, e.BeginReview(e.ctx, r, number, e.alice.Login, remarks))
	e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "release", Files: map[string]string{"rel": "1\n"}})
	must(t, e.Retarget(e.ctx, r, number, e.alice.Login, "release"))

	list, err := e.client.Reviews(e.ctx, r, number)
	must(t, err)
	if len(list) != 1 || list[0].ID != approved || list[0].Commit != head {
		t.Errorf("reviews %+v, want the approval alone", list)
	}
	moments, err := e.client.Timeline(e.ctx, r, number)
	must(t, err)
	if !slices.ContainsFunc(moments, retargeted("main", "release")) {
		t.Errorf("%d hidden remarks hide the retarget: %+v", remarks, moments)
	}
}

func comments(t *testing.T, e env) {
	r := e.repo(t, "comments")
	number, _ := e.open(t, r, "change")
	list, err := e.client.Comments(e.ctx, r, number)
	must(t, err)
	same(t, "comments of a new pull request", 0, len(list))

	made, err := e.client.CreateComment(e.ctx, r, number, "<!-- mark --> Hello *you*\r\n&<>")
	must(t, err)
	same(t, "author", e.bot, made.Author)
	if !strings.Contains(made.URL, fmt.Sprintf("/pulls/%d#issuecomment-%d", number, made.ID)) {
		t.Errorf("URL %q", made.URL)
	}
	got, err := e.client.Comment(e.ctx, r, made.ID)
	must(t, err)
	same(t, "the comment, read again", made, got)

	for i := range 59 {
		_, err := e.Comment(e.ctx, r, number, e.bob.Login, fmt.Sprint("comment ", i))
		must(t, err)
	}
	list, err = e.client.Comments(e.ctx, r, number)
	must(t, err)
	same(t, "number of comments", 60, len(list))
	same(t, "the first of all comments", made, list[0])

	edited, err := e.client.EditComment(e.ctx, r, made.ID, "Changed")
	must(t, err)
	same(t, "text after an edit", "Changed", edited.Body)
	must(t, e.EditComment(e.ctx, r, made.ID, e.bob.Login, "/approve"))
	got, err = e.client.Comment(e.ctx, r, made.ID)
	must(t, err)
	same(t, "author after somebody else edited", e.bot, got.Author)
	same(t, "text after somebody else edited", "/approve", got.Body)

	must(t, e.DeleteComment(e.ctx, r, made.ID, e.bob.Login))
	_, err = e.client.Comment(e.ctx, r, made.ID)
	wantError(t, "a deleted comment", err, gitea.ErrNotFound)
	_, err = e.client.EditComment(e.ctx, r, made.ID, "again")
	wantError(t, "an edit of a deleted comment", err, gitea.ErrNotFound)
	made, err = e.client.CreateComment(e.ctx, r, number, "Again")
	must(t, err)
	must(t, e.client.DeleteComment(e.ctx, r, made.ID))
	wantError(t, "the deletion of a deleted comment", e.client.DeleteComment(e.ctx, r, made.ID), gitea.ErrNotFound)
	_, err = e.client.CreateComment(e.ctx, r, number, "")
	if err == nil {
		t.Error("an empty comment was made")
	}
	_, err = e.client.Comments(e.ctx, r, 99)
	if err == nil {
		t.Error("a missing pull request has comments")
	}
}

func commentsSince(t *testing.T, e env) {
	r := e.repo(t, "since")
	one, _ := e.open(t, r, "one")
	two, _ := e.open(t, r, "two")
	for i := range 55 {
		_, err := e.Comment(e.ctx, r, one, e.bob.Login, fmt.Sprint("comment ", i))
		must(t, err)
	}
	_, err := e.Comment(e.ctx, r, two, e.alice.Login, "other")
	must(t, err)
	got, err := e.client.CommentsSince(e.ctx, r, time.Now().Add(-time.Hour))
	must(t, err)
	same(t, "comments by pull request", map[int64]int{one: 55, two: 1}, map[int64]int{one: len(got[one]), two: len(got[two])})
	got, err = e.client.CommentsSince(e.ctx, r, time.Now().Add(time.Hour))
	must(t, err)
	same(t, "comments of the future", 0, len(got))
}
