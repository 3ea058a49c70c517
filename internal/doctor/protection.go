package doctor

import (
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/pull"
)

// Branch is a branch that pull requests go into, and what protects it.
type Branch struct {
	Name string
	// Fault is why the protection could not be read, or empty; Refused says that
	// the account lacks the right.
	Fault   string
	Refused bool
	// Protection is nil for a branch that nothing protects.
	Protection *pull.Protection
	// Contexts are the statuses that signalbox posts for the branch.
	Contexts []string
	// Observe says that signalbox posts nothing there.
	Observe bool
	// Merging says that signalbox merges, as Bot.
	Merging bool
	Bot     string
}

const fixHint = "Run bot doctor --fix, or as an administrator of the repository: Settings, Branches, "

// rule names the rule of the branch for a person who edits it.
func (b Branch) rule() string {
	if b.Protection == nil || b.Protection.Rule == "" {
		return fmt.Sprintf("Add New Rule, %q", pull.QuotePattern(b.Name))
	}
	return fmt.Sprintf("rule %q", b.Protection.Rule)
}

// Judge judges the protection of a branch of a repository.
func (b Branch) Judge(repo string) []Finding {
	a := &about{subject: fmt.Sprintf("%s, branch %s", repo, b.Name)}
	switch {
	case b.Fault != "":
		f := Finding{
			Check: "protection", Severity: Unknown, What: "what protects the branch cannot be read: " + b.Fault,
			Why: "Whether somebody can go round signalbox is not known.",
		}
		if b.Refused {
			f.Remedy = "Make signalbox's account an administrator of the repository (Settings, Collaborators), or have an administrator run bot doctor."
		}
		a.add(f)
	case b.Observe:
		b.observed(a)
	case b.Protection == nil:
		a.add(Finding{
			Check: "protection", Severity: Problem, What: "nothing protects the branch",
			Why:    "Everybody who may write can push to it and merge whatever signalbox says.",
			Remedy: fixHint + b.rule() + ":\n" + b.settings(), Fixable: true,
		})
	default:
		b.contexts(a)
		b.pushes(a)
		b.admins(a)
		b.merges(a)
		if len(a.findings) == 0 {
			a.ok("protection", "%s", b.holds())
		}
	}
	return a.findings
}

// observed judges a branch that signalbox only looks at.
func (b Branch) observed(a *about) {
	if b.Protection != nil {
		for _, context := range b.Contexts {
			if b.Protection.Requires(context) {
				a.add(Finding{
					Check: "protection-contexts", Severity: Problem,
					What:   fmt.Sprintf("%q is required, and signalbox posts nothing here", context),
					Why:    "No pull request can be merged: the repository is set to observe.",
					Remedy: "Remove observe: true from the repository in the configuration, or the required status from " + b.rule() + ".",
				})
				return
			}
		}
	}
	a.add(Finding{
		Check: "protection", Severity: Info, What: "signalbox only observes: it posts nothing, and is no gate",
		Remedy: "Remove observe: true from the repository in the configuration when you trust what it says.",
	})
}

// holds says in one line what the protection does.
func (b Branch) holds() string {
	who := "everybody who may write merges"
	if b.Merging {
		who = "only signalbox merges"
	}
	return fmt.Sprintf("both statuses are required, nobody pushes past them, administrators are bound, %s", who)
}

// settings are the settings of a rule for a person who makes it by hand.
func (b Branch) settings() string {
	lines := []string{
		"  Disable Push",
		"  Enable Status Check, with the patterns",
	}
	for _, c := range b.Contexts {
		lines = append(lines, "    "+pull.QuotePattern(c))
	}
	if b.Merging {
		lines = append(lines, "  Enable Merge Allowlist, with "+b.Bot+" alone")
	}
	lines = append(lines, "  Administrators must follow branch protection rules")
	return strings.Join(lines, "\n")
}

func (b Branch) contexts(a *about) {
	var loose, none []string
	for _, c := range b.Contexts {
		switch {
		case b.Protection.Requires(c):
		case b.Protection.Heeds(c):
			loose = append(loose, fmt.Sprintf("%q", c))
		default:
			none = append(none, fmt.Sprintf("%q", c))
		}
	}
	remedy := fixHint + b.rule() + ", Enable Status Check, with the patterns\n  " + strings.Join(quoted(b.Contexts), "\n  ")
	if len(none) > 0 {
		a.add(Finding{
			Check: "protection-contexts", Severity: Problem, What: names(none) + " " + isAre(none, "not required"),
			Why:    "Gitea merges whatever signalbox says there.",
			Remedy: remedy, Fixable: true,
		})
	}
	if len(loose) > 0 {
		a.add(Finding{
			Check: "protection-contexts", Severity: Problem, What: names(loose) + " " + isAre(loose, "not required by a pattern of its own"),
			Why:    "Gitea is content when the statuses that are there are successful, and merges before signalbox has said all that it has to say.",
			Remedy: remedy, Fixable: true,
		})
	}
}

func quoted(contexts []string) []string {
	out := make([]string, len(contexts))
	for i, c := range contexts {
		out[i] = pull.QuotePattern(c)
	}
	return out
}

func isAre(list []string, what string) string {
	if len(list) == 1 {
		return "is " + what
	}
	return "are " + strings.Replace(what, "its own", "their own", 1)
}

func (b Branch) pushes(a *about) {
	p := b.Protection
	switch {
	case p.Push.Allowed && !p.Push.Limited:
		a.add(Finding{
			Check: "protection-push", Severity: Problem, What: "everybody who may write can push to the branch" + ifThen(p.ForcePush.Allowed, ", and replace its history"),
			Why:    "What is pushed is in front of Flux without a pull request.",
			Remedy: fixHint + b.rule() + ", Disable Push.", Fixable: true,
		})
	case p.Push.Allowed:
		who := listed(p.Push)
		if who == "" {
			break
		}
		a.add(Finding{
			Check: "protection-push", Severity: Warning, What: who + " can push to the branch" + ifThen(p.ForcePush.Allowed, ", and perhaps replace its history"),
			Why:    "What they push is in front of Flux without a pull request. For Flux's image automation that may be meant.",
			Remedy: "If it is not: Settings, Branches, " + b.rule() + ", Disable Push.",
		})
	}
	if strings.Trim(p.UnprotectedFiles, "; \t") != "" {
		a.add(Finding{
			Check: "protection-unprotected-files", Severity: Problem,
			What:   fmt.Sprintf("files that match %q are not protected", p.UnprotectedFiles),
			Why:    "Everybody who may write can push a change of nothing but these, without a pull request.",
			Remedy: fixHint + b.rule() + ", Unprotected file patterns: leave empty.", Fixable: true,
		})
	}
}

func (b Branch) admins(a *about) {
	if b.Protection.BindsAdmins {
		return
	}
	a.add(Finding{
		Check: "protection-admins", Severity: Problem, What: "administrators can merge whatever signalbox says",
		Why:    "For them Gitea turns a missing or red status into a warning. For emergencies signalbox has overrides, which have a name, a reason and an end.",
		Remedy: fixHint + b.rule() + ", Administrators must follow branch protection rules.", Fixable: true,
	})
}

func (b Branch) merges(a *about) {
	m := b.Protection.Merge
	others := slices.DeleteFunc(slices.Clone(m.Users), func(u string) bool { return strings.EqualFold(u, b.Bot) })
	switch {
	case !b.Merging && m.Limited && len(m.Users)+len(m.Teams) == 0:
		a.add(Finding{
			Check: "protection-merge", Severity: Problem, What: "nobody can merge: the list of who may is empty",
			Remedy: "Settings, Branches, " + b.rule() + ", Enable Merge Allowlist: off, or with those who may.",
		})
	case !b.Merging:
		// Whoever may write also posts statuses, which is no hole that a setting
		// closes without signalbox merging itself.
	case !m.Limited:
		a.add(Finding{
			Check: "protection-merge", Severity: Problem, What: "everybody who may write can merge, not only signalbox",
			Why:    "A writer can post the statuses, and merge before signalbox puts them right. If only signalbox merges, it looks at everything again first.",
			Remedy: fixHint + b.rule() + ", Enable Merge Allowlist, with " + b.Bot + " alone.", Fixable: true,
		})
	case len(others) == len(m.Users) && len(m.Teams) > 0:
		a.add(Finding{
			Check: "protection-merge", Severity: Problem, What: listed(m) + " can merge, and signalbox is not named itself",
			Why:    "They can post the statuses, and merge before signalbox puts them right; /merge fails unless signalbox belongs to them.",
			Remedy: "Settings, Branches, " + b.rule() + ", Enable Merge Allowlist, with " + b.Bot + " alone.",
		})
	case len(others) == len(m.Users):
		a.add(Finding{
			Check: "protection-merge", Severity: Problem, What: "signalbox is to merge here, and is not on the list of who may",
			Why:    "/merge fails.",
			Remedy: "Settings, Branches, " + b.rule() + ", Enable Merge Allowlist, with " + b.Bot + " alone.",
		})
	case len(others)+len(m.Teams) > 0:
		rest := pull.Access{Limited: true, Users: others, Teams: m.Teams}
		a.add(Finding{
			Check: "protection-merge", Severity: Problem, What: listed(rest) + " can merge beside signalbox",
			Why:    "They can post the statuses, and merge before signalbox puts them right.",
			Remedy: fixHint + b.rule() + ", Enable Merge Allowlist, with " + b.Bot + " alone.", Fixable: true,
		})
	}
}

// listed names who is in the lists of a limited access, or "".
func listed(a pull.Access) string {
	var who []string
	who = append(who, a.Users...)
	for _, t := range a.Teams {
		who = append(who, "team "+t)
	}
	if a.DeployKeys {
		who = append(who, "deploy keys that may write")
	}
	return some(who)
}

func ifThen(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
