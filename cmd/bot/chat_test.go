package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/decision"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
)

// parlor is a chat in memory. It does what its adapter promises, and fails as it
// is told.
type parlor struct {
	chat.Receiver
	mu    sync.Mutex
	posts []said
	// fail, if set, answers each call.
	fail func() error
	n    int
}

// said is one message of signalbox.
type said struct {
	id, thread, cause string
	room              chat.Room
	to                chat.User
	body              chat.Body
	edits             int
}

// Trouble is none.
func (*parlor) Trouble() string { return "" }

func (p *parlor) Post(_ context.Context, room chat.Room, thread, cause string, body chat.Body) (string, error) {
	return p.post(said{room: room, thread: thread, cause: cause, body: body})
}

func (p *parlor) Whisper(_ context.Context, room chat.Room, thread string, to chat.User, cause string, body chat.Body) error {
	_, err := p.post(said{room: room, thread: thread, to: to, cause: cause, body: body})
	return err
}

func (p *parlor) Attach(_ context.Context, room chat.Room, thread, cause string, picture chat.Picture) error {
	_, err := p.post(said{room: room, thread: thread, cause: "picture/" + cause, body: chat.Body{Text: picture.Alt}})
	return err
}

func (p *parlor) post(s said) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(); err != nil {
			return "", err
		}
	}
	for _, o := range p.posts {
		if o.cause == s.cause && o.room == s.room {
			return o.id, nil
		}
	}
	p.n++
	s.id = fmt.Sprintf("m%d", p.n)
	p.posts = append(p.posts, s)
	return s.id, nil
}

func (p *parlor) Edit(_ context.Context, _ chat.Room, id, _ string, body chat.Body) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(); err != nil {
			return err
		}
	}
	for i := range p.posts {
		if p.posts[i].id == id {
			p.posts[i].body = body
			p.posts[i].edits++
			return nil
		}
	}
	return chat.ErrGone
}

func (*parlor) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (p *parlor) in(room chat.Room) []said {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []said
	for _, s := range p.posts {
		if s.room == room {
			out = append(out, s)
		}
	}
	return out
}

// lounge is a world with a chat, in which alice and bob are known.
type lounge struct {
	*world
	parlor *parlor
	room   chat.Room
	heard  int
	// ended is a card that was, and counts no more.
	ended string
}

func person(id string) chat.User { return chat.User{Platform: chat.Slack, ID: id} }

// newLounge starts signalbox with a chat in which one room is subscribed.
func newLounge(t *testing.T) *lounge {
	t.Helper()
	l := &lounge{world: newWorld(t, worldOptions{}), parlor: &parlor{}, room: chat.Room{Platform: chat.Slack, ID: "C1"}}
	l.ready()
	l.open2()
	return l
}

func (l *lounge) open2(adjust ...func(*config.Config)) {
	l.t.Helper()
	l.start(worldOptions{
		adjust: func(c *config.Config) {
			c.Chat.People = []config.ChatPerson{{User: person("alice"), Login: "alice"}, {User: person("bob"), Login: "bob"}, {User: person("dave"), Login: "mallory"}}
			c.Chat.Subscriptions = []config.Subscription{{Room: l.room, Repository: l.repo.String()}}
			for _, f := range adjust {
				f(c)
			}
		},
		chats: map[chat.Platform]makeAdapter{chat.Slack: func(_ *app, r chat.Receiver) (adapter, error) {
			l.parlor.Receiver = r
			return l.parlor, nil
		}},
	})
}

// says lets somebody say something in the room.
func (l *lounge) says(who, text string) chat.Message {
	l.t.Helper()
	l.heard++
	m := chat.Message{ID: fmt.Sprintf("h%d", l.heard), Room: l.room, User: person(who), Text: text, Link: "https://chat.example.org/h", At: time.Now().UTC()}
	l.must(l.parlor.Said(l.t.Context(), "slack/"+m.ID, m))
	return m
}

// hears waits for an answer to a message that holds all of some texts.
func (l *lounge) hears(m chat.Message, texts ...string) said {
	l.t.Helper()
	var found said
	l.eventually(fmt.Sprintf("%q is answered with %q", m.Text, texts), func() string {
		var all []string
		for _, s := range l.parlor.in(m.Room) {
			if s.cause != "answer/slack/"+m.ID {
				continue
			}
			for _, text := range texts {
				if !strings.Contains(s.body.Text, text) {
					return "the answer is " + s.body.Text
				}
			}
			found = s
			return ""
		}
		return "there is no answer; " + strings.Join(all, "; ")
	})
	return found
}

// card waits until the room has one card of a pull request that holds all of some
// texts.
func (l *lounge) card(number int64, texts ...string) said {
	l.t.Helper()
	var card said
	cause := fmt.Sprintf("card/%s/%d.%d/", l.room, l.repo.ID, number)
	l.eventually(fmt.Sprintf("the card of %d says %q", number, texts), func() string {
		var cards []said
		for _, s := range l.parlor.in(l.room) {
			if strings.HasPrefix(s.cause, cause) && s.id != l.ended {
				cards = append(cards, s)
			}
		}
		if len(cards) != 1 {
			return fmt.Sprintf("there are %d cards", len(cards))
		}
		card = cards[0]
		for _, text := range texts {
			if !strings.Contains(card.body.Text+card.body.Blocks, text) {
				return "it says " + card.body.Text
			}
		}
		return ""
	})
	return card
}

// seen waits until signalbox knows that the room has seen the head of a pull
// request.
func (l *lounge) seen(number int64, head string) handlers.Card {
	l.t.Helper()
	var card handlers.Card
	l.eventually("the room is known to have seen "+head, func() string {
		card, _ = l.app.chats.handler.Cards.In(l.room, l.ref(number))
		if card.Head != head || card.Since.IsZero() || card.Sum == "" {
			return fmt.Sprintf("it has %+v", card)
		}
		return ""
	})
	return card
}

// head is that of a pull request.
func (l *lounge) head(number int64) string {
	l.t.Helper()
	p, err := l.eyes.Pull(l.t.Context(), l.repo, number)
	l.must(err)
	return p.Head.SHA
}

// answers are what is said in the thread of a card.
func (l *lounge) answers(card said) []string {
	var out []string
	for _, s := range l.parlor.in(l.room) {
		if s.thread == card.id && strings.HasPrefix(s.cause, "news/") {
			out = append(out, s.body.Text)
		}
	}
	return out
}

func TestChatDecides(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	name := fmt.Sprintf("home-gitops#%d", number)
	l.shows(number, "success", "pending")
	card := l.card(number, "Waiting for 1 approval rule", "Approve")

	l.hears(l.says("mallory", "approve "+name), "Nobody knows whose")
	l.hears(l.says("bob", "approve "+name), "was not carried out", "the author of a pull request cannot decide")
	l.hears(l.says("alice", "aprove "+name), "Did you mean")
	l.hears(l.says("alice", "approve home-gitop#1"), "There is no such repository here")
	l.hears(l.says("alice", "status "+name), "Move the profile")
	l.shows(number, "success", "pending")

	p, err := l.eyes.Pull(t.Context(), l.repo, number)
	l.must(err)
	l.seen(number, p.Head.SHA)
	l.hears(l.says("alice", "approve "+name), "done", p.Head.SHA[:10], "Move the profile")
	l.shows(number, "success", "success", "Clear to merge")
	l.card(number, "Clear to merge")
	l.eventually("the thread says so", func() string {
		if got := l.answers(card); len(got) != 1 || !strings.Contains(got[0], "is clear to merge") {
			return fmt.Sprint(got)
		}
		return ""
	})
	// It is told on the pull request, once, and counts as alice's.
	l.eventually("the pull request tells of it", func() string {
		comments, err := l.eyes.Comments(t.Context(), l.repo, number)
		l.must(err)
		n := 0
		for _, c := range comments {
			if strings.Contains(plain(c.Body), "alice said /approve in") {
				n++
			}
		}
		if n != 1 {
			return fmt.Sprintf("%d comments tell of it", n)
		}
		return ""
	})
	entries := l.app.ledger.Entries(pull.Ref{RepoID: l.repo.ID, Number: number}).Approvals()
	if len(entries) != 1 || entries[0].By.Login != "alice" || entries[0].Place != "slack" || entries[0].User != "slack/alice" || entries[0].URL == "" {
		t.Errorf("the ledger has %+v", entries)
	}

	// A flip changes the card in place, and nothing new is posted.
	before := len(l.parlor.in(l.room))
	l.cluster.Kustomization("flux-system", "platform-config").Failing("BuildFailed", "no such file")
	l.card(number, "no such file")
	l.ready()
	l.card(number, "Clear to merge")
	if after := len(l.parlor.in(l.room)); after != before {
		t.Errorf("%d messages were posted for flips", after-before)
	}

	_, err = l.forge.Merge(t.Context(), l.repo, number, "alice")
	l.must(err)
	merged := l.card(number, "Merged")
	if strings.Contains(merged.body.Blocks, "Approve") {
		t.Error("a merged card still offers to approve")
	}
}

func TestStaleButton(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	card := l.card(number)
	p, err := l.eyes.Pull(t.Context(), l.repo, number)
	l.must(err)
	old := chat.Press{
		Room: l.room, Message: card.id, User: person("alice"), Button: chat.ButtonApprove,
		Ref: pull.Ref{RepoID: l.repo.ID, Number: number}, Head: p.Head.SHA, At: time.Now().UTC(),
	}
	sha := l.push("cdi", map[string]string{"clusters/base/more.yaml": "d: 1\n"})
	l.card(number, sha[:10])
	l.must(l.parlor.Pressed(t.Context(), "slack/b1", old))
	l.hears(chat.Message{ID: "b1", Room: l.room, Text: "the button"}, "was not carried out", "it was about "+p.Head.SHA[:10], sha[:10])
	old.Head = sha
	l.must(l.parlor.Pressed(t.Context(), "slack/b2", old))
	l.must(l.parlor.Pressed(t.Context(), "slack/b2", old)) // clicked or delivered twice
	l.hears(chat.Message{ID: "b2", Room: l.room, Text: "the button"}, "done")
	l.shows(number, "success", "success")
	if n := len(l.app.ledger.Entries(old.Ref).Approvals()); n != 1 {
		t.Errorf("there are %d approvals", n)
	}
}

// TestReopened: a pull request that is open again has a card that says so.
func TestReopened(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.card(number, "Waiting for 1 approval rule", "Approve")
	l.must(l.forge.SetOpen(t.Context(), l.repo, number, "bob", false))
	first := l.card(number, "without a merge")
	l.eventually("the card is forgotten", func() string {
		if _, ok := l.app.chats.handler.Cards.In(l.room, l.ref(number)); ok {
			return "it is known"
		}
		return ""
	})
	l.must(l.forge.SetOpen(t.Context(), l.repo, number, "bob", true))
	l.ended = first.id
	l.card(number, "Waiting for 1 approval rule", "Approve")
	head := l.head(number)
	l.seen(number, head)
	l.hears(l.says("alice", fmt.Sprintf("approve home-gitops#%d", number)), "done", head[:10])
}

// TestSaidOfAnotherHead: what is handled after the card has changed was said of
// what it showed before.
func TestSaidOfAnotherHead(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	card := l.card(number, "Approve")
	l.seen(number, l.head(number))
	said := time.Now().UTC()
	head := l.push("cdi", map[string]string{"clusters/base/more.yaml": "d: 1\n"})
	shown := l.seen(number, head)

	const again = "Look at it again, and repeat it"
	say := func(id, text string, at time.Time) chat.Message {
		m := chat.Message{ID: id, Room: l.room, Thread: card.id, User: person("alice"), Text: text, At: at}
		l.must(l.parlor.Said(t.Context(), "slack/"+id, m))
		return m
	}
	react := func(id string, button chat.Button, at time.Time) chat.Message {
		l.must(l.parlor.Pressed(t.Context(), "slack/"+id, chat.Press{
			Room: l.room, Message: card.id, User: person("alice"), Button: button, At: at,
		}))
		return chat.Message{ID: id, Room: l.room, Text: string(button)}
	}
	l.hears(say("s1", "approve", said), again)
	l.hears(say("s2", "approve-override it burns", said), again)
	l.hears(say("s3", "merge", said), again)
	l.hears(react("s4", chat.ButtonApprove, said), again)
	// What stops is obeyed, and what names the whole of a commit is for that.
	l.hears(react("s7", chat.ButtonHold, said), "done")
	l.hears(say("s8", "unhold", said), "done")
	if n := len(l.app.ledger.Entries(l.ref(number)).Approvals()); n != 0 {
		t.Errorf("there are %d approvals", n)
	}
	l.hears(say("s5", "approve "+head[:10], said), again)
	l.hears(say("s6", "approve "+head, said), "done", head[:10])
	l.hears(say("s9", "approve cancel", said), "done")
	l.hears(react("s10", chat.ButtonApprove, shown.Since), "done", head[:10])
}

var codeLine = regexp.MustCompile(`/link [A-Z2-7]+`)

// TestLink: carol shows which account in Gitea is hers, and then decides.
func TestLink(t *testing.T) {
	l := newLounge(t)
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.card(number)
	name := fmt.Sprintf("home-gitops#%d", number)
	l.hears(l.says("carol", "hold "+name), "Nobody knows whose")
	how := l.hears(l.says("carol", "link"), "/link ")
	if how.to != person("carol") {
		t.Errorf("the code was shown to %v", how.to)
	}
	line := codeLine.FindString(how.body.Text)
	id, err := l.forge.Comment(t.Context(), l.repo, number, "carol", line)
	l.must(err)
	l.eventually("carol is linked", func() string {
		if e, ok := l.app.ledger.Links("slack/carol").Linked(); !ok || e.By.Login != "carol" {
			return fmt.Sprintf("%+v of comment %d", e, id)
		}
		return ""
	})
	l.hears(l.says("carol", "hold "+name+" the disk is full"), "done")
	l.shows(number, "success", "pending", "Held by carol")
	// The code works once.
	_, err = l.forge.Comment(t.Context(), l.repo, number, "bob", line)
	l.must(err)
	l.eventually("the second use is refused", func() string {
		for _, e := range l.app.ledger.Entries(pull.Ref{RepoID: l.repo.ID, Number: number}) {
			if e.By.Login == "bob" && e.Kind == decision.Refused {
				return ""
			}
		}
		return "no refusal is written down"
	})
	// Carol ends it from Gitea, as somebody can who was talked into it.
	_, err = l.forge.Comment(t.Context(), l.repo, number, "carol", "/link cancel")
	l.must(err)
	l.eventually("carol is not linked", func() string {
		if e, ok := l.app.ledger.Links("slack/carol").Linked(); ok {
			return fmt.Sprintf("%+v", e)
		}
		return ""
	})
	l.hears(l.says("carol", "unhold "+name), "Nobody knows whose")
	line = codeLine.FindString(l.hears(l.says("carol", "link"), "/link ").body.Text)
	_, err = l.forge.Comment(t.Context(), l.repo, number, "carol", line)
	l.must(err)
	l.eventually("carol is linked again", func() string {
		if _, ok := l.app.ledger.Links("slack/carol").Linked(); !ok {
			return "she is not"
		}
		return ""
	})
	l.hears(l.says("carol", "link cancel"), "linked to no account")
	l.hears(l.says("carol", "unhold "+name), "Nobody knows whose")
}

// TestChatThatIsDown: Gitea does not wait for it, and it catches up with the
// latest state alone.
func TestChatThatIsDown(t *testing.T) {
	l := newLounge(t)
	down := true
	l.parlor.mu.Lock()
	l.parlor.fail = func() error {
		if down {
			return &chat.RetryError{After: time.Second, Err: fmt.Errorf("down")}
		}
		return nil
	}
	l.parlor.mu.Unlock()
	number := l.open("cdi", clusterChange)
	l.shows(number, "success", "pending")
	l.approve(number, "alice")
	l.shows(number, "success", "success")
	l.parlor.mu.Lock()
	down = false
	l.parlor.mu.Unlock()
	card := l.card(number, "Clear to merge")
	if card.edits > 1 { // Once: nobody knows whether a post that failed was taken.
		t.Errorf("the card was posted and then edited %d times", card.edits)
	}
}

func TestSubscribe(t *testing.T) {
	l := newLounge(t)
	number := l.open("docs", map[string]string{"docs/a.md": "a\n"})
	l.shows(number, "success", "success")
	l.card(number)
	l.room = chat.Room{Platform: chat.Slack, ID: "C2"}
	l.hears(l.says("mallory", "subscribe home-gitops"), "Nobody knows whose")
	l.hears(l.says("bob", "subscribe home-gitops clusters/** sensitive"), "clusters/**", "if somebody has to approve")
	sensitive := l.open("cdi", clusterChange)
	l.shows(sensitive, "success", "pending")
	l.card(sensitive)
	if n := len(l.parlor.in(l.room)); n != 3 {
		t.Errorf("there are %d messages, want two answers and one card", n)
	}
	l.hears(l.says("mallory", "list"), "home-gitops")
	l.hears(l.says("mallory", "health"), "prod")
	l.hears(l.says("mallory", "help"), "approve PULL")
	l.hears(l.says("bob", "unsubscribe home-gitops"), "no more pull requests")
}
