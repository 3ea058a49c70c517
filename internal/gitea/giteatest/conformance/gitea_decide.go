package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// RenameUser implements [Backend].
func (g *Gitea) RenameUser(ctx context.Context, login, name string) error {
	if err := g.call(ctx, "", "POST /admin/users/"+login+"/rename", map[string]any{"new_username": name}, nil); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens[name] = g.tokens[login]
	return nil
}

// SetAdmin implements [Backend].
func (g *Gitea) SetAdmin(ctx context.Context, login string, admin bool) error {
	return g.call(ctx, "", "PATCH /admin/users/"+login, map[string]any{
		"admin": admin, "login_name": login, "source_id": 0,
	}, nil)
}

// GrantTeam implements [Backend].
func (g *Gitea) GrantTeam(ctx context.Context, org, name string, p giteatest.Permission) error {
	var teams []struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	if err := g.call(ctx, "", "GET /orgs/"+org+"/teams?limit=50", nil, &teams); err != nil {
		return err
	}
	word := [...]string{giteatest.None: "none", giteatest.Read: "read", giteatest.Write: "write", giteatest.Admin: "admin"}[p]
	for _, t := range teams {
		if !strings.EqualFold(t.Name, name) {
			continue
		}
		in := map[string]any{"name": t.Name, "permission": word}
		if p < giteatest.Admin {
			in["permission"] = "read"
			in["units_map"] = map[string]string{"repo.code": word, "repo.pulls": word, "repo.issues": word}
		}
		return g.call(ctx, "", fmt.Sprintf("PATCH /teams/%d", t.ID), in, nil)
	}
	return fmt.Errorf("there is no team %s/%s", org, name)
}

// Protect implements [Backend].
func (g *Gitea) Protect(ctx context.Context, repo pull.Repo, p pull.Protection) error {
	in := map[string]any{
		"rule_name": p.Rule, "priority": p.Priority,
		"enable_push": p.Push.Allowed, "enable_push_whitelist": p.Push.Limited,
		"push_whitelist_usernames": p.Push.Users, "push_whitelist_teams": p.Push.Teams, "push_whitelist_deploy_keys": p.Push.DeployKeys,
		"enable_force_push": p.ForcePush.Allowed, "enable_force_push_allowlist": p.ForcePush.Limited,
		"force_push_allowlist_usernames": p.ForcePush.Users, "force_push_allowlist_teams": p.ForcePush.Teams,
		"force_push_allowlist_deploy_keys": p.ForcePush.DeployKeys,
		"enable_merge_whitelist":           p.Merge.Limited, "merge_whitelist_usernames": p.Merge.Users, "merge_whitelist_teams": p.Merge.Teams,
		"enable_status_check": p.StatusCheck, "status_check_contexts": p.Contexts,
		"required_approvals": p.Approvals, "enable_approvals_whitelist": p.Approvers.Limited,
		"approvals_whitelist_username": p.Approvers.Users, "approvals_whitelist_teams": p.Approvers.Teams,
		"block_on_rejected_reviews": p.BlockOnRejected, "block_on_official_review_requests": p.BlockOnRequested,
		"block_on_outdated_branch": p.BlockOnOutdated, "dismiss_stale_approvals": p.DismissStale, "ignore_stale_approvals": p.IgnoreStale,
		"require_signed_commits": p.Signed, "protected_file_patterns": p.ProtectedFiles, "unprotected_file_patterns": p.UnprotectedFiles,
		"block_admin_merge_override": p.BindsAdmins,
	}
	err := g.call(ctx, "", "POST "+repoPath(repo)+"/branch_protections", in, nil)
	if answer, ok := errors.AsType[*failure](err); !ok || answer.code != http.StatusForbidden {
		return err
	}
	// It is there already.
	return g.call(ctx, "", "PATCH "+repoPath(repo)+"/branch_protections/"+url.PathEscape(p.Rule), in, nil)
}

// Unprotect implements [Backend].
func (g *Gitea) Unprotect(ctx context.Context, repo pull.Repo, name string) error {
	return g.call(ctx, "", "DELETE "+repoPath(repo)+"/branch_protections/"+url.PathEscape(name), nil, nil)
}

// Archive implements [Backend].
func (g *Gitea) Archive(ctx context.Context, repo pull.Repo, archived bool) error {
	return g.call(ctx, "", "PATCH "+repoPath(repo), map[string]any{"archived": archived}, nil)
}

// ForceMerge implements [Backend].
func (g *Gitea) ForceMerge(ctx context.Context, repo pull.Repo, number int64, as string) (string, error) {
	return g.merge(ctx, repo, number, as, map[string]any{"do": "merge", "force_merge": true})
}

// merge merges when Gitea has looked for conflicts.
func (g *Gitea) merge(ctx context.Context, repo pull.Repo, number int64, as string, in any) (string, error) {
	err := poll(ctx, func() (bool, error) {
		err := g.call(ctx, as, "POST "+pullPath(repo, number)+"/merge", in, nil)
		if answer, ok := errors.AsType[*failure](err); ok && strings.Contains(answer.text, "Please try again later") {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return "", err
	}
	var out struct {
		SHA string `json:"merge_commit_sha"`
	}
	err = g.call(ctx, "", "GET "+pullPath(repo, number), nil, &out)
	return out.SHA, err
}

// Message implements [Backend].
func (g *Gitea) Message(ctx context.Context, repo pull.Repo, sha string) (string, error) {
	var out struct {
		Commit struct {
			Message string `json:"message"`
		} `json:"commit"`
	}
	err := g.call(ctx, "", "GET "+repoPath(repo)+"/git/commits/"+sha, nil, &out)
	return strings.TrimSpace(out.Commit.Message), err
}

// Reactions implements [Backend].
func (g *Gitea) Reactions(ctx context.Context, repo pull.Repo, id int64) ([]giteatest.Reaction, error) {
	var out []struct {
		User struct {
			Login string `json:"login"`
		} `json:"user"`
		Content string `json:"content"`
	}
	err := g.call(ctx, "", fmt.Sprintf("GET %s/issues/comments/%d/reactions", repoPath(repo), id), nil, &out)
	var list []giteatest.Reaction
	for _, r := range out {
		list = append(list, giteatest.Reaction{Login: r.User.Login, Content: r.Content})
	}
	return list, err
}
