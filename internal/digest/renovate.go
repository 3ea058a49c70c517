package digest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"signalbox/internal/fact"
)

// renovating names a Renovate.
type renovating struct {
	// at are the parts with which the IDs of its findings begin.
	at      []any
	cluster string
	repo    int64
	subject string
}

// cronJobs finds what is the matter with the Renovates of a cluster.
func (f *finder) cronJobs(cluster string) {
	if !f.wants(Pipelines) {
		return
	}
	for _, held := range f.in.Facts.Select(fact.SourceKube, cluster, fact.KindRenovate) {
		if !held.Absent {
			f.renovate(held, renovating{
				at:      []any{"cluster", cluster, "renovate", held.Key.Namespace, held.Key.Name},
				cluster: cluster, subject: "Renovate in CronJob " + held.Key.Object(),
			})
		}
	}
}

// renovate finds what is the matter with a Renovate.
func (f *finder) renovate(held fact.Fact, of renovating) {
	f.ask(Pipelines, of.at...)
	blind := Blind{Section: Pipelines, Cluster: of.cluster, Repo: of.repo, Prefix: prefix(Pipelines, of.at...)}
	r := held.Renovate
	switch {
	case held.Problem != "":
		blind.Why = of.subject + " cannot be read: " + held.Problem
	case r == nil:
		blind.Why = of.subject + " has not been read yet"
	case r.Watch != nil:
		blind.Why = blindBy(*r.Watch, "CronJobs", of.cluster)
	}
	if blind.Why != "" {
		f.blind(blind)
		return
	}
	found := func(fault string, s Severity, format string, args ...any) {
		out := Finding{
			ID: id(Pipelines, append(slices.Clone(of.at), fault)...), Section: Pipelines, Cluster: of.cluster, Repo: of.repo, Severity: s,
			Subject: of.subject, Text: fmt.Sprintf(format, args...), Since: held.Since,
		}
		if r.Last != nil {
			out.Since, out.URL = cmp.Or(r.Last.Completed, r.Last.Started), r.Last.URL
		}
		f.add(out)
	}
	now := r.Configured
	switch {
	case r.Missing:
		found("missing", Broken, "does not exist")
		return
	case now.Suspended:
		found("suspended", Notable, "is suspended: nothing starts it")
	case now.Problem != "":
		found("unreadable", Unclear, "is told to do what nobody can tell: %s", now.Problem)
	}
	f.lastRun(r, found)
	if late, every := overdue(r, f.in.Now); late {
		found("overdue", Broken, "has not run for longer than it should: its schedule starts it every %s", every)
	}
	f.renovateSummary(r, of)
	f.dashboard(r, of)
}

// lastRun judges the last completed run of Renovate.
func (f *finder) lastRun(r *fact.Renovate, found func(fault string, s Severity, format string, args ...any)) {
	last := r.Last
	switch {
	case last == nil && len(r.Configured.Schedules) > 0 && !r.Configured.Suspended:
		found("never", Notable, "has never run, or its runs are forgotten")
	case last == nil:
	case last.Conclusion == runSkipped:
		job := ""
		if last.Job != "" {
			job = " " + last.Job
		}
		found("skipped", Broken, "says success and did nothing: run %s skipped its job%s", last.ID, job)
	case last.Conclusion == runCancelled:
		found("cancelled", Notable, "was cancelled (run %s)", last.ID)
	case last.Conclusion == "":
		found("unknown", Unclear, "has ended, and nobody can tell how (run %s): %s", last.ID, cmp.Or(last.LogProblem, "it says no conclusion"))
	case last.Conclusion != runSuccess:
		found("failed", Broken, "failed (run %s)%s", last.ID, first(last.Failures))
	case len(last.Failures) > 0:
		found("failed", Broken, "says success, and Renovate failed (run %s)%s", last.ID, first(last.Failures))
	case last.LogProblem != "":
		found("unknown", Unclear, "says success, and nobody can tell what it did (run %s): %s", last.ID, last.LogProblem)
	}
}

func first(failures []string) string {
	if len(failures) == 0 {
		return ""
	}
	return ": " + failures[0]
}

const (
	// missedRuns is how many runs in a row must be missed, and leastLate how late the
	// next one must be at least, before a Renovate is overdue. A run takes hours at
	// times, and a machine may be off for a night.
	missedRuns = 3
	leastLate  = 48 * time.Hour
)

// overdue reports whether a Renovate has missed several runs in a row, and about how
// often its schedule starts it. Where its schedule is not known, it never is.
func overdue(r *fact.Renovate, now time.Time) (late bool, every string) {
	last := r.Last
	if last == nil || r.Running != nil || r.Configured.Suspended || r.Configured.Problem != "" {
		return false, ""
	}
	ran := cmp.Or(last.Started, last.Completed)
	if ran.IsZero() || now.Sub(ran) < leastLate {
		return false, ""
	}
	var soonest, often time.Duration
	for _, text := range r.Configured.Schedules {
		schedule, ok := parseCron(text)
		if !ok {
			return false, ""
		}
		first := schedule.Next(ran.UTC())
		at := first
		for range missedRuns - 1 {
			if !at.IsZero() {
				at = schedule.Next(at)
			}
		}
		if at.IsZero() {
			return false, ""
		}
		if d := at.Sub(ran); soonest == 0 || d < soonest {
			soonest, often = d, at.Sub(first)/(missedRuns-1)
		}
	}
	if soonest == 0 || now.Sub(ran) < max(soonest, leastLate) {
		return false, ""
	}
	return true, roughly(often)
}

// parseCron reads the schedule of a workflow or CronJob. A zone in front is that of
// the schedule; without one it is UTC, which is near enough here.
func parseCron(text string) (cron.Schedule, bool) {
	text = strings.TrimSpace(text)
	if zone, _, ok := strings.Cut(text, " "); strings.Contains(zone, "TZ=") && !ok {
		return nil, false
	}
	s, err := cron.ParseStandard(text)
	return s, err == nil
}

// roughly writes how often something is, for people.
func roughly(d time.Duration) string {
	switch {
	case d < time.Hour:
		return plural(max(1, int(d.Round(time.Minute)/time.Minute)), "minute")
	case d < 36*time.Hour:
		return plural(int(d.Round(time.Hour)/time.Hour), "hour")
	default:
		return plural(int(d.Round(24*time.Hour)/(24*time.Hour)), "day")
	}
}

// renovateSummary says what the last run was.
func (f *finder) renovateSummary(r *fact.Renovate, of renovating) {
	text := of.subject
	if of.cluster != "" {
		text += " on " + of.cluster
	}
	switch {
	case r.Last == nil:
		text += " has not run yet"
	case r.Last.Mode == fact.RenovateLive:
		text += " was a live run last"
	case r.Last.Mode == fact.RenovateUnknown || r.Last.Mode == "":
		text += " ran last, and nobody can tell whether it was a dry run"
	case r.Last.Mode == fact.RenovateDryRun:
		text += " was a dry run last"
	default:
		text += " was a dry run (" + r.Last.Mode + ") last"
	}
	if r.Last != nil {
		if at := cmp.Or(r.Last.Completed, r.Last.Started); !at.IsZero() {
			text += ", " + ago(f.in.Now.Sub(at))
		}
	}
	if r.Running != nil {
		text += "; one is under way"
	}
	f.summary(Pipelines, Summary{Cluster: of.cluster, Repo: of.repo, Text: text})
}

func ago(d time.Duration) string {
	if d < time.Minute {
		return "just now"
	}
	return roughly(d) + " ago"
}

// dashboard counts the rows of a dependency dashboard. What has failed or waits for
// a limit is a finding.
func (f *finder) dashboard(r *fact.Renovate, of renovating) {
	if len(r.Dashboard) == 0 {
		return
	}
	var texts []string
	held := map[string]int{}
	for _, section := range slices.Sorted(maps.Keys(r.Dashboard)) {
		n := r.Dashboard[section]
		if n == 0 {
			continue
		}
		texts = append(texts, fmt.Sprintf("%d %s", n, clip(section, maxName)))
		switch name := strings.ToLower(section); {
		case strings.Contains(name, "error"):
			held["errored"] += n
		case strings.Contains(name, "rate") && strings.Contains(name, "limit"):
			held["rate-limited"] += n
		}
	}
	if len(texts) > 0 {
		f.summary(Pipelines, Summary{Cluster: of.cluster, Repo: of.repo, Text: "The dashboard of " + of.subject + " lists " + enumerate(texts)})
	}
	for _, what := range slices.Sorted(maps.Keys(held)) {
		text := plural(held[what], "update") + " " + isAre(held[what]) + " held back by its limits"
		if what == "errored" {
			text = plural(held[what], "update") + " failed"
		}
		f.add(Finding{
			ID: id(Pipelines, append(slices.Clone(of.at), what)...), Section: Pipelines, Cluster: of.cluster, Repo: of.repo, Severity: Notable,
			Subject: of.subject, Text: text + ", by its dashboard",
		})
	}
}
