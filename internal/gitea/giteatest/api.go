package giteatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// routes are the endpoints that package gitea calls.
func (s *Server) routes() map[string]handle {
	const repo = "/repos/{owner}/{repo}"
	return map[string]handle{
		"GET /version": func(r *request) error {
			writeJSON(r.w, http.StatusOK, map[string]string{"version": "1.26.0"})
			return nil
		},
		"GET /user":                                 getSelf,
		"GET " + repo:                               inRepo(getRepo),
		"GET /repositories/{id}":                    getRepoByID,
		"GET /orgs/{org}/teams":                     listTeams,
		"GET /teams/{id}/members":                   listMembers,
		"GET " + repo + "/pulls":                    inRepo(listPulls),
		"GET " + repo + "/pulls/{index}":            inPull(getPull),
		"GET " + repo + "/pulls/{index}/files":      inPull(listFiles),
		"GET " + repo + "/pulls/{index}/reviews":    inPull(listReviews),
		"GET " + repo + "/issues/{index}/{part}":    inIssue(getIssuePart),
		"POST " + repo + "/issues/{index}/comments": inIssue(createComment),
		"GET " + repo + "/issues/comments":          inRepo(listRepoComments),
		"GET " + repo + "/issues/comments/{id}":     inRepo(getComment),
		"PATCH " + repo + "/issues/comments/{id}":   inRepo(editComment),
		"DELETE " + repo + "/issues/comments/{id}":  inRepo(deleteComment),
		"GET " + repo + "/statuses/{sha}":           inRepo(listStatuses),
		"POST " + repo + "/statuses/{sha}":          inRepo(createStatus),
		"GET " + repo + "/contents/{path...}":       inRepo(getContents),
		"GET " + repo + "/git/trees/{sha...}":       inRepo(getTree),
		"GET " + repo + "/git/blobs/{sha}":          inRepo(getBlob),
		"GET " + repo + "/git/commits/{sha}":        inRepo(getCommit),
		"GET " + repo + "/git/refs/{ref...}":        inRepo(getRef),
		"GET " + repo + "/commits":                  inRepo(listCommits),
		"GET " + repo + "/hooks":                    inRepo(listHooks),
		"POST " + repo + "/hooks":                   inRepo(createHook),
		"PATCH " + repo + "/hooks/{id}":             inRepo(editHook),
		"DELETE " + repo + "/hooks/{id}":            inRepo(deleteHook),

		"GET " + repo + "/issues":                 inRepo(listIssues),
		"POST " + repo + "/issues":                inRepo(createIssue),
		"PATCH " + repo + "/issues/{index}":       inRepo(patchIssue),
		"GET " + repo + "/actions/runs":           inRepo(listRuns),
		"GET " + repo + "/actions/runs/{id}/jobs": inRepo(listJobs),
		"GET " + repo + "/actions/jobs/{id}/logs": inRepo(getLog),
		"GET " + repo + "/actions/runners":        inRepo(listRepoRunners),
		"GET " + repo + "/actions/secrets":        inRepo(listSecrets),
		"GET " + repo + "/actions/variables":      inRepo(listVariables),
		"GET /orgs/{org}/actions/runners":         listOrgRunners,
		"GET /user/actions/runners":               listUserRunners,

		"GET /users/search":                                    searchUsers,
		"GET /users/{username}":                                getUser,
		"GET " + repo + "/teams":                               inRepo(listRepoTeams),
		"GET " + repo + "/collaborators/{username}/permission": inRepo(getPermission),
		"GET " + repo + "/issues/comments/{id}/reactions":      inRepo(listReactions),
		"POST " + repo + "/issues/comments/{id}/reactions":     inRepo(addReaction),
		"DELETE " + repo + "/issues/comments/{id}/reactions":   inRepo(removeReaction),
		"POST " + repo + "/pulls/{index}/merge":                inPull(mergePull),
		"GET " + repo + "/branches/{branch...}":                inRepo(getBranch),
		"GET " + repo + "/branch_protections":                  inRepo(listRules),
		"POST " + repo + "/branch_protections":                 inRepo(createRule),
		"PATCH " + repo + "/branch_protections/{rule...}":      inRepo(editRule),
		"DELETE " + repo + "/branch_protections/{rule...}":     inRepo(deleteRule),
	}
}

// inRepo finds the repository. An old name is answered with 301, and a
// repository that the account may not see with 404.
func inRepo(next func(*request, *repo) error) handle {
	return func(r *request) error {
		found, moved := r.server.model.repo(r.PathValue("owner"), r.PathValue("repo"))
		if found == nil || r.permission(found) == None {
			return errNotFound
		}
		if moved {
			old := "/repos/" + r.PathValue("owner") + "/" + r.PathValue("repo")
			http.Redirect(r.w, r.Request, strings.Replace(r.URL.RequestURI(), old, "/repos/"+found.fullName(), 1), http.StatusMovedPermanently)
			return nil
		}
		return next(r, found)
	}
}

func inPull(next func(*request, *pullRequest) error) handle {
	return inRepo(func(r *request, repo *repo) error {
		p := repo.pull(r.number("index"))
		if p == nil {
			return errNotFound
		}
		return next(r, p)
	})
}

// inIssue is for the endpoints that pull requests share with issues. They
// answer 500 where there is none.
func inIssue(next func(*request, *pullRequest) error) handle {
	return inRepo(func(r *request, repo *repo) error {
		p := repo.pull(r.number("index"))
		if p == nil {
			return fmt.Errorf("issue does not exist [id: 0, repo_id: %d, index: %d]", repo.id, r.number("index"))
		}
		return next(r, p)
	})
}

// getIssuePart tells apart what a pattern of its own each cannot, because it
// would be ambiguous with "issues/comments/{id}".
func getIssuePart(r *request, p *pullRequest) error {
	switch r.PathValue("part") {
	case "timeline":
		return listTimeline(r, p)
	case "comments":
		return listComments(r, p)
	}
	return errNotFound
}

func (r *request) permission(repo *repo) Permission {
	return r.server.model.permission(repo, r.doer)
}

// number reads a path value; one that is no number is 0, which nothing has.
func (r *request) number(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(r.PathValue(name), ".diff"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// need refuses an account without the permission, as Gitea does: 401 without
// an account, 403 with one.
func (r *request) need(repo *repo, p Permission, message string) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	if r.permission(repo) < p {
		return &apiError{http.StatusForbidden, message}
	}
	return nil
}

// body decodes the JSON of a request.
func (r *request) body(into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return &apiError{http.StatusUnprocessableEntity, err.Error()}
	}
	return nil
}

// paging reads page and limit, and clamps the limit silently.
func (r *request) paging() (page, limit int) {
	page, _ = strconv.Atoi(r.URL.Query().Get("page"))
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit <= 0 {
		limit = 30
	}
	return max(page, 1), min(limit, r.server.options.MaxItems)
}

// cut returns the asked page of a list.
func cut[T any](r *request, list []T) []T {
	page, limit := r.paging()
	from := min((page-1)*limit, len(list))
	return list[from:min(from+limit, len(list))]
}

// page answers with a page of a list and its total.
func page[T any](r *request, list []T) error {
	return total(r, cut(r, list), len(list))
}

// total answers with a list as it is.
func total[T any](r *request, list []T, n int) error {
	r.w.Header().Set("X-Total-Count", strconv.Itoa(n))
	if list == nil {
		list = []T{}
	}
	writeJSON(r.w, http.StatusOK, list)
	return nil
}

func getSelf(r *request) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	writeJSON(r.w, http.StatusOK, r.server.userJSON(r.doer))
	return nil
}

func getRepo(r *request, repo *repo) error {
	writeJSON(r.w, http.StatusOK, r.server.repoJSON(repo, r.permission(repo)))
	return nil
}

func getRepoByID(r *request) error {
	repo := r.server.model.repoByID(r.number("id"))
	if repo == nil || r.permission(repo) == None {
		return errNotFound
	}
	return getRepo(r, repo)
}

func listTeams(r *request) error {
	org, err := r.server.model.account(r.PathValue("org"))
	if err != nil || !org.org {
		return errNotFound
	}
	if err := r.needDoer(); err != nil {
		return err
	}
	if !r.server.model.memberOf(r.doer, org) && !r.doer.admin {
		return &apiError{http.StatusForbidden, "Must be an organization member"}
	}
	var list []any
	for _, t := range r.server.model.teams {
		if t.org == org {
			list = append(list, map[string]any{"id": t.id, "name": t.name, "permission": "write"})
		}
	}
	return page(r, list)
}

func listMembers(r *request) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	for _, t := range r.server.model.teams {
		if t.id != r.number("id") {
			continue
		}
		m := &r.server.model
		switch {
		case r.doer.admin, m.ownerOf(r.doer, t.org), slices.Contains(t.members, r.doer):
		case m.memberOf(r.doer, t.org):
			return &apiError{http.StatusForbidden, "Must be a team member"}
		default:
			return errNotFound
		}
		var list []user
		for _, a := range t.members {
			list = append(list, r.server.userJSON(a))
		}
		return page(r, list)
	}
	return errNotFound
}
