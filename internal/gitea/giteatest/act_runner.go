package giteatest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"signalbox/internal/pull"
)

// Runner is a runner of Actions that does what a test tells it. Its methods
// must not be called concurrently.
type Runner interface {
	// Next takes the job that waits longest, and returns its name. The stand-in
	// does not wait for one: there it is an error if none waits.
	Next(ctx context.Context) (job string, err error)
	// Log adds lines to the log of the job.
	Log(ctx context.Context, lines ...string) error
	// Finish ends the job with success, failure or skipped.
	Finish(ctx context.Context, conclusion string) error
}

// worker is a [Runner] of the stand-in.
type worker struct {
	server *Server
	runner *runner
	run    *run
	job    *job
}

// Register adds a runner to a repository; no labels mean "ubuntu-latest".
func (s *Server) Register(_ context.Context, of pull.Repo, name string, labels ...string) (Runner, error) {
	w := &worker{server: s}
	err := s.inRepo(of, func(r *repo) error {
		w.runner = s.addRunner(runner{repo: r, name: name, labels: labels})
		return nil
	})
	return w, err
}

// RegisterFor adds a runner to all repositories of a person or an organisation.
func (s *Server) RegisterFor(_ context.Context, owner, name string, labels ...string) (Runner, error) {
	w := &worker{server: s}
	err := s.locked(func() error {
		a, err := s.model.account(owner)
		if err != nil {
			return err
		}
		w.runner = s.addRunner(runner{owner: a, name: name, labels: labels})
		return nil
	})
	return w, err
}

func (s *Server) addRunner(r runner) *runner {
	s.model.last.runner++
	r.id = s.model.last.runner
	if len(r.labels) == 0 {
		r.labels = []string{"ubuntu-latest"}
	}
	s.model.runners = append(s.model.runners, &r)
	return &r
}

// SetRunner makes a runner known by its name online or offline, enabled or
// disabled.
func (s *Server) SetRunner(_ context.Context, name string, online, enabled bool) error {
	return s.locked(func() error {
		for _, r := range s.model.runners {
			if r.name == name {
				r.offline, r.disabled = !online, !enabled
				return nil
			}
		}
		return fmt.Errorf("there is no runner %q", name)
	})
}

// takes reports whether a runner may take jobs of a repository.
func (r *runner) takes(of *repo) bool { return r.repo == of || r.owner != nil && r.owner == of.owner }

func (w *worker) Next(context.Context) (name string, err error) {
	err = w.server.locked(func() error {
		if w.job != nil {
			return fmt.Errorf("job %q is not finished", w.job.name)
		}
		for _, repo := range w.server.model.repos {
			for _, r := range repo.runs {
				for _, j := range r.jobs {
					if j.state == queued && w.runner.takes(repo) && subset(j.labels, w.runner.labels) {
						w.run, w.job = r, j
						j.runner = w.runner
						w.server.setJob(r, j, running)
						name = j.name
						return nil
					}
				}
			}
		}
		return errors.New("no job waits for the runner")
	})
	return name, err
}

func subset(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(whole, s) })
}

func (w *worker) Log(_ context.Context, lines ...string) error {
	return w.server.locked(func() error {
		if w.job == nil {
			return errors.New("the runner has no job")
		}
		at := w.server.options.Clock().UTC().Format("2006-01-02T15:04:05.0000000Z")
		for _, line := range lines {
			w.job.log.WriteString(at + " " + line + "\n")
		}
		return nil
	})
}

func (w *worker) Finish(_ context.Context, conclusion string) error {
	return w.server.locked(func() error {
		state := jobState(conclusion)
		switch {
		case w.job == nil:
			return errors.New("the runner has no job")
		case state != succeeded && state != failed && state != skipped:
			return fmt.Errorf("a runner does not finish a job as %q", conclusion)
		}
		r, j := w.run, w.job
		w.run, w.job = nil, nil
		if j.state.over() {
			return errors.New("the job was cancelled")
		}
		w.server.setJob(r, j, state)
		return nil
	})
}
