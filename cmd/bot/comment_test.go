package main

import (
	"strings"
	"testing"
)

// TestSecondCommentIsRemoved: a request to post the comment that was given up
// can be carried out later, when the comment was posted again already.
func TestSecondCommentIsRemoved(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{})
	number := w.open("twice", clusterChange)
	s := w.shows(number, "success", "pending")
	w.quiet()

	ctx := t.Context()
	_, err := w.forge.Comment(ctx, w.repo, number, "signalbox", s.comments[0].Body)
	w.must(err)
	// Others may quote it, and signalbox's account may say something else.
	for as, body := range map[string]string{"bob": s.comments[0].Body, "signalbox": "By hand: " + s.comments[0].Body} {
		_, err := w.forge.Comment(ctx, w.repo, number, as, body)
		w.must(err)
	}
	w.must(w.forge.SetLabels(ctx, w.repo, number, "bob", "urgent"))
	w.eventually("the second comment is gone", func() string {
		all, err := w.eyes.Comments(ctx, w.repo, number)
		if err != nil {
			return err.Error()
		}
		var bodies []string
		for _, c := range all {
			bodies = append(bodies, c.Author.Login+": "+c.Body[:min(len(c.Body), 12)])
		}
		if len(all) != 3 || all[0].ID != s.comments[0].ID {
			return "there are " + strings.Join(bodies, ", ")
		}
		return ""
	})

	// Another look is one request for all comments.
	w.quiet()
	w.forge.ResetCalls()
	w.must(w.forge.SetLabels(ctx, w.repo, number, "bob"))
	w.quiet()
	if calls := w.forge.Calls(); calls["GET /repos/{owner}/{repo}/issues/{index}/comments"] != 1 || calls["PATCH /repos/{owner}/{repo}/issues/comments/{id}"] != 0 {
		t.Errorf("the calls are %v", calls)
	}
}
