package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

// TestChatOverARestart: what was said right before signalbox ended is carried out
// after it, once.
func TestChatOverARestart(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	card := l.card(number)
	l.seen(number, l.head(number))
	m := l.says("alice", fmt.Sprintf("approve home-gitops#%d", number))
	l.stop()
	l.open2()
	l.must(l.parlor.Said(t.Context(), "slack/"+m.ID, m)) // The platform has no answer yet, and sends it again.
	l.shows(number, "success", "success")
	l.hears(m, "done")
	l.card(number, "Clear to merge")
	if n := len(l.app.ledger.Entries(pull.Ref{RepoID: l.repo.ID, Number: number}).Approvals()); n != 1 {
		t.Errorf("there are %d approvals", n)
	}
	for _, s := range l.parlor.in(l.room) {
		if strings.HasPrefix(s.cause, "card/") && s.id != card.id {
			t.Errorf("there is another card: %+v", s)
		}
	}
}

// TestChatRefusals: each gets a short answer that says what to do.
func TestChatRefusals(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.card(number)
	l.seen(number, l.head(number))
	name := fmt.Sprintf("home-gitops#%d", number)
	for text, want := range map[string]string{
		"":                     "approve PULL",
		"deploy":               "is no command",
		"approve":              "Which pull request?",
		"status #99":           "no open pull request of that name",
		"approve home-gitops#": "❌",
		"approve https://gitea.example.com/a/b/pulls/1": "is not one of",
		"freeze " + name + " soon":                      "❌",
		"approve-override " + name:                      "needs a reason",
		strings.Repeat("x", chat.MaxText):               "too long",
		"unhold " + name:                                "nothing holds",
		"merge " + name:                                 "does not let signalbox merge",
		"approve " + name + " 1234567":                  "it names 1234567",
		"subscribe other":                               "There is no such repository here",
	} {
		l.hears(l.says("alice", text), want)
	}
	// In a room without its card nobody knows which head is meant.
	l.room = chat.Room{Platform: chat.Slack, ID: "C9"}
	l.hears(l.says("alice", "approve "+name), "does not say which head it means")
	l.heard++
	edited := chat.Message{ID: fmt.Sprintf("h%d", l.heard), Room: l.room, User: person("alice"), Text: "hold " + name, Edited: true, At: time.Now().UTC()}
	l.must(l.parlor.Said(t.Context(), "slack/"+edited.ID, edited))
	l.hears(l.says("alice", "status "+name), "Move the profile")
	for _, e := range l.app.ledger.Entries(pull.Ref{RepoID: l.repo.ID, Number: number}) {
		if e.Kind != decision.Refused {
			t.Errorf("something was decided: %+v", e)
		}
	}
	for _, s := range l.parlor.in(l.room) {
		if s.cause == "answer/slack/"+edited.ID {
			t.Errorf("an edited message was answered: %s", s.body.Text)
		}
	}
}

// TestChatRemoved: signalbox was removed from a room, and goes on elsewhere.
func TestChatRemoved(t *testing.T) {
	l := newLounge(t)
	l.parlor.mu.Lock()
	l.parlor.fail = func() error { return fmt.Errorf("%w: invite signalbox", chat.ErrGone) }
	l.parlor.mu.Unlock()
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.says("alice", "status #1")
	l.approve(number, "alice")
	l.shows(number, "success", "success")
	l.parlor.mu.Lock()
	l.parlor.fail = nil
	l.parlor.mu.Unlock()
	l.cluster.Kustomization("flux-system", "platform-config").Failing("BuildFailed", "no such file")
	l.card(number, "no such file")
}

// TestChatRevoked: a token that is not taken loses nothing.
func TestChatRevoked(t *testing.T) {
	l := newLounge(t)
	revoked := true
	l.parlor.mu.Lock()
	l.parlor.fail = func() error {
		if revoked {
			return errors.Join(chat.ErrRevoked, &chat.RetryError{After: 200 * time.Millisecond, Err: errors.New("again")})
		}
		return nil
	}
	l.parlor.mu.Unlock()
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	m := l.says("alice", fmt.Sprintf("status home-gitops#%d", number))
	l.parlor.mu.Lock()
	revoked = false
	l.parlor.mu.Unlock()
	l.hears(m, "Move the profile")
	l.card(number)
}
