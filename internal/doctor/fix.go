package doctor

import (
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/pull"
)

// Fix returns what is to be set so that the fixable findings about a branch go,
// and whether there is anything. It never allows anybody more than before: what
// is in force stays in force, and what signalbox itself lacks is left to a
// person.
func (b Branch) Fix() (change pull.ProtectionChange, needed bool) {
	if b.Fault != "" || b.Observe || len(b.Contexts) == 0 {
		return change, false
	}
	p := b.Protection
	yes, none := true, ""
	if p == nil {
		// A new rule: nothing is to be kept.
		contexts := quoted(b.Contexts)
		change = pull.ProtectionChange{Push: &pull.Access{}, ForcePush: &pull.Access{}, Contexts: &contexts, BindsAdmins: &yes}
		if b.Merging {
			change.Merge = b.alone()
		}
		return change, true
	}
	if contexts, differ := b.wanted(); differ {
		change.Contexts = &contexts
	}
	if p.Push.Allowed && !p.Push.Limited {
		change.Push = &pull.Access{}
		if p.ForcePush.Allowed {
			change.ForcePush = &pull.Access{}
		}
	}
	if strings.Trim(p.UnprotectedFiles, "; \t") != "" {
		change.UnprotectedFiles = &none
	}
	if !p.BindsAdmins {
		change.BindsAdmins = &yes
	}
	if b.Merging {
		change.Merge = b.mergeFix()
	}
	return change, change != pull.ProtectionChange{}
}

func (b Branch) alone() *pull.Access {
	return &pull.Access{Allowed: true, Limited: true, Users: []string{b.Bot}}
}

// mergeFix limits merging to signalbox, unless it may not merge now: then the
// list would become another one, not a shorter one.
func (b Branch) mergeFix() *pull.Access {
	m := b.Protection.Merge
	if !m.Limited {
		return b.alone()
	}
	in := slices.ContainsFunc(m.Users, func(u string) bool { return strings.EqualFold(u, b.Bot) })
	if !in || len(m.Users)+len(m.Teams) == 1 {
		return nil
	}
	return b.alone()
}

// wanted returns the patterns that are to be required: those of now and the
// missing ones.
func (b Branch) wanted() (patterns []string, differ bool) {
	p := b.Protection
	if p.StatusCheck {
		patterns = slices.Clone(p.Contexts)
		if len(patterns) == 0 {
			// Without patterns every status must be a success. With some, this one
			// says so.
			patterns = []string{"*"}
		}
	}
	for _, c := range b.Contexts {
		if !p.Requires(c) {
			patterns, differ = append(patterns, pull.QuotePattern(c)), true
		}
	}
	return patterns, differ
}

// Apply returns the protection after a change, as Gitea makes it.
func Apply(p pull.Protection, c pull.ProtectionChange) pull.Protection {
	set(&p.Push, c.Push)
	set(&p.ForcePush, c.ForcePush)
	set(&p.Merge, c.Merge)
	set(&p.Contexts, c.Contexts)
	p.StatusCheck = p.StatusCheck || c.Contexts != nil
	set(&p.Approvals, c.Approvals)
	set(&p.DismissStale, c.DismissStale)
	set(&p.BlockOnRejected, c.BlockOnRejected)
	set(&p.BlockOnOutdated, c.BlockOnOutdated)
	set(&p.UnprotectedFiles, c.UnprotectedFiles)
	set(&p.BindsAdmins, c.BindsAdmins)
	return p
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// Difference is one setting before and after a change, in words.
type Difference struct {
	Setting string   `json:"setting"`
	Before  []string `json:"before"`
	After   []string `json:"after"`
}

// Differences compares two protections, for a person who decides about it; a
// nil one is a branch that nothing protects.
func Differences(before, after *pull.Protection) []Difference {
	var out []Difference
	add := func(setting string, was, is []string) {
		if !slices.Equal(was, is) {
			out = append(out, Difference{setting, was, is})
		}
	}
	was, is := words(before), words(after)
	for i := range was {
		add(was[i].Setting, was[i].After, is[i].After)
	}
	return out
}

// words says what a protection does, setting by setting.
func words(p *pull.Protection) []Difference {
	if p == nil {
		open := []string{"everybody who may write"}
		none := &pull.Protection{
			Push: pull.Access{Allowed: true}, ForcePush: pull.Access{Allowed: true}, Merge: pull.Access{Allowed: true},
		}
		out := words(none)
		out[0].After, out[1].After = []string{"none"}, open
		return out
	}
	contexts := p.Contexts
	switch {
	case !p.StatusCheck:
		contexts = []string{"none"}
	case len(contexts) == 0:
		contexts = []string{"every status"}
	}
	return []Difference{
		{Setting: "rule", After: []string{p.Rule}},
		{Setting: "who may push without a pull request", After: people(p.Push)},
		{Setting: "who of those may replace history", After: people(p.ForcePush)},
		{Setting: "files that may be pushed all the same", After: []string{orNone(p.UnprotectedFiles)}},
		{Setting: "statuses that must be successful", After: contexts},
		{Setting: "who may merge", After: people(p.Merge)},
		{Setting: "approving reviews that Gitea asks for", After: []string{fmt.Sprint(p.Approvals)}},
		{Setting: "administrators are bound too", After: []string{yesNo(p.BindsAdmins)}},
	}
}

func people(a pull.Access) []string {
	switch {
	case !a.Allowed:
		return []string{"nobody"}
	case !a.Limited:
		return []string{"everybody who may write"}
	}
	var who []string
	who = append(who, a.Users...)
	for _, t := range a.Teams {
		who = append(who, "team "+t)
	}
	if a.DeployKeys {
		who = append(who, "deploy keys")
	}
	if len(who) == 0 {
		return []string{"nobody"}
	}
	return who
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Wider says what a protection allows that another one, before it, did not. It
// is empty after every change that [Branch.Fix] gives.
func Wider(before *pull.Protection, after pull.Protection) []string {
	if before == nil {
		return nil
	}
	var out []string
	add := func(wider bool, what string) {
		if wider {
			out = append(out, what)
		}
	}
	add(wider(before.Push, after.Push), "pushing")
	add(wider(before.ForcePush, after.ForcePush), "pushing by force")
	add(wider(before.Merge, after.Merge), "merging")
	add(before.StatusCheck && !after.StatusCheck, "merging without statuses")
	if before.StatusCheck && after.StatusCheck {
		for _, c := range before.Contexts {
			add(!slices.Contains(after.Contexts, c), "merging without "+c)
		}
		all := len(after.Contexts) == 0 || slices.Contains(after.Contexts, "*")
		add(len(before.Contexts) == 0 && !all, "merging with a status that is no success")
	}
	add(after.Approvals < before.Approvals, "merging with fewer approvals")
	add(before.DismissStale && !after.DismissStale, "merging with stale approvals")
	add(before.BlockOnRejected && !after.BlockOnRejected, "merging against a rejection")
	add(before.BlockOnOutdated && !after.BlockOnOutdated, "merging an outdated branch")
	add(before.Signed && !after.Signed, "unsigned commits")
	add(after.UnprotectedFiles != "" && after.UnprotectedFiles != before.UnprotectedFiles, "pushing unprotected files")
	add(before.BindsAdmins && !after.BindsAdmins, "merging by administrators")
	return out
}

// wider reports whether somebody has access after that had none before.
func wider(before, after pull.Access) bool {
	switch {
	case !after.Allowed:
		return false
	case !before.Allowed:
		return true
	case !before.Limited:
		return false
	case !after.Limited:
		return true
	}
	return !within(after.Users, before.Users) || !within(after.Teams, before.Teams) || after.DeployKeys && !before.DeployKeys
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool {
		return !slices.ContainsFunc(all, func(a string) bool { return strings.EqualFold(a, s) })
	})
}

// Planned returns what protects the branch after a change: its own rule, which
// begins as a copy where a rule for several branches is in force.
func (b Branch) Planned(change pull.ProtectionChange) pull.Protection {
	p := pull.Protection{Merge: pull.Access{Allowed: true}, Approvers: pull.Access{Allowed: true}}
	if b.Protection != nil {
		p = *b.Protection
	}
	if name := pull.QuotePattern(b.Name); !strings.EqualFold(p.Rule, name) {
		p.Rule = name
	}
	return Apply(p, change)
}
