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

// Request is a command about a pull request that somebody gave in a chat or on a
// page. It is kept until the evaluation of the pull request has carried it out or
// refused it, as it does with a comment.
type Request struct {
	// Cause is the id of the event that brought it.
	Cause string   `json:"cause"`
	Ref   pull.Ref `json:"ref"`
	// By is who gave it, in Gitea; User in the chat.
	By   pull.Person `json:"by"`
	User chat.User   `json:"user"`
	Room chat.Room   `json:"room"`
	// Thread is where the answer goes. Only whoever asked sees it if Private is set.
	Thread  string `json:"thread,omitempty"`
	Private bool   `json:"private,omitempty"`
	Link    string `json:"link,omitempty"`
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

// requestTexts are the commands that were given in chats and on pages.
func (r *run) requestTexts() []spoken {
	if r.Requests == nil {
		return nil // Who only looks carries nothing out.
	}
	var all []spoken
	for _, q := range r.Requests.Of(r.item.Ref) {
		all = append(all, spoken{
			place: place{name: string(q.Room.Platform), request: &q, url: q.Link},
			by:    q.By, at: notAfter(q.At, r.Now()), found: command.Found{Commands: []command.Command{q.Command}},
		})
	}
	return all
}

// notAfter bounds the time at which something was said. What a homeserver says of
// it may be wrong, and nothing is to last longer for that.
func notAfter(at, now time.Time) time.Time {
	if at.After(now) {
		return now
	}
	return at
}

// maxRequestAge is how late a request is still carried out. After that whoever
// asked has gone on, and may not want any more what they wanted then.
const maxRequestAge = time.Hour

// outdated says why a request from a chat counts no more, or nothing. A hold is
// never too late: it does no harm, and others rely on it.
func (r *run) outdated(ctx context.Context, q request) (string, error) {
	asked := q.place.request
	if asked == nil {
		return "", nil
	}
	person, ok, err := r.Directory.Person(ctx, asked.User)
	switch {
	case err != nil:
		return "", err
	case !ok || !person.Is(asked.By):
		return fmt.Sprintf("%s does not speak for %s any more.", asked.User, asked.By.Login), nil
	case person.Is(r.self) || slices.ContainsFunc(r.Bots, person.Is):
		return fmt.Sprintf("%s is the account of a program, and decides nothing.", person.Login), nil
	case r.Now().Sub(q.at) > maxRequestAge && (q.Name != command.Hold || q.Cancel):
		return fmt.Sprintf("it was said at %s, and could not be looked at before now. If you still want it, say it again.", stamp(q.at)), nil
	}
	return "", nil
}

// turnAway answers all requests about a pull request on which nothing is carried
// out, and forgets them. Of one that was carried out before it tells that.
func (r *run) turnAway(ctx context.Context, why string) error {
	for _, q := range r.Requests.Of(r.item.Ref) {
		became := refusal(request{Command: q.Command}, why)
		if i := slices.IndexFunc(r.ledger, func(e decision.Entry) bool { return strings.HasPrefix(e.ID, q.Cause+"/") }); i >= 0 {
			if e := r.ledger[i]; e.Kind == decision.Refused {
				became = refusal(request{Command: q.Command}, e.Reason)
			} else {
				became = reply{}
			}
		}
		if err := r.replyInChat(ctx, &q, []reply{became}); err != nil {
			return err
		}
	}
	return nil
}

// reply tells in the chat what became of a request, and on the pull request what
// was decided elsewhere.
func (r *run) reply(ctx context.Context, q *Request, replies []reply) error {
	if e, ok := r.decided(q); ok {
		if err := r.say(ctx, q.Cause, render.SaidElsewhere(e)); err != nil {
			return err
		}
	}
	return r.replyInChat(ctx, q, replies)
}

func (r *run) replyInChat(ctx context.Context, q *Request, replies []reply) error {
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
	o := Outgoing{
		Room: q.Room, Thread: q.Thread, Cause: "answer/" + q.Cause, Body: render.ChatBody(q.Room.Platform, answer.Talk()),
	}
	if q.Private {
		o.To = q.User
	}
	if err := r.Outbox.Say(ctx, o); err != nil {
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
