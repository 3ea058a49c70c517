package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// boardRows is how many pull requests one page of the board has, and maxQuery
// bounds the text that is searched for, in runes.
const (
	boardRows = 100
	maxQuery  = 200
	// maxRowReason bounds the reason of a row, in runes.
	maxRowReason = 300
)

// pullRoutes are the pages of pull requests.
func (s *Server) pullRoutes(r router) {
	r.page("GET /{$}", s.board)
	r.page("GET /pulls/{owner}/{repo}/{number}", s.pull)
	r.page("POST /pulls/{owner}/{repo}/{number}/command", s.command)
}

// boardFilter is what the board is asked for; the zero value is all.
type boardFilter struct {
	// Repo is "owner/name".
	Repo  string
	State policy.GateState
	// Text is looked for in title, author, branch and number.
	Text string
	// Who is "mine" for what the viewer wrote, or "approve" for what they can approve.
	Who string
	// Sort is "new" for the newest first; else those that wait longest are first.
	Sort string
	Page int
}

// boardStates are the states that can be asked for, in their order.
var boardStates = []policy.GateState{policy.Clear, policy.Waiting, policy.Blocked, policy.Undecided}

func filterOf(query url.Values) boardFilter {
	f := boardFilter{Repo: query.Get("repo"), Text: clip(clean(query.Get("q")), maxQuery), Page: 1}
	if state := policy.GateState(query.Get("state")); slices.Contains(boardStates, state) {
		f.State = state
	}
	if who := query.Get("who"); who == "mine" || who == "approve" {
		f.Who = who
	}
	if query.Get("sort") == "new" {
		f.Sort = "new"
	}
	if n, err := strconv.Atoi(query.Get("page")); err == nil && n > 1 {
		f.Page = n
	}
	return f
}

// path is that of the board with this filter.
func (f boardFilter) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"repo": f.Repo, "state": string(f.State), "q": f.Text, "who": f.Who, "sort": f.Sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Page > 1 {
		q.Set("page", strconv.Itoa(f.Page))
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

func (f boardFilter) on(page int) boardFilter {
	f.Page = page
	return f
}

// boardView is what the board shows.
type boardView struct {
	Filter boardFilter
	Repos  []string
	// Seen is how many open pull requests the viewer sees, and Found how many of
	// them are asked for.
	Seen, Found int
	Chips       []chip
	Rows        []boardRow
	// Reset is the board without a filter; Before and After are the pages beside.
	Before, After string
	Pages         int
}

// chip leads to the board with another state, and says how many there are.
type chip struct {
	Path  string
	Sign  sign
	Count int
	Here  bool
}

// boardRow is one pull request of the board.
type boardRow struct {
	Pull     pull.Pull
	State    policy.GateState
	Reason   string
	Since    time.Time
	Observed bool
	// Marks are what else one should know at a glance, such as "held".
	Marks []string
}

func (s *Server) board(w http.ResponseWriter, v *visit) error {
	view := s.boardOf(v)
	return s.show(w, v, page{Template: "board", Title: "Board", Nav: "/", Live: "all", Data: view})
}

// found is a pull request that is asked for, before it is made a row. There may be
// thousands, so it is only what they are sorted by.
type found struct {
	ref   pull.Ref
	state policy.GateState
	since time.Time
	// key is what the board is sorted by.
	key time.Time
}

func (s *Server) boardOf(v *visit) boardView {
	view := boardView{Filter: filterOf(v.URL.Query())}
	f := view.Filter
	for _, repo := range s.Pulls.Repositories() {
		if v.sight.repo(repo.ID) {
			view.Repos = append(view.Repos, repo.String())
		}
	}
	var all []found
	counts := map[policy.GateState]int{}
	text := strings.ToLower(f.Text)
	for standing := range s.Pulls.All() {
		if !v.sight.repo(standing.Pull.Repo.ID) {
			continue
		}
		view.Seen++
		if !f.matches(&standing, text, v.viewer) {
			continue
		}
		state := stateOf(&standing)
		counts[state]++
		if f.State == "" || f.State == state {
			one := found{ref: standing.Pull.Ref(), state: state, since: sinceWhen(&standing)}
			// What has stood since nobody knows when stands since it is there.
			if one.key = one.since; f.Sort == "new" || one.key.IsZero() {
				one.key = standing.Pull.CreatedAt
			}
			all = append(all, one)
		}
	}
	view.Found = len(all)
	view.chips(counts)
	slices.SortFunc(all, func(a, b found) int {
		if f.Sort == "new" {
			a, b = b, a
		}
		return cmp.Or(a.key.Compare(b.key), cmp.Compare(a.ref.RepoID, b.ref.RepoID), cmp.Compare(a.ref.Number, b.ref.Number))
	})
	view.Pages = max(1, (len(all)+boardRows-1)/boardRows)
	view.Filter.Page = min(f.Page, view.Pages)
	first := (view.Filter.Page - 1) * boardRows
	for _, row := range all[first:min(first+boardRows, len(all))] {
		// One that was merged in this moment is left out.
		if standing, ok := s.Pulls.Get(row.ref); ok {
			view.Rows = append(view.Rows, row.of(&standing))
		}
	}
	if view.Filter.Page > 1 {
		view.Before = f.on(view.Filter.Page - 1).path()
	}
	if view.Filter.Page < view.Pages {
		view.After = f.on(view.Filter.Page + 1).path()
	}
	return view
}

// chips makes those of all states, of which those that nothing is in are left out.
func (v *boardView) chips(counts map[policy.GateState]int) {
	total := 0
	for _, n := range counts {
		total += n
	}
	f := v.Filter.on(1)
	f.State = ""
	v.Chips = append(v.Chips, chip{f.path(), sign{"all", "", "all"}, total, v.Filter.State == ""})
	for _, state := range boardStates {
		if f.State = state; counts[state] > 0 || v.Filter.State == state {
			v.Chips = append(v.Chips, chip{f.path(), signOf(state), counts[state], v.Filter.State == state})
		}
	}
}

// matches reports whether a pull request is asked for, whatever its state. Text is
// that of the filter in lower case.
func (f boardFilter) matches(s *policy.Standing, text string, by viewer) bool {
	p := &s.Pull
	switch {
	case f.Repo != "" && !strings.EqualFold(f.Repo, p.Repo.String()):
		return false
	case f.Who == "mine" && !p.Author.Is(by.Person):
		return false
	case f.Who == "approve" && !canApprove(&s.Verdict, by.Person.Login):
		return false
	case text == "":
		return true
	}
	return strings.TrimPrefix(text, "#") == strconv.FormatInt(p.Number, 10) ||
		strings.Contains(strings.ToLower(p.Title), text) ||
		strings.Contains(strings.ToLower(p.Author.Login), text) ||
		strings.Contains(strings.ToLower(p.Head.Name), text)
}

// canApprove reports whether a rule that is open waits for somebody.
func canApprove(v *policy.Verdict, login string) bool {
	return login != "" && slices.ContainsFunc(v.Approvals, func(a policy.ApprovalResult) bool {
		return a.State.Open() && slices.ContainsFunc(a.CanApprove, func(l string) bool { return strings.EqualFold(l, login) })
	})
}

// stateOf is the state of a pull request; without a verdict it is not decided.
func stateOf(s *policy.Standing) policy.GateState {
	if s.EvaluatedAt.IsZero() {
		return policy.Undecided
	}
	if state := s.Verdict.State(); slices.Contains(boardStates, state) {
		return state
	}
	return policy.Undecided
}

// sinceWhen is when a pull request came into its state; zero if that is not known.
func sinceWhen(s *policy.Standing) time.Time {
	var since time.Time
	if s.EvaluatedAt.IsZero() {
		return since
	}
	state := s.Verdict.State()
	for _, c := range slices.Backward(s.History) {
		if c.State() != state {
			break
		}
		since = c.At
	}
	return since
}

// of makes the row of a pull request.
func (f found) of(s *policy.Standing) boardRow {
	row := boardRow{Pull: s.Pull, State: f.state, Since: f.since, Observed: s.Observed, Reason: "signalbox has not looked at it yet"}
	if !s.EvaluatedAt.IsZero() {
		row.Reason = clip(firstReason(&s.Verdict), maxRowReason)
	}
	for mark, is := range map[string]bool{
		"draft":           s.Pull.Draft,
		"held":            len(s.Verdict.Holds) > 0,
		"frozen":          len(s.Verdict.Freezes) > 0,
		"overridden":      len(s.Verdict.Overrides) > 0,
		"merge asked for": s.Verdict.Merge != nil,
		"only observed":   s.Observed,
	} {
		if is {
			row.Marks = append(row.Marks, mark)
		}
	}
	slices.Sort(row.Marks)
	return row
}

// firstReason is the reason of the gate that decides.
func firstReason(v *policy.Verdict) string {
	if v.Preconditions.State == v.State() && v.State() != policy.Clear {
		return v.Preconditions.Reason
	}
	return v.Approval.Reason
}
