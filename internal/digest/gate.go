package digest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// gate finds what is the matter with signalbox itself, with what guards the
// branches, and with the pull requests, and tells what people decided.
func (f *finder) gate() {
	if !f.wants(Gate) {
		return
	}
	if n := f.in.DeadLetters; n > 0 {
		f.add(Finding{
			ID: id(Gate, "dead-letters"), Section: Gate, Severity: Broken,
			Subject: "signalbox", Text: plural(n, "message") + " could not be handled; they wait as dead letters",
		})
	}
	f.decisions(f.pulls())
}

// protection finds the ways round signalbox that a branch leaves. A repository that
// is only observed is not held to anything.
func (f *finder) protection(of map[int64]*repoPulls) {
	told := map[fact.Key]bool{}
	for _, held := range f.ofRepos(fact.KindProtection) {
		told[held.Key] = true
		if held.Protection == nil || len(held.Protection.Gaps) == 0 || held.repo.Observed || of[held.repo.ID].onlyObserved() {
			continue
		}
		f.gaps(held.repo, held.Key.Name, held.Protection.Gaps, held.Since)
	}
	for _, repo := range f.repositories() {
		if of[repo.ID] == nil {
			continue
		}
		for _, p := range of[repo.ID].pulls {
			// What a verdict knows counts where no fact says more.
			key := fact.ProtectionKey(repo.ID, p.Pull.Base.Name)
			if len(p.Verdict.Gaps) > 0 && !told[key] && !p.Observed {
				told[key] = true
				f.gaps(repo, p.Pull.Base.Name, p.Verdict.Gaps, time.Time{})
			}
		}
	}
}

func (f *finder) gaps(repo Repository, branch string, gaps []string, since time.Time) {
	f.add(Finding{
		ID: id(Gate, "repo", repo.ID, "protection", branch), Section: Gate, Repo: repo.ID, Severity: Broken,
		Subject: fmt.Sprintf("Branch %s of %s", clip(branch, maxName), repo), Text: "can be gone round: " + strings.Join(gaps, "; "), Since: since,
	})
}

// repositories returns the repositories, sorted by name.
func (f *finder) repositories() []Repository {
	all := slices.Clone(f.in.Repositories)
	slices.SortStableFunc(all, func(a, b Repository) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// decisions tells the holds, freezes and overrides that are in force, and the
// overrides that were used since the report before.
func (f *finder) decisions(of map[int64]*repoPulls) {
	holds, freezes := map[pull.Ref]decision.Ledger{}, map[int64]decision.Ledger{}
	var overrides decision.Ledger
	for _, e := range f.in.Decisions {
		switch e.Kind {
		case decision.Hold, decision.Unhold:
			holds[e.Ref()] = append(holds[e.Ref()], e)
		case decision.Freeze, decision.Unfreeze:
			freezes[e.Repo.ID] = append(freezes[e.Repo.ID], e)
		case decision.Override:
			if !f.in.Since.IsZero() && e.At.After(f.in.Since) {
				overrides = append(overrides, e)
			}
		default:
		}
	}
	for _, repo := range f.repositories() {
		for _, e := range freezes[repo.ID].Freezes(f.in.Now) {
			f.decided(e, repo, repo.String(), "is frozen")
		}
	}
	told := map[string]bool{}
	for _, repo := range f.repositories() {
		if of[repo.ID] == nil {
			continue
		}
		for _, p := range of[repo.ID].pulls {
			for _, e := range holds[p.Pull.Ref()].Holds() {
				f.decided(e, repo, subjectOf(p.Pull), "is held")
			}
			for _, e := range p.Verdict.Overrides {
				if f.in.Now.Before(e.Until) {
					told[e.ID] = true
					f.decided(e, repo, subjectOf(p.Pull), passed(e))
				}
			}
		}
	}
	for _, e := range overrides {
		repo, ok := f.repos[e.Repo.ID]
		if ok && !told[e.ID] {
			f.used(e, repo)
		}
	}
}

// decided tells a decision that is in force.
func (f *finder) decided(e decision.Entry, repo Repository, subject, text string) {
	text += " by " + e.By.Login
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if !e.Until.IsZero() {
		text += " (until " + e.Until.UTC().Format("2006-01-02 15:04 UTC") + ")"
	}
	f.add(Finding{
		ID: id(Gate, "repo", repo.ID, "decision", e.ID), Section: Gate, Repo: repo.ID, Severity: Notable,
		Subject: subject, Text: text, Since: e.At, URL: e.URL,
	})
}

// used tells an override that was used and is not in force any more.
func (f *finder) used(e decision.Entry, repo Repository) {
	text := passed(e) + " by " + e.By.Login
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	f.add(Finding{
		ID: id(Gate, "repo", repo.ID, "decision", e.ID), Section: Gate, Repo: repo.ID, Severity: Notable, Once: true,
		Subject: fmt.Sprintf("%s#%d", repo, e.Number), Text: text, Since: e.At, URL: e.URL,
	})
}

// passed says what an override passes.
func passed(e decision.Entry) string {
	names := make([]string, 0, len(e.Passes))
	for _, n := range e.Passes {
		names = append(names, clip(n, maxName))
	}
	if len(names) == 0 {
		return "was overridden"
	}
	return "was let past " + someOf(names)
}

// subjectOf names a pull request.
func subjectOf(p pull.Pull) string {
	return fmt.Sprintf("%s#%d %s", p.Repo, p.Number, clip(p.Title, maxName))
}

// standingSince is since when a pull request is in the state in which it is, as far
// back as its history goes; zero if that is not known.
func standingSince(s *policy.Standing) time.Time {
	state, since := s.Verdict.State(), time.Time{}
	for i := len(s.History) - 1; i >= 0; i-- {
		c := &s.History[i]
		same := c.Preconditions.State == s.Verdict.Preconditions.State && c.Approval.State == s.Verdict.Approval.State
		if !same && c.State() != state {
			break
		}
		since = c.At
	}
	return since
}
