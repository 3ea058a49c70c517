package main

import (
	"fmt"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/pull"
)

// redeliver handles what was said once more, as after an acknowledgement that was
// lost.
func (l *lounge) redeliver(m chat.Message) {
	l.t.Helper()
	e, err := events.New("slack/"+m.ID, string(chat.Slack), m.At, events.ChatSaid{Message: m})
	l.must(err)
	l.must(l.app.chats.handler.Handle(l.t.Context(), e))
}

// TestChatSaidOnce: what comes twice is done once, also if the second time it
// would be written down on another pull request.
func TestChatSaidOnce(t *testing.T) {
	l := newLounge(t)
	one, two := l.open("one", docsChange("one")), l.open("two", docsChange("two"))
	l.shows(one, "success", "success")
	l.shows(two, "success", "success")
	l.card(one)
	l.card(two)
	refused := l.says("bob", "unfreeze home-gitops")
	l.hears(refused, "not frozen")
	freeze := l.says("bob", "freeze home-gitops 2h")
	l.hears(freeze, "done")
	unfreeze := l.says("bob", "unfreeze home-gitops")
	l.hears(unfreeze, "done")
	l.must(l.forge.SetOpen(t.Context(), l.repo, one, "bob", false))
	l.eventually("it is forgotten", func() string {
		if open := l.app.chats.handler.Index.OfRepo(l.repo.ID); len(open) != 1 {
			return fmt.Sprint(open)
		}
		return ""
	})
	l.redeliver(freeze)
	l.hears(l.says("bob", fmt.Sprintf("hold home-gitops#%d", two)), "done")
	if in := l.app.ledger.Freezes(l.repo.ID).Freezes(time.Now()); len(in) != 0 {
		t.Errorf("it is frozen again: %+v", in)
	}

	l.hears(l.says("bob", "freeze home-gitops 2h"), "done")
	l.redeliver(unfreeze)
	l.redeliver(refused)
	l.hears(l.says("bob", fmt.Sprintf("unhold home-gitops#%d", two)), "done")
	if in := l.app.ledger.Freezes(l.repo.ID).Freezes(time.Now()); len(in) != 1 {
		t.Errorf("the freeze was ended by what was said before it: %+v", in)
	}
	// What cannot be done on any pull request now is not answered anew.
	before := len(l.parlor.in(l.room))
	l.must(l.forge.SetOpen(t.Context(), l.repo, two, "bob", false))
	l.eventually("it is forgotten", func() string {
		if open := l.app.chats.handler.Index.OfRepo(l.repo.ID); len(open) != 0 {
			return fmt.Sprint(open)
		}
		return ""
	})
	l.redeliver(freeze)
	for _, s := range l.parlor.in(l.room)[before:] {
		if s.cause == "answer/slack/"+freeze.ID {
			t.Errorf("it is answered with %s", s.body.Text)
		}
	}
}

// TestUnlinkOnce: a link is ended by what was said after it, and once.
func TestUnlinkOnce(t *testing.T) {
	l := newLounge(t)
	carol, err := l.eyes.UserByName(t.Context(), "carol")
	l.must(err)
	link := func(number int64, at time.Time) {
		t.Helper()
		_, err := l.app.ledger.Append(t.Context(), decision.Entry{
			ID: fmt.Sprintf("comment/%d/0", number), Kind: decision.Link, By: carol, User: "slack/carol", Place: "comment",
			Repo: pull.Repo{ID: l.repo.ID, Owner: l.repo.Owner, Name: l.repo.Name}, Number: number, At: at.UTC(),
		})
		l.must(err)
	}
	linked := func(want bool) {
		t.Helper()
		if _, ok := l.app.ledger.Links("slack/carol").Linked(); ok != want {
			t.Errorf("linked: %v, want %v", ok, want)
		}
	}
	link(1, time.Now().Add(-time.Minute))
	cancel := l.says("carol", "link cancel")
	l.hears(cancel, "linked to no account")
	linked(false)
	link(2, time.Now())
	l.redeliver(cancel)
	linked(true)

	late := cancel
	late.ID, late.At = "late", time.Now().Add(-30*time.Second)
	l.redeliver(late)
	l.hears(late, "linked after this was said")
	linked(true)
	l.hears(l.says("carol", "link cancel"), "linked to no account")
	linked(false)
}
