package handlers

import (
	"cmp"
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
	if err := r.writeComment(ctx, v); err != nil {
		return err
	}
	r.record.Posted.Unsure = false
	return nil
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
	preconditions, approval := render.PreconditionsContext(v.Base), render.ApprovalContext(v.Base)
	if r.isPosted(v.Head, preconditions, g.preconditions) && r.isPosted(v.Head, approval, g.approval) {
		return nil
	}
	if err := r.claim(ctx, v.Head); err != nil {
		return err
	}
	return errors.Join(
		r.postStatus(ctx, v.Head, preconditions, g.preconditions),
		r.postStatus(ctx, v.Head, approval, g.approval),
	)
}

func statusOf(name string, g policy.Gate) pull.Status {
	return pull.Status{Context: name, State: render.StatusState(g.State), Description: render.Description(g.Reason)}
}

// isPosted reports whether a status of a head says what it should.
func (r *run) isPosted(head, name string, g policy.Gate) bool {
	return r.record.Posted.Head == head && r.record.Posted.Statuses[name] == statusOf(name, g)
}

func (r *run) postStatus(ctx context.Context, head, name string, g policy.Gate) error {
	if r.isPosted(head, name, g) {
		return nil
	}
	status, posted := statusOf(name, g), &r.record.Posted
	if posted.Head != head {
		posted.Head, posted.Statuses = head, nil
	}
	if err := r.Forge.PostStatus(ctx, r.repo, head, status, cmp.Or(r.Page(r.pull), r.pull.URL)); err != nil {
		return err
	}
	if posted.Statuses == nil {
		posted.Statuses = map[string]pull.Status{}
	}
	posted.Statuses[name] = status
	r.log.InfoContext(ctx, "status posted", "head", head, "context", name, "state", status.State)
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
		if err := r.claim(ctx, v.Head); err != nil {
			return err
		}
		_, err := r.Forge.EditComment(ctx, r.repo, posted.CommentID, body)
		if err == nil {
			posted.CommentSum = commentSum(body)
			r.log.InfoContext(ctx, "comment edited", "comment", posted.CommentID)
			return nil
		}
		if !errors.Is(err, pull.ErrNotFound) {
			return err
		}
		posted.CommentID = 0
	}
	if err := r.claim(ctx, v.Head); err != nil {
		return err
	}
	// If the answer is lost, the next try finds the comment by its marker.
	c, err := r.Forge.CreateComment(ctx, r.repo, v.Ref.Number, body)
	if err != nil {
		return err
	}
	posted.CommentID, posted.CommentSum = c.ID, commentSum(body)
	r.log.InfoContext(ctx, "comment written", "comment", c.ID)
	return nil
}

// readComments reads all comments, once in a run. A pull request that had none
// when it was read is not asked, unless an earlier try may have made one.
func (r *run) readComments(ctx context.Context) error {
	if r.observe || r.comments != nil || r.pull.Comments == 0 && r.item.Attempt == 0 {
		return nil
	}
	comments, err := r.Forge.Comments(ctx, r.repo, r.pull.Number)
	if err != nil {
		return err
	}
	r.comments = append(make([]pull.Comment, 0, len(comments)), comments...)
	return nil
}

// findComment looks for the comment among all comments. The known one stays
// whatever somebody made of its text. Others with the marker were left by an
// earlier life of signalbox, or by a request whose answer was lost, which can be
// carried out long after it was given up: the oldest stays if none is known.
func (r *run) findComment(ctx context.Context, ref pull.Ref) error {
	posted := &r.record.Posted
	known := posted.CommentID
	posted.CommentID = 0
	if err := r.readComments(ctx); err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(r.comments), func(c pull.Comment) bool {
		return !c.Author.Is(r.self) || c.ID != known && !strings.HasPrefix(c.Body, render.Marker(ref))
	})
	slices.SortFunc(own, func(a, b pull.Comment) int {
		return cmp.Or(cmp.Compare(b2i(a.ID != known), b2i(b.ID != known)), cmp.Compare(a.ID, b.ID))
	})
	for i, c := range own {
		if i == 0 {
			posted.CommentID, posted.CommentSum = c.ID, commentSum(c.Body)
			continue
		}
		if err := r.Forge.DeleteComment(ctx, r.repo, c.ID); err != nil && !errors.Is(err, pull.ErrNotFound) {
			return err
		}
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
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
	return r.findComment(ctx, p.Ref())
}

func (r *run) verifyStatuses(ctx context.Context, p pull.Pull) error {
	posted := &r.record.Posted
	if len(posted.Statuses) == 0 && !posted.Unsure {
		return nil
	}
	statuses, err := r.Forge.Statuses(ctx, r.repo, p.Head.SHA)
	if err != nil {
		return err
	}
	there := map[string]pull.Status{}
	for _, s := range statuses {
		there[s.Context] = s
		if posted.Unsure && s.Creator.Is(r.self) {
			r.adopt(s)
		}
	}
	for name, want := range posted.Statuses {
		s, ok := there[name]
		own := ok && s.Creator.Is(r.self)
		if own && s.State == want.State && s.Description == want.Description {
			continue
		}
		delete(posted.Statuses, name)
		if ok && !own {
			r.note(ctx, fmt.Sprintf("%s posted the status %q as %s. signalbox posted the true one again.", creator(s), name, s.State))
		}
	}
	return nil
}

// adopt takes a status of signalbox's own into the record, which does not tell
// whether it came to be posted.
func (r *run) adopt(s pull.Status) {
	posted := &r.record.Posted
	if posted.Statuses == nil {
		posted.Statuses = map[string]pull.Status{}
	}
	posted.Statuses[s.Context] = pull.Status{Context: s.Context, State: s.State, Description: s.Description}
}

func creator(s pull.Status) string {
	if s.Creator.Login == "" {
		return "A workflow"
	}
	return s.Creator.Login
}

// maxNotes bounds the notes that are kept for a head.
const maxNotes = 10

func (r *run) note(ctx context.Context, text string) {
	notes := &r.record.Inputs.Notes
	if slices.Contains(*notes, text) {
		return
	}
	r.log.WarnContext(ctx, "status posted by another", "note", text)
	*notes = append(slices.Clone(*notes), text)
	if len(*notes) > maxNotes {
		*notes = (*notes)[len(*notes)-maxNotes:]
	}
}
