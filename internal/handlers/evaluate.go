package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/trace"
	"signalbox/internal/work"
)

// Meter counts evaluations.
type Meter interface {
	// Evaluated counts one evaluation. Was is the state before it, empty for the
	// first; changed says that the verdict says something else to people, also
	// in the same state.
	Evaluated(kind work.Kind, was, state policy.GateState, changed bool, took time.Duration)
}

// Evaluator does the work: it evaluates one pull request and makes its
// statuses, comment and record true.
type Evaluator struct {
	Forge        Forge
	Repositories *Repositories
	Account      *Account
	Records      Records
	Index        *Index
	Facts        FactReader
	// Demand collects the facts that verdicts wish for.
	Demand *Demand
	Queue  Queue
	Ledger Ledger
	People *People
	Finder *Finder
	// Requests are the commands from chats and pages, Directory tells who gave them,
	// and Outbox is where their answers go. Codes are those by which accounts of chats
	// are linked; nil without a chat.
	Requests  RequestStore
	Directory *Directory
	Outbox    *Outbox
	Codes     Codes
	Policies  *Policies
	// Clusters are the names of all configured clusters. Bots are the accounts
	// that never count, beside signalbox's own.
	Clusters []string
	Bots     []pull.Person
	// Page returns where a pull request can be read about in full, to which its
	// statuses lead; its own page in the forge if that is empty.
	Page  func(p pull.Pull) string
	Meter Meter
	Log   *slog.Logger
	Now   func() time.Time
	// Grace is how long reading may take before a new head is shown as pending.
	Grace time.Duration
	// Shared says that other replicas work on the same records; see [run.claim].
	Shared bool
	// Ripen is how long a comment with a command is left alone before it is acted
	// upon; see [run.listen].
	Ripen time.Duration
}

// Handle evaluates one pull request. It must not run twice at once for one
// pull request; [Queue] promises that.
//
// A fact can change while the verdict is being made, and so can the freezes of the
// repository. The barrier before it makes the verdict see every earlier change. A
// change that comes later finds the pull request in the index by the record stored
// here, or is found by the second look at the revisions after the record was
// stored. For an event of the head or the base the record is stored before the
// first look.
func (e *Evaluator) Handle(ctx context.Context, item work.Item) (err error) {
	start := e.Now()
	ctx, span := trace.Start(ctx, trace.Inside, "evaluate",
		trace.Number("repo_id", item.Ref.RepoID), trace.Number("pull", item.Ref.Number), trace.Text("kind", string(item.Kind)))
	defer func() { span.End(err) }()
	repo, setting, ok, err := e.Repositories.Find(ctx, item.Ref.RepoID)
	if err != nil {
		return err
	}
	err = errors.Join(e.Records.Sync(ctx), e.Facts.Sync(ctx), e.Ledger.Sync(ctx), e.Requests.Sync(ctx))
	if err != nil {
		return fmt.Errorf("evaluate %s: %w", item.Ref, err)
	}
	self, err := e.Account.Self(ctx)
	if err != nil {
		return err
	}
	r := &run{Evaluator: e, item: item, repo: repo, observe: setting.Observe, self: self}
	r.record, r.revision, r.known = e.Records.Get(item.Ref.String())
	// What is read from the records is shared.
	r.record.Posted.Statuses = maps.Clone(r.record.Posted.Statuses)
	r.record.Heard = maps.Clone(r.record.Heard)
	r.record.Answered = slices.Clone(r.record.Answered)
	r.before, r.pull = r.record.Verdict, r.record.Inputs.Snapshot.Pull
	r.readLedger()
	if !ok {
		return r.forget(ctx, "repository is not configured")
	}
	r.log = e.Log.With("repo", repo.String(), "pull", repo.Numbered(item.Ref.Number))
	span.Tell(trace.Text("repo", repo.String()))
	if err := r.do(ctx); err != nil {
		return fmt.Errorf("evaluate %s (%s): %w", repo.Numbered(item.Ref.Number), item.Kind, err)
	}
	if r.gone {
		return nil
	}
	now, changed, took := r.record.Verdict.State(), !sameVerdict(r.before, r.record.Verdict), e.Now().Sub(start)
	span.Tell(trace.Text("state", string(now)))
	r.log.DebugContext(ctx, "evaluated", "kind", string(item.Kind), "trigger", item.Reason, "state", now, "changed", changed, "took", took)
	e.Meter.Evaluated(item.Kind, stateOf(r.before), now, changed, took)
	return nil
}

// stateOf is the state of a verdict; empty for none.
func stateOf(v policy.Verdict) policy.GateState {
	if v.Head == "" {
		return ""
	}
	return v.State()
}

// run is one evaluation.
type run struct {
	*Evaluator
	item    work.Item
	repo    pull.Repo
	observe bool
	self    pull.Person
	log     *slog.Logger

	// pull is the pull request as last read. The comments, the reviews and the
	// number of changes of its base are read with it if they are needed.
	pull      pull.Pull
	comments  []pull.Comment
	reviews   []pull.Review
	retargets int
	ledger    decision.Ledger
	// freezes are the entries of the whole repository's freezes.
	freezes decision.Ledger

	record   Record
	revision uint64
	known    bool
	before   policy.Verdict
	gone     bool
	claimed  bool
	// instead stands for the policy of the base branch, if it is set.
	instead *Document
}

func (r *run) do(ctx context.Context) error {
	evaluated := !r.record.EvaluatedAt.IsZero() && len(r.record.Inputs.Problems) == 0 && !r.record.Posted.Unsure
	if evaluated && (r.item.Kind == work.Fact || r.item.Kind == work.Wake) {
		return r.again(ctx)
	}
	return r.afresh(ctx)
}

// again evaluates the last snapshot with the facts of now. Only if the verdict
// is another one is the forge asked whether the pull request is still the same.
func (r *run) again(ctx context.Context) error {
	facts := newFactLog(r.Facts)
	verdict, err := r.decide(ctx, &r.record.Inputs, facts)
	if err != nil {
		return err
	}
	if sameVerdict(verdict, r.before) && r.record.Posted.Head == verdict.Head {
		return r.finish(ctx, verdict, facts, !reflect.DeepEqual(verdict, r.before))
	}
	p, err := r.Forge.Pull(ctx, r.repo, r.item.Ref.Number)
	if err != nil {
		return r.unreadable(ctx, err)
	}
	last := &r.record.Inputs.Snapshot.Pull
	r.pull.Comments = p.Comments
	if p.State != pull.Open || p.Head.SHA != last.Head.SHA || p.Base != last.Base {
		return r.afreshFrom(ctx, p)
	}
	if err := r.publish(ctx, &verdict); err != nil {
		return errors.Join(err, r.store(ctx))
	}
	if err := r.finish(ctx, verdict, facts, true); err != nil {
		return err
	}
	if verdict.Merge != nil && verdict.State() == policy.Clear {
		// Nothing is merged by an old snapshot: read everything first.
		return soon(ctx, r.Queue, work.Full, "ready to merge", []pull.Ref{r.item.Ref})
	}
	return nil
}

// afresh evaluates what the forge says now.
func (r *run) afresh(ctx context.Context) error {
	p, err := r.Forge.Pull(ctx, r.repo, r.item.Ref.Number)
	if err != nil {
		return r.unreadable(ctx, err)
	}
	return r.afreshFrom(ctx, p)
}

func (r *run) afreshFrom(ctx context.Context, p pull.Pull) error {
	r.pull = p
	if p.State != pull.Open {
		if err := r.spreadLast(ctx); err != nil {
			return err
		}
		return errors.Join(r.reportMerged(ctx), r.answerLate(ctx), r.forget(ctx, string(p.State)))
	}
	if err := r.see(ctx, &p); err != nil {
		return err
	}
	if err := r.readComments(ctx); err != nil {
		return err
	}
	if r.record.Posted.Head == p.Head.SHA {
		if err := r.verify(ctx, p); err != nil {
			return err
		}
	}
	inputs, err := r.readInTime(ctx, p)
	if err != nil {
		return r.undecided(ctx, p, err)
	}
	r.record.Inputs = inputs
	if err := r.takeCommands(ctx); err != nil {
		return errors.Join(err, r.store(ctx))
	}
	facts := newFactLog(r.Facts)
	verdict, err := r.decide(ctx, &r.record.Inputs, facts)
	if err != nil {
		return r.undecided(ctx, p, err)
	}
	if err := r.publish(ctx, &verdict); err != nil {
		return errors.Join(err, r.store(ctx))
	}
	if err := r.finish(ctx, verdict, facts, true); err != nil {
		return err
	}
	return r.mergeIfDue(ctx, &verdict, facts)
}

// see keeps where the pull request is. From then on an event of its head or its
// base, such as a status that somebody else posts there, asks for another
// evaluation after this one.
func (r *run) see(ctx context.Context, p *pull.Pull) error {
	if at := placeOf(p); r.record.Seen != at {
		r.record.Seen = at
		return r.keep(ctx)
	}
	return nil
}

// unreadable handles a pull request that cannot be read: one that is not there
// is forgotten, else the work is repeated.
func (r *run) unreadable(ctx context.Context, err error) error {
	if errors.Is(err, pull.ErrNotFound) {
		return r.forget(ctx, "not found")
	}
	return err
}

// patience is how many failures are kept from people: most pass by themselves.
const patience = 2

// undecided says on the pull request what could not be read, once that lasts
// or is no passing fault, and returns the error so that the work is repeated.
// Until then a new head is shown as pending.
func (r *run) undecided(ctx context.Context, p pull.Pull, cause error) error {
	passing := r.item.Attempt < patience && !errors.Is(cause, pull.ErrForbidden)
	newHead := r.record.Posted.Head != p.Head.SHA
	if passing && !newHead {
		return cause
	}
	in := &r.record.Inputs
	in.Snapshot = pull.Snapshot{Pull: p, Diffs: in.Snapshot.Diffs, ReadAt: r.Now().UTC()}
	in.Problems = []policy.Problem{{State: policy.Undecided, Text: "signalbox could not decide: " + cause.Error()}}
	verdict := policy.Evaluate(policy.Input{Snapshot: &in.Snapshot, Facts: r.Facts, Problems: in.Problems, Now: r.Now()})
	verdict.Notes = in.Notes
	// What the last verdict wished for is kept true, for the next one.
	verdict.Reads, verdict.Wishes = r.before.Reads, r.before.Wishes
	var err error
	if passing {
		err = r.pend(ctx, p)
	} else {
		err = r.publish(ctx, &verdict)
	}
	r.setVerdict(verdict)
	return errors.Join(cause, err, r.store(ctx))
}

// finish keeps the record and sees to it that the verdict is looked at again
// when it may change.
func (r *run) finish(ctx context.Context, verdict policy.Verdict, facts *factLog, store bool) error {
	r.setVerdict(verdict)
	if store {
		if err := r.store(ctx); err != nil {
			return err
		}
	}
	if err := r.wake(ctx, verdict.LookAgain); err != nil {
		return err
	}
	if !sameVerdict(r.before, verdict) {
		r.log.InfoContext(ctx, "verdict changed", "head", verdict.Head, "trigger", r.item.Reason,
			"was", stateOf(r.before), "state", verdict.State(),
			"preconditions", verdict.Preconditions.State, "approval", verdict.Approval.State,
			"reason", verdict.Preconditions.Reason)
	}
	if err := errors.Join(r.Facts.Sync(ctx), r.Ledger.Sync(ctx)); err != nil {
		return fmt.Errorf("look at the facts and freezes again: %w", err)
	}
	if facts.changed() || r.refrozen() {
		return soon(ctx, r.Queue, work.Fact, "fact or freeze changed meanwhile", []pull.Ref{r.item.Ref})
	}
	return nil
}

// wake sees to it that the pull request is looked at again at a time. Work on
// changed facts is frequent and mostly leaves the time as it was.
func (r *run) wake(ctx context.Context, at time.Time) error {
	if r.item.Kind == work.Fact && at.Equal(r.before.LookAgain) {
		return nil
	}
	if at.IsZero() {
		if r.before.LookAgain.IsZero() {
			return nil
		}
		if err := r.Queue.CancelWake(ctx, r.item.Ref); err != nil {
			return fmt.Errorf("cancel the wake-up: %w", err)
		}
		return nil
	}
	item := work.Item{Ref: r.item.Ref, Kind: work.Wake, Reason: "time"}
	if err := r.Queue.Schedule(ctx, item, at); err != nil {
		return fmt.Errorf("schedule the wake-up: %w", err)
	}
	return nil
}

// store keeps the record with a verdict that was made now.
func (r *run) store(ctx context.Context) error {
	r.record.EvaluatedAt = r.Now().UTC()
	return r.keep(ctx)
}

func (r *run) keep(ctx context.Context) error {
	revision, err := r.Records.Put(ctx, r.item.Ref.String(), r.record, r.revision)
	if err != nil {
		return fmt.Errorf("keep the record: %w", err)
	}
	r.revision, r.known = revision, true
	return nil
}

// claim comes before anything is said about a head. It makes sure that nobody else
// has worked on this pull request since it was taken in hand, and that this replica
// is not cut off: it writes the record, which needs most of the servers and the
// revision that was read. So whoever was taken for dead, or sees what is old, says
// nothing.
func (r *run) claim(ctx context.Context, head string) error {
	if !r.Shared || r.claimed {
		return nil
	}
	posted := &r.record.Posted
	if posted.Head != head {
		posted.Head, posted.Statuses = head, nil
	}
	posted.Unsure = true
	if err := r.keep(ctx); err != nil {
		return err
	}
	r.claimed = true
	return nil
}

// forget drops what is kept of a pull request that is not open any more. Others
// at the same head share its statuses, so they are looked at again.
func (r *run) forget(ctx context.Context, why string) error {
	r.gone = true
	if err := r.turnAway(ctx, "the pull request is not open any more, or signalbox does not work on its repository."); err != nil {
		return err
	}
	if !r.known {
		return nil
	}
	e := r.Evaluator
	last := r.record.Inputs.Snapshot.Pull.Repo
	e.Log.InfoContext(ctx, "pull request left", "repo", last.String(), "pull", last.Numbered(r.item.Ref.Number), "why", why)
	if err := e.Records.Delete(ctx, r.item.Ref.String()); err != nil {
		return fmt.Errorf("drop the record of %s: %w", r.item.Ref, err)
	}
	err := e.Queue.CancelWake(ctx, r.item.Ref)
	var others []pull.Ref
	for _, ref := range e.Index.AtHead(r.item.Ref.RepoID, r.record.Verdict.Head) {
		if ref != r.item.Ref {
			others = append(others, ref)
		}
	}
	return errors.Join(err, soon(ctx, e.Queue, work.Full, "shared a head with a pull request that left", others))
}

// sameVerdict reports whether two verdicts say the same to people. When to look
// again, and when and how much was read, is nothing that is said.
func sameVerdict(a, b policy.Verdict) bool {
	a.LookAgain, b.LookAgain = time.Time{}, time.Time{}
	a.Reads, b.Reads = nil, nil
	a.Wishes, b.Wishes = nil, nil
	a.Notes, b.Notes = nil, nil
	a.Results, b.Results = undated(a.Results), undated(b.Results)
	return reflect.DeepEqual(a, b)
}

// undated returns results without when and how much was read.
func undated(results []policy.Result) []policy.Result {
	results = slices.Clone(results)
	for i := range results {
		results[i].Checks = slices.Clone(results[i].Checks)
		for j := range results[i].Checks {
			results[i].Checks[j].ReadAt, results[i].Checks[j].Looked = time.Time{}, ""
		}
	}
	return results
}
