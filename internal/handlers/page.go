package handlers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/command"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// PagePlace is the place of what somebody decided on a page of signalbox.
const PagePlace chat.Platform = "web"

// Pages takes commands that people give on the pages of signalbox, as requests that
// the evaluation carries out.
type Pages struct {
	Requests     RequestStore
	Records      Records
	Repositories *Repositories
	Queue        Queue
	// Address returns where the page of a pull request is.
	Address func(p pull.Pull) string
	Now     func() time.Time
}

// ErrPageCommand is why what came from a page cannot be taken.
var ErrPageCommand = errors.New("this cannot be carried out")

// Give keeps a command of a person about a pull request, by the head that the page
// showed. The line is that of a comment, without its slash.
func (h *Pages) Give(ctx context.Context, cause string, by pull.Person, ref pull.Ref, line, head string) error {
	found := command.Find("/" + line)
	switch {
	case len(found.Commands) != 1 || len(found.Unknown) > 0:
		return fmt.Errorf("%w: %q is not one command", ErrPageCommand, line)
	case head == "" || by.ID <= 0 || cause == "":
		return fmt.Errorf("%w: the page did not say who, about which commit", ErrPageCommand)
	}
	if err := h.Records.Sync(ctx); err != nil {
		return err
	}
	record, _, ok := h.Records.Get(ref.String())
	if !ok || record.EvaluatedAt.IsZero() {
		return fmt.Errorf("%w: there is no such open pull request", ErrPageCommand)
	}
	p := record.Inputs.Snapshot.Pull
	if _, setting, ok, err := h.Repositories.Find(ctx, p.Repo.ID); err != nil {
		return err
	} else if !ok || setting.Observe {
		return fmt.Errorf("%w: signalbox only observes %s", ErrPageCommand, p.Repo)
	}
	q := Request{
		Cause: cause, Ref: ref, By: by, User: pageUser(by.ID), Room: chat.Room{Platform: PagePlace}, Link: h.Address(p),
		Command: found.Commands[0], Head: head, At: h.Now().UTC(),
	}
	if err := h.Requests.Add(ctx, q); err != nil {
		return fmt.Errorf("keep request %s: %w", cause, err)
	}
	return soon(ctx, h.Queue, work.Full, "request from a page", []pull.Ref{ref})
}

// pageUser stands for somebody who signed in with their account in Gitea.
func pageUser(id int64) chat.User {
	return chat.User{Platform: PagePlace, ID: strconv.FormatInt(id, 10)}
}
