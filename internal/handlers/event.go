package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/pull"
	"signalbox/internal/render"
	"signalbox/internal/work"
)

// Events turns what happened on the forge into work. It never decides by an
// event's content: that may be old, and anybody may have changed it since.
type Events struct {
	Queue   Queue
	Records Records
	Index   *Index
	Account *Account
	Ledger  Ledger
	// Repositories tell the default branch.
	Repositories *Repositories
	// Forge reads what verdicts wish for of the forge.
	Forge FactReading
	Log   *slog.Logger
}

// FactReading reads facts of the forge again. What is held may be believed,
// whether or not a stored verdict wishes for it.
type FactReading interface {
	Held(key fact.Key) bool
	// HeldOf returns the facts of some kinds that are held of a repository.
	HeldOf(repo int64, kinds ...string) []fact.Key
	ReadAll(ctx context.Context, keys []fact.Key) error
}

// Handle handles one event; it may be called at the same time for others.
func (h *Events) Handle(ctx context.Context, e events.Event) error {
	payload, err := events.Decode(e)
	if err != nil {
		return err
	}
	switch p := payload.(type) {
	case events.PullChanged:
		return h.pullChanged(ctx, p)
	case events.BranchPushed:
		return h.branchPushed(ctx, p)
	case events.CommentChanged:
		return h.commentChanged(ctx, e, p)
	case events.StatusPosted:
		return h.statusPosted(ctx, p)
	case events.WorkflowChanged:
		return h.workflowChanged(ctx, p)
	default:
		return events.Permanent(fmt.Errorf("event %s: no handler for type %s", e.ID, e.Type))
	}
}

func (h *Events) pullChanged(ctx context.Context, p events.PullChanged) error {
	return errors.Join(
		h.soon(ctx, p.Repo, "pull request "+p.Action, pull.Ref{RepoID: p.Repo.ID, Number: p.Number}),
		h.readAgain(ctx, fact.PullKey(p.Repo.Owner, p.Repo.Name, p.Number)),
	)
}

// readAgain reads those of some facts again that are held.
func (h *Events) readAgain(ctx context.Context, keys ...fact.Key) error {
	return h.Forge.ReadAll(ctx, slices.DeleteFunc(keys, func(k fact.Key) bool { return !h.Forge.Held(k) }))
}

// branchPushed asks for every pull request into the branch: what it is compared
// with has changed. A push to a head comes as an event of its pull request. With
// the default branch the workflows change that run by schedule.
func (h *Events) branchPushed(ctx context.Context, p events.BranchPushed) error {
	if err := h.Records.Sync(ctx); err != nil {
		return fmt.Errorf("push to %s of %s: %w", p.Branch, p.Repo, err)
	}
	err := h.soon(ctx, p.Repo, "push to the base branch", h.Index.OnBase(p.Repo.ID, p.Branch)...)
	if p.Branch == h.Repositories.Main(p.Repo.ID) {
		err = errors.Join(err, h.readAgain(ctx, h.Forge.HeldOf(p.Repo.ID, fact.KindRenovate)...))
	}
	return err
}

// workflowChanged reads again what is held of the workflow. That a job began
// changes no verdict.
func (h *Events) workflowChanged(ctx context.Context, p events.WorkflowChanged) error {
	if p.Job != "" && p.Status == runInProgress {
		return nil
	}
	kinds := []string{fact.KindRuns}
	if p.Job == "" {
		kinds = append(kinds, fact.KindRenovate, fact.KindActions)
	}
	keys := slices.DeleteFunc(h.Forge.HeldOf(p.Repo.ID, kinds...), func(k fact.Key) bool {
		workflow, commit, _ := strings.Cut(k.Name, "@")
		other := p.Workflow != "" && workflow != "" && workflow != p.Workflow
		return other || p.Commit != "" && commit != "" && !strings.HasPrefix(commit, "refs/") && commit != p.Commit
	})
	return h.readAgain(ctx, keys...)
}

// runInProgress is the status of a run or job that began and has not ended.
const runInProgress = "in_progress"

// commentChanged asks for a look at the comments: a new one may hold a command,
// an edited or deleted one may be signalbox's own. What signalbox does itself is
// nothing to look at.
func (h *Events) commentChanged(ctx context.Context, e events.Event, p events.CommentChanged) error {
	self, err := h.Account.Self(ctx)
	if err != nil {
		return err
	}
	if same(p.Sender, self) {
		return nil
	}
	if p.Action == events.CommentEdited && !same(p.Author, self) && !pull.Person(p.Author).Is(pull.Person(p.Sender)) {
		// Within the second that a comment was written in, nothing else tells.
		_, err := h.Ledger.Append(ctx, decision.Entry{
			ID: decision.EditID(p.CommentID), Kind: decision.Edited, By: pull.Person(p.Sender), Place: placeComment,
			Repo: pull.Repo(p.Repo), Number: p.Number, At: e.Time,
			Reason: "edited the comment of " + p.Author.Login,
		})
		if err != nil {
			return err
		}
	}
	return h.soon(ctx, p.Repo, "comment "+string(p.Action), pull.Ref{RepoID: p.Repo.ID, Number: p.Number})
}

// statusPosted reads the statuses of the commit again, and looks after
// signalbox's own contexts when somebody else posted one.
func (h *Events) statusPosted(ctx context.Context, p events.StatusPosted) error {
	if !render.OwnContext(p.Context) {
		return h.readAgain(ctx, fact.StatusesKey(p.Repo.ID, p.SHA))
	}
	self, err := h.Account.Self(ctx)
	if err != nil {
		return err
	}
	if same(p.Sender, self) {
		return nil
	}
	if err := h.Records.Sync(ctx); err != nil {
		return fmt.Errorf("status on %s of %s: %w", p.SHA, p.Repo, err)
	}
	return h.soon(ctx, p.Repo, "own status posted by another", h.Index.AtHead(p.Repo.ID, p.SHA)...)
}

// soon asks for a look at the pull requests of a repository that an event concerns.
func (h *Events) soon(ctx context.Context, repo events.Repo, reason string, refs ...pull.Ref) error {
	for _, ref := range refs {
		h.Log.InfoContext(ctx, "event received", "repo", repo.String(), "pull", pull.Repo(repo).Numbered(ref.Number), "what", reason)
	}
	return soon(ctx, h.Queue, work.Full, reason, refs)
}

// soon asks for work on pull requests; all are asked for even if one fails.
func soon(ctx context.Context, q Queue, kind work.Kind, reason string, refs []pull.Ref) error {
	var errs []error
	for _, ref := range refs {
		errs = append(errs, q.Soon(ctx, work.Item{Ref: ref, Kind: kind, Reason: reason}))
	}
	return errors.Join(errs...)
}

func same(a events.Person, b pull.Person) bool { return pull.Person(a).Is(b) }
