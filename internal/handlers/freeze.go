package handlers

import (
	"context"
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

// freeze stops the whole repository. That a person is the author of one pull
// request gives no right to that.
func (r *run) freeze(ctx context.Context, in *Inputs, q request) (result, error) {
	if why, err := r.mayNotWrite(ctx, in, q.by); why != "" || err != nil {
		return result{why: why}, err
	}
	e := r.entry(decision.Freeze, q)
	if e.Until = q.Until; e.Until.IsZero() {
		e.Until = e.At.Add(q.Lasts)
	}
	switch {
	case !r.Now().Before(e.Until):
		return no("it would have ended at %s already.", stamp(e.Until)), nil
	case e.Until.Sub(e.At) > command.MaxFreeze:
		return no("a freeze lasts 14 days at most, so until %s.", stamp(e.At.Add(command.MaxFreeze))), nil
	}
	return result{entry: e}, nil
}

// unfreeze lifts those freezes in force that a person may lift.
func (r *run) unfreeze(in *Inputs, q request) result {
	freezes := r.freezes.Freezes(r.Now())
	if len(freezes) == 0 {
		return no("the repository is not frozen.")
	}
	others := r.mayUnfreeze(in)
	all := slices.ContainsFunc(others, q.by.Is)
	e := r.entry(decision.Unfreeze, q)
	var stay []string
	var later []pull.Person
	may := others
	for _, f := range freezes {
		if f.At.After(q.at) {
			later = append(later, f.By)
			continue
		}
		if all || f.By.Is(q.by) {
			e.Lifts = append(e.Lifts, f.ID)
			continue
		}
		stay = append(stay, fmt.Sprintf("by %s until %s", f.By.Login, stamp(f.Until)))
		if !slices.ContainsFunc(may, f.By.Is) {
			may = append(may, f.By)
		}
	}
	if len(e.Lifts) == 0 && len(later) > 0 {
		return no("the repository was frozen by %s after this was said. If you mean that, say it again.", names(later))
	}
	if len(e.Lifts) == 0 {
		return no("%s is not among those who may end the freeze: %s.", q.by.Login, names(may))
	}
	res := result{entry: e}
	if len(stay) > 0 {
		res.say = fmt.Sprintf("The repository is still frozen %s. Those who may end that: %s.", strings.Join(stay, ", "), names(may))
	}
	return res
}

// mayUnfreeze are the people who may end the freezes of others, as seen from this
// pull request: who approves it or may override it, and its author never.
func (r *run) mayUnfreeze(in *Inputs) []pull.Person {
	overriders, _ := policy.Overriders(r.input(in, newFactLog(r.Facts)))
	var out []pull.Person
	for _, p := range append(r.othersThan(in, r.pull.Author), overriders...) {
		if p.Is(r.pull.Author) || p.Is(r.self) || slices.ContainsFunc(r.Bots, p.Is) || slices.ContainsFunc(out, p.Is) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// spread asks for another look at all other open pull requests of the repository
// after an entry that acts on all of them, also at those that another replica saw
// last. Asking again for the same entry does no harm: whoever carries it out asks
// each time, because the one who wrote it may have been ended before asking.
//
// A pull request that is being looked at for the first time is not found here if
// its record is stored later. Then its evaluation finds the entry; see
// [run.refrozen].
func (r *run) spread(ctx context.Context, e decision.Entry) error {
	if !e.OfRepo() {
		return nil
	}
	if err := r.Records.Sync(ctx); err != nil {
		return fmt.Errorf("ask for the pull requests that a %s concerns: %w", e.Kind, err)
	}
	others := slices.DeleteFunc(r.Index.OfRepo(r.item.Ref.RepoID), func(ref pull.Ref) bool { return ref == r.item.Ref })
	return soon(ctx, r.Queue, work.Fact, string(e.Kind)+" of the repository", others)
}

// spreadLast does what an earlier run may not have come to, before the pull
// request is forgotten: nobody carries its commands out after that.
func (r *run) spreadLast(ctx context.Context) error {
	if !r.known {
		return nil
	}
	for _, e := range slices.Backward(r.ledger) {
		if e.OfRepo() {
			return r.spread(ctx, e)
		}
	}
	return nil
}

// refrozen reports whether there are freezes or ends of such that the verdict was
// not made from. Like a fact, one can come while the verdict is being made.
func (r *run) refrozen() bool {
	return len(r.Ledger.Freezes(r.item.Ref.RepoID)) != len(r.freezes)
}

// stamp writes a time for people; see the same in package policy.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
