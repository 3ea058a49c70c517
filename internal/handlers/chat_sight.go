package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/command"
	"signalbox/internal/pull"
)

// noSuchRepo answers alike for a repository that there is not, and for one that
// is not shown to who asks.
const noSuchRepo = "There is no such repository here. signalbox shows a repository in the rooms that are subscribed to it, " +
	"and to whom it knows in Gitea and who can read it there."

// sight is whether something is shown to who said something, where it was said.
type sight int

const (
	hidden sight = iota
	// unsure: Gitea does not tell whether the person can read it. It is not shown.
	unsure
	shown
)

// sees tells whether a pull request is shown, or with no number its repository:
// in a room that is subscribed to the repository or has the card of the pull
// request, and to a person who can read the repository in Gitea.
func (t *talk) sees(ctx context.Context, repo pull.Repo, number int64) (sight, error) {
	if repo.ID == 0 {
		return unsure, nil // It is configured, and could not be read yet.
	}
	if _, ok := t.Cards.In(t.m.Room, pull.Ref{RepoID: repo.ID, Number: number}); ok || t.subscribed(repo) {
		return shown, nil
	}
	if !t.known {
		return hidden, nil
	}
	if s, ok := t.reads[repo.ID]; ok {
		return s, nil
	}
	// Beside an error comes what is certain.
	have, err := t.Permissions.Permission(ctx, repo, t.by.Login)
	s := hidden
	switch {
	case have.AtLeast(pull.PermissionRead):
		s = shown
	case errors.Is(err, pull.ErrForbidden):
		s = unsure
	case err != nil && !errors.Is(err, pull.ErrNotFound):
		return hidden, fmt.Errorf("find out whether %s can read %s: %w", t.by.Login, repo, err)
	}
	if t.reads == nil {
		t.reads = map[int64]sight{}
	}
	t.reads[repo.ID] = s
	return s, nil
}

// subscribed reports whether the room is subscribed to a repository.
func (t *talk) subscribed(repo pull.Repo) bool {
	return slices.ContainsFunc(t.Subscriptions.Of(t.m.Room), func(s Subscription) bool { return strings.EqualFold(s.Repo, repo.String()) })
}

// seesPull tells whether a pull request is shown. One of a repository that is not
// configured any more is shown to nobody.
func (t *talk) seesPull(ctx context.Context, ref pull.Ref) (bool, error) {
	repo, ok := t.configured(ctx, ref.RepoID)
	if !ok {
		return false, nil
	}
	s, err := t.sees(ctx, repo, ref.Number)
	return s == shown, err
}

// configured returns a repository that signalbox works on.
func (t *talk) configured(ctx context.Context, id int64) (pull.Repo, bool) {
	repo, _, ok := t.Repositories.lookup(id)
	if !ok && t.resolve(ctx) {
		repo, _, ok = t.Repositories.lookup(id)
	}
	return repo, ok
}

// resolve reads the names of repositories that could not be read so far, once for
// what was said. What cannot be read now either is shown to nobody.
func (t *talk) resolve(ctx context.Context) bool {
	if t.resolved || t.Repositories.complete() {
		return false
	}
	t.resolved = true
	_, _ = t.Repositories.Refresh(ctx)
	return true
}

// named returns the repositories that a target may name.
func (t *talk) named(ctx context.Context, target command.Target) []pull.Repo {
	find := func() []pull.Repo {
		return slices.DeleteFunc(t.Repositories.all(), func(r pull.Repo) bool {
			return target.Repo != "" && !strings.EqualFold(target.Repo, r.Name) ||
				target.Owner != "" && !strings.EqualFold(target.Owner, r.Owner)
		})
	}
	named := find()
	if slices.ContainsFunc(named, func(r pull.Repo) bool { return r.ID == 0 }) && t.resolve(ctx) {
		named = find()
	}
	return named
}

// card returns the card in whose thread something was said.
func (t *talk) card() (Card, bool) { return t.Cards.At(t.m.Room, t.m.Thread) }

// find returns the open pull request that a target names, or why it names none.
func (t *talk) find(ctx context.Context, target command.Target) (pull.Ref, string, error) {
	if !target.Zero() {
		repo, why, err := t.repository(ctx, target)
		return pull.Ref{RepoID: repo.ID, Number: target.Number}, why, err
	}
	card, ok := t.card()
	if !ok {
		return pull.Ref{}, "Which pull request? Name it like home-gitops#12, or say it in the thread of its card.", nil
	}
	sees, err := t.seesPull(ctx, card.Ref)
	if err == nil && !sees {
		return pull.Ref{}, noSuchPull, nil
	}
	return card.Ref, "", err
}

// repository returns the repository that a target names, or why it names none.
// Without an owner it is the only one of that name. Without a name it is that of
// the card in whose thread it was said, or else the only one that the room is
// subscribed to, or that there is. What is not shown is as if it were not there.
func (t *talk) repository(ctx context.Context, target command.Target) (pull.Repo, string, error) {
	if target.URL != "" && !strings.HasPrefix(target.URL, t.Root) {
		return pull.Repo{}, "That address is not one of " + t.Root + ".", nil
	}
	named := t.named(ctx, target)
	if target.Repo == "" {
		if card, ok := t.card(); ok {
			return t.ofCard(ctx, card, target.Number)
		}
		if of := slices.DeleteFunc(slices.Clone(named), func(r pull.Repo) bool { return !t.subscribed(r) }); len(of) > 0 {
			named = of
		}
	}
	var sure []pull.Repo
	maybe := 0
	for _, r := range named {
		s, err := t.sees(ctx, r, target.Number)
		switch {
		case err != nil:
			return pull.Repo{}, "", err
		case s == shown:
			sure = append(sure, r)
		case s == unsure:
			maybe++
		}
	}
	switch {
	case len(sure) == 0:
		return pull.Repo{}, noSuchRepo, nil
	case len(sure) > 1:
		return pull.Repo{}, "Several repositories are meant: " + repoNames(sure) + ". Name one with its owner.", nil
	case maybe > 0:
		return pull.Repo{}, "Several repositories may be meant. Name one with its owner, as in ops/home-gitops.", nil
	}
	return sure[0], "", nil
}

// ofCard returns the repository of a card, for another pull request of it.
func (t *talk) ofCard(ctx context.Context, card Card, number int64) (pull.Repo, string, error) {
	ref := pull.Ref{RepoID: card.Ref.RepoID, Number: number}
	sees, err := t.seesPull(ctx, ref)
	if err != nil {
		return pull.Repo{}, "", err
	}
	repo, ok := t.configured(ctx, ref.RepoID)
	if !sees || !ok {
		return pull.Repo{}, noSuchPull, nil
	}
	return repo, "", nil
}

func repoNames(repos []pull.Repo) string {
	var names []string
	for _, r := range repos {
		names = append(names, r.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
