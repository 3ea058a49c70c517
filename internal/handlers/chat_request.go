package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// Request is a command about a pull request that somebody gave in a chat. It is
// kept until the evaluation of the pull request has carried it out or refused
// it, as it does with a comment.
type Request struct {
	// Cause is the id of the event that brought it.
	Cause string   `json:"cause"`
	Ref   pull.Ref `json:"ref"`
	// By is who gave it, in Gitea; User in the chat.
	By   pull.Person `json:"by"`
	User chat.User   `json:"user"`
	Room chat.Room   `json:"room"`
	// Thread is where the answer goes.
	Thread string `json:"thread,omitempty"`
	Link   string `json:"link,omitempty"`
	// Command is what was asked for.
	Command command.Command `json:"command"`
	// Head is the commit that it is about, or empty where it is about none.
	Head string    `json:"head,omitempty"`
	At   time.Time `json:"at"`
}

// RequestStore keeps requests.
type RequestStore interface {
	// Of returns the requests about a pull request, the oldest first.
	Of(ref pull.Ref) []Request
	// Add keeps a request, once for its cause.
	Add(ctx context.Context, q Request) error
	Done(ctx context.Context, q Request) error
	Sync(ctx context.Context) error
}

// requestTexts are the commands that were given in chats.
func (r *run) requestTexts() []spoken {
	if r.Requests == nil {
		return nil
	}
	var all []spoken
	for _, q := range r.Requests.Of(r.item.Ref) {
		all = append(all, spoken{
			place: place{name: string(q.Room.Platform), request: &q, url: q.Link},
			by:    q.By, at: q.At, found: command.Found{Commands: []command.Command{q.Command}},
		})
	}
	return all
}

// reply tells in the chat what became of a request, and on the pull request what
// was decided elsewhere.
func (r *run) reply(ctx context.Context, q *Request, replies []reply) error {
	answer := render.ChatAnswer{
		Pull: r.pull, Line: q.Command.Line, Head: r.pull.Head.SHA,
		Refused: slices.ContainsFunc(replies, func(p reply) bool { return p.refused }),
	}
	var texts []string
	for _, p := range replies {
		if p.text != "" {
			texts = append(texts, p.text)
		}
	}
	answer.Text = strings.Join(texts, "\n\n")
	if e, ok := r.decided(q); ok {
		if err := r.say(ctx, q.Cause, render.SaidElsewhere(e)); err != nil {
			return err
		}
	}
	err := r.Outbox.Say(ctx, Outgoing{
		Room: q.Room, Thread: q.Thread, Cause: "answer/" + q.Cause, Body: render.ChatBody(q.Room.Platform, answer.Talk()),
	})
	if err != nil {
		return err
	}
	if err := r.Requests.Done(ctx, *q); err != nil {
		return fmt.Errorf("forget request %s: %w", q.Cause, err)
	}
	return nil
}

// decided returns what a request decided, which everybody is to see on the pull
// request, if it decided anything.
func (r *run) decided(q *Request) (decision.Entry, bool) {
	i := slices.IndexFunc(r.ledger, func(e decision.Entry) bool {
		return strings.HasPrefix(e.ID, q.Cause+"/") && e.Kind != decision.Refused && e.Kind != decision.Answered
	})
	if i < 0 {
		return decision.Entry{}, false
	}
	return r.ledger[i], true
}
