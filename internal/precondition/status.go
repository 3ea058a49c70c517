package precondition

import (
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
	"signalbox/internal/yamlfile"
)

// Status asks for commit statuses on the head of the pull request. Unlike a
// required check of Gitea, a context that was never reported is not met, nor is
// one that was skipped unless it is accepted.
//
// Whoever may write to the repository can post any context, so it is said who
// posted it, and may be asked for. What signalbox itself posts does not count.
//
// Workflows of Gitea Actions post under no account, and Gitea names none either
// for a status of an account that was deleted; the token of a workflow on any
// branch may post any context on any commit. So for the word gitea-actions a
// status counts only if its page is that of a job on the same commit that is
// called as the context says and ended so. That does not keep out whoever writes
// a workflow on the head: it may name itself and its jobs as it likes, and do
// nothing. Where that matters, use a workflow precondition, which names the file,
// and an approval rule with the paths of all in .gitea/workflows and
// .github/workflows.
type Status struct {
	// Context is the name of a context, or a pattern of names: "*" stands for
	// any text. At least one must be reported, and all that are must be accepted.
	Context string `yaml:"context" json:"context" jsonschema:"required"`
	// Accept are the states that will do; [success] if not given.
	Accept []string `yaml:"accept" json:"accept,omitempty" jsonschema:"enum=success,enum=skipped,enum=warning"`
	// By are the logins of who must have posted it, in any letter case;
	// "gitea-actions" stands for the workflows of the repository, as far as is said
	// above. Anybody if not given.
	By []string `yaml:"by" json:"by,omitempty"`
}

// byActions is the word for who posts the statuses of workflows.
const byActions = "gitea-actions"

// ownContexts begin the contexts that signalbox itself posts; the base branch
// follows, in brackets.
var ownContexts = []string{"signalbox / preconditions", "signalbox / approval"}

// isOwn reports whether signalbox itself posts a context, whatever the base is.
func isOwn(context string) bool {
	return slices.ContainsFunc(ownContexts, func(own string) bool {
		return strings.HasPrefix(context, own+" (") && strings.HasSuffix(context, ")")
	})
}

// States of a commit status, in the words of Gitea.
const (
	statusSuccess = "success"
	statusPending = "pending"
	statusSkipped = "skipped"
	statusWarning = "warning"
)

// Validate implements [Kind].
func (c *Status) Validate(v *Validator, at yamlfile.Path) {
	_, ok := pull.CompilePattern(c.Context, "")
	onlyOwn := slices.ContainsFunc(ownContexts, func(own string) bool { return strings.HasPrefix(c.Context, own) })
	switch {
	case strings.TrimSpace(c.Context) == "":
		v.Add(at.At("context"), `name a context, such as "ci / test (pull_request)" or "ci / *"`, "is missing")
	case !ok:
		v.Add(at.At("context"), "check its brackets and braces", "%q is not a valid pattern", c.Context)
	case onlyOwn:
		v.Add(at.At("context"), "name the contexts of your pipeline, such as ci / *", "%q is what signalbox posts, which would wait for itself", c.Context)
	}
	if len(c.Accept) == 0 {
		c.Accept = []string{statusSuccess}
	}
	known := []string{statusSuccess, statusSkipped, statusWarning}
	for i, state := range c.Accept {
		if !slices.Contains(known, state) {
			v.Add(at.At("accept", i), yamlfile.Suggest(state, known), "%q cannot be accepted", state)
		}
	}
	v.words(at.At("by"), c.By)
}

// Evaluate implements [Kind].
func (c *Status) Evaluate(e *Evaluation, _ []string) []Check {
	return []Check{c.onHead(e)}
}

func (c *Status) onHead(e *Evaluation) Check {
	p := &e.Snapshot.Pull
	head := p.Head.SHA
	f, finding, ok := e.wished(fact.Wish{Key: fact.StatusesKey(p.Repo.ID, head)}, "the list of statuses of "+short(head))
	if !ok {
		return finding
	}
	pattern, _ := pull.CompilePattern(c.Context, "")
	var ev evidence
	var bad, strange, good []fact.Status
	own := false
	for _, s := range f.Statuses.Statuses {
		switch {
		case !pattern.Match(s.Context):
			continue
		case isOwn(s.Context):
			own = true
			continue
		}
		ev.add(s.Context, statusText(s))
		switch {
		case !c.postedBy(s):
			strange = append(strange, s)
		case !slices.Contains(c.Accept, s.State):
			bad = append(bad, s)
		default:
			good = append(good, s)
		}
	}
	finding.Evidence = ev
	finding.State = Unmet
	switch {
	case len(bad) > 0:
		worst := slices.MaxFunc(bad, func(a, b fact.Status) int { return statusRank(a.State) - statusRank(b.State) })
		finding.Since = worst.At
		finding.Reason = fmt.Sprintf("status %s is %s on %s", worst.Context, statusText(worst), short(head))
		if len(bad) > 1 {
			finding.Reason += fmt.Sprintf(", and %s more will not do", plural(len(bad)-1, "context"))
		}
	case len(strange) > 0:
		s := strange[0]
		finding.Since = s.At
		finding.Reason = fmt.Sprintf("status %s on %s was posted by %s, not by %s", s.Context, short(head), creator(s), strings.Join(c.By, " or "))
		if s.Creator == "" && slices.Contains(c.By, byActions) {
			finding.Reason = fmt.Sprintf("status %s on %s names no account, and no job of Gitea Actions on it is known that was %s", s.Context, short(head), s.State)
		}
	case f.Statuses.More:
		finding.State = Unknown
		finding.Reason = fmt.Sprintf("%s has more statuses than are read, so a context that %s stands for may be missing; push a new commit", short(head), c.Context)
	case len(good) == 0:
		finding.Reason = fmt.Sprintf("status %s was never reported on %s", c.Context, short(head))
		if own {
			finding.Reason += " but by signalbox itself, which does not count"
		}
	default:
		finding.State = Met
		finding.Reason = goodText(good, head)
	}
	return finding
}

func (c *Status) postedBy(s fact.Status) bool {
	return len(c.By) == 0 || slices.ContainsFunc(c.By, func(by string) bool {
		if by == byActions {
			// What will not do anyhow needs no job that bears it out.
			return s.Creator == "" && (s.Job != 0 || !slices.Contains(c.Accept, s.State))
		}
		return strings.EqualFold(by, s.Creator)
	})
}

func goodText(good []fact.Status, head string) string {
	if len(good) == 1 {
		return fmt.Sprintf("status %s is %s on %s", good[0].Context, good[0].State, short(head))
	}
	var names []string
	for _, s := range good {
		names = append(names, s.Context)
	}
	return fmt.Sprintf("%s on %s: %s", number(len(good), "accepted status", "accepted statuses"), short(head), listed(names, len(names)))
}

// statusRank orders states that will not do by how much they need a person.
func statusRank(state string) int {
	switch state {
	case statusPending:
		return 0
	case statusSkipped:
		return 1
	case statusWarning, statusSuccess:
		return 2
	default:
		return 3
	}
}

func creator(s fact.Status) string {
	if s.Creator == "" {
		return byActions
	}
	return s.Creator
}

// statusText is the state of a status, with what it says of itself.
func statusText(s fact.Status) string {
	text := s.State
	if d := oneLine(s.Description); d != "" {
		text += " (" + d + ")"
	}
	text += ", posted by " + creator(s)
	if !s.At.IsZero() {
		text += " at " + stamp(s.At)
	}
	return text
}
