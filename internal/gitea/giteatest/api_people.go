package giteatest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// searchUsers finds an account by its id; nothing else is searched for.
func searchUsers(r *request) error {
	list := []user{}
	id, err := strconv.ParseInt(r.URL.Query().Get("uid"), 10, 64)
	if err != nil || id <= 0 {
		return &apiError{http.StatusUnprocessableEntity, "the stand-in searches by uid only"}
	}
	for _, a := range r.server.model.accounts {
		if a.id == id && !a.gone && !a.org {
			list = append(list, r.server.userJSON(a))
		}
	}
	r.w.Header().Set("X-Total-Count", fmt.Sprint(len(list)))
	writeJSON(r.w, http.StatusOK, map[string]any{"ok": true, "data": list})
	return nil
}

// getUser finds a person or an organisation by its name, and leads from an old
// name to the new one.
func getUser(r *request) error {
	name := r.PathValue("username")
	if a, err := r.server.model.account(name); err == nil {
		writeJSON(r.w, http.StatusOK, r.server.userJSON(a))
		return nil
	}
	for _, a := range r.server.model.accounts {
		for _, old := range a.old {
			if !a.gone && strings.EqualFold(old, name) {
				to := strings.TrimSuffix(r.URL.Path, name) + a.login
				http.Redirect(r.w, r.Request, to, http.StatusTemporaryRedirect)
				return nil
			}
		}
	}
	return &apiError{http.StatusNotFound, fmt.Sprintf("user redirect does not exist [name: %s]", strings.ToLower(name))}
}

func getPermission(r *request, repo *repo) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	name := r.PathValue("username")
	if !strings.EqualFold(name, r.doer.login) && r.permission(repo) < Admin {
		return &apiError{http.StatusForbidden, "Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own"}
	}
	a, err := r.server.model.account(name)
	if err != nil {
		return &apiError{http.StatusNotFound, fmt.Sprintf("user does not exist [uid: 0, name: %s]", strings.ToLower(name))}
	}
	word := r.server.model.permissionWord(repo, a)
	writeJSON(r.w, http.StatusOK, map[string]any{"permission": word, "role_name": word, "user": r.server.userJSON(a)})
	return nil
}

// listRepoTeams is not cut into pages.
func listRepoTeams(r *request, repo *repo) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	if !repo.owner.org {
		return &apiError{http.StatusMethodNotAllowed, "repo is not owned by an organization"}
	}
	list := []any{}
	for _, t := range r.server.model.teams {
		if t.org == repo.owner && t.access > None {
			mode := [...]string{Read: "read", Write: "write", Admin: "admin"}[t.access]
			permission := "none"
			if t.access == Admin {
				permission = mode
			}
			list = append(list, map[string]any{
				"id": t.id, "name": t.name, "permission": permission,
				"units_map": map[string]string{"repo.code": mode, "repo.pulls": mode, "repo.issues": mode},
			})
		}
	}
	writeJSON(r.w, http.StatusOK, list)
	return nil
}
