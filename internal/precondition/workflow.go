package precondition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// Workflow asks that a workflow of Gitea Actions really ran: the run and each of
// its jobs ended with success. A job that was skipped makes no run fail, and its
// commit status passes for a success in Gitea; here it does not.
//
// Gitea runs the workflow as the commit itself has it, so whoever writes the
// head of a pull request can change what the workflow does, or let it do nothing.
// Where that matters, add an approval rule with the paths of all in
// .gitea/workflows and .github/workflows, and of what the workflow calls.
type Workflow struct {
	// File is the name of the workflow's file, such as "conformance.yaml".
	File string `yaml:"file" json:"file" jsonschema:"required"`
	// On says which run is meant: "head" (the default) is the newest on the head
	// of the pull request, for each event that started one, without those of other
	// pull requests with the same head; "base" is the newest completed one on the
	// base branch.
	On string `yaml:"on" json:"on,omitempty" jsonschema:"enum=head,enum=base"`
	// MaxAge is how long ago it may have ended; any time if not given.
	MaxAge yamlfile.Duration `yaml:"maxAge" json:"maxAge,omitempty"`
	// Events are what may have started it, such as pull_request or schedule; any
	// if not given. Where a head has more runs than are read, it is unknown unless
	// each event that is named is among them.
	Events []string `yaml:"events" json:"events,omitempty"`
	// Jobs are globs of the names of jobs that must have run; every job if not
	// given.
	Jobs []string `yaml:"jobs" json:"jobs,omitempty"`
	// MaySkip are globs of the names of jobs that may have been skipped.
	MaySkip []string `yaml:"maySkip" json:"maySkip,omitempty"`
}

// Values of [Workflow.On].
const (
	onHead = "head"
	onBase = "base"
)

// Words of Gitea Actions.
const (
	runCompleted = "completed"
	runSuccess   = "success"
	runSkipped   = "skipped"
)

// Validate implements [Kind].
func (c *Workflow) Validate(v *Validator, at yamlfile.Path) {
	v.workflowFile(at.At("file"), c.File)
	switch c.On {
	case "":
		c.On = onHead
	case onHead, onBase:
	default:
		v.Add(at.At("on"), yamlfile.Suggest(c.On, []string{onHead, onBase}), "%q is not known", c.On)
	}
	v.words(at.At("events"), c.Events)
	v.patterns(at.At("jobs"), c.Jobs)
	v.patterns(at.At("maySkip"), c.MaySkip)
}

// Evaluate implements [Kind].
func (c *Workflow) Evaluate(e *Evaluation, _ []string) []Check {
	return []Check{c.check(e)}
}

func (c *Workflow) check(e *Evaluation) Check {
	p := &e.Snapshot.Pull
	on, where := p.Head.SHA, "on "+short(p.Head.SHA)
	if c.On == onBase {
		on, where = "refs/heads/"+p.Base.Name, "on "+p.Base.Name
	}
	f, finding, ok := e.wished(fact.Wish{Key: fact.RunsKey(p.Repo.ID, c.File, on)}, "the list of runs of "+c.File)
	if !ok {
		return finding
	}
	runs := c.meant(f.Runs.Runs, p.Number)
	if len(runs) == 0 {
		finding.State = Unmet
		finding.Reason = fmt.Sprintf("workflow %s never ran %s", c.File, where)
		switch {
		case f.Runs.More && c.On == onBase:
			finding.State, finding.Reason = Unknown, fmt.Sprintf("none of the newest %s of %s is a completed one %s", plural(len(f.Runs.Runs), "run"), c.File, where)
		case f.Runs.More:
			finding.State, finding.Reason = Unknown, fmt.Sprintf("%s has more runs than are read, and no run of %s is among those", short(p.Head.SHA), c.File)
		}
		if len(c.Events) > 0 {
			finding.Reason += " for " + strings.Join(c.Events, " or ")
		}
		return finding
	}
	read := finding.ReadAt
	found := make([]Check, len(runs))
	for i := range runs {
		found[i] = c.run(e, &runs[i])
		found[i].ReadAt = read
	}
	worst := slices.MaxFunc(found, func(a, b Check) int { return Worse(a.State, b.State) })
	if len(found) > 1 {
		worst.Evidence = nil
		for _, f := range found {
			worst.Evidence = append(worst.Evidence, f.Evidence...)
		}
	}
	if worst.State == Met && c.On == onHead && f.Runs.More && !c.allOf(runs) {
		worst.State, worst.Since = Unknown, time.Time{}
		worst.Reason = fmt.Sprintf("%s has more runs than are read, and one of %s that is not may have failed; name the events that must have run it", short(p.Head.SHA), c.File)
	}
	return worst
}

// allOf reports whether each event that is named has a run; then older ones
// decide nothing.
func (c *Workflow) allOf(runs []fact.Run) bool {
	return len(c.Events) > 0 && !slices.ContainsFunc(c.Events, func(event string) bool {
		return !slices.ContainsFunc(runs, func(r fact.Run) bool { return r.Event == event })
	})
}

// meant returns the runs that count, the newest first.
func (c *Workflow) meant(all []fact.Run, number int64) []fact.Run {
	var runs []fact.Run
	seen := map[string]bool{}
	own := fmt.Sprintf("refs/pull/%d/head", number)
	for _, r := range all {
		switch {
		case len(c.Events) > 0 && !slices.Contains(c.Events, r.Event):
		case c.On == onHead && strings.HasPrefix(r.Ref, "refs/pull/") && r.Ref != own:
			// It is of another pull request with the same head.
		case c.On == onBase:
			if r.Status == runCompleted && len(runs) == 0 {
				runs = append(runs, r)
			}
		case !seen[r.Event]:
			seen[r.Event] = true
			runs = append(runs, r)
		}
	}
	return runs
}

// run decides about one run.
func (c *Workflow) run(e *Evaluation, r *fact.Run) Check {
	finding := Check{State: Unmet, Evidence: []Evidence{runEvidence(r)}, Since: cmp.Or(r.Completed, r.Started, r.Created)}
	name := runName(r)
	if r.Status != runCompleted {
		finding.Reason = name + " has not ended: it is " + words(r.Status)
		c.waits(e, r, &finding)
		return finding
	}
	if why := c.jobs(r); why != "" {
		finding.Reason = name + " " + why
		return finding
	}
	if r.Completed.IsZero() && c.MaxAge > 0 {
		finding.State, finding.Reason = Unknown, name+" does not say when it ended"
		return finding
	}
	if why, late := tooOld(e, r.Completed, c.MaxAge.D()); late {
		finding.Reason = name + " " + why
		return finding
	}
	finding.State, finding.Reason = Met, fmt.Sprintf("%s ended with success at %s, %s", name, stamp(r.Completed), ranText(r))
	return finding
}

// tooOld says that something ended too long ago. It asks to be looked at again
// when that time comes.
func tooOld(e *Evaluation, ended time.Time, maxAge time.Duration) (string, bool) {
	if maxAge == 0 {
		return "", false
	}
	until := ended.Add(maxAge)
	if e.Now.Before(until) {
		e.Again(until)
		return "", false
	}
	return fmt.Sprintf("ended at %s, which is longer ago than %s", stamp(ended), age(maxAge)), true
}

// jobs says which job keeps a completed run from counting.
func (c *Workflow) jobs(r *fact.Run) string {
	if len(r.Jobs) == 0 {
		return "has no job, so nothing ran"
	}
	ran := 0
	for _, glob := range c.Jobs {
		if !slices.ContainsFunc(r.Jobs, func(j fact.Job) bool { return matchAny([]string{glob}, j.Name) }) {
			return fmt.Sprintf("has no job %s", glob)
		}
	}
	for _, j := range r.Jobs {
		if len(c.Jobs) > 0 && !matchAny(c.Jobs, j.Name) {
			continue
		}
		switch {
		case j.Conclusion == runSuccess:
			ran++
		case j.Conclusion == runSkipped && matchAny(c.MaySkip, j.Name):
		case j.Conclusion == runSkipped:
			return fmt.Sprintf("skipped its job %s, although it says %s", j.Name, r.Conclusion)
		default:
			return fmt.Sprintf("ended with %s in its job %s", cmp.Or(words(j.Conclusion), words(j.Status)), j.Name)
		}
	}
	switch {
	case ran == 0:
		return "skipped every job, so nothing ran"
	case r.Conclusion != runSuccess && len(c.Jobs) == 0:
		return "ended with " + words(r.Conclusion)
	}
	return ""
}

// waits adds to the finding of a run that waits whether anybody is there to take
// its jobs, as far as that can be known: Gitea does not show all runners.
func (c *Workflow) waits(e *Evaluation, r *fact.Run, finding *Check) {
	if r.Status != "queued" && r.Status != "waiting" {
		return
	}
	f, _, ok := e.wished(fact.Wish{Key: fact.ActionsKey(e.Snapshot.Pull.Repo.ID)}, "runners")
	if !ok {
		return
	}
	ready := func(r fact.Runner) bool { return r.Online && !r.Disabled }
	if slices.ContainsFunc(f.Actions.Runners, ready) {
		return
	}
	finding.Reason += ", and no runner is known to be online"
	if problem := f.Actions.RunnersProblem; problem != "" {
		finding.Evidence = append(finding.Evidence, Evidence{Label: "runners", Value: problem})
	}
}

// runName names a run for people.
func runName(r *fact.Run) string {
	name := fmt.Sprintf("run %d of %s", cmp.Or(r.Number, r.ID), r.Workflow)
	if r.Event != "" {
		name += " (" + r.Event + ")"
	}
	return name
}

func ranText(r *fact.Run) string {
	ran := 0
	for _, j := range r.Jobs {
		if j.Conclusion == runSuccess {
			ran++
		}
	}
	return fmt.Sprintf("%d of %s ran", ran, plural(len(r.Jobs), "job"))
}

func runEvidence(r *fact.Run) Evidence {
	var ev evidence
	ev.add("commit", r.Commit)
	ev.add("branch", cmp.Or(r.Branch, r.Ref))
	ev.add("by", r.Actor)
	ev.addTime("started", r.Started)
	ev.addTime("ended", r.Completed)
	ev.add("page", r.URL)
	for _, j := range r.Jobs {
		text := cmp.Or(words(j.Conclusion), words(j.Status))
		if j.Runner != "" {
			text += " on " + j.Runner
		}
		ev.add("job "+j.Name, text)
	}
	return Evidence{Label: runName(r), Value: cmp.Or(words(r.Conclusion), words(r.Status)), Parts: ev}
}

// words writes a word of Gitea for people.
func words(s string) string { return strings.ReplaceAll(s, "_", " ") }

// age writes a duration of hours and minutes without its zeros.
func age(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return cmp.Or(text, "0s")
}
