package giteatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/pull"
)

// NewRun is a run of a workflow that is to be started.
type NewRun struct {
	// Workflow is the name of the workflow's file, and Name what the file calls
	// itself, if it does.
	Workflow, Name string
	// Event is push, pull_request, schedule or workflow_dispatch.
	Event string
	// Branch is what it runs on; empty means "main". A run of event pull_request
	// runs on the head of Pull instead.
	Branch string
	Pull   int64
	// As is who started it; a schedule is nobody's.
	As   string
	Jobs []NewJob
}

// NewJob is a job of a [NewRun].
type NewJob struct {
	Name string
	// Labels are those that a runner must have; none means "ubuntu-latest".
	Labels []string
	// Needs are the names of jobs that have to succeed before.
	Needs []string
}

// Run starts a run of a workflow, whose jobs then wait for a runner, and
// returns its id. Nothing starts one by itself here, as a push does in a real
// Gitea. A scheduled run says that it comes from a push, as there.
func (s *Server) Run(_ context.Context, of pull.Repo, in NewRun) (id int64, err error) {
	err = s.inRepo(of, func(r *repo) error {
		started, err := s.newRun(r, in)
		if err != nil {
			return err
		}
		s.model.last.run++
		started.id, started.number = s.model.last.run, int64(len(r.runs))+1
		for _, j := range started.jobs {
			s.model.last.job++
			j.id = s.model.last.job
		}
		r.runs = append(r.runs, started)
		for _, j := range started.jobs {
			s.postJob(started, j)
		}
		s.sendRun(started)
		for _, j := range started.jobs {
			s.sendJob(started, j)
		}
		id = started.id
		return nil
	})
	return id, err
}

func (s *Server) newRun(r *repo, in NewRun) (*run, error) {
	if in.Branch == "" {
		in.Branch = "main"
	}
	out := &run{
		repo: r, workflow: in.Workflow, name: in.Name, event: in.Event, trigger: in.Event,
		ref: "refs/heads/" + in.Branch, sha: r.branches[in.Branch], by: actions,
	}
	switch in.Event {
	case "schedule":
		out.event = "push"
	case "push", "pull_request", "workflow_dispatch":
		by, err := s.model.account(in.As)
		if err != nil {
			return nil, err
		}
		out.by = by
	default:
		return nil, fmt.Errorf("the stand-in knows no event %q of a workflow", in.Event)
	}
	if in.Event == "pull_request" {
		p := r.pull(in.Pull)
		if p == nil {
			return nil, fmt.Errorf("there is no pull request %d", in.Pull)
		}
		out.ref, out.sha = fmt.Sprintf("refs/pull/%d/head", p.number), p.headSHA
	}
	if out.sha == "" {
		return nil, fmt.Errorf("there is no branch %q", in.Branch)
	}
	out.title, _, _ = strings.Cut(s.model.commits[out.sha].message, "\n")
	for _, j := range in.Jobs {
		fresh := &job{name: j.Name, labels: j.Labels, needs: j.Needs, state: queued}
		if len(j.Labels) == 0 {
			fresh.labels = []string{"ubuntu-latest"}
		}
		if len(j.Needs) > 0 {
			fresh.state = waiting
		}
		out.jobs = append(out.jobs, fresh)
	}
	if in.Workflow == "" || len(out.jobs) == 0 {
		return nil, errors.New("a run needs a workflow and a job")
	}
	return out, nil
}

// inRun runs f on a run, under the lock.
func (s *Server) inRun(of pull.Repo, id int64, f func(*run) error) error {
	return s.inRepo(of, func(r *repo) error {
		found := r.run(id)
		if found == nil {
			return fmt.Errorf("there is no run %d of %s", id, of)
		}
		return f(found)
	})
}

// Rerun starts all jobs of a run that is over once more. It keeps the ids, and
// its logs are gone.
func (s *Server) Rerun(_ context.Context, of pull.Repo, id int64) error {
	return s.inRun(of, id, func(r *run) error {
		if !r.state().over() {
			return errors.New("this workflow run is not done")
		}
		r.started, r.stopped = time.Time{}, time.Time{}
		for _, j := range r.jobs {
			attempt := j.attempt
			*j = job{id: j.id, name: j.name, labels: j.labels, needs: j.needs, state: queued, attempt: attempt}
			if len(j.needs) > 0 {
				j.state = waiting
			}
		}
		s.sendRun(r)
		for _, j := range r.jobs {
			s.postJob(r, j)
			s.sendJob(r, j)
		}
		return nil
	})
}

// Cancel cancels one job that is not over. Gitea calls the run cancelled from
// then on, whatever its other jobs do.
func (s *Server) Cancel(_ context.Context, of pull.Repo, id int64, name string) error {
	return s.inRun(of, id, func(r *run) error {
		j := r.job(name)
		if j == nil || j.state.over() {
			return fmt.Errorf("there is no job %q to cancel", name)
		}
		s.setJob(r, j, cancelled)
		return nil
	})
}

// DeleteRun deletes a run with its jobs and logs. No webhook says so.
func (s *Server) DeleteRun(_ context.Context, of pull.Repo, id int64) error {
	return s.inRun(of, id, func(gone *run) error {
		if !gone.state().over() {
			return errors.New("this workflow run is not done")
		}
		gone.repo.runs = slices.DeleteFunc(gone.repo.runs, func(r *run) bool { return r == gone })
		return nil
	})
}

// ExpireLogs cleans up the logs of a run, as Gitea does after a time.
func (s *Server) ExpireLogs(_ context.Context, of pull.Repo, id int64) error {
	return s.inRun(of, id, func(r *run) error {
		for _, j := range r.jobs {
			j.gone = true
		}
		return nil
	})
}

// setJob moves a job on, and with it its run and the jobs that need it.
func (s *Server) setJob(r *run, j *job, state jobState) {
	before, begun := r.state(), !r.started.IsZero()
	now := s.now()
	j.state = state
	switch {
	case state == running:
		j.started = now
		j.attempt++
		if r.started.IsZero() {
			r.started = now
		}
	case state.over() && j.runner != nil:
		j.stopped = now
	}
	s.postJob(r, j)
	s.sendJob(r, j)
	if state.over() {
		s.release(r)
	}
	after := r.state()
	if after.over() && r.stopped.IsZero() {
		r.stopped = now
	}
	if after != before && (after.over() || !begun && after == running) {
		s.sendRun(r)
	}
}

// release queues the jobs whose needs have succeeded, and skips those of which
// one has not.
func (s *Server) release(r *run) {
	for _, j := range r.jobs {
		if j.state != waiting {
			continue
		}
		ready, lost := true, false
		for _, need := range j.needs {
			before := r.job(need)
			ready = ready && before != nil && before.state.over()
			lost = lost || before == nil || before.state.over() && before.state != succeeded
		}
		switch {
		case !ready:
			continue
		case lost:
			j.state = skipped
		default:
			j.state = queued
		}
		s.postJob(r, j)
		s.sendJob(r, j)
		if lost {
			s.release(r)
		}
	}
}

// postJob posts the status of a job on its commit, as Gitea does for pushes and
// pull requests alone, and only where the state is another one.
func (s *Server) postJob(r *run, j *job) {
	if r.trigger != "push" && r.trigger != "pull_request" {
		return
	}
	fresh := status{
		// Of a workflow without a name it begins with the slash.
		context: strings.TrimSpace(fmt.Sprintf("%s / %s (%s)", r.name, j.name, r.trigger)),
		target:  s.options.SubPath + strings.TrimPrefix(s.jobURL(r, j), s.root),
	}
	took := j.stopped.Sub(j.started)
	switch j.state {
	case succeeded:
		fresh.state, fresh.description = "success", fmt.Sprintf("Successful in %s", took)
	case failed:
		fresh.state, fresh.description = "failure", fmt.Sprintf("Failing after %s", took)
	case cancelled:
		fresh.state, fresh.description = "failure", "Has been cancelled"
	case skipped:
		fresh.state, fresh.description = "skipped", "Has been skipped"
	case running:
		fresh.state, fresh.description = "pending", "Has started running"
	case waiting:
		fresh.state, fresh.description = "pending", "Blocked by required conditions"
	default:
		fresh.state, fresh.description = "pending", "Waiting to run"
	}
	for _, old := range slices.Backward(r.repo.statuses[r.sha]) {
		if old.context == fresh.context {
			if old.state == fresh.state {
				return
			}
			break
		}
	}
	// The commit is that of a branch, so it is there.
	_, _ = s.setStatus(r.repo, r.sha, nil, fresh)
}
