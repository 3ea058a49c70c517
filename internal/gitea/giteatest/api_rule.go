package giteatest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"signalbox/internal/pull"
)

// Protect makes a rule for branches, or replaces the one of its name.
func (s *Server) Protect(_ context.Context, of pull.Repo, p pull.Protection) error {
	return s.inRepo(of, func(r *repo) error {
		b := &rule{
			Name: p.Rule, Priority: p.Priority,
			Push: p.Push.Allowed, PushLimited: p.Push.Limited, PushUsers: p.Push.Users, PushTeams: p.Push.Teams, PushDeployKeys: p.Push.DeployKeys,
			Force: p.ForcePush.Allowed, ForceLimited: p.ForcePush.Limited, ForceUsers: p.ForcePush.Users, ForceTeams: p.ForcePush.Teams,
			ForceDeployKeys: p.ForcePush.DeployKeys,
			MergeLimited:    p.Merge.Limited, MergeUsers: p.Merge.Users, MergeTeams: p.Merge.Teams,
			StatusCheck: p.StatusCheck, Contexts: p.Contexts,
			Approvals: p.Approvals, ApproversLimited: p.Approvers.Limited, ApproverUsers: p.Approvers.Users, ApproverTeams: p.Approvers.Teams,
			BlockOnRejected: p.BlockOnRejected, BlockOnRequested: p.BlockOnRequested, BlockOnOutdated: p.BlockOnOutdated,
			DismissStale: p.DismissStale, IgnoreStale: p.IgnoreStale, Signed: p.Signed,
			ProtectedFiles: p.ProtectedFiles, UnprotectedFiles: p.UnprotectedFiles, BlocksAdmins: p.BindsAdmins,
		}
		old := r.ruleNamed(b.Name)
		if old == nil {
			return s.model.addRule(r, b)
		}
		if b.Priority == 0 {
			b.Priority = old.Priority
		}
		if err := s.model.check(r, b); err != nil {
			return err
		}
		s.model.settle(r, b)
		*old = *b
		return nil
	})
}

// Unprotect takes a rule away.
func (s *Server) Unprotect(_ context.Context, of pull.Repo, name string) error {
	return s.inRepo(of, func(r *repo) error {
		if r.ruleNamed(name) == nil {
			return fmt.Errorf("there is no rule %q", name)
		}
		r.rules = slices.DeleteFunc(r.rules, func(b *rule) bool { return b.Name == name })
		return nil
	})
}

// addRule adds a rule, behind all others unless it has a priority.
func (m *model) addRule(r *repo, b *rule) error {
	if err := m.check(r, b); err != nil {
		return err
	}
	m.settle(r, b)
	if b.Priority == 0 {
		for _, old := range r.rules {
			b.Priority = max(b.Priority, old.Priority)
		}
		b.Priority++
	}
	r.rules = append(r.rules, b)
	return nil
}

func getBranch(r *request, repo *repo) error {
	name := r.PathValue("branch")
	sha, ok := repo.branches[name]
	if !ok {
		return errNotFound
	}
	out := map[string]any{
		"name": name, "commit": map[string]any{"id": sha}, "protected": false, "effective_branch_protection_name": "",
	}
	if b := repo.ruleOf(name); b != nil {
		out["protected"] = true
		if r.permission(repo) >= Admin {
			out["effective_branch_protection_name"] = b.Name
		}
	}
	writeJSON(r.w, http.StatusOK, out)
	return nil
}

// listRules is not cut into pages.
func listRules(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	list := []rule{}
	for _, b := range repo.sorted() {
		list = append(list, r.server.model.shown(repo, b))
	}
	writeJSON(r.w, http.StatusOK, list)
	return nil
}

func createRule(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	b := &rule{}
	if err := r.body(b); err != nil {
		return err
	}
	switch {
	case b.Name == "":
		return &apiError{http.StatusBadRequest, "both rule_name and branch_name are empty"}
	case repo.ruleNamed(b.Name) != nil:
		return &apiError{http.StatusForbidden, "Branch protection already exist"}
	}
	b.Force = b.Push && b.Force
	if err := r.server.model.addRule(repo, b); err != nil {
		return err
	}
	writeJSON(r.w, http.StatusCreated, r.server.model.shown(repo, b))
	return nil
}

// editRule changes what is given and not null.
func editRule(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	old := repo.ruleNamed(r.PathValue("rule"))
	if old == nil {
		return errNotFound
	}
	var given map[string]json.RawMessage
	if err := r.body(&given); err != nil {
		return err
	}
	for field, value := range given {
		if string(value) == "null" || field == "rule_name" || field == "branch_name" {
			delete(given, field)
		}
	}
	data, err := json.Marshal(given)
	if err != nil {
		return err
	}
	// Once for what is named in it, and once over what is there.
	var news rule
	if err := json.Unmarshal(data, &news); err != nil {
		return &apiError{http.StatusUnprocessableEntity, err.Error()}
	}
	if err := r.server.model.check(repo, &news); err != nil {
		return err
	}
	// It was decoded once already.
	_ = json.Unmarshal(data, old)
	r.server.model.settle(repo, old)
	writeJSON(r.w, http.StatusOK, r.server.model.shown(repo, old))
	return nil
}

func deleteRule(r *request, repo *repo) error {
	if err := r.need(repo, Admin, needAdmin); err != nil {
		return err
	}
	name := r.PathValue("rule")
	if repo.ruleNamed(name) == nil {
		return errNotFound
	}
	repo.rules = slices.DeleteFunc(repo.rules, func(b *rule) bool { return b.Name == name })
	r.w.WriteHeader(http.StatusNoContent)
	return nil
}
