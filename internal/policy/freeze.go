package policy

import (
	"cmp"
	"fmt"
	"slices"

	"signalbox/internal/decision"
)

// FreezeRule is the name of the precondition that is part of every verdict while
// the repository is frozen, whatever the policy says and without one too.
const FreezeRule = "the repository is not frozen"

// BuiltIn stands for the policy of a rule that no policy has.
const BuiltIn = "built in"

// maxFreezes bounds the freezes that a verdict names. The one that ends last is
// among them, so what is left out does not decide.
const maxFreezes = 10

// freezes returns the freezes in force that end last, the last first, and notes
// when the first of all ends.
func (e *evaluation) freezes() []decision.Entry {
	all := unplaced(e.in.Freezes.Freezes(e.in.Now))
	for _, f := range all {
		e.reading.Again(f.Until)
	}
	slices.SortStableFunc(all, func(a, b decision.Entry) int { return b.Until.Compare(a.Until) })
	return all[:min(len(all), maxFreezes)]
}

// frozen is the precondition that the repository is not frozen; ok is false if
// it is not. An override passes it like any other rule that was open when it was
// given: one that is older than a freeze in force does not.
func (e *evaluation) frozen(repository *Policy) (r Result, ok bool) {
	all := e.in.Freezes.Freezes(e.in.Now)
	if len(all) == 0 {
		return Result{}, false
	}
	last := slices.MaxFunc(all, func(a, b decision.Entry) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(b.Seq, a.Seq)) })
	newest := slices.MaxFunc(all, func(a, b decision.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	r = Result{
		Name: FreezeRule, Policy: BuiltIn, State: Unmet,
		Reason: freezeText(last, len(all)-1),
		Brief:  fmt.Sprintf("frozen until %s by %s", stamp(last.Until), last.By.Login),
	}
	r.Checks = []Check{{State: Unmet, Reason: r.Reason, Brief: r.Brief, Since: last.At, Evidence: freezeEvidence(last)}}
	if e.overriding(repository, newest.Seq).passes(nil, RuleKey("precondition", FreezeRule)) {
		r.State = Overridden
	}
	return r, true
}

// freezeText says who froze a repository, until when and why, and that there are
// more who did.
func freezeText(f decision.Entry, more int) string {
	text := fmt.Sprintf("frozen by %s until %s", f.By.Login, stamp(f.Until))
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	if more > 0 {
		text += fmt.Sprintf(" (and %s more)", plural(more, "freeze"))
	}
	return text
}

// freezeEvidence says where the repository was frozen.
func freezeEvidence(f decision.Entry) []Evidence {
	ev := []Evidence{
		{Label: "frozen by", Value: f.By.Login},
		{Label: "until", Value: stamp(f.Until)},
		{Label: "on", Value: fmt.Sprintf("pull request %d", f.Number)},
	}
	if f.URL != "" {
		ev = append(ev, Evidence{Label: "where", Value: f.URL})
	}
	return ev
}
