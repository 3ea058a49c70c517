package decision

import (
	"slices"
	"time"
)

// OfRepo reports whether an entry acts on every pull request of its repository.
// It is bound to the one where it was said all the same.
func (e Entry) OfRepo() bool { return e.Kind == Freeze || e.Kind == Unfreeze }

// OfRepo returns the entries that act on every pull request of a repository.
func (l Ledger) OfRepo(repo int64) Ledger {
	var out Ledger
	for _, e := range l {
		if e.OfRepo() && e.Repo.ID == repo {
			out = append(out, e)
		}
	}
	return out
}

// Freezes returns the freezes that are in force at a time: those that have not
// ended by themselves and were not lifted. A freeze stops a whole repository, so
// this is asked of the entries of all its pull requests. No push, no merge and no
// closed pull request ends one.
func (l Ledger) Freezes(now time.Time) []Entry {
	var out []Entry
	for _, e := range l {
		switch {
		case e.Kind == Freeze && now.Before(e.Until):
			out = append(out, e)
		case e.Kind == Unfreeze:
			out = slices.DeleteFunc(out, func(f Entry) bool { return slices.Contains(e.Lifts, f.ID) })
		}
	}
	return out
}
