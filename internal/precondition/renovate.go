package precondition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// Renovate asks what the last completed run of Renovate really was. Its log
// tells, never the status of its run: a job that was skipped reports success,
// and a run with an empty RENOVATE_DRY_RUN is a live one.
//
// Of a CronJob, the logs of all pods and containers of the job count. A run whose
// job is gone before its logs were read leaves the last run unknown, so some jobs
// should be kept. While the logs of a new run are read, the one before it stands
// for a minute at most, and only if both are dry runs by what the CronJob says.
type Renovate struct {
	// Workflow is the name of the workflow's file in which Renovate runs, such as
	// "renovate.yaml".
	Workflow string `yaml:"workflow" json:"workflow,omitempty"`
	// CronJob is the CronJob in which it runs on the target clusters instead, as
	// "namespace/name".
	CronJob string `yaml:"cronJob" json:"cronJob,omitempty"`
	// Mode is what the run must have been: "full", "lookup" or "extract" are dry
	// runs of that kind, "dry-run" is any of them, and "live" is none.
	Mode string `yaml:"mode" json:"mode" jsonschema:"required,enum=dry-run,enum=full,enum=lookup,enum=extract,enum=live"`
	// MaxAge is how long ago it may have ended; any time if not given.
	MaxAge yamlfile.Duration `yaml:"maxAge" json:"maxAge,omitempty"`
	// Next also asks that the next run by schedule is of that mode, by what the
	// workflow or CronJob says now.
	Next bool `yaml:"next" json:"next,omitempty"`
}

var renovateModes = []string{fact.RenovateDryRun, fact.RenovateFull, fact.RenovateLookup, fact.RenovateExtract, fact.RenovateLive}

// Validate implements [Kind].
func (c *Renovate) Validate(v *Validator, at yamlfile.Path) {
	switch {
	case c.Workflow != "" && c.CronJob != "", c.Workflow == "" && c.CronJob == "":
		v.Add(at, "give exactly one, such as workflow: renovate.yaml", "needs a workflow or a cronJob")
	case c.Workflow != "":
		v.workflowFile(at.At("workflow"), c.Workflow)
	default:
		v.object(at.At("cronJob"), c.CronJob)
	}
	switch {
	case c.Mode == "":
		v.Add(at.At("mode"), "write mode: dry-run or mode: live", "is missing")
	case !slices.Contains(renovateModes, c.Mode):
		v.Add(at.At("mode"), yamlfile.Suggest(c.Mode, renovateModes), "%q is not known", c.Mode)
	}
}

// Evaluate implements [Kind].
func (c *Renovate) Evaluate(e *Evaluation, clusters []string) []Check {
	if c.Workflow != "" {
		w := fact.Wish{Key: fact.RenovateKey(e.Snapshot.Pull.Repo.ID, c.Workflow)}
		return []Check{c.check(e, w, "Renovate in "+c.Workflow, "")}
	}
	return e.onEach(clusters, func(cluster string) Check {
		namespace, name, _ := strings.Cut(c.CronJob, "/")
		w := fact.WishRenovate(cluster, fact.RenovateQuery{Namespace: namespace, Name: name})
		return c.check(e, w, "Renovate in CronJob "+c.CronJob, cluster)
	})
}

func (c *Renovate) check(e *Evaluation, w fact.Wish, what, cluster string) Check {
	f, finding, ok := e.wished(w, what)
	if !ok {
		return finding
	}
	r := f.Renovate
	where := ""
	if cluster != "" {
		where = " on " + cluster
	}
	if r.Watch != nil {
		if missed, ok := synced(*r.Watch, "CronJobs", cluster); !ok {
			missed.ReadAt = f.SeenAt
			return missed
		}
	}
	finding.Evidence = renovateEvidence(r)
	finding.State, finding.Reason = c.judge(e, r, what+where)
	if r.Last != nil {
		finding.Since = cmp.Or(r.Last.Completed, r.Last.Started)
	}
	return finding
}

func (c *Renovate) judge(e *Evaluation, r *fact.Renovate, what string) (State, string) {
	last := r.Last
	switch {
	case r.Missing:
		return Unmet, what + " does not exist"
	case last == nil:
		return Unmet, what + " has never run, or its runs are forgotten"
	}
	run := fmt.Sprintf("run %s of %s", last.ID, what)
	switch {
	case last.Conclusion == runSkipped:
		return Unmet, run + " skipped its job" + jobName(last) + ", so nothing ran"
	case last.Conclusion == "" && last.LogProblem != "":
		return Unknown, fmt.Sprintf("nobody can tell what %s did: %s", run, oneLine(last.LogProblem))
	case last.Conclusion != runSuccess:
		return Unmet, fmt.Sprintf("%s ended with %s%s", run, cmp.Or(words(last.Conclusion), "no conclusion"), because(last.Failures))
	case len(last.Failures) > 0:
		return Unmet, fmt.Sprintf("%s says success, but Renovate failed%s", run, because(last.Failures))
	case last.Mode == fact.RenovateUnknown || last.Mode == "":
		why := cmp.Or(last.LogProblem, first(last.Proof), "its log proves none")
		return Unknown, fmt.Sprintf("nobody can tell whether %s was a dry run: %s", run, oneLine(why))
	case !c.is(last.Mode):
		return Unmet, fmt.Sprintf("%s was %s, not %s%s", run, modeText(last.Mode), modeText(c.Mode), did(last))
	}
	if c.MaxAge > 0 {
		if last.Completed.IsZero() {
			return Unknown, run + " does not say when it ended"
		}
		if why, late := tooOld(e, last.Completed, c.MaxAge.D()); late {
			return Unmet, run + " " + why
		}
	}
	if c.Next {
		if state, why := c.next(r); state != Met {
			return state, what + " " + why
		}
	}
	return Met, fmt.Sprintf("%s was %s, ended at %s%s", run, modeText(last.Mode), stamp(last.Completed), did(last))
}

// is reports whether a mode is the one that is asked for.
func (c *Renovate) is(mode string) bool {
	if c.Mode == fact.RenovateDryRun {
		return mode == fact.RenovateDryRun || mode == fact.RenovateFull || mode == fact.RenovateLookup || mode == fact.RenovateExtract
	}
	return mode == c.Mode
}

// next decides about the next run by schedule.
func (c *Renovate) next(r *fact.Renovate) (State, string) {
	n := r.Configured
	switch {
	case n.Problem != "":
		return Unknown, "is told to do what nobody can tell: " + oneLine(n.Problem)
	case len(n.Schedules) == 0 || n.Suspended:
		return Met, ""
	case n.OnSchedule == fact.RenovateUnknown || n.OnSchedule == "":
		return Unknown, "will run by schedule, and nobody can tell how: " + cmp.Or(oneLine(n.Why), "it does not say")
	case !c.is(n.OnSchedule):
		return Unmet, fmt.Sprintf("will be %s when the schedule starts it next (%s)", modeText(n.OnSchedule), listed(n.Schedules, len(n.Schedules)))
	}
	return Met, ""
}

func modeText(mode string) string {
	switch mode {
	case fact.RenovateLive:
		return "a live run"
	case fact.RenovateDryRun:
		return "a dry run"
	default:
		return "a dry run (" + mode + ")"
	}
}

func jobName(r *fact.RenovateRun) string {
	if r.Job == "" {
		return ""
	}
	return " " + r.Job
}

func because(failures []string) string {
	if len(failures) == 0 {
		return ""
	}
	return ": " + oneLine(failures[0])
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// did says what a run created, or would have.
func did(r *fact.RenovateRun) string {
	if len(r.Branches)+len(r.Pulls) == 0 {
		return ""
	}
	verb := "it would touch"
	if r.Mode == fact.RenovateLive {
		verb = "it touched"
	}
	var parts []string
	if n := len(r.Branches); n > 0 {
		parts = append(parts, number(n, "branch", "branches"))
	}
	if n := len(r.Pulls); n > 0 {
		parts = append(parts, plural(n, "pull request"))
	}
	return "; " + verb + " " + strings.Join(parts, " and ")
}

func renovateEvidence(r *fact.Renovate) []Evidence {
	var ev evidence
	if r.Last != nil {
		ev = append(ev, Evidence{Label: "last completed run", Value: r.Last.ID, Parts: renovateRunEvidence(r.Last)})
	}
	if r.Running != nil {
		ev = append(ev, Evidence{Label: "under way", Value: r.Running.ID, Parts: renovateRunEvidence(r.Running)})
	}
	var now evidence
	now.add("schedule", strings.Join(r.Configured.Schedules, "; "))
	now.add("by schedule", r.Configured.OnSchedule)
	now.add("by hand", r.Configured.ByHand)
	now.add("because", r.Configured.Why)
	now.add("problem", r.Configured.Problem)
	if r.Configured.Suspended {
		now.add("suspended", "yes")
	}
	now.add("secrets that the repository itself has not", strings.Join(r.Configured.MissingSecrets, ", "))
	ev.addParts("configured now", "", now)
	ev.addParts("dependency dashboard", "", counts(r.Dashboard))
	return ev
}

func renovateRunEvidence(r *fact.RenovateRun) []Evidence {
	var ev evidence
	ev.add("mode", r.Mode)
	for _, line := range r.Proof {
		ev.add("proof", line)
	}
	ev.add("log", r.LogProblem)
	ev.add("conclusion", words(r.Conclusion))
	ev.add("job", r.Job)
	ev.add("started by", r.Event)
	ev.add("branch", r.Branch)
	ev.add("commit", r.Commit)
	ev.addTime("started", r.Started)
	ev.addTime("ended", r.Completed)
	ev.add("page", r.URL)
	for _, f := range r.Failures {
		ev.add("failure", f)
	}
	ev.add("branches", strings.Join(r.Branches, ", "))
	ev.add("pull requests", strings.Join(r.Pulls, ", "))
	ev.addParts("updates", "", counts(r.Updates))
	ev.add("version", r.Version)
	return ev
}

func counts(of map[string]int) []Evidence {
	var ev evidence
	for _, name := range slices.Sorted(maps.Keys(of)) {
		ev.add(name, fmt.Sprint(of[name]))
	}
	return ev
}
