package giteatest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	sdk "code.gitea.io/sdk/gitea"
)

const needAdmin = "user should be an owner or a collaborator with admin write of a repository"

// pullEvents are what "pull_request" stands for when a webhook is registered.
var pullEvents = []string{
	"pull_request", "pull_request_assign", "pull_request_label", "pull_request_milestone", "pull_request_comment",
	"pull_request_review", "pull_request_review_request", "pull_request_sync",
}

// plainEvents are those that stand for themselves alone.
var plainEvents = []string{
	"create", "push", "delete", "fork", "repository", "wiki", "release", "package", "status", "workflow_run", "workflow_job",
}

// hookEvents spreads the events that were asked for. Asking for nothing means
// push.
func hookEvents(asked []string) map[string]bool {
	if len(asked) == 0 {
		asked = []string{"push"}
	}
	out := map[string]bool{}
	for _, e := range plainEvents {
		if slices.Contains(asked, e) {
			out[e] = true
		}
	}
	for _, e := range pullEvents {
		name := e
		if e == "pull_request" {
			name = "pull_request_only"
		}
		if slices.Contains(asked, name) || slices.Contains(asked, "pull_request") {
			out[e] = true
		}
	}
	return out
}

func hookJSON(h *hook) *sdk.Hook {
	return &sdk.Hook{
		ID: h.id, Type: "gitea", BranchFilter: h.filter, Active: h.active,
		Config:  map[string]string{"url": h.url, "content_type": h.content},
		Events:  slices.Collect(maps.Keys(h.events)),
		Created: h.created, Updated: h.created,
	}
}

func listHooks(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	var list []*sdk.Hook
	for _, h := range repo.hooks {
		list = append(list, hookJSON(h))
	}
	return page(r, list)
}

func checkHook(config map[string]string) error {
	if u, err := url.Parse(config["url"]); err != nil || u.Host == "" {
		return &apiError{http.StatusUnprocessableEntity, "Invalid url"}
	}
	if c := config["content_type"]; c != "json" && c != "form" {
		return &apiError{http.StatusUnprocessableEntity, "Invalid content type"}
	}
	return nil
}

func createHook(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	var in sdk.CreateHookOption
	if err := r.body(&in); err != nil {
		return err
	}
	if err := checkHook(in.Config); err != nil {
		return err
	}
	m := &r.server.model
	m.last.hook++
	h := &hook{
		id: m.last.hook, url: in.Config["url"], content: in.Config["content_type"], secret: in.Config["secret"],
		filter: in.BranchFilter, events: hookEvents(in.Events), active: in.Active, created: r.server.now(),
	}
	repo.hooks = append(repo.hooks, h)
	writeJSON(r.w, http.StatusCreated, hookJSON(h))
	return nil
}

// editHook ignores a secret, and takes missing events for none.
func editHook(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	i := slices.IndexFunc(repo.hooks, func(h *hook) bool { return h.id == r.number("id") })
	if i < 0 {
		return errNotFound
	}
	var in sdk.EditHookOption
	if err := r.body(&in); err != nil {
		return err
	}
	h := repo.hooks[i]
	if in.Config != nil {
		if err := checkHook(in.Config); err != nil {
			return err
		}
		h.url, h.content = in.Config["url"], in.Config["content_type"]
	}
	h.events, h.filter = hookEvents(in.Events), in.BranchFilter
	if in.Active != nil {
		h.active = *in.Active
	}
	writeJSON(r.w, http.StatusOK, hookJSON(h))
	return nil
}

func deleteHook(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	i := slices.IndexFunc(repo.hooks, func(h *hook) bool { return h.id == r.number("id") })
	if i < 0 {
		return errNotFound
	}
	repo.hooks = slices.Delete(repo.hooks, i, i+1)
	r.w.WriteHeader(http.StatusNoContent)
	return nil
}
