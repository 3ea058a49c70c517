package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/command"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// saysAt lets somebody have said something at another time than now.
func (l *lounge) saysAt(at time.Time, who, text string) chat.Message {
	l.t.Helper()
	l.heard++
	m := chat.Message{ID: fmt.Sprintf("h%d", l.heard), Room: l.room, User: person(who), Text: text, At: at}
	l.must(l.parlor.Said(l.t.Context(), "slack/"+m.ID, m))
	return m
}

// TestSaidAtAnotherTime: what arrives late lifts nothing that came after it and
// decides nothing old, and a clock that is ahead gives nobody more time.
func TestSaidAtAnotherTime(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.card(number)
	name := fmt.Sprintf("home-gitops#%d", number)
	ref := pull.Ref{RepoID: l.repo.ID, Number: number}

	l.hears(l.saysAt(time.Now().Add(-24*time.Hour), "bob", "hold "+name), "done")
	l.hears(l.saysAt(time.Now().Add(-24*time.Hour), "alice", "unhold "+name), "was not carried out", "could not be looked at before now")
	l.hears(l.says("alice", "unhold "+name), "done")
	l.hears(l.says("alice", "hold "+name), "done")
	l.hears(l.saysAt(time.Now().Add(-30*time.Minute), "alice", "unhold "+name), "was not carried out", "held by alice after this was said")
	if holds := l.app.ledger.Entries(ref).Holds(); len(holds) != 1 {
		t.Errorf("the holds are %+v", holds)
	}

	l.hears(l.saysAt(time.Now().AddDate(5, 0, 0), "alice", "freeze "+name+" 1h"), "done")
	freezes := l.app.ledger.Freezes(l.repo.ID).Freezes(time.Now())
	if len(freezes) != 1 || freezes[0].Until.After(time.Now().Add(time.Hour)) || freezes[0].At.After(time.Now()) {
		t.Errorf("the freezes are %+v", freezes)
	}
	l.hears(l.saysAt(time.Now().Add(-30*time.Minute), "alice", "unfreeze "+name), "was not carried out", "frozen by alice after this was said")
	l.hears(l.says("alice", "unfreeze "+name), "done")
}

// TestSlashIsAnsweredInPrivate: also what is carried out later, and also where
// signalbox is no member.
func TestSlashIsAnsweredInPrivate(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.card(number)
	m := chat.Message{ID: "s1", Room: l.room, User: person("alice"), Text: fmt.Sprintf("hold home-gitops#%d", number), Slash: true, At: time.Now().UTC()}
	l.must(l.parlor.Said(t.Context(), "slack/"+m.ID, m))
	if got := l.hears(m, "done"); got.to != person("alice") {
		t.Errorf("the answer was shown to %v", got.to)
	}
}

// TestRequestOfAnother: who asked is looked at again when it is carried out, and a
// request is answered whatever became of its pull request.
func TestRequestOfAnother(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	ref := pull.Ref{RepoID: l.repo.ID, Number: number}
	alice, err := l.eyes.UserByName(t.Context(), "alice")
	l.must(err)
	gone := pull.Ref{RepoID: l.repo.ID, Number: 999}
	look := func(ref pull.Ref) { l.must(l.app.bus.Work().Soon(t.Context(), work.Item{Ref: ref, Kind: work.Full})) }
	ask := func(id, who string, ref pull.Ref) {
		l.must(l.app.evaluator.Requests.Add(t.Context(), handlers.Request{
			Cause: "slack/" + id, Ref: ref, By: alice, User: person(who), Room: l.room,
			Command: command.Command{Name: command.Hold, Line: "hold"}, At: time.Now().UTC(),
		}))
	}
	ask("q1", "carol", ref)
	look(ref)
	l.hears(chat.Message{ID: "q1", Room: l.room}, "was not carried out", "slack/carol does not speak for alice any more")
	if holds := l.app.ledger.Entries(ref).Holds(); len(holds) != 0 {
		t.Errorf("the holds are %+v", holds)
	}

	ask("q2", "alice", gone)
	look(gone)
	l.hears(chat.Message{ID: "q2", Room: l.room}, "was not carried out", "not open any more")
	l.eventually("no request is left", func() string {
		if left := l.app.evaluator.Requests.Of(gone); len(left) != 0 {
			return fmt.Sprintf("%+v", left)
		}
		return ""
	})
}

// TestGiteaIsAway: who says something is told when it cannot be looked at for long,
// and it is carried out when it can be.
func TestGiteaIsAway(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.card(number)
	l.forge.Fail(func(req *http.Request) *giteatest.Response {
		if strings.Contains(req.URL.Path, "/users/") {
			return &giteatest.Response{Code: http.StatusServiceUnavailable}
		}
		return nil
	})
	m := l.saysAt(time.Now().Add(-40*time.Minute), "alice", fmt.Sprintf("hold home-gitops#%d", number))
	l.eventually("alice is told", func() string {
		for _, s := range l.parlor.in(l.room) {
			if s.cause == "answer/late/slack/"+m.ID && strings.Contains(s.body.Text, "cannot look at it") {
				return ""
			}
		}
		return "she is not"
	})
	l.forge.Fail(nil)
	l.hears(m, "done")
}
