package giteatest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"signalbox/internal/pull"
)

// rule protects branches. Its fields are those of the API of Gitea.
type rule struct {
	Branch   string `json:"branch_name"`
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

	Approvals        int64    `json:"required_approvals"`
	ApproversLimited bool     `json:"enable_approvals_whitelist"`
	ApproverUsers    []string `json:"approvals_whitelist_username"`
	ApproverTeams    []string `json:"approvals_whitelist_teams"`

	BlockOnRejected  bool   `json:"block_on_rejected_reviews"`
	BlockOnRequested bool   `json:"block_on_official_review_requests"`
	BlockOnOutdated  bool   `json:"block_on_outdated_branch"`
	DismissStale     bool   `json:"dismiss_stale_approvals"`
	IgnoreStale      bool   `json:"ignore_stale_approvals"`
	Signed           bool   `json:"require_signed_commits"`
	ProtectedFiles   string `json:"protected_file_patterns"`
	UnprotectedFiles string `json:"unprotected_file_patterns"`
	BlocksAdmins     bool   `json:"block_admin_merge_override"`
}

// people and teams are the lists of a rule, for what holds of all of them.
func (b *rule) people() []*[]string {
	return []*[]string{&b.PushUsers, &b.ForceUsers, &b.MergeUsers, &b.ApproverUsers}
}

func (b *rule) teams() []*[]string {
	return []*[]string{&b.PushTeams, &b.ForceTeams, &b.MergeTeams, &b.ApproverTeams}
}

// special are the characters that make the name of a rule a pattern.
func special(name string) bool { return strings.ContainsAny(name, `*?\[]{}`) }

func (b *rule) match(branch string) bool {
	if !special(b.Name) {
		return strings.EqualFold(b.Name, branch)
	}
	pattern, ok := pull.CompilePattern(b.Name, "/")
	return ok && pattern.Match(branch) || !ok && b.Name == branch
}

// sorted returns the rules in the order in which they are tried.
func (r *repo) sorted() []*rule {
	list := slices.Clone(r.rules)
	slices.SortStableFunc(list, func(a, b *rule) int {
		plain := func(x *rule) int {
			if special(x.Name) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(plain(a), plain(b)))
	})
	return list
}

// ruleOf returns the rule that counts for a branch, or nil.
func (r *repo) ruleOf(branch string) *rule {
	for _, b := range r.sorted() {
		if b.match(branch) {
			return b
		}
	}
	return nil
}

func (r *repo) ruleNamed(name string) *rule {
	if i := slices.IndexFunc(r.rules, func(b *rule) bool { return b.Name == name }); i >= 0 {
		return r.rules[i]
	}
	return nil
}

// check refuses a rule whose lists name who is not there.
func (m *model) check(r *repo, b *rule) error {
	for _, list := range b.people() {
		for _, login := range *list {
			if _, err := m.account(login); err != nil {
				return &apiError{http.StatusUnprocessableEntity, fmt.Sprintf("user does not exist [uid: 0, name: %s]", strings.ToLower(login))}
			}
		}
	}
	for _, list := range b.teams() {
		for _, name := range *list {
			if r.owner.org && m.team(r.owner, name) == nil {
				return &apiError{http.StatusUnprocessableEntity, fmt.Sprintf("team does not exist [org_id %d, team_id 0, name: %s]", r.owner.id, name)}
			}
		}
	}
	return nil
}

func (m *model) team(org *account, name string) *team {
	for _, t := range m.teams {
		if t.org == org && strings.EqualFold(t.name, name) {
			return t
		}
	}
	return nil
}

// settle brings a rule that was written into the form in which Gitea keeps it:
// what depends on something that is off is off too, people who may not write
// are left out without a word, and lists of teams of a person are empty.
func (m *model) settle(r *repo, b *rule) {
	b.PushLimited = b.Push && b.PushLimited
	b.PushDeployKeys = b.PushLimited && b.PushDeployKeys
	b.ForceLimited = b.Force && b.ForceLimited
	b.ForceDeployKeys = b.ForceLimited && b.ForceDeployKeys
	for _, list := range b.people() {
		kept := []string{}
		for _, login := range *list {
			a, err := m.account(login)
			if err == nil && (m.permission(r, a) >= Write || list == &b.ApproverUsers) {
				kept = append(kept, a.login)
			}
		}
		slices.Sort(kept)
		*list = slices.Compact(kept)
	}
	for _, list := range b.teams() {
		kept := []string{}
		for _, name := range *list {
			if t := m.team(r.owner, name); t != nil {
				kept = append(kept, t.name)
			}
		}
		*list = kept
	}
	if b.Contexts == nil {
		b.Contexts = []string{}
	}
}

// shown is a rule as the API tells it: without people who have no right of
// their own, though they count.
func (m *model) shown(r *repo, b *rule) rule {
	out := *b
	if !special(out.Name) {
		out.Branch = out.Name
	}
	for _, list := range out.people() {
		visible := []string{}
		for _, login := range *list {
			if a, err := m.account(login); err == nil && max(m.ownAccess(r, a), m.teamAccess(r, a)) >= Read {
				visible = append(visible, login)
			}
		}
		*list = visible
	}
	return out
}

// listed reports whether an account is in one of two lists.
func (m *model) listed(r *repo, a *account, people, teams []string) bool {
	return slices.Contains(people, a.login) || slices.ContainsFunc(m.teams, func(t *team) bool {
		return t.org == r.owner && slices.Contains(teams, t.name) && slices.Contains(t.members, a)
	})
}

// mayPush reports whether an account may push to a branch without a pull
// request. Unprotected files are not known to the stand-in.
func (m *model) mayPush(r *repo, branch string, a *account, force bool) bool {
	b := r.ruleOf(branch)
	if b == nil {
		return true
	}
	may := b.Push && (!b.PushLimited || m.listed(r, a, b.PushUsers, b.PushTeams))
	return may && (!force || b.Force && (!b.ForceLimited || m.listed(r, a, b.ForceUsers, b.ForceTeams)))
}

// mayMerge reports whether an account may merge to a branch.
func (m *model) mayMerge(r *repo, branch string, a *account) bool {
	if b := r.ruleOf(branch); b != nil && b.MergeLimited {
		return m.listed(r, a, b.MergeUsers, b.MergeTeams)
	}
	return m.permission(r, a) >= Write
}

// unready says in the words of Gitea what the protection of the base lacks, or
// nothing.
func (s *Server) unready(p *pullRequest) string {
	b := p.repo.ruleOf(p.base)
	if b == nil {
		return ""
	}
	approvals, rejected := int64(0), false
	for _, review := range p.reviews {
		if !review.official || review.dismissed {
			continue
		}
		if review.state == Approve && (!b.IgnoreStale || !review.stale) {
			approvals++
		}
		rejected = rejected || review.state == RequestChanges
	}
	switch {
	case b.StatusCheck && !passed(p, b.Contexts):
		return "Not all required status checks successful"
	case approvals < b.Approvals:
		return "Does not have enough approvals"
	case b.BlockOnRejected && rejected:
		return "There are requested changes"
	case b.BlockOnOutdated && p.mergeBase != p.repo.branches[p.base]:
		return "The head branch is behind the base branch"
	}
	return ""
}

// passed reports whether the statuses of the head are what the patterns ask
// for: one at least for each, and no other than successes among those that one
// of them stands for. Without patterns it is all statuses.
func passed(p *pullRequest, patterns []string) bool {
	_, head := p.tip()
	newest := map[string]string{}
	for _, st := range p.repo.statuses[head] {
		newest[st.context] = st.state
	}
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	matched := 0
	for _, text := range patterns {
		pattern, ok := pull.CompilePattern(text, "")
		if !ok {
			continue
		}
		here := 0
		for context, state := range newest {
			if !pattern.Match(context) {
				continue
			}
			if state != "success" && state != "skipped" {
				return false
			}
			here++
		}
		if here == 0 {
			return false
		}
		matched += here
	}
	return matched > 0
}
