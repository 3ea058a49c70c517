package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// ReconcileTick is the name of the tick that starts a [Reconciler].
const ReconcileTick = "reconcile"

// OpenPullReader lists open pull requests.
type OpenPullReader interface {
	OpenPulls(ctx context.Context, repo pull.Repo) ([]pull.Pull, error)
}

// Reconciler finds what no event told: pull requests, pushes, comments and
// reviews of a time when signalbox was down or a webhook was lost, and what
// Gitea sends no webhook for, such as a dismissed review.
type Reconciler struct {
	Repositories *Repositories
	Forge        OpenPullReader
	Queue        Queue
	Records      Records
	// EnsureHook sees to it that a repository tells signalbox what happens.
	EnsureHook func(ctx context.Context, repo pull.Repo) error
	// Gaps returns the ways round signalbox that the protection of a branch
	// leaves; [pull.ErrForbidden] if that cannot be seen.
	Gaps  func(ctx context.Context, repo pull.Repo, branch string) ([]string, error)
	Facts FactWriter
	// Refresh reads what verdicts wish for of the forge.
	Refresh func(ctx context.Context) error
	// Every is the time between two ticks.
	Every time.Duration
	Now   func() time.Time
	Log   *slog.Logger
}

// Handle asks for a full evaluation of every pull request that is open now or
// was when it was last looked at. One repository that cannot be read does not
// keep the others from it.
//
// A tick that fails is tried again until the next one is due, which does the
// same: after an hour without the forge there is no queue of old ticks to work
// off, and none becomes a dead letter.
func (h *Reconciler) Handle(ctx context.Context, tick events.Event) error {
	err := h.reconcile(ctx)
	if err != nil && ctx.Err() == nil && h.Now().Sub(tick.Time) >= h.Every {
		h.Log.ErrorContext(ctx, "reconcile given up; the next one is due", "event", tick.ID, "error", err)
		return nil
	}
	return err
}

func (h *Reconciler) reconcile(ctx context.Context) error {
	repos, err := h.Repositories.Refresh(ctx)
	errs := []error{err}
	for _, repo := range repos {
		// Without a webhook everything still is found here, only later.
		if err := h.EnsureHook(ctx, repo); err != nil {
			h.Log.ErrorContext(ctx, "webhook not registered", "repo", repo.String(), "error", err)
		}
		errs = append(errs, h.repository(ctx, repo))
	}
	errs = append(errs, h.Refresh(ctx))
	return errors.Join(errs...)
}

func (h *Reconciler) repository(ctx context.Context, repo pull.Repo) error {
	open, err := h.Forge.OpenPulls(ctx, repo)
	if err != nil {
		return fmt.Errorf("reconcile %s: %w", repo, err)
	}
	if err := h.protection(ctx, repo, open); err != nil {
		h.Log.ErrorContext(ctx, "protection not read", "repo", repo.String(), "error", err)
	}
	if err := h.Records.Sync(ctx); err != nil {
		return fmt.Errorf("reconcile %s: %w", repo, err)
	}
	refs := make(map[pull.Ref]bool, len(open))
	for _, p := range open {
		refs[p.Ref()] = true
	}
	for _, record := range h.Records.All() {
		if ref := record.place().Ref; ref.RepoID == repo.ID {
			refs[ref] = true
		}
	}
	h.Log.DebugContext(ctx, "reconcile", "repo", repo.String(), "open", len(open), "evaluations", len(refs))
	all := make([]pull.Ref, 0, len(refs))
	for ref := range refs {
		all = append(all, ref)
	}
	return soon(ctx, h.Queue, work.Full, "reconcile", all)
}

// protection keeps what protects each branch that pull requests go into: Gitea
// tells nobody when that is changed.
func (h *Reconciler) protection(ctx context.Context, repo pull.Repo, open []pull.Pull) error {
	bases := map[string]bool{h.Repositories.Main(repo.ID): true}
	for _, p := range open {
		bases[p.Base.Name] = true
	}
	delete(bases, "")
	var errs []error
	for _, base := range slices.Sorted(maps.Keys(bases)) {
		gaps, err := h.Gaps(ctx, repo, base)
		switch {
		case errors.Is(err, pull.ErrForbidden):
			// The account does not administer the repository: nothing is known.
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, h.putGaps(ctx, fact.ProtectionKey(repo.ID, base), gaps))
		}
	}
	return errors.Join(errs...)
}

func (h *Reconciler) putGaps(ctx context.Context, key fact.Key, gaps []string) error {
	if err := h.Facts.Sync(ctx); err != nil {
		return err
	}
	if held, ok := h.Facts.Lookup(key); ok && held.Protection != nil && slices.Equal(held.Protection.Gaps, gaps) {
		return nil
	}
	now := h.Now().UTC()
	_, err := h.Facts.Put(ctx, fact.Fact{Key: key, Since: now, SeenAt: now, Protection: &fact.Protection{Gaps: gaps}})
	return err
}
