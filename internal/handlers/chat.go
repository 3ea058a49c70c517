package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/pull"
	"signalbox/internal/render"
	"signalbox/internal/work"
)

// Chat answers what people say to signalbox in chats. What only asks is answered
// from what is known; what decides about a pull request is kept as a [Request]
// for the evaluation of it, which alone carries out commands.
type Chat struct {
	Directory     *Directory
	Repositories  *Repositories
	Records       Records
	Index         *Index
	Requests      AskedStore
	Queue         Queue
	Codes         Codes
	Subscriptions *Subscriptions
	Cards         *CardIndex
	Outbox        *Outbox
	Permissions   Permissions
	Ledger        LinkLedger
	Digests       *Digests
	// Health returns what signalbox knows of itself and its clusters.
	Health func() render.HealthOf
	// Root is the address of Gitea.
	Root string
	Now  func() time.Time
	// Glance is the least time in which somebody can have read a card that changed.
	Glance time.Duration
}

// Permissions tells what an account may do with a repository.
type Permissions interface {
	Permission(ctx context.Context, repo pull.Repo, login string) (pull.Permission, error)
}

// Handle handles one event of a chat.
func (h *Chat) Handle(ctx context.Context, e events.Event) error {
	payload, err := events.Decode(e)
	if err != nil {
		return err
	}
	switch p := payload.(type) {
	case events.ChatSaid:
		return h.answered(ctx, e.ID, p.Message, h.said(ctx, e.ID, p.Message))
	case events.ChatPressed:
		return h.answered(ctx, e.ID, inThreadOf(p.Press), h.pressed(ctx, e.ID, p.Press))
	default:
		return events.Permanent(fmt.Errorf("event %s: no handler for type %s", e.ID, e.Type))
	}
}

// patient is how long something that was said is tried again before that is told.
// It is shorter than a bus tries it, which puts it aside then in silence.
const patient = 30 * time.Minute

// answered tells who said something that it cannot be looked at, once that lasts.
func (h *Chat) answered(ctx context.Context, cause string, m chat.Message, err error) error {
	if err == nil || h.Now().Sub(m.At) < patient || ctx.Err() != nil {
		return err
	}
	t := &talk{Chat: h, cause: "late/" + cause, m: m}
	told := t.problem(ctx, "This was said at "+stamp(m.At)+", and signalbox cannot look at it: it waits for Gitea, or for its own store. If nothing comes of it, say it again later.")
	return errors.Join(err, told)
}

// prefixes are what is written before a command.
var prefixes = map[chat.Platform]string{chat.Slack: "/signalbox ", chat.Matrix: "!signalbox "}

// talk is one thing that somebody said, with what it takes to answer.
type talk struct {
	*Chat
	cause string
	m     chat.Message
	// by is who said it, in Gitea, if that is known.
	by    pull.Person
	known bool
	// reads is what is known of the repositories that the person can read.
	reads map[int64]sight
	// resolved is whether the names of the repositories were read for it.
	resolved bool
}

func (h *Chat) said(ctx context.Context, cause string, m chat.Message) error {
	if m.Edited {
		// Nobody is told: whoever corrects a word does not talk to signalbox anew.
		return nil
	}
	if err := h.Records.Sync(ctx); err != nil {
		return fmt.Errorf("chat %s: %w", cause, err)
	}
	by, known, err := h.Directory.Person(ctx, m.User)
	if err != nil {
		return err
	}
	t := &talk{Chat: h, cause: cause, m: m, by: by, known: known}
	if len(m.Text) >= chat.MaxText {
		return t.problem(ctx, "This is too long for a command.")
	}
	c, wrong := command.ParseChat(m.Text)
	if wrong != nil {
		return t.say(ctx, render.Misread(wrong))
	}
	return t.obey(ctx, c)
}

const noSuchPull = "There is no open pull request of that name that signalbox knows of."

func (t *talk) obey(ctx context.Context, c command.ChatCommand) error {
	switch c.Name {
	case command.Help:
		return t.say(ctx, render.ChatHelp(prefixes[t.m.Room.Platform]))
	case command.Health:
		return t.say(ctx, render.Health(t.Health()))
	case command.Digest:
		return t.digest(ctx, c.Text)
	case command.Link:
		if c.Cancel {
			return t.unlink(ctx)
		}
		return t.link(ctx)
	case command.List:
		return t.list(ctx, c)
	case command.Subscribe, command.Unsubscribe:
		return t.subscription(ctx, c)
	}
	if !asks(c.Name) {
		if again, err := t.again(ctx); again || err != nil {
			return err
		}
	}
	if c.Name == command.Freeze || c.Name == command.Unfreeze {
		return t.freeze(ctx, c)
	}
	ref, why, err := t.find(ctx, c.Target)
	if err != nil {
		return err
	}
	if why != "" {
		return t.problem(ctx, why)
	}
	record, _, ok := t.Records.Get(ref.String())
	if !ok || record.EvaluatedAt.IsZero() {
		return t.problem(ctx, noSuchPull)
	}
	switch c.Name {
	case command.Status:
		return t.say(ctx, render.Status(record.Inputs.Snapshot.Pull, &record.Verdict))
	case command.Preconditions:
		return t.say(ctx, render.Details(record.Inputs.Snapshot.Pull, &record.Verdict))
	case command.Who:
		return t.say(ctx, render.Who(record.Inputs.Snapshot.Pull, &record.Verdict))
	default:
		return t.request(ctx, &record, c.Command, "")
	}
}

// asks reports whether a command about a pull request decides nothing.
func asks(n command.Name) bool {
	return n == command.Status || n == command.Preconditions || n == command.Who
}

// request keeps a command for the evaluation of the pull request. The head that
// it is about is the one that was pressed on, or the one that the card of the room
// shows.
func (t *talk) request(ctx context.Context, record *Record, c command.Command, head string) error {
	p := record.Inputs.Snapshot.Pull
	if !t.known {
		return t.say(ctx, render.NotLinked(t.m.User))
	}
	if _, setting, ok, err := t.Repositories.Find(ctx, p.Repo.ID); err != nil {
		return err
	} else if !ok || setting.Observe {
		return t.problem(ctx, "signalbox only observes "+p.Repo.String()+", and decides nothing there.")
	}
	if card, ok := t.Cards.In(t.m.Room, p.Ref()); ok && head == "" {
		if ofHead(c, card.Head) && !card.read(t.m.At, t.Glance) {
			return t.problem(ctx, "The card showed another commit when you said this, or had only just changed. Look at it again, and repeat it.")
		}
		head = card.Head
	}
	q := Request{
		Cause: t.cause, Ref: p.Ref(), By: t.by, User: t.m.User, Room: t.m.Room, Thread: t.thread(),
		Private: t.m.Slash, Link: t.m.Link, Command: c, Head: head, At: t.m.At,
	}
	if err := t.Requests.Add(ctx, q); err != nil {
		return fmt.Errorf("keep request %s: %w", t.cause, err)
	}
	return soon(ctx, t.Queue, work.Full, "request from "+string(t.m.Room.Platform), []pull.Ref{p.Ref()})
}

// ofHead reports whether a command is for the head that whoever gave it has seen.
// Only one that names the whole of a commit is for that, see [run.meant].
func ofHead(c command.Command, head string) bool {
	switch c.Name {
	case command.Approve, command.Override, command.Merge:
		return !c.Cancel && len(c.SHA) < len(head)
	default:
		return false
	}
}

// inThreadOf is what was pressed as if it were said in the thread of the message.
func inThreadOf(p chat.Press) chat.Message {
	return chat.Message{ID: p.Message, Room: p.Room, Thread: p.Message, User: p.User, At: p.At}
}

// pressed handles a button as the command that it stands for, on the head that
// its card showed.
func (h *Chat) pressed(ctx context.Context, cause string, p chat.Press) error {
	if err := h.Records.Sync(ctx); err != nil {
		return fmt.Errorf("chat %s: %w", cause, err)
	}
	by, known, err := h.Directory.Person(ctx, p.User)
	if err != nil {
		return err
	}
	t := &talk{Chat: h, cause: cause, by: by, known: known, m: inThreadOf(p)}
	if p.Ref == (pull.Ref{}) {
		card, ok := h.Cards.At(p.Room, p.Message)
		if !ok {
			return nil // A reaction to something else.
		}
		p.Ref = card.Ref
	}
	if p.Button != chat.ButtonDetails {
		if again, err := t.again(ctx); again || err != nil {
			return err
		}
	}
	sees, err := t.seesPull(ctx, p.Ref)
	if err != nil {
		return err
	}
	record, _, ok := h.Records.Get(p.Ref.String())
	if !ok || record.EvaluatedAt.IsZero() || !sees {
		return t.problem(ctx, "This pull request is not open any more.")
	}
	switch p.Button {
	case chat.ButtonDetails:
		return t.say(ctx, render.Details(record.Inputs.Snapshot.Pull, &record.Verdict))
	case chat.ButtonApprove:
		return t.request(ctx, &record, command.Command{Name: command.Approve, Line: "approve (button)"}, p.Head)
	case chat.ButtonHold:
		return t.request(ctx, &record, command.Command{Name: command.Hold, Line: "hold (button)"}, p.Head)
	default:
		return nil
	}
}

// list answers with the open pull requests that are shown, by state.
func (t *talk) list(ctx context.Context, c command.ChatCommand) error {
	var only pull.Repo
	if c.Target.Repo != "" {
		var why string
		var err error
		if only, why, err = t.repository(ctx, c.Target); err != nil {
			return err
		}
		if why != "" {
			return t.problem(ctx, why)
		}
	}
	var pulls []render.Listed
	for _, r := range t.Records.All() {
		p := r.Inputs.Snapshot.Pull
		if r.EvaluatedAt.IsZero() || only.ID != 0 && p.Repo.ID != only.ID {
			continue
		}
		sees, err := t.seesPull(ctx, p.Ref())
		if err != nil {
			return err
		}
		if !sees {
			continue
		}
		pulls = append(pulls, render.Listed{Pull: p, Verdict: &r.Verdict})
	}
	slices.SortFunc(pulls, func(a, b render.Listed) int {
		return cmp.Or(cmp.Compare(a.Pull.Repo.String(), b.Pull.Repo.String()), cmp.Compare(a.Pull.Number, b.Pull.Number))
	})
	of := ""
	if only.ID != 0 {
		of = only.String()
	}
	return t.say(ctx, render.PullList(of, pulls))
}

// link gives the person a one-time code, which only they see.
func (t *talk) link(ctx context.Context) error {
	code, err := newCode(ctx, t.Codes, t.m.User, t.Now())
	if err != nil {
		return err
	}
	return t.whisper(ctx, render.LinkHow("/"+string(command.Link)+" "+code, t.Now().Add(codeTime)))
}

// unlink takes the link of the person's account back, once for its cause: a link
// that was made since is another.
func (t *talk) unlink(ctx context.Context) error {
	if err := t.Ledger.Sync(ctx); err != nil {
		return fmt.Errorf("chat %s: %w", t.cause, err)
	}
	all := t.Ledger.Links(t.m.User.String())
	link, ok := all.Linked()
	switch {
	case ok && all.Has(t.cause):
		return nil
	case all.Has(t.cause):
		return t.say(ctx, render.Unlinked(t.m.User))
	case !ok:
		return t.problem(ctx, "Your account is linked to none by yourself. What the configuration says is changed there.")
	case link.At.After(t.m.At):
		return t.problem(ctx, "Your account was linked after this was said. Say it again to take that back.")
	}
	link.ID, link.Kind, link.At = t.cause, decision.Unlink, t.m.At.UTC()
	link.Place, link.URL, link.Command = string(t.m.Room.Platform), t.m.Link, "link cancel"
	if _, err := t.Ledger.Append(ctx, link); err != nil {
		return err
	}
	return t.say(ctx, render.Unlinked(t.m.User))
}

// freeze freezes a repository, or ends that. A decision stands on a pull request:
// where none is named, on the first that is open.
func (t *talk) freeze(ctx context.Context, c command.ChatCommand) error {
	ref, why, err := t.find(ctx, c.Target)
	if err != nil {
		return err
	}
	if why != "" {
		return t.problem(ctx, why)
	}
	if ref.Number == 0 {
		open := t.Index.OfRepo(ref.RepoID)
		if len(open) == 0 {
			return t.problem(ctx, "There is no open pull request in it, on which that could be written down.")
		}
		ref = open[0]
	}
	record, _, ok := t.Records.Get(ref.String())
	if !ok || record.EvaluatedAt.IsZero() {
		return t.problem(ctx, noSuchPull)
	}
	return t.request(ctx, &record, c.Command, "")
}

// subscription makes or ends the subscription of the room.
func (t *talk) subscription(ctx context.Context, c command.ChatCommand) error {
	if !t.known {
		return t.say(ctx, render.NotLinked(t.m.User))
	}
	repo, why, err := t.repository(ctx, c.Target)
	if err != nil {
		return err
	}
	if why != "" {
		return t.problem(ctx, why)
	}
	have, err := t.Permissions.Permission(ctx, repo, t.by.Login)
	switch {
	case have.AtLeast(pull.PermissionWrite):
	case err != nil && !errors.Is(err, pull.ErrForbidden) && !errors.Is(err, pull.ErrNotFound):
		return err
	default:
		return t.problem(ctx, "Only those who may write to "+repo.String()+" can do that.")
	}
	key := subscriptionKey(t.m.Room, repo.String())
	_, revision, _ := t.Subscriptions.Store.Get(key)
	if c.Name == command.Unsubscribe {
		if err := t.Subscriptions.Store.Delete(ctx, key); err != nil {
			return fmt.Errorf("end the subscription: %w", err)
		}
		return t.say(ctx, render.Unsubscribed(repo.String()))
	}
	s := Subscription{Room: t.m.Room, Repo: repo.String(), Paths: c.Paths, Sensitive: c.Sensitive, By: t.by, At: t.Now().UTC()}
	if _, err := t.Subscriptions.Store.Put(ctx, key, s, revision); err != nil {
		return fmt.Errorf("keep the subscription: %w", err)
	}
	if err := t.say(ctx, render.Subscribed(render.SubscriptionOf{Repo: repo.String(), Paths: c.Paths, Sensitive: c.Sensitive})); err != nil {
		return err
	}
	// The open pull requests get their cards.
	return soon(ctx, t.Queue, work.Full, "subscription", t.Index.OfRepo(repo.ID))
}

// thread is where answers go: below what was said, unless that was no message.
func (t *talk) thread() string {
	switch {
	case t.m.Thread != "":
		return t.m.Thread
	case t.m.Slash || t.m.Direct:
		return ""
	default:
		return t.m.ID
	}
}

func (t *talk) say(ctx context.Context, what render.Talk) error {
	o := Outgoing{Room: t.m.Room, Thread: t.thread(), Cause: "answer/" + t.cause, Body: render.ChatBody(t.m.Room.Platform, what)}
	if t.m.Slash {
		o.To = t.m.User
	}
	return t.Outbox.Say(ctx, o)
}

func (t *talk) whisper(ctx context.Context, what render.Talk) error {
	return t.Outbox.Say(ctx, Outgoing{
		Room: t.m.Room, Thread: t.m.Thread, To: t.m.User, Cause: "answer/" + t.cause, Body: render.ChatBody(t.m.Room.Platform, what),
	})
}

func (t *talk) problem(ctx context.Context, text string) error {
	return t.say(ctx, render.Refused(text))
}
