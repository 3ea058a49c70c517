package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// Ledger keeps decisions.
type Ledger interface {
	// Append adds an entry unless there is one with its id.
	Append(ctx context.Context, e decision.Entry) (added bool, err error)
	Entries(ref pull.Ref) decision.Ledger
	// Freezes are the entries that act on all pull requests of a repository.
	Freezes(repo int64) decision.Ledger
	// Linked are the entries by which accounts of chats are a person's now.
	Linked(person int64) []decision.Entry
	Sync(ctx context.Context) error
	// Since is when the ledger was begun. What people wrote before that was not
	// written to it.
	Since() time.Time
}

// request is a command that somebody gave, with where and when.
type request struct {
	command.Command
	// id is the cause of its entry.
	id    string
	by    pull.Person
	at    time.Time
	place place
}

// place is where a command was given: a comment, or a review or a request from a
// chat if that is set.
type place struct {
	name string
	// comment takes the reactions; a review has one too, which only the timeline
	// tells. Zero takes none.
	comment int64
	review  *pull.Review
	request *Request
	url     string
}

// id names the place, such as "comment/12".
func (p place) id() string {
	switch {
	case p.request != nil:
		return p.request.Cause
	case p.review != nil:
		return fmt.Sprintf("review/%d", p.review.ID)
	}
	return decision.CommentID(p.comment)
}

// Names of places, as entries of the ledger have them.
const (
	placeComment = "comment"
	placeReview  = "review"
)

// spoken is one text in which somebody may have given commands.
type spoken struct {
	place
	by     pull.Person
	at     time.Time
	edited bool
	// sum identifies the text; empty where nobody but its author can change it.
	sum   string
	found command.Found
}

// spokenTexts returns the texts with commands, the oldest first. What
// signalbox and other bots say is none, nor is what was said before the ledger
// was begun.
func (r *run) spokenTexts(reviews []pull.Review) []spoken {
	var all []spoken
	for _, c := range r.comments {
		s := spoken{
			place: place{name: placeComment, comment: c.ID, url: c.URL},
			by:    c.Author, at: c.CreatedAt, edited: c.UpdatedAt.After(c.CreatedAt) || r.ledger.Has(decision.EditID(c.ID)),
			sum:   commentSum(c.Body),
			found: r.Finder.find(c.Body),
		}
		if r.counts(s, c.UpdatedAt) {
			all = append(all, s)
		}
	}
	for _, review := range reviews {
		s := spoken{
			place: place{name: placeReview, review: &review, url: r.pull.URL},
			by:    review.Author, at: review.SubmittedAt,
			found: r.Finder.find(review.Body),
		}
		if review.State != pull.Pending && r.counts(s, review.SubmittedAt) {
			all = append(all, s)
		}
	}
	all = append(all, r.requestTexts()...)
	slices.SortStableFunc(all, func(a, b spoken) int { return a.at.Compare(b.at) })
	return all
}

// ledgerGrace is how long before the ledger was begun a command counts: the
// clock of the forge is another one, and tells whole seconds.
const ledgerGrace = 5 * time.Minute

func (r *run) counts(s spoken, changed time.Time) bool {
	if len(s.found.Commands)+len(s.found.Unknown) == 0 || changed.Before(r.Ledger.Since().Add(-ledgerGrace)) {
		return false
	}
	return s.by.ID != 0 && !s.by.Is(r.self) && !slices.ContainsFunc(r.Bots, s.by.Is)
}

// newTexts are the texts that were not dealt with before.
func (r *run) newTexts(reviews []pull.Review) []spoken {
	return slices.DeleteFunc(r.spokenTexts(reviews), func(s spoken) bool {
		// A request is kept until it was answered, and tells by itself that it was not.
		return s.request == nil && slices.Contains(r.record.Answered, s.id())
	})
}

// pending are the texts with commands of which the ledger knows nothing.
func (r *run) pending(reviews []pull.Review) []spoken {
	return slices.DeleteFunc(r.spokenTexts(reviews), func(s spoken) bool {
		return len(s.found.Commands) == 0 || slices.ContainsFunc(r.ledger, func(e decision.Entry) bool {
			return strings.HasPrefix(e.ID, s.id()+"/") && e.Kind != decision.Edited
		})
	})
}

// takeCommands carries out the commands that were not dealt with before. Each
// has one entry in the ledger, whatever became of it, so that each is dealt
// with once.
func (r *run) takeCommands(ctx context.Context) error {
	if r.observe {
		return r.turnAway(ctx, "signalbox only observes "+r.repo.String()+", and decides nothing there.")
	}
	in := &r.record.Inputs
	texts := r.newTexts(r.reviews)
	early := false
	for _, s := range texts {
		if s.review != nil {
			s.comment = reactable(in.Snapshot.Timeline, s.review.ID)
		}
		if ripe, err := r.listen(ctx, &s); err != nil {
			return err
		} else if !ripe {
			early = true
			continue
		}
		replies, err := r.obeyText(ctx, in, s)
		if err != nil {
			return fmt.Errorf("%s by %s: %w", s.id(), s.by.Login, err)
		}
		if err := r.answer(ctx, s, replies); err != nil {
			return fmt.Errorf("answer %s: %w", s.id(), err)
		}
		if s.request != nil {
			continue
		}
		delete(r.record.Heard, s.id())
		r.record.Answered = append(r.record.Answered, s.id())
		if len(r.record.Answered) > maxAnswered {
			r.record.Answered = slices.Delete(r.record.Answered, 0, 1)
		}
	}
	if early {
		again := work.Item{Ref: r.item.Ref, Kind: work.Retry, Reason: "a comment has a command"}
		if err := r.Queue.Schedule(ctx, again, r.Now().Add(r.Ripen)); err != nil {
			return err
		}
	}
	if len(texts) == 0 {
		return nil
	}
	var err error
	in.Accounts, err = r.accounts(ctx, in)
	return err
}

// listen reports whether a text may be acted upon. A comment is heard first and
// acted upon a moment later, if it still says the same: Gitea tells when a
// comment was written and edited in whole seconds, so an edit by somebody else
// within the second could pass for what its author wrote. Its webhook arrives
// in that moment, and what it says then counts for nothing.
func (r *run) listen(ctx context.Context, s *spoken) (ripe bool, err error) {
	if s.sum == "" || s.edited {
		return true, nil
	}
	now := r.Now().UTC()
	heard, ok := r.record.Heard[s.id()]
	// Where the clock went back, what was heard before that is heard anew: nobody
	// shall wait until the clock is there again, least of all for a hold.
	back := ok && now.Before(heard.At) && heard.Sum == s.sum
	switch {
	case !ok || back:
		if r.record.Heard == nil {
			r.record.Heard = map[string]Heard{}
		}
		r.record.Heard[s.id()] = Heard{Sum: s.sum, At: now}
		return r.Ripen == 0, r.working(ctx, *s)
	case heard.Sum != s.sum:
		s.edited = true
		return true, nil
	}
	return now.Sub(heard.At) >= r.Ripen, nil
}

// reactable returns the id under which a review takes reactions, or 0.
func reactable(timeline []pull.Moment, review int64) int64 {
	for _, m := range timeline {
		if m.Kind == pull.MomentReview && m.ReviewID == review {
			return m.CommentID
		}
	}
	return 0
}

// maxAnswered bounds the memory of what was answered. What falls out of it is
// answered again, which shows nothing new: the reaction and the reply are there.
const maxAnswered = 500

// reply is what became of one command.
type reply struct {
	refused bool
	// text is what to tell, in Markdown, or empty if a reaction says it all.
	text string
}

func (r *run) obeyText(ctx context.Context, in *Inputs, s spoken) ([]reply, error) {
	if s.edited {
		return r.refuseEdited(ctx, s)
	}
	var replies []reply
	for i, c := range s.found.Commands {
		q := request{Command: c, id: fmt.Sprintf("%s/%d", s.id(), i), by: s.by, at: s.at, place: s.place}
		rep, err := r.obeyOne(ctx, in, q)
		if err != nil {
			return nil, err
		}
		replies = append(replies, rep)
	}
	for _, u := range s.found.Unknown {
		replies = append(replies, reply{refused: true, text: fmt.Sprintf("There is no command `%s`. Did you mean `/%s`?", u.Word, u.Suggest)})
	}
	return replies, nil
}

// refuseEdited handles a text that was edited after it was written: anybody who
// may write can edit it, so nobody knows who says it. An edit of what was dealt
// with before changes nothing.
func (r *run) refuseEdited(ctx context.Context, s spoken) ([]reply, error) {
	if slices.ContainsFunc(r.ledger, func(e decision.Entry) bool {
		return strings.HasPrefix(e.ID, s.id()+"/") && e.Kind != decision.Refused && e.Kind != decision.Edited
	}) {
		return nil, nil
	}
	q := request{id: s.id() + "/edited", by: s.by, at: s.at, place: s.place}
	if len(s.found.Commands) > 0 {
		q.Command = s.found.Commands[0]
	}
	return r.refuse(ctx, q, "this comment was edited, and then nobody can tell who says it. Write the command in a new comment.")
}

func (r *run) refuse(ctx context.Context, q request, why string) ([]reply, error) {
	e := r.entry(decision.Refused, q)
	e.Reason = why
	if err := r.enter(ctx, e); err != nil {
		return nil, err
	}
	return []reply{refusal(q, why)}, nil
}

func refusal(q request, why string) reply {
	return reply{refused: true, text: fmt.Sprintf("`%s` was not carried out: %s", strings.ReplaceAll(q.Line, "`", "'"), why)}
}

// obeyOne carries out one command, or finds in the ledger what became of it.
func (r *run) obeyOne(ctx context.Context, in *Inputs, q request) (reply, error) {
	if i := slices.IndexFunc(r.ledger, func(e decision.Entry) bool { return e.ID == q.id }); i >= 0 {
		e := r.ledger[i]
		if e.Kind == decision.Refused {
			return refusal(q, e.Reason), nil
		}
		return reply{}, r.spread(ctx, e)
	}
	var res result
	var err error
	if q.Problem != "" {
		res.why = q.Problem + "."
	} else if res.why, err = r.outdated(ctx, q); err != nil {
		return reply{}, err
	}
	if res.why == "" {
		if res, err = r.carryOut(ctx, in, q); err != nil {
			return reply{}, err
		}
	}
	if res.why != "" {
		replies, err := r.refuse(ctx, q, res.why)
		if err != nil {
			return reply{}, err
		}
		return replies[0], nil
	}
	if err := r.enter(ctx, res.entry); err != nil {
		return reply{}, err
	}
	if err := r.spread(ctx, res.entry); err != nil {
		return reply{}, err
	}
	r.log.InfoContext(ctx, "command carried out", "command", string(q.Name), "by", q.by.Login, "entry", q.id)
	return reply{text: res.say}, nil
}

// result is what becomes of a command: an entry and perhaps something to say,
// or why it is refused.
type result struct {
	entry decision.Entry
	say   string
	why   string
}

func no(format string, args ...any) result { return result{why: fmt.Sprintf(format, args...)} }

// entry makes an entry for a command, bound to the pull request as it is.
func (r *run) entry(kind decision.Kind, q request) decision.Entry {
	e := decision.Entry{
		ID: q.id, Kind: kind, By: q.by, Place: q.place.name, URL: q.place.url, Command: q.Line,
		Repo: r.repo, Number: r.pull.Number, Base: r.pull.Base.Name, Head: r.pull.Head.SHA,
		Retargets: r.retargets, Reviews: r.submitted(q.by), At: q.at.UTC(), Reason: q.Text,
	}
	if q.place.request != nil {
		e.User = q.place.request.User.String()
	}
	return e
}

// submitted returns the ids of a person's submitted reviews.
func (r *run) submitted(by pull.Person) []int64 {
	var ids []int64
	for _, review := range r.reviews {
		if review.Author.Is(by) && review.State != pull.Pending && review.State != pull.Requested {
			ids = append(ids, review.ID)
		}
	}
	return ids
}

// enter appends one entry and reads the ledger again.
func (r *run) enter(ctx context.Context, e decision.Entry) error {
	if _, err := r.Ledger.Append(ctx, e); err != nil {
		return err
	}
	r.readLedger()
	return nil
}

func (r *run) readLedger() {
	r.ledger, r.freezes = r.Ledger.Entries(r.item.Ref), r.Ledger.Freezes(r.item.Ref.RepoID)
}

// isAuthor says why a person can decide nothing about this pull request.
func (r *run) isAuthor(p pull.Person) string {
	if p.Is(r.pull.Author) {
		return "the author of a pull request cannot decide about it."
	}
	return ""
}

// approvers are the people whom the rules about this change name.
func (r *run) approvers(in *Inputs) []pull.Person {
	return policy.Approvers(r.input(in, newFactLog(r.Facts)))
}

// mayNotWrite says why a person may not write to the repository, or nothing. An
// approver may, whatever the forge can tell.
func (r *run) mayNotWrite(ctx context.Context, in *Inputs, p pull.Person) (why string, err error) {
	if slices.ContainsFunc(r.approvers(in), p.Is) {
		return "", nil
	}
	// Beside ErrForbidden comes what is certain.
	have, err := r.Forge.Permission(ctx, r.repo, p.Login)
	switch {
	case have.AtLeast(pull.PermissionWrite):
		return "", nil
	case errors.Is(err, pull.ErrForbidden):
		return fmt.Sprintf("signalbox cannot see whether %s may write to %s. Its account must administer the repository, and be in the teams that give others the right.", p.Login, r.repo), nil
	case err != nil && !errors.Is(err, pull.ErrNotFound):
		return "", err
	}
	return fmt.Sprintf("only those who may write to %s can do that.", r.repo), nil
}

// names lists people for a refusal.
func names(people []pull.Person) string {
	if len(people) == 0 {
		return "nobody"
	}
	var out []string
	for _, p := range people {
		out = append(out, p.Login)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return strings.Join(out, ", ")
}
