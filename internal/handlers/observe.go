package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

// readInTime reads the inputs of a pull request. If its head is new and reading
// takes longer than the grace, the statuses are posted as pending meanwhile: a
// new head is never without one for long, and is not posted twice for nothing.
func (r *run) readInTime(ctx context.Context, p pull.Pull) (Inputs, error) {
	if r.record.Posted.Head == p.Head.SHA {
		return r.read(ctx, p)
	}
	type result struct {
		inputs Inputs
		err    error
	}
	done := make(chan result, 1)
	go func() {
		inputs, err := r.read(ctx, p)
		done <- result{inputs, err}
	}()
	timer := time.NewTimer(r.Grace)
	defer timer.Stop()
	select {
	case res := <-done:
		return res.inputs, res.err
	case <-timer.C:
	}
	posted := r.pendOnly(ctx, p)
	res := <-done
	if posted != nil {
		return res.inputs, errors.Join(res.err, posted)
	}
	return res.inputs, res.err
}

// read reads all that a verdict follows from. What cannot have changed since
// the last time is not read again.
func (r *run) read(ctx context.Context, p pull.Pull) (Inputs, error) {
	old := &r.record.Inputs
	last := &old.Snapshot.Pull
	known := r.known && len(old.Problems) == 0
	sameHead := known && last.Head.SHA == p.Head.SHA
	in := Inputs{Snapshot: pull.Snapshot{Pull: p, ReadAt: r.Now().UTC()}}
	snap := &in.Snapshot
	var err error
	if sameHead && last.MergeBase == p.MergeBase && last.Base.Name == p.Base.Name {
		snap.Files = old.Snapshot.Files
	} else if snap.Files, err = r.files(ctx, p); err != nil {
		return Inputs{}, err
	}
	if snap.Reviews, err = r.Forge.Reviews(ctx, r.repo, p.Number); err != nil {
		return Inputs{}, err
	}
	if r.instead != nil {
		in.Policy = r.instead
	} else if known && last.Base == p.Base {
		in.Policy = old.Policy
	} else if in.Policy, err = r.document(ctx, p.Base.Name, p.Base.SHA); err != nil {
		return Inputs{}, err
	}
	if in.Proposes = touchesPolicy(snap.Files); in.Proposes {
		if in.Proposal, err = r.document(ctx, p.Head.SHA, p.Head.SHA); err != nil {
			return Inputs{}, err
		}
	}
	if in.Teams, err = r.teams(ctx, &in); err != nil {
		return Inputs{}, err
	}
	r.reviews = snap.Reviews
	if err := r.readApprovals(ctx, &in); err != nil {
		return Inputs{}, err
	}
	if in.Accounts, err = r.accounts(ctx, &in); err != nil {
		return Inputs{}, err
	}
	if last.Head.SHA == p.Head.SHA {
		in.Notes = old.Notes
	}
	if last.Base.SHA == p.Base.SHA {
		in.Answers = slices.DeleteFunc(slices.Clone(old.Answers), func(a Answered) bool { return a.Answer == precondition.Foreign })
	}
	return in, nil
}

// lagTries bounds how often something is read that is still of the former head,
// and lagWait is the time between two tries: Gitea needs a moment after a push.
const (
	lagTries = 4
	lagWait  = 150 * time.Millisecond
)

// settled reads something that lags behind a push.
func settled[T any](ctx context.Context, read func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		v, err := read()
		if err == nil || !errors.Is(err, pull.ErrIncomplete) || try == lagTries {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-time.After(lagWait):
		}
	}
}

func (r *run) files(ctx context.Context, p pull.Pull) ([]pull.File, error) {
	return settled(ctx, func() ([]pull.File, error) { return r.Forge.FilesAt(ctx, r.repo, p.Number, p.Head.SHA) })
}

// document reads the policy file at a reference; nil if there is none.
func (r *run) document(ctx context.Context, ref, commit string) (*Document, error) {
	text, err := r.Forge.RawFile(ctx, r.repo, ref, policy.Path)
	switch {
	case errors.Is(err, pull.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &Document{Name: fmt.Sprintf("%s@%s", policy.Path, commit[:min(len(commit), 10)]), Text: string(text)}, nil
}

func touchesPolicy(files []pull.File) bool {
	return slices.ContainsFunc(files, func(f pull.File) bool { return slices.Contains(f.Paths(), policy.Path) })
}

// teams reads the members of every team that a policy names. A team that does
// not exist or may not be read is a problem of the rule that names it, not of
// the whole verdict.
func (r *run) teams(ctx context.Context, in *Inputs) (map[string]policy.Team, error) {
	owner := in.Snapshot.Pull.Repo.Owner
	teams := map[string]policy.Team{}
	base, _ := r.Policies.compile(in.Policy)
	proposal, _ := r.Policies.compile(in.Proposal)
	for _, pol := range []*policy.Policy{r.Policies.operator, base, proposal} {
		if pol == nil {
			continue
		}
		for _, name := range pol.Teams() {
			key := policy.TeamKey(name, owner)
			if _, read := teams[key]; read {
				continue
			}
			team, err := r.team(ctx, key)
			if err != nil {
				return nil, err
			}
			teams[key] = team
		}
	}
	return teams, nil
}

func (r *run) team(ctx context.Context, key string) (policy.Team, error) {
	org, name, _ := strings.Cut(key, "/")
	members, err := r.Forge.TeamMembers(ctx, org, name)
	switch {
	case errors.Is(err, pull.ErrNotFound):
		return policy.Team{Problem: fmt.Sprintf("there is no team %s in the organisation %s, or signalbox may not see it", name, org)}, nil
	case errors.Is(err, pull.ErrForbidden):
		return policy.Team{Problem: fmt.Sprintf("the members of team %s of %s may not be read; add the account of signalbox to the team, where it never counts", name, org)}, nil
	case err != nil:
		return policy.Team{}, err
	}
	return policy.Team{Members: members}, nil
}

// readApprovals reads what decides whether approvals and other decisions still
// stand, if there are any or may be soon: the timeline, and the diff of the head
// if there is one to compare it with.
func (r *run) readApprovals(ctx context.Context, in *Inputs) error {
	snap := &in.Snapshot
	reviewed := approvedCommits(snap.Reviews)
	if len(reviewed) == 0 && len(r.ledger) == 0 && len(r.newTexts(snap.Reviews)) == 0 {
		return nil
	}
	var err error
	if snap.Timeline, err = r.Forge.Timeline(ctx, r.repo, snap.Pull.Number); err != nil {
		return err
	}
	r.retargets = policy.Retargets(snap)
	snap.Diffs = map[string]pull.Diff{}
	for _, c := range append(slices.Clone(reviewed), snap.Pull.Head.SHA) {
		if d, seen := r.record.Inputs.Snapshot.Diffs[c]; seen {
			snap.Diffs[c] = d
		}
	}
	head := snap.Pull.Head.SHA
	if _, known := snap.Diffs[head]; known || !r.diffNeeded(snap, reviewed) {
		return nil
	}
	diff, ok, err := r.diffOf(ctx, &snap.Pull)
	if err == nil && ok {
		snap.Diffs[head] = diff
	}
	return err
}

// approvedCommits returns the heads on which standing approvals were given.
func approvedCommits(reviews []pull.Review) []string {
	var commits []string
	for _, review := range reviews {
		if review.State == pull.Approved && !review.Dismissed {
			commits = append(commits, review.Commit)
		}
	}
	return commits
}

// diffNeeded reports whether the diff of the head is worth its calls: it was
// approved, so a later head may be compared with it, or an earlier head was,
// whose diff is known.
func (r *run) diffNeeded(snap *pull.Snapshot, reviewed []string) bool {
	if len(snap.Diffs) > 0 || slices.Contains(reviewed, snap.Pull.Head.SHA) {
		return true
	}
	return slices.ContainsFunc(r.ledger.Approvals(), func(d decision.Entry) bool {
		return d.Diff != nil && d.Head != snap.Pull.Head.SHA
	})
}

// accounts returns those who decided something, as they are called now. An
// account that is gone is left out, and decides nothing any more.
func (r *run) accounts(ctx context.Context, in *Inputs) (map[int64]pull.Person, error) {
	accounts := map[int64]pull.Person{}
	for _, review := range in.Snapshot.Reviews {
		accounts[review.Author.ID] = review.Author
	}
	for _, c := range r.comments {
		accounts[c.Author.ID] = c.Author
	}
	for _, e := range r.ledger {
		if _, known := accounts[e.By.ID]; known {
			continue
		}
		person, err := r.People.ByID(ctx, e.By.ID)
		switch {
		case errors.Is(err, pull.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			accounts[e.By.ID] = person
		}
	}
	return accounts, nil
}

// diffOf reads the diff of the head of a pull request. ok is false if the forge
// cannot tell it: then an approval of this head does not survive a push.
func (r *run) diffOf(ctx context.Context, p *pull.Pull) (diff pull.Diff, ok bool, err error) {
	diff, err = settled(ctx, func() (pull.Diff, error) { return r.Forge.DiffAt(ctx, *p) })
	if errors.Is(err, pull.ErrIncomplete) {
		return pull.Diff{}, false, nil
	}
	return diff, err == nil, err
}
