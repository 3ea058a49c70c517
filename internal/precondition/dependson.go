package precondition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// DependsOn asks for what the description of the pull request names as its
// dependencies, each in a line that begins so: "Depends-On: #41",
// "Depends-On: ops/home-gitops#41", or the address of the pull request; several
// are separated by commas. Each must be merged. Lines within a fence of code, a
// quote or a comment of HTML do not count. Only pull requests of repositories
// that signalbox looks after can be named, 20 at most.
type DependsOn struct {
	// Applied also asks that each is applied on every target cluster: the
	// revisions that the Kustomizations there have applied contain the commit
	// that merged it. Kustomizations that follow another repository or branch do
	// not count, but one must follow this.
	Applied bool `yaml:"applied" json:"applied,omitempty"`
	// Kustomization is the only one that is asked about, as "namespace/name".
	Kustomization string `yaml:"kustomization" json:"kustomization,omitempty"`
}

// Validate implements [Kind].
func (c *DependsOn) Validate(v *Validator, at yamlfile.Path) {
	if c.Kustomization == "" {
		return
	}
	v.object(at.At("kustomization"), c.Kustomization)
	if !c.Applied {
		v.Add(at.At("kustomization"), "write applied: true too", "is asked about only if dependencies must be applied")
	}
}

// Evaluate implements [Kind].
func (c *DependsOn) Evaluate(e *Evaluation, clusters []string) []Check {
	p := &e.Snapshot.Pull
	self := dependency{p.Repo.Owner, p.Repo.Name, p.Number}
	named, strange, more := dependencies(p.Body, self, p.URL)
	var checks []Check
	for _, s := range strange {
		checks = append(checks, Check{State: Unmet, Reason: fmt.Sprintf("the description depends on %q, which names no pull request here; write #41, owner/name#41 or its address", s)})
	}
	for _, d := range named {
		checks = append(checks, c.dependency(e, self, d, clusters)...)
	}
	if more {
		checks = append(checks, Check{State: Unmet, Reason: fmt.Sprintf("the description names more than %d dependencies, which are the most", maxDependencies)})
	}
	if path := e.cycle(self, named); path != nil {
		checks = append(checks, Check{State: Unmet, Reason: "this pull request depends on itself: " + strings.Join(path, " depends on ")})
	}
	if len(checks) == 0 {
		checks = []Check{{State: Met, Reason: "the description names no dependency"}}
	}
	return checks
}

func (c *DependsOn) dependency(e *Evaluation, self, d dependency, clusters []string) []Check {
	name := "pull request " + d.name(self)
	f, finding, ok := e.wished(fact.Wish{Key: d.key()}, name)
	if !ok {
		return []Check{finding}
	}
	p := f.Pull
	var ev evidence
	ev.add("pull request", fmt.Sprintf("%s#%d: %s", p.Repo, p.Number, oneLine(p.Title)))
	ev.add("state", p.State)
	ev.addTime("merged", p.MergedAt)
	ev.add("merge commit", p.MergeCommit)
	ev.add("page", p.URL)
	finding.Evidence = ev
	finding.Since = p.MergedAt
	title := fmt.Sprintf("%s (%s)", name, oneLine(p.Title))
	switch {
	case p.State == fact.PullClosed:
		finding.State, finding.Reason = Unmet, title+" was closed without being merged"
	case p.State != fact.PullMerged:
		finding.State, finding.Reason = Unmet, title+" is not merged yet"
	case !c.Applied:
		finding.State, finding.Reason = Met, title+" is merged"
	case p.MergeCommit == "":
		finding.State, finding.Reason = Unknown, title+" is merged, but Gitea does not tell by which commit"
	default:
		checks := e.onEach(clusters, func(cluster string) Check { return c.appliedOn(e, name, p, cluster) })
		for i := range checks {
			checks[i].Evidence = append(slices.Clone(ev), checks[i].Evidence...)
		}
		return checks
	}
	return []Check{finding}
}

// appliedOn decides whether a merged dependency is applied on a cluster.
func (c *DependsOn) appliedOn(e *Evaluation, name string, p *fact.Pull, cluster string) Check {
	if finding, ok := e.watched("Kustomization", cluster); !ok {
		return finding
	}
	ask := Ask{Needed: p.MergeCommit}
	if p.RepoID != e.Snapshot.Pull.Repo.ID {
		ask.Repo = p.Repo
	}
	commit := fmt.Sprintf("%s (%s)", short(p.MergeCommit), name)
	if c.Kustomization != "" {
		return c.appliedBy(e, ask, p.Base, commit, cluster)
	}
	finding := Check{State: Unknown, Reason: fmt.Sprintf("no Kustomization on %s follows %s of %s, so nobody can tell whether %s is applied", cluster, p.Base, p.Repo, name)}
	var behind, unclear, current []string
	for _, f := range e.each(cluster, "kustomization") {
		if f.Flux == nil {
			continue
		}
		switch e.follows(cluster, f.Flux, ask, p.Base) {
		case followUnclear:
			unclear = append(unclear, f.Key.Object())
		case followBehind:
			behind = append(behind, f.Key.Object())
			finding.Evidence = append(finding.Evidence, Evidence{Label: "Kustomization " + f.Key.Object(), Value: strings.TrimSpace("has applied " + cmp.Or(f.Flux.Applied, "nothing yet"))})
		case followCurrent:
			current = append(current, f.Key.Object())
		case followElsewhere:
		}
	}
	switch {
	case len(behind) > 0:
		finding.State = Unmet
		finding.Reason = fmt.Sprintf("%s is merged, but not applied on %s yet by %s", name, cluster, listed(behind, len(behind)))
	case len(unclear) > 0:
		finding.Reason = fmt.Sprintf("it is not known whether %s on %s has applied %s", listed(unclear, len(unclear)), cluster, commit)
	case len(current) > 0:
		finding.State = Met
		finding.Reason = fmt.Sprintf("%s is merged, and applied on %s by all %s", name, cluster, plural(len(current), "Kustomization"))
	}
	return finding
}

// follow is how a Kustomization stands to a commit.
type follow int

const (
	// followElsewhere: it applies another repository or branch, or charts.
	followElsewhere follow = iota
	followUnclear
	followBehind
	followCurrent
)

// follows finds out how a Kustomization stands to a commit of a branch. One that
// has never applied anything may be just the one that the commit brought: what its
// source holds tells what it follows.
func (e *Evaluation) follows(cluster string, f *fact.Flux, ask Ask, branch string) follow {
	applied, origin := f.Applied, f.Origin
	if applied == "" {
		if f.Source == nil {
			return followUnclear
		}
		source, ok := e.Fact(fact.Kube(cluster, f.Source.Kind, f.Source.Namespace, f.Source.Name))
		if !ok || source.Flux == nil || source.Flux.Applied == "" {
			return followUnclear
		}
		applied, origin = source.Flux.Applied, source.Flux.Origin
	}
	rev := fact.ParseRevision(applied)
	if rev.Commit == "" && origin != "" {
		rev = fact.ParseRevision(origin)
	}
	if rev.Commit == "" || rev.Branch != "" && rev.Branch != branch {
		return followElsewhere
	}
	ask.Applied = rev.Commit
	switch answer, ok := e.contains(ask); {
	case !ok:
		return followUnclear
	case answer == Foreign:
		return followElsewhere
	case answer == NotContained, f.Applied == "":
		return followBehind
	default:
		return followCurrent
	}
}

// appliedBy decides it for the one Kustomization that is asked about.
func (c *DependsOn) appliedBy(e *Evaluation, ask Ask, branch, commit, cluster string) Check {
	namespace, name, _ := strings.Cut(c.Kustomization, "/")
	f, ok := e.Fact(fact.Kube(cluster, "Kustomization", namespace, name))
	if !ok || f.Flux == nil {
		return Check{State: Unmet, Reason: fmt.Sprintf("Kustomization %s does not exist on %s", c.Kustomization, cluster)}
	}
	finding := Check{Since: f.Since, ReadAt: f.SeenAt, Evidence: fluxEvidence(object{kind: "Kustomization", ref: c.Kustomization}, f)}
	subject := fmt.Sprintf("Kustomization %s on %s ", c.Kustomization, cluster)
	state, why := e.appliedOf(f.Flux, ask, branch, commit)
	if state == Met {
		why = "has applied " + commit
	}
	finding.State, finding.Reason = state, subject+why
	return finding
}

// maxWalk bounds how many pull requests are looked at for a cycle.
const maxWalk = 50

// cycle returns the way from a pull request over its dependencies back to
// itself, or nil. A pull request that is not open waits for nothing any more.
func (e *Evaluation) cycle(self dependency, named []dependency) []string {
	type step struct {
		at   dependency
		path []string
	}
	var queue []step
	follow := func(from []string, to []dependency) []string {
		for _, d := range to {
			path := append(slices.Clone(from), d.name(self))
			if d.key() == self.key() {
				return path
			}
			queue = append(queue, step{d, path})
		}
		return nil
	}
	if path := follow([]string{self.name(self)}, named); path != nil {
		return path
	}
	seen := map[fact.Key]bool{}
	for len(queue) > 0 && len(seen) < maxWalk {
		s := queue[0]
		queue = queue[1:]
		if seen[s.at.key()] {
			continue
		}
		seen[s.at.key()] = true
		f, _, ok := e.wished(fact.Wish{Key: s.at.key()}, "pull request "+s.at.name(self))
		if !ok || f.Pull.State != fact.PullOpen {
			continue
		}
		next, _, _ := dependencies(f.Pull.Body, s.at, f.Pull.URL)
		if path := follow(s.path, next); path != nil {
			return path
		}
	}
	return nil
}
