package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// hides waits for an answer, which must hold none of some texts.
func (l *lounge) hides(m chat.Message, want string, texts ...string) {
	l.t.Helper()
	got := l.hears(m, want)
	for _, text := range texts {
		if all := got.body.Text + got.body.Blocks + got.body.HTML; strings.Contains(all, text) {
			l.t.Errorf("%s hears of %q after %q: %s", m.User, text, m.Text, got.body.Text)
		}
	}
}

// elsewhere is a room that is subscribed to nothing.
func elsewhere() chat.Room { return chat.Room{Platform: chat.Slack, ID: "C9"} }

const (
	noRepo = "There is no such repository here"
	noPull = "no open pull request of that name"
)

// TestChatShowsToWhomItMay: what is private is shown in the rooms that are
// subscribed to it, and to who can read it.
func TestChatShowsToWhomItMay(t *testing.T) {
	l := newLounge(t)
	l.must(l.forge.SetPrivate(t.Context(), l.repo, true))
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	card := l.card(number)
	name := fmt.Sprintf("home-gitops#%d", number)
	secrets := []string{"home-gitops", "ops", "Move the profile", "alice", "carol"}

	l.room = elsewhere()
	// carol is not known, dave is and cannot read it.
	for _, who := range []string{"carol", "dave"} {
		for _, verb := range []string{"status", "preconditions", "who", "approve", "hold", "merge", "recheck"} {
			l.hides(l.says(who, verb+" "+name), noRepo, secrets...)
			l.hides(l.says(who, verb+" nothing#1"), noRepo, secrets...)
			l.hides(l.says(who, fmt.Sprintf("%s #%d", verb, number)), noRepo, secrets...)
		}
		l.hides(l.says(who, "freeze home-gitops 2h"), noRepo, secrets...)
		l.hides(l.says(who, "list home-gitops"), noRepo, secrets...)
		l.hides(l.says(who, "list"), "There are no open pull requests", secrets...)
	}
	l.hides(l.says("dave", "subscribe home-gitops"), noRepo, secrets...)
	press := chat.Press{
		Room: l.room, Message: "m99", User: person("dave"), Button: chat.ButtonDetails,
		Ref: pull.Ref{RepoID: l.repo.ID, Number: number}, At: time.Now().UTC(),
	}
	l.must(l.parlor.Pressed(t.Context(), "slack/b1", press))
	l.hides(chat.Message{ID: "b1", Room: l.room, User: press.User, Text: "the button"}, "not open any more", secrets...)

	// bob can read it, and asks where he likes.
	l.hears(l.says("bob", "status "+name), "Move the profile")
	l.hears(l.says("bob", "list"), "home-gitops")
	// The room of the card sees it, whoever asks.
	l.room = card.room
	for _, who := range []string{"carol", "dave"} {
		l.hears(l.says(who, "status "+name), "Move the profile")
		l.hears(l.says(who, "list"), "home-gitops")
	}
	press.Room, press.Message, press.Ref = card.room, card.id, pull.Ref{}
	l.must(l.parlor.Pressed(t.Context(), "slack/b2", press))
	l.hears(chat.Message{ID: "b2", Room: l.room, Text: "the reaction"}, "Move the profile")

	// A right to read is enough for that, and Gitea is asked each time.
	l.must(l.forge.Grant(t.Context(), l.repo, "mallory", giteatest.Read))
	l.room = elsewhere()
	l.hears(l.says("dave", "status "+name), "Move the profile")
}

// TestChatForgetsRepositories: what was known of a repository that is not
// configured any more is shown to nobody.
func TestChatForgetsRepositories(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	card := l.card(number)
	l.stop()
	other, err := l.forge.CreateRepo(t.Context(), owner, "other", map[string]string{"a": "1\n"})
	l.must(err)
	l.must(l.forge.Grant(t.Context(), other, "signalbox", giteatest.Admin))
	was := l.repo
	l.repo = other
	l.open2(func(c *config.Config) {
		c.Repositories = []config.Repository{{Owner: owner, Name: "other"}}
		c.Chat.Subscriptions[0].Repository = was.String()
	})
	l.hides(l.says("alice", "list"), "There are no open pull requests", "home-gitops")
	l.hides(l.says("alice", fmt.Sprintf("status home-gitops#%d", number)), noRepo, "Move the profile")
	for _, text := range []string{"status", "who", "hold"} {
		m := l.inThread(card, "alice", text)
		l.hides(m, noPull, "Move the profile")
	}
	l.must(l.parlor.Pressed(t.Context(), "slack/b1", chat.Press{
		Room: l.room, Message: card.id, User: person("alice"), Button: chat.ButtonDetails, At: time.Now().UTC(),
	}))
	l.hides(chat.Message{ID: "b1", Room: l.room, Text: "the reaction"}, "not open any more", "Move the profile")
}

// inThread lets somebody say something in the thread of a card.
func (l *lounge) inThread(card said, who, text string) chat.Message {
	l.t.Helper()
	l.heard++
	m := chat.Message{ID: fmt.Sprintf("h%d", l.heard), Room: card.room, Thread: card.id, User: person(who), Text: text, At: time.Now().UTC()}
	l.must(l.parlor.Said(l.t.Context(), "slack/"+m.ID, m))
	return m
}

// TestChatInThread: in the thread of a card a number is one of its repository,
// whatever else the room is subscribed to.
func TestChatInThread(t *testing.T) {
	l := newLounge(t)
	first := l.open("cdi", clusterChange)
	l.shows(first, "success", "pending")
	l.card(first)
	l.stop()
	other, err := l.forge.CreateRepo(t.Context(), owner, "other", map[string]string{"a": "1\n"})
	l.must(err)
	l.must(l.forge.Grant(t.Context(), other, "bob", giteatest.Write))
	l.must(l.forge.Grant(t.Context(), other, "signalbox", giteatest.Admin))
	l.open2(func(c *config.Config) {
		c.Repositories = append(c.Repositories, config.Repository{Owner: owner, Name: "other"})
	})
	l.hears(l.says("bob", "subscribe other"), "other")
	was := l.repo
	l.repo = other
	for _, branch := range []string{"x", "y"} {
		_, err = l.forge.Push(t.Context(), other, giteatest.Push{Branch: branch, From: "main", As: "bob", Files: map[string]string{"a": branch}, Message: branch})
		l.must(err)
		_, err = l.forge.OpenPull(t.Context(), other, giteatest.NewPull{As: "bob", Title: "The other " + branch, Head: branch, Base: "main"})
		l.must(err)
	}
	l.card(1, "The other x")
	card := l.card(2, "The other y")
	l.hears(l.inThread(card, "bob", "status #1"), "The other x")
	l.repo = was
	// Even when the room guesses at another.
	l.hears(l.says("bob", "unsubscribe other"), "no more")
	l.hears(l.inThread(card, "bob", "status #1"), "The other x")
	l.hears(l.inThread(card, "bob", "status"), "The other y")
	l.hears(l.says("bob", "status #1"), "Move the profile")
	l.hears(l.inThread(card, "bob", "status home-gitops#1"), "Move the profile")
}

// TestChatNamesOfTwo: a name that two repositories have is refused, also while
// one of them cannot be read.
func TestChatNamesOfTwo(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.card(number)
	l.stop()
	l.open2(func(c *config.Config) {
		c.Repositories = append(c.Repositories, config.Repository{Owner: "club", Name: "Home-GitOps"})
	})
	l.hides(l.says("alice", "hold home-gitops#1"), "Several repositories may be meant", "club")
	l.hides(l.says("alice", "freeze home-gitops 2h"), "Several repositories may be meant", "club")
	l.hears(l.says("alice", "status ops/home-gitops#1"), "Move the profile")
	l.hears(l.says("alice", "status #1"), "Move the profile")
	l.hides(l.says("alice", "status club/home-gitops#1"), noRepo, "club")
}
