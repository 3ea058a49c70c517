package gitea

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"signalbox/internal/pull"
)

// writeRule gives the rule of a name what is to change. Where another rule is
// in force, the named one becomes a copy of it and goes before it.
func (c *Client) writeRule(ctx context.Context, repo pull.Repo, rules ruleSet, name string, change pull.ProtectionChange) error {
	fields := changedFields(change)
	switch {
	case rules.first == nil:
		_, err := c.makeRule(ctx, repo, name, fields)
		return err
	case rules.first.Name == name:
		return c.editRule(ctx, repo, name, fields)
	}
	place := placeBefore(*rules.first, name)
	whole := map[string]any{"priority": place}
	for field, value := range rules.first.fields {
		if !slices.Contains(ownFields, field) {
			whole[field] = value
		}
	}
	maps.Copy(whole, fields)
	if i := slices.IndexFunc(rules.all, func(r protectionRule) bool { return strings.EqualFold(r.Name, name) }); i >= 0 {
		// It is there, behind the one in force.
		return c.editRule(ctx, repo, rules.all[i].Name, whole)
	}
	made, err := c.makeRule(ctx, repo, name, whole)
	if err == nil && made.Priority != place {
		// A new rule cannot have the priority 0, only an old one.
		err = c.editRule(ctx, repo, name, map[string]any{"priority": place})
	}
	return err
}

func (c *Client) makeRule(ctx context.Context, repo pull.Repo, name string, fields map[string]any) (made protectionRule, err error) {
	fields["rule_name"] = name
	err = c.sendJSON(ctx, call{route: "/repos/:owner/:repo/branch_protections"},
		"POST "+repoPath(repo)+"/branch_protections", fields, &made)
	return made, err
}

// placeBefore returns the priority with which a rule goes before another one.
// Of two with the same, one without a pattern goes first; the name of a branch
// is a pattern where it has a character to escape.
func placeBefore(r protectionRule, name string) int64 {
	if strings.Contains(name, `\`) {
		return r.Priority - 1
	}
	return r.Priority
}

// ownFields are what a copy of a rule does not take over.
var ownFields = []string{"rule_name", "branch_name", "priority", "created_at", "updated_at"}

func (c *Client) editRule(ctx context.Context, repo pull.Repo, name string, fields map[string]any) error {
	return c.sendJSON(ctx, call{route: "/repos/:owner/:repo/branch_protections/:rule"},
		"PATCH "+repoPath(repo)+"/branch_protections/"+escapePath(name), fields, nil)
}

// changedFields puts a change into the words of Gitea.
func changedFields(change pull.ProtectionChange) map[string]any {
	fields := map[string]any{}
	if a := change.Push; a != nil {
		fields["enable_push"] = a.Allowed
		fields["enable_push_whitelist"] = a.Limited
		fields["push_whitelist_usernames"] = orEmpty(a.Users)
		fields["push_whitelist_teams"] = orEmpty(a.Teams)
		fields["push_whitelist_deploy_keys"] = a.DeployKeys
	}
	if a := change.ForcePush; a != nil {
		fields["enable_force_push"] = a.Allowed
		fields["enable_force_push_allowlist"] = a.Limited
		fields["force_push_allowlist_usernames"] = orEmpty(a.Users)
		fields["force_push_allowlist_teams"] = orEmpty(a.Teams)
		fields["force_push_allowlist_deploy_keys"] = a.DeployKeys
	}
	if a := change.Merge; a != nil {
		fields["enable_merge_whitelist"] = a.Limited
		fields["merge_whitelist_usernames"] = orEmpty(a.Users)
		fields["merge_whitelist_teams"] = orEmpty(a.Teams)
	}
	if change.Contexts != nil {
		fields["enable_status_check"] = true
		fields["status_check_contexts"] = orEmpty(*change.Contexts)
	}
	set(fields, change.Approvals, "required_approvals")
	set(fields, change.DismissStale, "dismiss_stale_approvals")
	set(fields, change.BlockOnRejected, "block_on_rejected_reviews")
	set(fields, change.BlockOnOutdated, "block_on_outdated_branch")
	set(fields, change.UnprotectedFiles, "unprotected_file_patterns")
	// The second name is Forgejo's.
	set(fields, change.BindsAdmins, "block_admin_merge_override", "apply_to_admins")
	return fields
}

func set[T any](fields map[string]any, value *T, names ...string) {
	for _, name := range names {
		if value != nil {
			fields[name] = *value
		}
	}
}

// orEmpty makes null an empty list: null leaves a list as it is.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// leftOut tells who was to be in a list and is not.
func leftOut(change pull.ProtectionChange, now pull.Protection) error {
	var missing []string
	for _, list := range []struct {
		name string
		want *pull.Access
		got  pull.Access
	}{
		{"push", change.Push, now.Push},
		{"push by force", change.ForcePush, now.ForcePush},
		{"merge", change.Merge, now.Merge},
	} {
		if list.want == nil {
			continue
		}
		for _, login := range list.want.Users {
			if !containsFold(list.got.Users, login) {
				missing = append(missing, fmt.Sprintf("%s, who may %s", login, list.name))
			}
		}
		for _, team := range list.want.Teams {
			if !containsFold(list.got.Teams, team) {
				missing = append(missing, fmt.Sprintf("team %s, which may %s", team, list.name))
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return errors.New("who has no right of their own to write to the repository was left out, or is not shown: " + strings.Join(missing, "; "))
}

func containsFold(list []string, want string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, want) })
}
