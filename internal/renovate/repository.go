package renovate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// repository gathers what a run says of one repository.
type repository struct {
	Repository
	format string
	// name is the name as it was logged.
	name string
	// proven are the modes that lines prove.
	proven map[Mode]bool
	wrote  bool
	// debug says that there are messages of the level debug.
	debug  bool
	before string
}

func (p *repository) is(name string) bool {
	return p.name == name[:min(len(name), maxText)]
}

// add takes a message. What is not trusted, because it may be of another
// repository, can disprove a dry run and proves none.
func (p *repository) add(r *record, trusted bool) {
	if !r.time.IsZero() {
		if p.Started.IsZero() {
			p.Started = r.time
		}
		p.Finished = r.time
	}
	p.debug = p.debug || r.level == levelDebug
	if r.level == levelWarn {
		p.Warnings++
	}
	if r.level >= levelError {
		p.Failures = addFailure(p.Failures, r)
	}
	branch := r.text("branch")
	switch mode := wouldMode(r); {
	case isWrite(r.message, branch, p.before):
		p.wrote = true
		p.Disproof = addEvidence(p.Disproof, r)
		p.act(r, branch, true)
	case mode != ModeUnknown && trusted:
		if p.proven == nil {
			p.proven = map[Mode]bool{}
		}
		p.proven[mode] = true
		p.Proof = addEvidence(p.Proof, r)
		if mode != ModeExtract {
			p.act(r, branch, false)
		}
	default:
		p.tell(r)
	}
	p.before = r.message
}

func addEvidence(list []Evidence, r *record) []Evidence {
	if len(list) == maxEvidence {
		return list
	}
	text := r.message
	if title := r.text("prTitle"); title != "" {
		text += ": " + title
	}
	if branch := r.text("branch"); branch != "" && !strings.Contains(text, branch) {
		text += " (" + branch + ")"
	}
	return append(list, Evidence{Line: r.line, Text: clean(text)})
}

// numbered finds the pull request in a message.
var numbered = regexp.MustCompile(`\bPR #(\d{1,9})\b`)

// act notes something that was done, or would be.
func (p *repository) act(r *record, branch string, done bool) {
	what := strings.TrimPrefix(r.message, wouldPrefix)
	a := Action{What: clean(what), Done: done, Branch: clean(branch), Title: clean(r.text("prTitle"))}
	if title, ok := strings.CutPrefix(what, "create PR: "); ok && !done {
		a.Title = clean(title)
	}
	for _, prefix := range []string{"commit files to branch ", "delete orphan branch ", "delete branch ", "automerge branch "} {
		if name, ok := strings.CutPrefix(what, prefix); ok && !done && a.Branch == "" {
			a.Branch = clean(name)
		}
	}
	a.Pull = max(r.number("pr"), r.number("prNo"))
	if m := numbered.FindStringSubmatch(what); m != nil && a.Pull == 0 && !done {
		a.Pull, _ = strconv.Atoi(m[1])
	}
	if len(p.Actions) < maxActions {
		p.Actions = append(p.Actions, a)
	}
	if a.Branch != "" {
		p.branch(Branch{Name: a.Branch, Title: a.Title, Pull: a.Pull})
	}
}

// branch notes a branch, or adds to what is known of it.
func (p *repository) branch(b Branch) {
	i := slices.IndexFunc(p.Branches, func(known Branch) bool { return known.Name == b.Name })
	if i < 0 {
		if len(p.Branches) < maxActions {
			p.Branches = append(p.Branches, b)
		}
		return
	}
	known := &p.Branches[i]
	if b.Title != "" {
		known.Title = b.Title
	}
	if b.Pull != 0 {
		known.Pull = b.Pull
	}
	if b.Result != "" {
		known.Result = b.Result
	}
}

// tell takes a message that neither proves nor disproves.
func (p *repository) tell(r *record) {
	switch r.message {
	case repositoryStarted:
		p.Begun = true
	case repositoryFinished:
		p.Ended = true
	case extractionComplete:
		p.extraction(r)
	case branchesInfo:
		p.branches(r)
	default:
		if m := repositoryResult.FindStringSubmatch(r.message); m != nil && r.level == levelDebug {
			p.Result = clean(m[1])
		}
	}
}

// extraction adds the counts of one base branch.
func (p *repository) extraction(r *record) {
	type count struct{ FileCount, DepCount int }
	var stats struct {
		Managers map[string]count
		Total    count
	}
	if !r.decode("stats", &stats) {
		return
	}
	if p.Managers == nil {
		p.Managers = map[string]Count{}
	}
	for name, n := range stats.Managers {
		name = clean(name)
		if known, ok := p.Managers[name]; ok || len(p.Managers) < maxKinds {
			p.Managers[name] = known.plus(n.FileCount, n.DepCount)
		}
	}
	p.Total = p.Total.plus(stats.Total.FileCount, stats.Total.DepCount)
}

// plus adds what a log counts, which is not less than nothing.
func (c Count) plus(files, dependencies int) Count {
	return Count{Files: c.Files + max(0, files), Dependencies: c.Dependencies + max(0, dependencies)}
}

// branches takes the list that Renovate logs at the level debug.
func (p *repository) branches(r *record) {
	var list []struct {
		BranchName, PrTitle, Result string
		PrNo                        *int
		Upgrades                    []struct{ UpdateType string }
	}
	if !r.decode("branchesInformation", &list) {
		return
	}
	for _, b := range list {
		branch := Branch{Name: clean(b.BranchName), Title: clean(b.PrTitle), Result: clean(b.Result)}
		if b.PrNo != nil {
			branch.Pull = *b.PrNo
		}
		p.branch(branch)
		for _, u := range b.Upgrades {
			if p.Updates == nil {
				p.Updates = map[string]int{}
			}
			kind := clean(u.UpdateType)
			if _, known := p.Updates[kind]; known || len(p.Updates) < maxKinds {
				p.Updates[kind]++
			}
		}
	}
}
