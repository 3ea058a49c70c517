package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// Reactor puts reactions on comments.
type Reactor interface {
	React(ctx context.Context, repo pull.Repo, comment int64, reaction string) error
	Unreact(ctx context.Context, repo pull.Repo, comment int64, reaction string) error
}

// Reactions to a command.
const (
	reactionWorking = "eyes"
	reactionDone    = "+1"
	reactionRefused = "-1"
)

// working shows that a command was seen.
func (r *run) working(ctx context.Context, s spoken) error {
	if s.comment == 0 {
		return nil
	}
	return ignoreGone(r.Forge.React(ctx, r.repo, s.comment, reactionWorking))
}

// answer shows what became of the commands of a text: by a reaction, and by one
// reply if there is something to say. It may be called again for the same text.
func (r *run) answer(ctx context.Context, s spoken, replies []reply) error {
	if len(replies) == 0 {
		return nil
	}
	if s.request != nil {
		return r.reply(ctx, s.request, replies)
	}
	if s.comment != 0 {
		reaction := reactionDone
		if slices.ContainsFunc(replies, func(p reply) bool { return p.refused }) {
			reaction = reactionRefused
		}
		if err := ignoreGone(r.Forge.React(ctx, r.repo, s.comment, reaction)); err != nil {
			return err
		}
		if err := ignoreGone(r.Forge.Unreact(ctx, r.repo, s.comment, reactionWorking)); err != nil {
			return err
		}
	}
	var texts []string
	for _, p := range replies {
		if p.text != "" {
			texts = append(texts, p.text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return r.say(ctx, s.id(), strings.Join(texts, "\n\n"))
}

// answerLate refuses the commands that came when the pull request was not open
// any more, so that nobody believes in a hold that came after the merge.
func (r *run) answerLate(ctx context.Context) error {
	if r.observe {
		return nil // What was asked in a chat is turned away when it is forgotten.
	}
	if err := r.readComments(ctx); err != nil {
		return err
	}
	for _, s := range r.pending(nil) {
		q := request{Command: s.found.Commands[0], id: s.id() + "/late", by: s.by, at: s.at, place: s.place}
		why := fmt.Sprintf("it is %s already.", r.pull.State)
		// The answer first: an entry without it would refuse in silence.
		if err := r.answer(ctx, s, []reply{refusal(q, why)}); err != nil {
			return fmt.Errorf("answer %s: %w", s.id(), err)
		}
		if _, err := r.refuse(ctx, q, why); err != nil {
			return err
		}
	}
	return nil
}

// say writes one comment for a cause, once.
func (r *run) say(ctx context.Context, cause, text string) error {
	marker := render.ReplyMarker(cause)
	said := slices.ContainsFunc(r.comments, func(c pull.Comment) bool {
		return c.Author.Is(r.self) && strings.HasPrefix(c.Body, marker)
	})
	if said {
		return nil
	}
	c, err := r.Forge.CreateComment(ctx, r.repo, r.pull.Number, marker+"\n"+text)
	if err != nil {
		return err
	}
	r.comments = append(r.comments, c)
	return nil
}

// ignoreGone takes a comment that was deleted meanwhile as answered.
func ignoreGone(err error) error {
	if errors.Is(err, pull.ErrNotFound) {
		return nil
	}
	return err
}
