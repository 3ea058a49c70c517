package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// pullView is what the page of an open pull request shows.
type pullView struct {
	policy.Standing
	State policy.GateState
	// Looked says that there is a verdict, and Current that it is of this head.
	Looked, Current bool
	Since           time.Time
	// Clears is what has to happen until it is clear.
	Clears []step
	// Open and Settled are the preconditions that stand against it, and the others.
	Open, Settled []policy.Result
	// Approvals are those of the rules that are about this change.
	Approvals []policy.ApprovalResult
	// Elsewhere is how many rules are not.
	Elsewhere int
	Said      *said
	Forms     *forms
	History   []moment
	// Older is how many moments of the history are not shown.
	Older int
	// Files are at most some of the changed files, and MoreFiles the rest.
	Files     []pull.File
	MoreFiles int
}

// Bounds of a page; maxEvidence is of all evidence together, in bytes.
const (
	maxMoments  = 100
	maxFiles    = 200
	maxEvidence = 120_000
)

// target finds the pull request that a path names, if the viewer may see it. Open
// is false where signalbox knows no open one.
func (s *Server) target(v *visit) (repo pull.Repo, ref pull.Ref, standing policy.Standing, open bool, err error) {
	number, err := strconv.ParseInt(v.PathValue("number"), 10, 64)
	if err != nil || number <= 0 {
		return repo, ref, standing, false, errNotFound
	}
	all := s.Pulls.Repositories()
	i := slices.IndexFunc(all, func(r pull.Repo) bool {
		return strings.EqualFold(r.Owner, v.PathValue("owner")) && strings.EqualFold(r.Name, v.PathValue("repo"))
	})
	if i < 0 || !v.sight.repo(all[i].ID) {
		return repo, ref, standing, false, errNotFound
	}
	repo, ref = all[i], pull.Ref{RepoID: all[i].ID, Number: number}
	standing, open = s.Pulls.Get(ref)
	return repo, ref, standing, open, nil
}

// pull shows a pull request.
func (s *Server) pull(w http.ResponseWriter, v *visit) error {
	repo, ref, standing, open, err := s.target(v)
	if err != nil {
		return err
	}
	entries := s.Decisions.Entries(ref)
	if !open {
		return s.showEnded(w, v, repo, ref, entries)
	}
	view := pullView{
		Standing: standing, State: stateOf(&standing), Looked: !standing.EvaluatedAt.IsZero(), Since: sinceWhen(&standing),
		Said: saidOf(v.URL.Query().Get("said"), entries),
	}
	verdict := &standing.Verdict
	view.Current = view.Looked && verdict.Head == standing.Pull.Head.SHA
	if view.Looked {
		view.Clears = clears(&standing)
	}
	evidence := evidenceBudget(maxEvidence)
	for _, r := range verdict.Results {
		r.Checks = evidence.checks(r.Checks)
		if r.State.Open() {
			view.Open = append(view.Open, r)
		} else {
			view.Settled = append(view.Settled, r)
		}
	}
	for _, a := range verdict.Approvals {
		if a.State == policy.NotApplicable {
			view.Elsewhere++
		} else {
			view.Approvals = append(view.Approvals, a)
		}
	}
	slices.SortStableFunc(view.Approvals, func(a, b policy.ApprovalResult) int { return order(a.State) - order(b.State) })
	view.Forms = formsOf(v.viewer, &view)
	view.History = history(standing.History, entries)
	view.Older = max(0, len(view.History)-maxMoments)
	view.History = view.History[:len(view.History)-view.Older]
	view.Files = standing.Files[:min(len(standing.Files), maxFiles)]
	view.MoreFiles = len(standing.Files) - len(view.Files)
	title := signOf(view.State).Word + " · #" + strconv.FormatInt(ref.Number, 10) + " " + standing.Pull.Title
	return s.show(w, v, page{Template: "pull", Title: title, Live: "ref=" + ref.String(), Data: view})
}

// order puts what is open first.
func order(s policy.ResultState) int {
	if s.Open() {
		return 0
	}
	return 1
}

// endedView is what is known of a pull request that is not open.
type endedView struct {
	Repo    pull.Repo
	Number  int64
	Title   string
	URL     string
	History []moment
	Older   int
	Said    *said
}

// showEnded shows what the ledger has of a pull request that is not open any more, or
// never was.
func (s *Server) showEnded(w http.ResponseWriter, v *visit, repo pull.Repo, ref pull.Ref, entries decision.Ledger) error {
	view := endedView{
		Repo: repo, Number: ref.Number, History: history(nil, entries), Said: saidOf(v.URL.Query().Get("said"), entries),
		URL:   s.Gitea.JoinPath(repo.Owner, repo.Name, "pulls", strconv.FormatInt(ref.Number, 10)).String(),
		Title: "Not open",
	}
	code := http.StatusOK
	switch {
	case slices.ContainsFunc(entries, func(e decision.Entry) bool { return e.Kind == decision.Merged }):
		view.Title = "Merged by signalbox"
	case len(entries) == 0:
		code = http.StatusNotFound
	}
	view.Older = max(0, len(view.History)-maxMoments)
	view.History = view.History[:len(view.History)-view.Older]
	return s.show(w, v, page{Template: "ended", Title: view.Title + " · #" + strconv.FormatInt(ref.Number, 10), Live: "ref=" + ref.String(), Code: code, Data: view})
}
