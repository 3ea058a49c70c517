package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/pull"
)

// protectionRule is a rule as Gitea tells it. Forgejo has another word for what
// binds administrators.
type protectionRule struct {
	Name     string `json:"rule_name"`
	Priority int64  `json:"priority"`

	Push           bool     `json:"enable_push"`
	PushLimited    bool     `json:"enable_push_whitelist"`
	PushUsers      []string `json:"push_whitelist_usernames"`
	PushTeams      []string `json:"push_whitelist_teams"`
	PushDeployKeys bool     `json:"push_whitelist_deploy_keys"`

	Force           bool     `json:"enable_force_push"`
	ForceLimited    bool     `json:"enable_force_push_allowlist"`
	ForceUsers      []string `json:"force_push_allowlist_usernames"`
	ForceTeams      []string `json:"force_push_allowlist_teams"`
	ForceDeployKeys bool     `json:"force_push_allowlist_deploy_keys"`

	MergeLimited bool     `json:"enable_merge_whitelist"`
	MergeUsers   []string `json:"merge_whitelist_usernames"`
	MergeTeams   []string `json:"merge_whitelist_teams"`

	StatusCheck bool     `json:"enable_status_check"`
	Contexts    []string `json:"status_check_contexts"`

	Approvals       int64    `json:"required_approvals"`
	ApproverLimited bool     `json:"enable_approvals_whitelist"`
	ApproverUsers   []string `json:"approvals_whitelist_username"`
	ApproverTeams   []string `json:"approvals_whitelist_teams"`

	BlockOnRejected  bool   `json:"block_on_rejected_reviews"`
	BlockOnRequested bool   `json:"block_on_official_review_requests"`
	BlockOnOutdated  bool   `json:"block_on_outdated_branch"`
	DismissStale     bool   `json:"dismiss_stale_approvals"`
	IgnoreStale      bool   `json:"ignore_stale_approvals"`
	Signed           bool   `json:"require_signed_commits"`
	ProtectedFiles   string `json:"protected_file_patterns"`
	UnprotectedFiles string `json:"unprotected_file_patterns"`
	BlocksAdmins     bool   `json:"block_admin_merge_override"`
	AppliesToAdmins  bool   `json:"apply_to_admins"`

	// fields is all that the server told, for a copy.
	fields map[string]json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *protectionRule) UnmarshalJSON(data []byte) error {
	type plain protectionRule
	if err := json.Unmarshal(data, (*plain)(r)); err != nil {
		return err
	}
	return json.Unmarshal(data, &r.fields)
}

func (r protectionRule) protection() pull.Protection {
	return pull.Protection{
		Rule: r.Name, Priority: r.Priority,
		Push: pull.Access{
			Allowed: r.Push, Limited: r.PushLimited, Users: r.PushUsers, Teams: r.PushTeams, DeployKeys: r.PushDeployKeys,
		},
		ForcePush: pull.Access{
			Allowed: r.Force, Limited: r.ForceLimited, Users: r.ForceUsers, Teams: r.ForceTeams, DeployKeys: r.ForceDeployKeys,
		},
		Merge:       pull.Access{Allowed: true, Limited: r.MergeLimited, Users: r.MergeUsers, Teams: r.MergeTeams},
		StatusCheck: r.StatusCheck, Contexts: r.Contexts,
		Approvals:    r.Approvals,
		Approvers:    pull.Access{Allowed: true, Limited: r.ApproverLimited, Users: r.ApproverUsers, Teams: r.ApproverTeams},
		DismissStale: r.DismissStale, IgnoreStale: r.IgnoreStale,
		BlockOnRejected: r.BlockOnRejected, BlockOnRequested: r.BlockOnRequested, BlockOnOutdated: r.BlockOnOutdated,
		Signed: r.Signed, ProtectedFiles: r.ProtectedFiles, UnprotectedFiles: r.UnprotectedFiles,
		BindsAdmins: r.BlocksAdmins || r.AppliesToAdmins,
	}
}

// Protection returns the rule that protects a branch, as Gitea picks it; false
// means that the branch is not protected. [ErrNotFound] means that there is no
// such branch, [ErrForbidden] that the branch is protected and the bot's account
// does not administer the repository.
//
// Gitea leaves people and teams out of the lists who cannot read pull requests
// of the repository by a right of their own.
func (c *Client) Protection(ctx context.Context, repo pull.Repo, branch string) (pull.Protection, bool, error) {
	rules, err := c.rules(ctx, repo, branch)
	if err != nil || rules.first == nil {
		return pull.Protection{}, false, c.fail(err, nil, "read the protection of branch %q of %s", branch, repo)
	}
	return rules.first.protection(), true, nil
}

// ruleSet is the rules of a repository and the one of them that counts for a
// branch. It is empty where none does.
type ruleSet struct {
	all   []protectionRule
	first *protectionRule
}

// rules reads the rules that a branch is under. Gitea itself is asked which of
// them counts: how it reads a pattern changed between versions.
func (c *Client) rules(ctx context.Context, repo pull.Repo, branch string) (ruleSet, error) {
	for range maxRereads {
		var shown struct {
			Protected bool   `json:"protected"`
			Rule      string `json:"effective_branch_protection_name"`
		}
		_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/branches/:branch"},
			repoPath(repo)+"/branches/"+escapePath(branch), nil, &shown)
		if err != nil {
			return ruleSet{}, err
		}
		if !shown.Protected {
			return ruleSet{}, nil
		}
		var rules []protectionRule
		// This list is not cut into pages.
		_, err = c.getJSON(ctx, call{route: "/repos/:owner/:repo/branch_protections"},
			repoPath(repo)+"/branch_protections", nil, &rules)
		if err != nil {
			return ruleSet{}, err
		}
		if at := slices.IndexFunc(rules, func(r protectionRule) bool { return r.Name == shown.Rule }); at >= 0 {
			return ruleSet{all: rules, first: &rules[at]}, nil
		}
	}
	return ruleSet{}, fmt.Errorf("%w: the rules kept changing", ErrIncomplete)
}

// SetProtection changes what protects a branch and returns it as it was and as
// it is; before is the zero value where the branch was not protected. A rule
// that bears the name of the branch is edited. Where the branch falls under a
// pattern, it gets a rule of its own that begins as a copy, because contexts
// name the branch and would block all others. [ErrForbidden] means that the
// bot's account does not administer the repository.
//
// Gitea leaves people out of the lists who may not write, without saying so;
// then the error tells whom, and after is what is in force.
func (c *Client) SetProtection(ctx context.Context, repo pull.Repo, branch string, change pull.ProtectionChange) (before, after pull.Protection, err error) {
	before, after, err = c.setProtection(ctx, repo, branch, change)
	return before, after, c.fail(err, nil, "set the protection of branch %q of %s", branch, repo)
}

func (c *Client) setProtection(ctx context.Context, repo pull.Repo, branch string, change pull.ProtectionChange) (before, after pull.Protection, err error) {
	rules, err := c.rules(ctx, repo, branch)
	if err != nil {
		return before, after, err
	}
	name := pull.QuotePattern(branch)
	if rules.first != nil {
		before = rules.first.protection()
		if strings.EqualFold(before.Rule, name) {
			name = before.Rule
		}
	}
	if err := c.writeRule(ctx, repo, rules, name, change); err != nil {
		return before, after, err
	}
	rules, err = c.rules(ctx, repo, branch)
	if err != nil {
		return before, after, fmt.Errorf("it was set; read it again: %w", err)
	}
	if rules.first == nil || !strings.EqualFold(rules.first.Name, name) {
		return before, after, fmt.Errorf("rule %q was set, and another one goes before it", name)
	}
	after = rules.first.protection()
	return before, after, leftOut(change, after)
}
