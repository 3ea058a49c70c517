package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

func (s *server) registerPulls(api huma.API) {
	register(api, huma.Operation{
		OperationID: "list-pulls", Path: "/pulls", Tags: []string{tagPulls},
		Summary:     "List open pull requests",
		Description: "Every open pull request of the repositories that signalbox looks after, sorted by the id of the repository and the number. The order never changes, so that a list that is read page by page has every pull request once that was open all the time.",
	}, s.listPulls)
	register(api, huma.Operation{
		OperationID: "get-pull", Path: "/pulls/{owner}/{repo}/{number}", Tags: []string{tagPulls},
		Summary:     "Show an open pull request",
		Description: "What signalbox thinks of it and by what evidence, the decisions in force, what keeps it from being clear, and how it came to that.",
		Errors:      []int{http.StatusNotFound},
	}, s.getPull)
}

// PullsQuery says which pull requests are wanted.
type PullsQuery struct {
	Repo  string   `query:"repo" maxLength:"256" example:"ops/home-gitops" doc:"Only those of this repository: owner/name, in any letter case."`
	State []string `query:"state" enum:"clear,waiting,blocked,undecided,unevaluated" maxItems:"5" doc:"Only those in one of these states, separated by commas."`
	Paging
}

func (s *server) listPulls(_ context.Context, q *PullsQuery) (Page[PullSummary], error) {
	var after pull.Ref
	at, err := place("pulls", q.Cursor, 2)
	if err != nil {
		return Page[PullSummary]{}, err
	}
	if at != nil {
		var errID, errNumber error
		after.RepoID, errID = strconv.ParseInt(at[0], 10, 64)
		after.Number, errNumber = strconv.ParseInt(at[1], 10, 64)
		if errID != nil || errNumber != nil {
			return Page[PullSummary]{}, badCursor(q.Cursor)
		}
	}
	var only pull.Repo
	if q.Repo != "" {
		if only, err = s.repository(q.Repo); err != nil {
			return Page[PullSummary]{}, invalid("query.repo", q.Repo, "%s", err)
		}
	}
	wanted := func(st *policy.Standing) bool {
		return (q.Repo == "" || st.Pull.Repo.ID == only.ID) &&
			(len(q.State) == 0 || slices.Contains(q.State, standingState(st)))
	}
	total := 0
	var refs []pull.Ref
	for st := range s.Pulls.All() {
		if !wanted(&st) {
			continue
		}
		total++
		if ref := st.Pull.Ref(); at == nil || compareRefs(ref, after) > 0 {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, compareRefs)
	out := Page[PullSummary]{Items: []PullSummary{}, Total: total}
	for i, ref := range refs {
		// What was closed or came into another state since is left out.
		if st, ok := s.Pulls.Get(ref); ok && wanted(&st) {
			out.Items = append(out.Items, newPullSummary(&st))
		}
		if len(out.Items) == q.Limit && i < len(refs)-1 {
			out.Next = cursor("pulls", strconv.FormatInt(ref.RepoID, 10), strconv.FormatInt(ref.Number, 10))
			break
		}
	}
	return out, nil
}

func compareRefs(a, b pull.Ref) int {
	return cmp.Or(cmp.Compare(a.RepoID, b.RepoID), cmp.Compare(a.Number, b.Number))
}

// repository finds one by its name, in any letter case; the error is for people.
func (s *server) repository(name string) (pull.Repo, error) {
	all := s.Pulls.Repositories()
	for _, r := range all {
		if strings.EqualFold(r.String(), name) {
			return r, nil
		}
	}
	if len(all) == 0 {
		return pull.Repo{}, fmt.Errorf("signalbox knows no repository yet; see %s/health", Prefix)
	}
	const shown = 10
	var names []string
	for _, r := range all[:min(shown, len(all))] {
		names = append(names, clip(r.String()))
	}
	more := ""
	if len(all) > shown {
		more = fmt.Sprintf(" and %d more", len(all)-shown)
	}
	return pull.Repo{}, fmt.Errorf("signalbox does not look after %s; it looks after %s%s", clip(name), strings.Join(names, ", "), more)
}

// PullPath names a pull request.
type PullPath struct {
	Owner  string `path:"owner" maxLength:"128" example:"ops" doc:"The owner of the repository, in any letter case."`
	Repo   string `path:"repo" maxLength:"128" example:"home-gitops" doc:"The name of the repository, in any letter case."`
	Number int64  `path:"number" minimum:"1" example:"12"`
}

func (s *server) getPull(_ context.Context, at *PullPath) (Pull, error) {
	repo, err := s.repository(at.Owner + "/" + at.Repo)
	if err != nil {
		return Pull{}, huma.Error404NotFound(err.Error())
	}
	st, ok := s.Pulls.Get(pull.Ref{RepoID: repo.ID, Number: at.Number})
	if !ok {
		return Pull{}, huma.Error404NotFound(fmt.Sprintf(
			"%s#%d is not open, or is not known yet. What was decided on it is in %s/audit?repo=%s&number=%d.", repo, at.Number, Prefix, repo, at.Number))
	}
	return newPull(&st), nil
}
