package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// carryOut does what one command asks for, if its author may ask for it.
func (r *run) carryOut(ctx context.Context, in *Inputs, q request) (result, error) {
	switch q.Name {
	case command.Approve:
		return r.approve(ctx, in, q)
	case command.Override:
		return r.override(ctx, in, q)
	case command.Hold:
		return r.hold(ctx, in, q)
	case command.Unhold:
		return r.unhold(in, q), nil
	case command.Freeze:
		return r.freeze(ctx, in, q)
	case command.Unfreeze:
		return r.unfreeze(in, q), nil
	case command.Merge:
		return r.askToMerge(ctx, in, q)
	case command.Recheck:
		return r.recheck(ctx, in, q)
	case command.Preconditions:
		return r.tell(ctx, in, q)
	case command.Link:
		return r.link(ctx, q)
	case command.Help:
		return result{entry: r.entry(decision.Answered, q), say: render.Help()}, nil
	default:
		return no("signalbox does not know how."), nil
	}
}

func (r *run) approve(ctx context.Context, in *Inputs, q request) (result, error) {
	if why := r.isAuthor(q.by); why != "" {
		return no("%s Others who may: %s.", why, names(r.othersThan(in, r.pull.Author))), nil
	}
	approvers := r.approvers(in)
	if len(approvers) == 0 {
		return no("no rule asks for an approval of this change."), nil
	}
	if !slices.ContainsFunc(approvers, q.by.Is) {
		return no("%s is not among those who may approve this change: %s.", q.by.Login, names(r.othersThan(in, r.pull.Author))), nil
	}
	if q.Cancel {
		return result{entry: r.entry(decision.ApproveCancel, q)}, nil
	}
	if why, err := r.meant(in, q); why != "" || err != nil {
		return result{why: why}, err
	}
	e := r.entry(decision.Approve, q)
	diff, ok, err := r.diffOf(ctx, &r.pull)
	if err != nil {
		return result{}, err
	}
	if ok {
		e.Diff = &diff
		in.Snapshot.Diffs[r.pull.Head.SHA] = diff
	}
	return result{entry: e}, nil
}

func (r *run) othersThan(in *Inputs, author pull.Person) []pull.Person {
	return slices.DeleteFunc(r.approvers(in), func(p pull.Person) bool {
		return p.Is(author) || p.Is(r.self) || slices.ContainsFunc(r.Bots, p.Is)
	})
}

// meant says why a command cannot have meant the present head, or nothing.
// Whoever writes a command means the head that was there then; only the
// server's order of things tells which that was. The beginning of a SHA does not:
// two commits that begin alike are made in minutes, one to be looked at and one to
// be merged.
func (r *run) meant(in *Inputs, q request) (string, error) {
	head := r.pull.Head.SHA
	switch {
	case !strings.HasPrefix(head, q.SHA):
		return fmt.Sprintf("it names %s, and the head is %s now.", short(q.SHA), short(head)), nil
	case q.SHA == head:
		return "", nil
	case q.SHA != "" && r.ambiguous(in, q.SHA):
		return fmt.Sprintf("%s is the beginning of more than one commit of this change. Name the whole: `/%s %s`.", q.SHA, q.Name, head), nil
	case q.place.request != nil && q.place.request.Head == "":
		return fmt.Sprintf("it does not say which head it means. Name the whole of it: `%s %s`.", q.Name, head), nil
	case q.place.request != nil && q.place.request.Head != head:
		return fmt.Sprintf("it was about %s, and the head is %s now.", short(q.place.request.Head), short(head)), nil
	case q.place.request != nil:
		return "", nil
	case q.place.review != nil && q.place.review.Commit != head:
		return fmt.Sprintf("the review was of %s, and the head is %s now.", short(q.place.review.Commit), short(head)), nil
	case q.place.review != nil:
		return "", nil
	}
	timeline := in.Snapshot.Timeline
	at := slices.IndexFunc(timeline, func(m pull.Moment) bool { return m.Kind == pull.MomentComment && m.CommentID == q.place.comment })
	if at < 0 {
		return "", fmt.Errorf("%w: the timeline does not have the comment yet", pull.ErrIncomplete)
	}
	var push *pull.Moment
	for i, m := range timeline {
		if m.Kind == pull.MomentPush {
			push = &timeline[i]
		}
		if i > at && (m.Kind == pull.MomentPush || m.Kind == pull.MomentRetarget) {
			return fmt.Sprintf("the change became another after it was written; the head is %s now. Look at that, and write it again.", short(head)), nil
		}
	}
	if push == nil {
		return fmt.Sprintf("the timeline does not tell which head it was about. Name the whole of it: `/%s %s`.", q.Name, head), nil
	}
	if !slices.Contains(push.Commits, head) {
		// The push to this head is not noted yet, so the comment may be older.
		return "", fmt.Errorf("%w: the timeline does not have the push of %s yet", pull.ErrIncomplete, short(head))
	}
	return "", nil
}

// ambiguous reports whether another commit that was pushed begins like the head.
func (r *run) ambiguous(in *Inputs, sha string) bool {
	return slices.ContainsFunc(in.Snapshot.Timeline, func(m pull.Moment) bool {
		return slices.ContainsFunc(m.Commits, func(c string) bool { return strings.HasPrefix(c, sha) && c != r.pull.Head.SHA })
	})
}

func (r *run) override(ctx context.Context, in *Inputs, q request) (result, error) {
	input := r.input(in, newFactLog(r.Facts))
	list, ttl := policy.Overriders(input)
	switch why := r.isAuthor(q.by); {
	case len(list) == 0:
		return no("the policy names nobody who may override."), nil
	case why != "":
		return no("%s Those who may: %s.", why, names(list)), nil
	case !slices.ContainsFunc(list, q.by.Is):
		return no("%s is not among those who may override: %s.", q.by.Login, names(list)), nil
	case q.Cancel:
		return result{entry: r.entry(decision.OverrideCancel, q)}, nil
	}
	if why, err := r.meant(in, q); why != "" || err != nil {
		return result{why: why}, err
	}
	verdict, err := r.decide(ctx, in, newFactLog(r.Facts))
	if err != nil {
		return result{}, err
	}
	e := r.entry(decision.Override, q)
	if e.Passes = verdict.OpenRules(); len(e.Passes) == 0 {
		return no("nothing is unmet, unknown or unapproved now."), nil
	}
	e.Until = e.At.Add(ttl)
	return result{entry: e}, nil
}

func (r *run) hold(ctx context.Context, in *Inputs, q request) (result, error) {
	// Whose change it is may stop it, whatever else they may.
	if !q.by.Is(r.pull.Author) {
		if why, err := r.mayNotWrite(ctx, in, q.by); why != "" || err != nil {
			return result{why: why}, err
		}
	}
	return result{entry: r.entry(decision.Hold, q)}, nil
}

func (r *run) unhold(in *Inputs, q request) result {
	holds := r.ledger.Holds()
	if len(holds) == 0 {
		return no("nothing holds this pull request.")
	}
	all := slices.ContainsFunc(r.approvers(in), q.by.Is) && !q.by.Is(r.pull.Author)
	e := r.entry(decision.Unhold, q)
	var owners, later []pull.Person
	for _, h := range holds {
		switch {
		case h.At.After(q.at):
			later = append(later, h.By)
		case all || h.By.Is(q.by):
			e.Lifts = append(e.Lifts, h.ID)
		}
		owners = append(owners, h.By)
	}
	switch {
	case len(e.Lifts) > 0:
	case len(later) > 0:
		return no("it was held by %s after this was said. If you mean that, say it again.", names(later))
	default:
		return no("it is held by %s; who holds it, or an approver, can lift that.", names(owners))
	}
	return result{entry: e}
}

func (r *run) recheck(ctx context.Context, in *Inputs, q request) (result, error) {
	if why, err := r.mayNotWrite(ctx, in, q.by); why != "" || err != nil {
		return result{why: why}, err
	}
	// Everything was read afresh to get here, and is decided right after.
	return result{entry: r.entry(decision.Answered, q)}, nil
}

func (r *run) tell(ctx context.Context, in *Inputs, q request) (result, error) {
	verdict, err := r.decide(ctx, in, newFactLog(r.Facts))
	if err != nil {
		return result{}, err
	}
	return result{entry: r.entry(decision.Answered, q), say: render.Answer(&verdict)}, nil
}

func (r *run) askToMerge(ctx context.Context, in *Inputs, q request) (result, error) {
	why, err := r.mayNotWrite(ctx, in, q.by)
	switch {
	case why != "" || err != nil:
		return result{why: why}, err
	case q.Cancel:
		return result{entry: r.entry(decision.MergeCancel, q)}, nil
	case r.mergeMethod(in) == "":
		return no("the policy of %s does not let signalbox merge.", r.pull.Base.Name), nil
	}
	if holds := r.ledger.Holds(); len(holds) > 0 {
		return no("it is held by %s.", holds[0].By.Login), nil
	}
	if why, err := r.meant(in, q); why != "" || err != nil {
		return result{why: why}, err
	}
	verdict, err := r.decide(ctx, in, newFactLog(r.Facts))
	if err != nil {
		return result{}, err
	}
	res := result{entry: r.entry(decision.Merge, q)}
	if verdict.State() != policy.Clear {
		res.say = render.MergeWaits(&verdict)
	}
	return res, nil
}

func short(sha string) string { return sha[:min(len(sha), 10)] }

// link takes the code of an account of a chat: whoever writes it here is the one
// whose account that is.
func (r *run) link(ctx context.Context, q request) (result, error) {
	switch {
	case r.Codes == nil:
		return no("signalbox is in no chat."), nil
	case q.place.request != nil:
		return no("a code is written on a pull request, from the account that it is to be linked to."), nil
	case q.Cancel:
		return r.unlinkAll(ctx, q)
	}
	user, ok, err := useCode(ctx, r.Codes, q.Text, q.id, r.Now())
	if err != nil {
		return result{}, err
	}
	if !ok {
		return no("this is no code that can be used: each is good once and for %d minutes. `link` in the chat gives another.", int(codeTime.Minutes())), nil
	}
	e := r.entry(decision.Link, q)
	e.User = user.String()
	return result{entry: e, say: render.Markdown(render.LinkedTo(user, q.by))}, nil
}

// unlinkAll ends every link to the account of whoever writes it, also those that
// they were talked into.
func (r *run) unlinkAll(ctx context.Context, q request) (result, error) {
	links := r.Ledger.Linked(q.by.ID)
	if len(links) == 0 {
		return no("no account of a chat is linked to %s. What the configuration says is changed there.", q.by.Login), nil
	}
	var users []string
	for _, link := range links {
		if link.At.After(q.at) {
			continue
		}
		e := r.entry(decision.Unlink, q)
		e.ID, e.User = q.id+"/"+link.User, link.User
		if err := r.enter(ctx, e); err != nil {
			return result{}, err
		}
		users = append(users, link.User)
	}
	if len(users) == 0 {
		return no("%s was linked only after this was written. If you mean that, write it again.", q.by.Login), nil
	}
	return result{entry: r.entry(decision.Answered, q), say: render.Markdown(render.LinksEnded(users))}, nil
}
