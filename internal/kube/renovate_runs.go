package kube

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/fact"
)

// renovateHold is for how long the last run that is known stands while the log
// of a newer one is read, or its job is on its way here, so that nothing flaps
// at each run. It stands only if the newer one is of the same kind by what the
// CronJob says; one that may be a live run among dry runs makes the last run
// unknown at once.
const renovateHold = time.Minute

// keepJobs is what a person can do about a run that nobody saw.
const keepJobs = "keep jobs for a while (successfulJobsHistoryLimit, failedJobsHistoryLimit, ttlSecondsAfterFinished)"

// renovateRuns tells which run of a CronJob is the last. The jobs that are there
// do not tell it alone: they are cleaned up, and at once where no history is
// kept. A run that a person started, that failed and whose job is gone before it
// was ever seen is the only one that nothing tells of.
type renovateRuns struct {
	// namespace and name are those of the CronJob.
	namespace, name string
	// open are the runs whose jobs were seen and whose logs were not read yet, and
	// gone is the last of those whose job has vanished.
	open map[string]*fact.RenovateRun
	gone *fact.RenovateRun
	// clean says that the last run was known once in this life, and news is since
	// when there is a newer one.
	clean bool
	news  time.Time
}

// fill sets the last run and the one that is under way, and returns after what
// time the last may be another by itself. read is the run whose log was read
// last, or nil.
func (r *renovateRuns) fill(now, prev *fact.Renovate, s seen, read *fact.RenovateRun, at time.Time) time.Duration {
	now.Running = r.running(s)
	former, unread := prev.Last, false
	now.Last = former
	switch {
	case s.last == nil || isRead(former) && s.last.is(former):
	case s.last.is(read):
		now.Last = read
	case former != nil && (s.last.is(former) || endOf(former).After(s.last.completed)):
	default:
		now.Last, unread = s.last.run(), true
		now.Last.LogProblem = "its log is being read"
	}
	r.follow(now, prev, s, read, at)
	if r.gone != nil && endOf(r.gone).After(endOf(now.Last)) {
		now.Last, unread = r.gone, false
	}
	if missed := r.missed(now.Last, s); missed != nil {
		now.Last, unread = missed, true
	}
	return r.hold(now, former, unread, at)
}

// running returns a run that is under way, or nil. The CronJob may know of one
// whose job is not seen.
func (r *renovateRuns) running(s seen) *fact.RenovateRun {
	if s.running != nil {
		return s.running.run()
	}
	for _, name := range s.cronJob.active {
		if id := r.namespace + "/" + name; s.jobs[id].name == "" {
			return &fact.RenovateRun{ID: id, Job: name, Mode: fact.RenovateUnknown}
		}
	}
	return nil
}

// follow notes the jobs that were seen and are gone before their log was read.
func (r *renovateRuns) follow(now, prev *fact.Renovate, s seen, read *fact.RenovateRun, at time.Time) {
	if r.open == nil {
		r.open = map[string]*fact.RenovateRun{}
	}
	if prev.Running != nil && r.open[prev.Running.ID] == nil {
		r.open[prev.Running.ID] = prev.Running
	}
	for id, j := range s.jobs {
		switch {
		case j.conclusion == "" && j.active, j.conclusion != "" && j == *s.last && !j.is(read) && !j.is(heldLast(now)):
			r.open[id] = j.run()
		case j.conclusion != "":
			delete(r.open, id)
		}
	}
	for id, run := range r.open {
		_, there := s.jobs[id]
		if there || slices.Contains(s.cronJob.active, run.Job) {
			continue
		}
		delete(r.open, id)
		if last := heldLast(now); last != nil && last.ID == id || read != nil && read.ID == id && isRead(read) {
			continue
		}
		gone := *run
		gone.Completed = cmp.Or(run.Completed, at)
		gone.LogProblem = "its job is gone, and its log was not read; " + keepJobs
		if r.gone == nil || endOf(&gone).After(endOf(r.gone)) {
			r.gone = &gone
		}
	}
	if r.gone != nil && s.jobs[r.gone.ID].name != "" {
		r.gone = nil
	}
}

// heldLast returns the last run if its log was read, or nil.
func heldLast(now *fact.Renovate) *fact.RenovateRun {
	if isRead(now.Last) {
		return now.Last
	}
	return nil
}

// missed returns the run that the CronJob tells of and that is later than all
// that are known, or nil.
func (r *renovateRuns) missed(last *fact.RenovateRun, s seen) *fact.RenovateRun {
	var began, succeeded time.Time
	if last != nil {
		began, succeeded = last.Started, last.Completed
	}
	for _, j := range s.jobs {
		began, succeeded = latest(began, j.began), latest(succeeded, j.completed)
	}
	c := s.cronJob
	run := &fact.RenovateRun{ID: r.namespace + "/" + r.name, Mode: fact.RenovateUnknown}
	switch {
	case c.scheduled.After(began):
		// This is how Kubernetes names the job of a time.
		run.Job = fmt.Sprintf("%s-%d", r.name, c.scheduled.Unix()/60)
		run.ID, run.Event, run.Started = r.namespace+"/"+run.Job, "schedule", c.scheduled
		run.LogProblem = "the CronJob started it at " + c.scheduled.Format(time.RFC3339) + ", and its job is gone; " + keepJobs
	case c.succeeded.After(succeeded):
		if last != nil && last.Completed.IsZero() {
			run.ID, run.Job, run.Event, run.Started = last.ID, last.Job, last.Event, last.Started
		}
		run.LogProblem = "the CronJob says that it succeeded at " + c.succeeded.Format(time.RFC3339) + ", and its job is gone; " + keepJobs
	default:
		return nil
	}
	if c.succeeded.After(succeeded) {
		run.Completed, run.Conclusion = c.succeeded, "success"
	}
	return run
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// endOf returns when a run ended, as far as that is known.
func endOf(run *fact.RenovateRun) time.Time {
	if run == nil {
		return time.Time{}
	}
	return cmp.Or(run.Completed, run.Started)
}

// hold has the former run stand for a while. unread says that there is a newer
// one of which more will be known.
func (r *renovateRuns) hold(now *fact.Renovate, former *fact.RenovateRun, unread bool, at time.Time) time.Duration {
	if !unread || !isRead(former) || !sameKind(now.Configured.OnSchedule, former.Mode) {
		r.news = time.Time{}
		r.clean = r.clean || isRead(now.Last)
		return 0
	}
	switch {
	case !r.clean:
		return 0
	case r.news.IsZero():
		r.news = at
	}
	left := r.news.Add(renovateHold).Sub(at)
	if left <= 0 {
		return 0
	}
	now.Last = former
	return left
}

// sameKind reports whether two modes are both dry runs, or the same.
func sameKind(a, b string) bool {
	dry := func(mode string) bool {
		return mode != fact.RenovateLive && mode != fact.RenovateUnknown && mode != ""
	}
	return a == b || dry(a) && dry(b)
}
