package digest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/policy"
)

const (
	// patience is how long a pull request may wait or be blocked before people are
	// told.
	patience = 72 * time.Hour
	// maxWaiting and maxUndecided bound the pull requests of a repository that are
	// told, those that wait longest first.
	maxWaiting   = 5
	maxUndecided = 20
)

// repoPulls are the pull requests of one repository.
type repoPulls struct {
	pulls []*policy.Standing
}

// onlyObserved reports whether nothing is decided on any of them. Nil has none.
func (r *repoPulls) onlyObserved() bool {
	return r != nil && len(r.pulls) > 0 && !slices.ContainsFunc(r.pulls, func(s *policy.Standing) bool { return !s.Observed })
}

// pulls counts the pull requests of each repository, and finds those that are not
// decided or have waited for long. It returns them by repository.
func (f *finder) pulls() map[int64]*repoPulls {
	of := map[int64]*repoPulls{}
	for i := range f.in.Pulls {
		p := &f.in.Pulls[i]
		if of[p.Pull.Repo.ID] == nil {
			of[p.Pull.Repo.ID] = &repoPulls{}
		}
		of[p.Pull.Repo.ID].pulls = append(of[p.Pull.Repo.ID].pulls, p)
	}
	for _, r := range of {
		slices.SortFunc(r.pulls, func(a, b *policy.Standing) int { return cmp.Compare(a.Pull.Number, b.Pull.Number) })
	}
	f.protection(of)
	for _, repo := range f.repositories() {
		if r := of[repo.ID]; r != nil {
			f.pullsOf(repo, r.pulls)
		}
	}
	return of
}

// waitingPull is a pull request with since when it stands as it does.
type waitingPull struct {
	*policy.Standing
	since time.Time
}

// pullsOf tells of the pull requests of one repository.
func (f *finder) pullsOf(repo Repository, pulls []*policy.Standing) {
	states, newly := map[policy.GateState]int{}, 0
	var undecided, waiting []waitingPull
	for _, p := range pulls {
		if p.EvaluatedAt.IsZero() {
			newly++
			continue
		}
		state := p.Verdict.State()
		states[state]++
		if p.Observed || state == policy.Clear {
			continue
		}
		w := waitingPull{p, standingSince(p)}
		switch {
		case state == policy.Undecided:
			undecided = append(undecided, w)
		case !p.Pull.Draft && !w.since.IsZero() && f.in.Now.Sub(w.since) >= patience:
			waiting = append(waiting, w)
		}
	}
	text := fmt.Sprintf("%s of %s", plural(len(pulls), "open pull request"), repo)
	var parts []string
	for _, s := range []policy.GateState{policy.Clear, policy.Waiting, policy.Blocked, policy.Undecided} {
		if states[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	if newly > 0 {
		parts = append(parts, fmt.Sprintf("%d not looked at yet", newly))
	}
	f.summary(Gate, Summary{Repo: repo.ID, Text: text + ": " + enumerate(parts), Pulls: len(pulls), Clear: states[policy.Clear]})
	f.standing(repo, undecided, maxUndecided, Unclear, "undecided")
	f.standing(repo, waiting, maxWaiting, Notable, "waits")
}

// standing tells those of some pull requests that stand longest as they do, and
// counts the others.
func (f *finder) standing(repo Repository, all []waitingPull, most int, s Severity, fault string) {
	slices.SortStableFunc(all, func(a, b waitingPull) int { return a.since.Compare(b.since) })
	for i, p := range all {
		if i == most {
			f.add(Finding{
				ID: id(Gate, "repo", repo.ID, "pulls", fault), Section: Gate, Repo: repo.ID, Severity: s,
				Subject: fmt.Sprintf("%s more of %s", plural(len(all)-most, "pull request"), repo), Text: "the same, for less long",
			})
			return
		}
		f.add(Finding{
			ID: id(Gate, "repo", repo.ID, "pull", p.Pull.Number, fault), Section: Gate, Repo: repo.ID, Severity: s,
			Subject: subjectOf(p.Pull), Text: stands(&p.Verdict), Since: p.since, URL: p.Pull.URL,
		})
	}
}

// stands says how a pull request stands, and why.
func stands(v *policy.Verdict) string {
	state := v.State()
	why := v.Approval.Reason
	if v.Preconditions.State == state {
		why = v.Preconditions.Reason
	}
	text := map[policy.GateState]string{
		policy.Waiting: "waits", policy.Blocked: "is blocked", policy.Undecided: "cannot be decided",
	}[state]
	if why == "" {
		return text
	}
	return text + ": " + why
}
