package handlers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
	"signalbox/internal/work"
)

// Merger merges.
type Merger interface {
	// Merge merges exactly the given head, or says why not.
	Merge(ctx context.Context, repo pull.Repo, number int64, o pull.MergeOptions) error
}

// mergeTries bounds how often Gitea is asked to merge while it says that it is
// still checking.
const mergeTries = 8

// mergeIfDue merges if that was asked for and nothing stands against it. The
// verdict was made from what was read in this run; what can have changed since
// is looked at once more, and the head is pinned.
func (r *run) mergeIfDue(ctx context.Context, v *policy.Verdict, facts *factLog) error {
	if v.Merge == nil || v.State() != policy.Clear || r.observe {
		return nil
	}
	request := *v.Merge
	method := r.mergeMethod(&r.record.Inputs)
	if method == "" {
		return r.endMerge(ctx, request, decision.MergeFailed, "the policy does not let signalbox merge any more.")
	}
	same, err := r.stillTheSame(ctx, v, facts)
	if err != nil {
		return err
	}
	// The clock alone may have closed the gate meanwhile.
	if late := !v.LookAgain.IsZero() && !r.Now().Before(v.LookAgain); !same || late {
		return soon(ctx, r.Queue, work.Full, "changed before the merge", []pull.Ref{r.item.Ref})
	}
	err = r.Forge.Merge(ctx, r.repo, r.pull.Number, pull.MergeOptions{Method: method, Head: v.Head})
	switch {
	case err == nil:
		r.log.InfoContext(ctx, "merged", "head", v.Head, "by", request.By.Login)
		return errors.Join(r.endMerge(ctx, request, decision.Merged, ""), r.forget(ctx, "merged"))
	case errors.Is(err, pull.ErrHeadMoved), errors.Is(err, pull.ErrAlreadyMerged):
		return soon(ctx, r.Queue, work.Full, "changed before the merge", []pull.Ref{r.item.Ref})
	case errors.Is(err, pull.ErrStillChecking) && r.item.Attempt < mergeTries:
		return fmt.Errorf("merge: %w", err)
	case errors.Is(err, pull.ErrStillChecking), errors.Is(err, pull.ErrMergeConflict),
		errors.Is(err, pull.ErrNotAllowed), errors.Is(err, pull.ErrForbidden):
		return r.endMerge(ctx, request, decision.MergeFailed, err.Error())
	default:
		// Whether it was merged is not known; the next try looks.
		return fmt.Errorf("merge: %w", err)
	}
}

// stillTheSame reports whether the pull request, its reviews, the facts, the
// ledger and the freezes of the repository are what the verdict was made from, and
// nobody gave a command since. Facts of the forge are read anew for it: a webhook
// may have been lost.
func (r *run) stillTheSame(ctx context.Context, v *policy.Verdict, facts *factLog) (bool, error) {
	if err := r.Demand.ReadAnew(ctx, v.Wishes); err != nil {
		return false, fmt.Errorf("read facts before the merge: %w", err)
	}
	p, err := r.Forge.Pull(ctx, r.repo, r.pull.Number)
	if err != nil {
		return false, err
	}
	was := &r.record.Inputs.Snapshot.Pull
	if p.State != pull.Open || p.Head.SHA != r.pull.Head.SHA || p.Base != r.pull.Base ||
		p.Body != was.Body || p.Draft != was.Draft || !slices.Equal(p.Labels, was.Labels) {
		return false, nil
	}
	reviews, err := r.Forge.Reviews(ctx, r.repo, r.pull.Number)
	if err != nil {
		return false, err
	}
	comments, err := r.Forge.Comments(ctx, r.repo, r.pull.Number)
	if err != nil {
		return false, err
	}
	r.comments = comments
	if err := r.Requests.Sync(ctx); err != nil {
		return false, err
	}
	if !reflect.DeepEqual(reviews, r.reviews) || len(r.pending(reviews)) > 0 {
		return false, nil
	}
	if err := errors.Join(r.Facts.Sync(ctx), r.Ledger.Sync(ctx)); err != nil {
		return false, err
	}
	return !facts.changed() && !r.refrozen() && len(r.Ledger.Entries(r.item.Ref)) == len(r.ledger), nil
}

// mergeMethod is how to merge, or "" if signalbox may not.
func (r *run) mergeMethod(in *Inputs) string {
	if base, _ := r.Policies.compile(in.Policy); base.MergeMethod() != "" {
		return base.MergeMethod()
	}
	return r.Policies.operator.MergeMethod()
}

// endMerge notes how a request to merge ended, and tells.
func (r *run) endMerge(ctx context.Context, request decision.Entry, kind decision.Kind, why string) error {
	end := request
	end.ID, end.Kind, end.By, end.Place = request.ID+"/"+string(kind), kind, r.self, "signalbox"
	end.At, end.Reason, end.Command = r.Now().UTC(), why, ""
	// The answer first: an entry without it would end the request in silence.
	if err := r.say(ctx, end.ID, render.MergeEnded(request, why)); err != nil {
		return err
	}
	return r.enter(ctx, end)
}

// reportMerged tells of a merge whose answer was lost: signalbox was ended, or
// cut off, after it asked for it.
func (r *run) reportMerged(ctx context.Context) error {
	if r.pull.State != pull.Merged || !r.pull.MergedBy.Is(r.self) || r.observe {
		return nil
	}
	if len(r.ledger) == 0 {
		return nil
	}
	timeline, err := r.Forge.Timeline(ctx, r.repo, r.pull.Number)
	if err != nil {
		return err
	}
	request, ok := r.ledger.MergeRequest(decision.Target{
		Base: r.pull.Base.Name, Head: r.pull.Head.SHA,
		Retargets: policy.Retargets(&pull.Snapshot{Timeline: timeline}), Now: r.Now(),
	})
	if !ok {
		return nil
	}
	if err := r.readComments(ctx); err != nil {
		return err
	}
	return r.endMerge(ctx, request, decision.Merged, "")
}
