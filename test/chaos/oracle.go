package chaos

import (
	"maps"
	"slices"
	"strings"
)

// The people. Bob is the author of every pull request, and writes; Alice and Carol
// approve, and write; Alice may override; Mallory may read.
const (
	Alice   = "alice"
	Bob     = "bob"
	Carol   = "carol"
	Mallory = "mallory"
)

func approver(who string) bool { return who == Alice || who == Carol }

// What is a kind of deed.
type What string

// The deeds that decide something.
const (
	Push     What = "push"
	Retarget What = "retarget"
	Say      What = "say"
	Approve  What = "approve"
	Reject   What = "reject"
	// Dismiss is of the review with the ID of the deed.
	Dismiss What = "dismiss"
)

// Deed is what somebody did to a pull request, and how that was then: for a push and a
// change of the base, after it.
type Deed struct {
	What What
	By   string
	// ID is that of the comment or the review.
	ID int64
	// Line is the command.
	Line string
	// Head is the commit, Diff what it changes, Base the branch it goes into.
	Head, Diff, Base string
}

// Outcome is how the program took a command: the kind of the entry in its ledger, and
// the head that it is bound to.
type Outcome struct{ Kind, Head string }

// Oracle knows what people did to one pull request and what may follow from that, by the
// rules as the documents tell them to people. It shares no code with the program.
type Oracle struct {
	// Kept says that an approval survives a push that leaves the diff as it is.
	Kept  bool
	Deeds []Deed
}

// now is how the pull request is.
func (o *Oracle) now() Deed { return o.Deeds[len(o.Deeds)-1] }

// Admissible returns the outcomes that a command may have, given those of the commands
// before it.
func (o *Oracle) Admissible(i int, outcomes map[int64]Outcome) []string {
	d := o.Deeds[i]
	line, _, _ := strings.Cut(d.Line, " because")
	refused := []string{"refused"}
	switch line {
	case "/hold":
		if d.By == Mallory {
			return refused
		}
		return []string{"hold"}
	case "/unhold":
		held := holds(o.Deeds[:i], outcomes)
		if len(held) > 0 && approver(d.By) || slices.Contains(slices.Collect(maps.Values(held)), d.By) {
			return []string{"unhold"}
		}
		return refused
	case "/approve":
		if !approver(d.By) {
			return refused
		}
		// Where the head was pushed at the same moment, nobody knows which was meant.
		return []string{"approve", "refused"}
	case "/approve cancel":
		if !approver(d.By) {
			return refused
		}
		return []string{"approve-cancel"}
	case "/approve-override":
		if d.By != Alice {
			return refused
		}
		return []string{"override", "refused"}
	case "/approve-override cancel":
		if d.By != Alice {
			return refused
		}
		return []string{"override-cancel"}
	}
	return nil
}

// Bound reports whether an outcome is bound to a head that its author could have seen.
func (o *Oracle) Bound(i int, got Outcome) bool {
	return got.Kind != "approve" && got.Kind != "override" || got.Head == o.Deeds[i].Head
}

// holds returns the holds in force after some deeds, by comment, and whose they are.
func holds(deeds []Deed, outcomes map[int64]Outcome) map[int64]string {
	held := map[int64]string{}
	for _, d := range deeds {
		switch {
		case d.What != Say:
		case outcomes[d.ID].Kind == "hold":
			held[d.ID] = d.By
		case outcomes[d.ID].Kind == "unhold" && approver(d.By):
			clear(held)
		case outcomes[d.ID].Kind == "unhold":
			maps.DeleteFunc(held, func(_ int64, by string) bool { return by == d.By })
		}
	}
	return held
}

// fits reports whether what was said of a head is said of the present one. Sure is false
// where it is only if signalbox saw that the diff is the same.
func (o *Oracle) fits(i int) (may, sure bool) {
	then, now := o.Deeds[i], o.now()
	if slices.ContainsFunc(o.Deeds[i:], func(d Deed) bool { return d.What == Retarget }) {
		return false, false
	}
	if then.Head == now.Head {
		return true, true
	}
	return o.Kept && then.Diff == now.Diff, false
}

// after reports whether somebody did something after a deed.
func (o *Oracle) after(i int, by string, is func(Deed) bool) bool {
	return slices.ContainsFunc(o.Deeds[i+1:], func(d Deed) bool { return d.By == by && is(d) })
}

// States returns the states that the status of the approval may have in the end.
func (o *Oracle) States(outcomes map[int64]Outcome) []string {
	kind := func(k string) func(Deed) bool {
		return func(d Deed) bool { return d.What == Say && outcomes[d.ID].Kind == k }
	}
	review := func(d Deed) bool { return d.What == Approve || d.What == Reject }
	rejects := func(d Deed) bool { return d.What == Reject }
	may, sure, rejected := false, false, false
	for i, d := range o.Deeds {
		last := review(d) && !o.after(i, d.By, review)
		stands := last && !slices.ContainsFunc(o.Deeds[i:], func(x Deed) bool { return x.What == Dismiss && x.ID == d.ID })
		mayFit, sureFit := o.fits(i)
		switch {
		case kind("override")(d):
			may = may || mayFit && d.Head == o.now().Head && !slices.ContainsFunc(o.Deeds[i:], kind("override-cancel"))
		case stands && d.What == Reject:
			// An approval by command that came later is a word too.
			k := lastOf(o.Deeds, d.By, kind("approve"))
			lifted := k > i && !o.after(k, d.By, kind("approve-cancel"))
			rejected = rejected || !lifted
		case !approver(d.By) || o.after(i, d.By, kind("approve-cancel")):
		case stands && d.What == Approve, kind("approve")(d) && !o.after(i, d.By, rejects):
			may, sure = may || mayFit, sure || sureFit
		}
	}
	switch {
	case rejected:
		return []string{"failure"}
	case len(holds(o.Deeds, outcomes)) > 0:
		return []string{"pending"}
	case sure:
		return []string{"success"}
	case may:
		return []string{"success", "pending"}
	}
	return []string{"pending"}
}

// lastOf returns the place of the last deed of somebody of a kind, or -1.
func lastOf(deeds []Deed, by string, is func(Deed) bool) int {
	for i, d := range slices.Backward(deeds) {
		if d.By == by && is(d) {
			return i
		}
	}
	return -1
}

// Overridden reports whether an override may be in force.
func (o *Oracle) Overridden(outcomes map[int64]Outcome) bool {
	return slices.ContainsFunc(o.Deeds, func(d Deed) bool {
		return d.What == Say && outcomes[d.ID].Kind == "override" && d.Head == o.now().Head
	})
}

// Ever reports whether anything that was done could have let the approval of the present
// head be a success for a moment. It may be asked while the program is still at work.
func (o *Oracle) Ever() bool {
	now := o.now()
	return slices.ContainsFunc(o.Deeds, func(d Deed) bool {
		agrees := approver(d.By) && (d.What == Approve || d.What == Say && d.Line == "/approve") ||
			d.By == Alice && d.What == Say && strings.HasPrefix(d.Line, "/approve-override because")
		return agrees && d.Base == now.Base && (d.Head == now.Head || o.Kept && d.Diff == now.Diff)
	})
}
