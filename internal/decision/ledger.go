package decision

import (
	"slices"
	"time"

	"signalbox/internal/pull"
)

// Ledger is entries, all of them or those of one pull request or repository, in
// the order of the ledger.
type Ledger []Entry

// Of returns the entries of one pull request.
func (l Ledger) Of(ref pull.Ref) Ledger {
	var out Ledger
	for _, e := range l {
		if e.Ref() == ref {
			out = append(out, e)
		}
	}
	return out
}

// Target is what decisions are asked about: a pull request as it is now.
type Target struct {
	Base, Head string
	// Retargets is how often the base was changed in all.
	Retargets int
	Now       time.Time
}

// Has reports whether there is an entry with an id.
func (l Ledger) Has(id string) bool {
	return slices.ContainsFunc(l, func(e Entry) bool { return e.ID == id })
}

// Approvals returns, for each person, the approval that was not taken back
// since, whatever head it was given on.
func (l Ledger) Approvals() []Entry {
	return l.latest(Approve, ApproveCancel)
}

// latest returns, for each person, the last entry of a kind after which the
// person has made none of the other.
func (l Ledger) latest(kind, cancel Kind) []Entry {
	var out []Entry
	for _, e := range l {
		if e.Kind != kind && e.Kind != cancel {
			continue
		}
		out = slices.DeleteFunc(out, func(o Entry) bool { return o.By.Is(e.By) })
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// Withdrawn reports whether a person took approvals back after having submitted
// a review, so that the review is no word any more. A later approval by
// command does not bring the review back.
func (l Ledger) Withdrawn(by pull.Person, review int64) bool {
	return slices.ContainsFunc(l, func(e Entry) bool {
		return e.Kind == ApproveCancel && e.By.Is(by) && slices.Contains(e.Reviews, review)
	})
}

// ApprovedAfter reports whether a person's standing approval by command came
// after a review of theirs.
func (l Ledger) ApprovedAfter(by pull.Person, review int64) bool {
	return slices.ContainsFunc(l.Approvals(), func(e Entry) bool {
		return e.By.Is(by) && slices.Contains(e.Reviews, review)
	})
}

// Fits reports whether an entry was given for exactly the target: the same
// head, and the same base without a change in between.
func (e Entry) Fits(t Target) bool {
	return e.Head == t.Head && e.Base == t.Base && e.Retargets == t.Retargets
}

// Overrides returns the overrides that fit the target, have not ended and were
// not cancelled. A cancellation ends all that were given before it, by anybody.
func (l Ledger) Overrides(t Target) []Entry {
	var out []Entry
	for _, e := range l {
		switch {
		case e.Kind == OverrideCancel:
			out = nil
		case e.Kind == Override && e.Fits(t) && t.Now.Before(e.Until):
			// A later one of the same person replaces the earlier.
			out = slices.DeleteFunc(out, func(o Entry) bool { return o.By.Is(e.By) })
			out = append(out, e)
		}
	}
	return out
}

// Holds returns the holds that were not lifted. They outlive pushes: whoever
// holds waits for something else than a change.
func (l Ledger) Holds() []Entry {
	var out []Entry
	for _, e := range l {
		switch e.Kind {
		case Hold:
			out = append(out, e)
		case Unhold:
			out = slices.DeleteFunc(out, func(h Entry) bool { return slices.Contains(e.Lifts, h.ID) })
		}
	}
	return out
}

// Linked returns the entry that says whose an account of a chat is: the last of
// those about it, unless that takes the link back. The ledger holds the entries
// about one account.
func (l Ledger) Linked() (Entry, bool) {
	for _, e := range slices.Backward(l) {
		switch e.Kind {
		case Link:
			return e, true
		case Unlink:
			return Entry{}, false
		}
	}
	return Entry{}, false
}

// MergeRequest returns the request to merge that fits the target and is not
// over: a push, a changed base, a hold, a cancellation and an outcome end it.
func (l Ledger) MergeRequest(t Target) (Entry, bool) {
	var request *Entry
	for i := range l {
		switch l[i].Kind {
		case Merge:
			if request == nil && l[i].Fits(t) {
				request = &l[i]
			}
		case MergeCancel, Merged, MergeFailed, Hold:
			request = nil
		}
	}
	if request == nil {
		return Entry{}, false
	}
	return *request, true
}
