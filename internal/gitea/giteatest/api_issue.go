package giteatest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
)

// listIssues lists issues alone, the newest first.
func listIssues(r *request, repo *repo) error {
	q := r.URL.Query()
	if q.Get("type") != "issues" {
		return &apiError{http.StatusUnprocessableEntity, "the stand-in lists issues only"}
	}
	if login := q.Get("created_by"); login != "" {
		if _, err := r.server.model.account(login); err != nil {
			return errNotFound
		}
	}
	var list []*sdk.Issue
	for _, i := range slices.Backward(repo.issues) {
		if by := q.Get("created_by"); by != "" && !strings.EqualFold(by, i.author.login) {
			continue
		}
		if want := q.Get("state"); want != "all" && (want == "closed") != i.closed {
			continue
		}
		list = append(list, r.server.issueJSON(repo, i))
	}
	return page(r, list)
}

func (s *Server) issueJSON(of *repo, i *issue) *sdk.Issue {
	state := sdk.StateOpen
	if i.closed {
		state = sdk.StateClosed
	}
	return &sdk.Issue{
		ID: i.number, Index: i.number, Poster: s.sdkUser(i.author), Title: i.title, Body: i.body, State: state,
		Labels: []*sdk.Label{}, Created: i.created, Updated: i.created,
		HTMLURL: s.root + "/" + of.fullName() + "/issues/" + strconv.Itoa(int(i.number)),
	}
}

func createIssue(r *request, repo *repo) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	var in sdk.CreateIssueOption
	if err := r.body(&in); err != nil {
		return err
	}
	if in.Title == "" {
		return &apiError{http.StatusUnprocessableEntity, "[]: Required"}
	}
	i := &issue{number: repo.next(), author: r.doer, title: in.Title, body: in.Body, created: r.server.now()}
	repo.issues = append(repo.issues, i)
	writeJSON(r.w, http.StatusCreated, r.server.issueJSON(repo, i))
	return nil
}

// patchIssue edits an issue, which its author and writers may.
func patchIssue(r *request, repo *repo) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	at := slices.IndexFunc(repo.issues, func(i *issue) bool { return i.number == r.number("index") })
	if at < 0 {
		return errNotFound
	}
	i := repo.issues[at]
	if r.doer != i.author && r.permission(repo) < Write {
		return &apiError{http.StatusForbidden, ""}
	}
	var in sdk.EditIssueOption
	if err := r.body(&in); err != nil {
		return err
	}
	if in.Title != "" {
		i.title = in.Title
	}
	if in.Body != nil {
		i.body = *in.Body
	}
	writeJSON(r.w, http.StatusCreated, r.server.issueJSON(repo, i))
	return nil
}
