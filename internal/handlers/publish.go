package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// publish makes the statuses and the comment say the verdict. What already says
// so is left alone; what was done is noted in the record even if the rest
// fails.
func (r *run) publish(ctx context.Context, v *policy.Verdict) error {
	if r.observe {
		r.record.Posted.Head = v.Head
		return nil
	}
	if err := r.postStatuses(ctx, v, r.sharedGates(*v)); err != nil {
		return err
	}
	return r.writeComment(ctx, v)
}

// gates are the two gates of a verdict.
type gates struct{ preconditions, approval policy.Gate }

// sharedGates returns the gates to post. Statuses belong to a commit: where two
// pull requests have the same head and base, the worse of the two verdicts is
// posted for both.
func (r *run) sharedGates(v policy.Verdict) gates {
	g := gates{v.Preconditions, v.Approval}
	for _, ref := range r.Index.AtHead(v.Ref.RepoID, v.Head) {
		if ref == v.Ref {
			continue
		}
		other, _, ok := r.Records.Get(ref.String())
		if !ok || other.Verdict.Base != v.Base || other.Verdict.Head != v.Head {
			continue
		}
		g.preconditions = worseGate(g.preconditions, other.Verdict.Preconditions, ref)
		g.approval = worseGate(g.approval, other.Verdict.Approval, ref)
	}
	return g
}

func worseGate(own, other policy.Gate, ref pull.Ref) policy.Gate {
	if policy.Worst(own.State, other.State) == own.State {
		return own
	}
	return policy.Gate{State: other.State, Reason: fmt.Sprintf("pull request %d has the same head: %s", ref.Number, other.Reason)}
}

func (r *run) postStatuses(ctx context.Context, v *policy.Verdict, g gates) error {
	return errors.Join(
		r.postStatus(ctx, v.Head, render.PreconditionsContext(v.Base), g.preconditions),
		r.postStatus(ctx, v.Head, render.ApprovalContext(v.Base), g.approval),
	)
}

func (r *run) postStatus(ctx context.Context, head, name string, g policy.Gate) error {
	status := pull.Status{Context: name, State: render.StatusState(g.State), Description: render.Description(g.Reason)}
	posted := &r.record.Posted
	if posted.Head != head {
		posted.Head, posted.Statuses = head, nil
	}
	if posted.Statuses[name] == status {
		return nil
	}
	if err := r.Forge.PostStatus(ctx, r.repo, head, status, r.pull.URL); err != nil {
		return err
	}
	if posted.Statuses == nil {
		posted.Statuses = map[string]pull.Status{}
	}
	posted.Statuses[name] = status
	return nil
}

// pend shows a head that is not decided yet.
func (r *run) pend(ctx context.Context, p pull.Pull) error {
	if r.record.Posted.Head == p.Head.SHA {
		return nil
	}
	return r.pendOnly(ctx, p)
}

// pendOnly posts both statuses as pending.
func (r *run) pendOnly(ctx context.Context, p pull.Pull) error {
	if r.observe {
		return nil
	}
	wait := policy.Gate{State: policy.Waiting, Reason: "signalbox is reading this change"}
	return errors.Join(
		r.postStatus(ctx, p.Head.SHA, render.PreconditionsContext(p.Base.Name), wait),
		r.postStatus(ctx, p.Head.SHA, render.ApprovalContext(p.Base.Name), wait),
	)
}

// writeComment creates the comment or edits it in place.
func (r *run) writeComment(ctx context.Context, v *policy.Verdict) error {
	body := render.Comment(v)
	posted := &r.record.Posted
	if posted.CommentID == 0 {
		if err := r.findComment(ctx, v.Ref); err != nil {
			return err
		}
	}
	if posted.CommentID != 0 {
		if posted.CommentSum == commentSum(body) {
			return nil
		}
		_, err := r.Forge.EditComment(ctx, r.repo, posted.CommentID, body)
		if err == nil {
			posted.CommentSum = commentSum(body)
			return nil
		}
		if !errors.Is(err, pull.ErrNotFound) {
			return err
		}
		posted.CommentID = 0
	}
	// If the answer is lost, the next try finds the comment by its marker.
	c, err := r.Forge.CreateComment(ctx, r.repo, v.Ref.Number, body)
	if err != nil {
		return err
	}
	posted.CommentID, posted.CommentSum = c.ID, commentSum(body)
	posted.Comments++
	return nil
}

// findComment looks for the comment among all comments, where an earlier life
// of signalbox may have left it, or a request whose answer was lost. Of several,
// the oldest is kept.
func (r *run) findComment(ctx context.Context, ref pull.Ref) error {
	r.record.Posted.CommentID, r.record.Posted.Comments = 0, 0
	if r.pull.Comments == 0 && r.item.Attempt == 0 {
		return nil
	}
	comments, err := r.Forge.Comments(ctx, r.repo, ref.Number)
	if err != nil {
		return err
	}
	r.record.Posted.Comments = r.pull.Comments
	comments = slices.DeleteFunc(comments, func(c pull.Comment) bool {
		return !c.Author.Is(r.self) || !strings.HasPrefix(c.Body, render.Marker(ref))
	})
	slices.SortFunc(comments, func(a, b pull.Comment) int { return int(a.ID - b.ID) })
	for i, c := range comments {
		if i == 0 {
			r.record.Posted.CommentID, r.record.Posted.CommentSum = c.ID, commentSum(c.Body)
			continue
		}
		if err := r.Forge.DeleteComment(ctx, r.repo, c.ID); err != nil && !errors.Is(err, pull.ErrNotFound) {
			return err
		}
		r.record.Posted.Comments--
	}
	return nil
}

// commentSum identifies the text of a comment, whatever a forge does to its
// line ends.
func commentSum(body string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n"))))
	return hex.EncodeToString(sum[:16])
}

// verify compares what was posted with what is there: any writer can post a
// status in any name, and edit or delete any comment. What differs is taken out
// of the record, so that publish posts it again, and told in a note.
func (r *run) verify(ctx context.Context, p pull.Pull) error {
	if r.observe {
		return nil
	}
	if err := r.verifyStatuses(ctx, p); err != nil {
		return err
	}
	posted := &r.record.Posted
	if posted.CommentID == 0 {
		return nil
	}
	if posted.Comments != p.Comments {
		// One of the others may be ours: a request that was given up can still
		// be carried out, long after its comment was posted again.
		return r.findComment(ctx, p.Ref())
	}
	c, err := r.Forge.Comment(ctx, r.repo, posted.CommentID)
	switch {
	case errors.Is(err, pull.ErrNotFound):
		posted.CommentID = 0
	case err != nil:
		return err
	default:
		posted.CommentSum = commentSum(c.Body)
	}
	return nil
}

func (r *run) verifyStatuses(ctx context.Context, p pull.Pull) error {
	posted := &r.record.Posted
	if len(posted.Statuses) == 0 {
		return nil
	}
	statuses, err := r.Forge.Statuses(ctx, r.repo, p.Head.SHA)
	if err != nil {
		return err
	}
	there := map[string]pull.Status{}
	for _, s := range statuses {
		there[s.Context] = s
	}
	for name, want := range posted.Statuses {
		s, ok := there[name]
		own := ok && s.Creator.Is(r.self)
		if own && s.State == want.State && s.Description == want.Description {
			continue
		}
		delete(posted.Statuses, name)
		if ok && !own {
			r.note(fmt.Sprintf("%s posted the status %q as %s. signalbox posted the true one again.", creator(s), name, s.State))
		}
	}
	return nil
}

func creator(s pull.Status) string {
	if s.Creator.Login == "" {
		return "A workflow"
	}
	return s.Creator.Login
}

// maxNotes bounds the notes that are kept for a head.
const maxNotes = 10

func (r *run) note(text string) {
	notes := &r.record.Inputs.Notes
	if slices.Contains(*notes, text) {
		return
	}
	r.log.Warn("status posted by another", "note", text)
	*notes = append(slices.Clone(*notes), text)
	if len(*notes) > maxNotes {
		*notes = (*notes)[len(*notes)-maxNotes:]
	}
}
