package doctor

import (
	"fmt"
	"slices"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Workflow is a workflow of Gitea Actions that rules ask about.
type Workflow struct {
	// Name is that of its file.
	Name string
	// Renovate says that Renovate runs in it. For are the names of the
	// preconditions.
	Renovate bool
	For      []string
	// Absent says that the default branch has no such file. Fault is why that is
	// not known, or empty.
	Absent bool
	Fault  string
}

// Context is a pattern of commit statuses that rules ask about.
type Context struct {
	Pattern string
	// For are the names of the preconditions.
	For []string
}

// Pipelines are the workflows and statuses of a repository that rules ask about,
// as they were seen.
type Pipelines struct {
	Workflows []Workflow
	Contexts  []Context

	// Branch is the default one.
	Branch string
	// Actions says that the repository has Gitea Actions. RunsFault is why their
	// runs could not be read, or empty; RunsRefused says that the account lacks
	// the right.
	Actions     bool
	RunsFault   string
	RunsRefused bool
	// Runners, Secrets and Variables are what is not known of them, or empty, and
	// HiddenFault is why they could not be asked for.
	Runners, Secrets, Variables string
	HiddenFault                 string
	// Statuses are the contexts on the tip of the branch, and StatusesFault is why
	// they could not be read, or empty.
	Statuses      []string
	StatusesFault string
}

// PipelinesOf returns what rules ask about, before anything was looked at.
func PipelinesOf(files ...*policy.File) Pipelines {
	var p Pipelines
	for _, f := range files {
		if f == nil {
			continue
		}
		for i := range f.Preconditions {
			rule := &f.Preconditions[i]
			switch {
			case rule.Workflow != nil:
				p.workflow(rule.Workflow.File, false, rule.Name)
			case rule.Renovate != nil && rule.Renovate.Workflow != "":
				p.workflow(rule.Renovate.Workflow, true, rule.Name)
			case rule.Status != nil:
				p.context(rule.Status.Context, rule.Name)
			}
		}
	}
	return p
}

func (p *Pipelines) workflow(file string, renovate bool, rule string) {
	i := slices.IndexFunc(p.Workflows, func(w Workflow) bool { return w.Name == file })
	if i < 0 {
		i = len(p.Workflows)
		p.Workflows = append(p.Workflows, Workflow{Name: file})
	}
	w := &p.Workflows[i]
	w.Renovate, w.For = w.Renovate || renovate, addName(w.For, rule)
}

func (p *Pipelines) context(pattern, rule string) {
	i := slices.IndexFunc(p.Contexts, func(c Context) bool { return c.Pattern == pattern })
	if i < 0 {
		i = len(p.Contexts)
		p.Contexts = append(p.Contexts, Context{Pattern: pattern})
	}
	p.Contexts[i].For = addName(p.Contexts[i].For, rule)
}

// Judge judges what rules ask of the workflows and statuses of a repository.
func (p Pipelines) Judge(repo string) []Finding {
	a := &about{subject: repo}
	if len(p.Workflows) > 0 {
		p.actions(a)
	}
	p.statuses(a)
	return a.findings
}

func (p Pipelines) actions(a *about) {
	var rules, files []string
	renovate := false
	for _, w := range p.Workflows {
		files, renovate = append(files, w.Name), renovate || w.Renovate
		for _, name := range w.For {
			rules = addName(rules, name)
		}
	}
	switch {
	case !p.Actions:
		a.add(Finding{
			Check: "actions", Severity: Problem, What: rulesText(rules) + " asks about workflows, and the repository has no Gitea Actions",
			Why:    "Nothing runs, so it is never met.",
			Remedy: "Settings, Units, Actions, Enable Repository Actions. If it is not offered, app.ini has [actions] ENABLED = false.",
		})
		return
	case p.RunsRefused:
		a.add(Finding{
			Check: "actions", Severity: Problem, What: "the account may not read the runs of workflows: " + p.RunsFault,
			Why:    rulesText(rules) + " stays unknown, and nothing it is about is clear.",
			Remedy: "Give the token the scope write:repository, and the account, or its team, read access to Actions.",
		})
	case p.RunsFault != "":
		a.add(Finding{Check: "actions", Severity: Unknown, What: "whether the account may read the runs of workflows is not known: " + p.RunsFault})
	}
	p.files(a)
	if len(a.findings) == 0 {
		a.ok("actions", "%s has %s, and their runs can be read", p.Branch, names(files))
	}
	p.hidden(a, renovate)
}

func (p Pipelines) files(a *about) {
	for _, w := range p.Workflows {
		switch {
		case w.Fault != "":
			a.add(Finding{Check: "workflow", Severity: Unknown, What: fmt.Sprintf("whether %s has the workflow %s cannot be read: %s", p.Branch, w.Name, w.Fault)})
		case w.Absent:
			f := Finding{
				Check: "workflow", Severity: Warning, What: fmt.Sprintf("%s has no workflow %s, and %s asks about it", p.Branch, w.Name, rulesText(w.For)),
				Why:    "It runs only for what brings it along, and never by schedule.",
				Remedy: "Correct the name in the policy, or write the file to .gitea/workflows. Gitea looks in .github/workflows only where there is no .gitea/workflows.",
			}
			if w.Renovate {
				f.Why = "Renovate is not there, so the rule is unmet."
			}
			a.add(f)
		}
	}
}

// hidden notes what cannot be told since Gitea does not show it to the account.
func (p Pipelines) hidden(a *about, renovate bool) {
	if p.HiddenFault != "" {
		a.add(Finding{Check: "actions-visible", Severity: Info, What: "whether its runners and secrets can be seen is not known: " + p.HiddenFault})
	}
	if p.Runners != "" {
		a.add(Finding{
			Check: "actions-visible", Severity: Info, What: p.Runners,
			Why: "So of a run that waits it cannot be told for sure whether anybody is there to take it.",
		})
	}
	if why := orWord(p.Secrets, p.Variables); renovate && why != "" {
		a.add(Finding{
			Check: "actions-visible", Severity: Info, What: "it is not known which secrets and variables there are: " + why,
			Why: "So it cannot be told whether Renovate's workflow lacks a secret, and what it takes from variables is unknown. What its runs were is told by their logs all the same.",
		})
	}
}

func (p Pipelines) statuses(a *about) {
	if len(p.Contexts) == 0 {
		return
	}
	if p.StatusesFault != "" {
		a.add(Finding{Check: "status", Severity: Unknown, What: fmt.Sprintf("the statuses of the tip of %s cannot be read: %s", p.Branch, p.StatusesFault)})
		return
	}
	for _, c := range p.Contexts {
		pattern, ok := pull.CompilePattern(c.Pattern, "")
		if !ok || slices.ContainsFunc(p.Statuses, pattern.Match) {
			continue
		}
		a.add(Finding{
			Check: "status", Severity: Info, What: fmt.Sprintf("no status on the tip of %s is called %q, which %s asks for", p.Branch, c.Pattern, rulesText(c.For)),
			Why: "That may be as it should: a workflow posts other names for a push than for a pull request, such as \"ci / test (push)\" and \"ci / test (pull_request)\".",
		})
	}
}
