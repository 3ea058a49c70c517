package giteatest

import (
	"net/http"
	"slices"
)

// needOwner refuses whoever does not own the repository. To administer it is
// not enough.
func (r *request) needOwner(repo *repo) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	if r.server.model.permissionWord(repo, r.doer) != "owner" {
		return &apiError{http.StatusForbidden, "user should be the owner of the repo"}
	}
	return nil
}

func listRepoRunners(r *request, repo *repo) error {
	if err := r.needOwner(repo); err != nil {
		return err
	}
	return r.listRunners(func(found *runner) bool { return found.repo == repo })
}

func listOrgRunners(r *request) error {
	org, err := r.server.model.account(r.PathValue("org"))
	if err != nil || !org.org {
		return errNotFound
	}
	if err := r.needDoer(); err != nil {
		return err
	}
	if !r.doer.admin && !r.server.model.ownerOf(r.doer, org) {
		return &apiError{http.StatusForbidden, "Must be an organization owner"}
	}
	return r.listRunners(func(found *runner) bool { return found.owner == org })
}

func listUserRunners(r *request) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	return r.listRunners(func(found *runner) bool { return found.owner == r.doer })
}

// listRunners answers without the header that tells the total.
func (r *request) listRunners(wanted func(*runner) bool) error {
	var list []any
	for _, found := range r.server.model.runners {
		if !wanted(found) {
			continue
		}
		status := "online"
		if found.offline {
			status = "offline"
		}
		labels := []any{}
		for i, name := range found.labels {
			labels = append(labels, map[string]any{"id": i, "name": name, "type": "custom"})
		}
		list = append(list, map[string]any{
			"id": found.id, "name": found.name, "status": status, "busy": r.server.model.busy(found),
			"disabled": found.disabled, "ephemeral": false, "labels": labels,
		})
	}
	return r.listed("runners", list, false)
}

// busy reports whether a runner has a job.
func (m *model) busy(r *runner) bool {
	return slices.ContainsFunc(m.repos, func(repo *repo) bool {
		return slices.ContainsFunc(repo.runs, func(found *run) bool {
			return slices.ContainsFunc(found.jobs, func(j *job) bool { return j.runner == r && j.state == running })
		})
	})
}

func listSecrets(r *request, repo *repo) error {
	if err := r.needOwner(repo); err != nil {
		return err
	}
	var list []any
	for _, v := range repo.secrets {
		list = append(list, map[string]any{"name": v.name, "description": "", "created_at": v.created})
	}
	return page(r, list)
}

func listVariables(r *request, repo *repo) error {
	if err := r.needOwner(repo); err != nil {
		return err
	}
	var list []any
	for _, v := range repo.variables {
		list = append(list, map[string]any{"owner_id": 0, "repo_id": repo.id, "name": v.name, "data": v.value, "description": ""})
	}
	return page(r, list)
}
