package giteatest

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"signalbox/internal/pull"
)

// Reaction is a reaction of an account on a comment.
type Reaction struct {
	Login   string
	Content string

	by *account
}

// offered are the reactions that Gitea offers by default.
var offered = []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}

// Reactions returns the reactions on a comment, or on the text of a review, in
// the order in which they were given.
func (s *Server) Reactions(_ context.Context, of pull.Repo, id int64) (list []Reaction, err error) {
	err = s.inRepo(of, func(r *repo) error {
		_, e := r.comment(id)
		if e == nil {
			return fmt.Errorf("there is no comment %d", id)
		}
		for _, reaction := range e.reactions {
			list = append(list, Reaction{Login: reaction.by.shown().login, Content: reaction.Content})
		}
		return nil
	})
	return list, err
}

// reactionBody is what a reaction is asked for with.
type reactionBody struct {
	Content string `json:"content"`
}

func onReaction(r *request, repo *repo) (e *entry, content string, err error) {
	if err := r.needDoer(); err != nil {
		return nil, "", err
	}
	if _, e = repo.comment(r.number("id")); e == nil {
		return nil, "", errNotFound
	}
	var in reactionBody
	err = r.body(&in)
	return e, in.Content, err
}

func listReactions(r *request, repo *repo) error {
	_, e := repo.comment(r.number("id"))
	if e == nil {
		return errNotFound
	}
	list := []any{}
	for _, reaction := range e.reactions {
		list = append(list, map[string]any{"user": r.server.userJSON(reaction.by), "content": reaction.Content})
	}
	writeJSON(r.w, http.StatusOK, list)
	return nil
}

// addReaction answers 200 where it is there already.
func addReaction(r *request, repo *repo) error {
	e, content, err := onReaction(r, repo)
	if err != nil {
		return err
	}
	if !slices.Contains(offered, content) {
		return &apiError{http.StatusForbidden, fmt.Sprintf("'%s' is not an allowed reaction", content)}
	}
	code := http.StatusOK
	if !slices.ContainsFunc(e.reactions, r.ofDoer(content)) {
		e.reactions = append(e.reactions, Reaction{by: r.doer, Content: content})
		code = http.StatusCreated
	}
	writeJSON(r.w, code, map[string]any{"user": r.server.userJSON(r.doer), "content": content})
	return nil
}

func removeReaction(r *request, repo *repo) error {
	e, content, err := onReaction(r, repo)
	if err != nil {
		return err
	}
	e.reactions = slices.DeleteFunc(e.reactions, r.ofDoer(content))
	r.w.WriteHeader(http.StatusNoContent)
	return nil
}

// ofDoer finds the reaction of whoever asks.
func (r *request) ofDoer(content string) func(Reaction) bool {
	return func(old Reaction) bool { return old.by == r.doer && old.Content == content }
}
