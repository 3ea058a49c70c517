package kube

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"signalbox/internal/fact"
)

// renovateRefresh is how often ConfigMaps are read again, and logs that could
// not be read.
const renovateRefresh = 5 * time.Minute

// renovateWish makes the fact of Renovate as a CronJob. What is not watched,
// the logs and ConfigMaps, it reads beside the watches; see run.
type renovateWish struct {
	query   fact.RenovateQuery
	cronJob reading
	jobs    reading
	wake    chan struct{}

	mu sync.Mutex
	// ask is what is to be read, and told what was.
	ask  renovateAsk
	told renovateTold

	// runs is what was seen of runs; only the worker that has the wish in hand
	// uses it.
	runs renovateRuns
}

// renovateAsk is a CronJob, and the job of which the log is to be read, if any.
type renovateAsk struct {
	cronJob cronJob
	job     *batchJob
}

type renovateTold struct {
	ask        renovateAsk
	complete   bool
	configured fact.RenovateConfigured
	run        *fact.RenovateRun
}

func newRenovateWish(q fact.RenovateQuery) collector {
	return &renovateWish{
		query: q, wake: make(chan struct{}, 1), runs: renovateRuns{namespace: q.Namespace, name: q.Name},
		cronJob: reading{
			target{fact.Resource{Resource: "cronjobs", Group: "batch"}, q.Namespace, q.Name, ""},
			column{id: "renovate cronjob", read: readCronJob},
		},
		jobs: reading{
			target{resource: fact.Resource{Resource: "jobs", Group: "batch"}, namespace: q.Namespace},
			column{id: "renovate job", read: readJob},
		},
	}
}

func (r *renovateWish) reads() []reading { return []reading{r.cronJob, r.jobs} }

// rights are those beside the watches: to find the pod of a job and read its
// log. ConfigMaps are read where that is allowed, and nothing fails where it is
// not.
func (r *renovateWish) rights() []Right {
	return []Right{
		{Verb: "list", Resource: "pods", Namespace: r.query.Namespace},
		{Verb: "get", Resource: "pods/log", Namespace: r.query.Namespace},
	}
}

// seen is what the watches show.
type seen struct {
	cronJob       *cronJobState
	jobs          map[string]batchJob
	last, running *batchJob
	version       string
}

func (r *renovateWish) see(views []view) (s seen) {
	s.jobs = map[string]batchJob{}
	ofCronJob := views[0].feed.rows.each(views[0].at, func(_ *row, c cell) {
		if j, ok := c.data.(cronJobState); ok {
			s.cronJob = &j
		}
	})
	ofJobs := views[1].feed.rows.each(views[1].at, func(_ *row, c cell) {
		j, ok := c.data.(batchJob)
		if !ok || s.cronJob == nil || j.owner == "" || j.owner != s.cronJob.uid {
			return
		}
		s.jobs[j.id()] = j
		switch {
		case j.conclusion != "" && (s.last == nil || later(j, *s.last, j.completed, s.last.completed)):
			s.last = &j
		case j.conclusion == "" && j.active && (s.running == nil || later(j, *s.running, j.began, s.running.began)):
			s.running = &j
		}
	})
	s.version = together(ofCronJob, ofJobs)
	return s
}

func later(a, b batchJob, at, other time.Time) bool {
	return cmp.Or(at.Compare(other), cmp.Compare(a.name, b.name)) > 0
}

// prepare implements [preparer].
func (r *renovateWish) prepare(prev *fact.Fact, views []view) bool {
	s := r.see(views)
	if s.cronJob == nil {
		return true
	}
	ask := renovateAsk{cronJob: s.cronJob.cronJob}
	if s.last != nil && !s.last.is(heldRun(prev)) {
		ask.job = s.last
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !reflect.DeepEqual(ask, r.ask) || !r.told.complete {
		r.ask = ask
		r.nudge()
	}
	return r.told.complete && reflect.DeepEqual(ask, r.told.ask)
}

func (r *renovateWish) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// heldRun returns the last run that is held, if no more is to be found out of it.
func heldRun(prev *fact.Fact) *fact.RenovateRun {
	if prev == nil || prev.Renovate == nil || !isRead(prev.Renovate.Last) {
		return nil
	}
	return prev.Renovate.Last
}

// isRead reports whether the log of a run was read as far as it matters: what
// was seen to write has written, whatever else cannot be read.
func isRead(run *fact.RenovateRun) bool {
	return run != nil && (run.LogProblem == "" || run.Mode == fact.RenovateLive)
}

// is reports whether a run is that of the job, as it ended.
func (j batchJob) is(run *fact.RenovateRun) bool {
	return run != nil && run.ID == j.id() && run.Completed.Equal(j.completed) && run.Conclusion == j.conclusion
}

func (r *renovateWish) project(c collected) (fact.Fact, time.Duration) {
	watch := c.watch
	now := &fact.Renovate{}
	f := fact.Fact{Since: c.since(), Renovate: now}
	var prev *fact.Renovate
	if c.prev != nil {
		prev = c.prev.Renovate
	}
	var again time.Duration
	switch {
	case c.watch.State == fact.WatchSynced:
		s := r.see(c.views)
		f.Version = s.version
		again = r.fill(now, prev, s, c.now)
	case c.watch.State != fact.WatchNotInstalled && prev != nil:
		*now = *prev
	}
	now.Watch = &watch
	if prev != nil && renovateState(prev) == renovateState(now) {
		f.Since = c.prev.Since
	}
	return f, again
}

// renovateState is that of which a change is a new state.
func renovateState(r *fact.Renovate) any {
	s := [7]any{r.Missing, r.Configured.OnSchedule, r.Configured.Suspended}
	if r.Watch != nil {
		s[3] = r.Watch.State
	}
	if r.Last != nil {
		s[4], s[5], s[6] = r.Last.ID, r.Last.Conclusion, r.Last.Mode
	}
	return s
}

// fill sets what is known, and returns after what time that may change by
// itself. A run whose job is forgotten stays the last one.
func (r *renovateWish) fill(now, prev *fact.Renovate, s seen, at time.Time) time.Duration {
	r.mu.Lock()
	told := r.told
	r.mu.Unlock()
	if now.Missing = s.cronJob == nil; now.Missing {
		now.Configured.Problem = "there is no CronJob " + r.query.Namespace + "/" + r.query.Name
	} else if told.complete && reflect.DeepEqual(told.ask.cronJob, s.cronJob.cronJob) {
		now.Configured = told.configured
	} else {
		now.Configured, _ = s.cronJob.configured(nil)
	}
	if prev == nil {
		prev = &fact.Renovate{}
	}
	now.Last = prev.Last
	if s.cronJob == nil {
		return 0
	}
	return r.runs.fill(now, prev, s, told.run, at)
}

// run reads what is asked for until ctx ends, and calls told each time that it
// has.
func (r *renovateWish) run(ctx context.Context, w *Watcher, told func()) {
	ticker := time.NewTicker(renovateRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-ticker.C:
		}
		r.mu.Lock()
		ask, before := r.ask, r.told
		r.mu.Unlock()
		if ask.cronJob.uid == "" {
			continue
		}
		now := renovateTold{ask: ask, complete: true, run: before.run}
		reader := podReader{w.connection(), r.query.Namespace, w.limits.Sync}
		var names []string
		now.configured, names = ask.cronJob.configured(reader.configMaps(ctx, ask.cronJob.configMaps()))
		if j := ask.job; j != nil && (now.run == nil || !j.is(now.run) || now.run.LogProblem != "") {
			now.run = reader.run(ctx, *j, names)
			if j.is(before.run) && before.run.Mode == fact.RenovateLive {
				now.run = before.run // What it wrote stays written when its log is gone.
			}
		}
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		r.told = now
		r.mu.Unlock()
		told()
	}
}
