package giteatest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// jobState is the state of a job or a run.
type jobState string

// The states. Gitea keeps a state and its outcome in one, and shows them as two
// words.
const (
	queued    jobState = "queued"
	waiting   jobState = "waiting"
	running   jobState = "in_progress"
	succeeded jobState = "success"
	failed    jobState = "failure"
	cancelled jobState = "cancelled"
	skipped   jobState = "skipped"
)

func (s jobState) over() bool { return s != queued && s != waiting && s != running }

// shown are the two words.
func (s jobState) shown() (status, conclusion string) {
	if s.over() {
		return "completed", string(s)
	}
	return string(s), ""
}

// run is a run of a workflow.
type run struct {
	id, number int64
	repo       *repo
	workflow   string // The name of the file.
	name       string // What the file calls itself, or empty.
	title      string
	event      string // What is shown, see [Server.Run].
	trigger    string // What is filtered by.
	ref, sha   string
	by         *account
	jobs       []*job

	started, stopped time.Time
}

type job struct {
	id      int64
	name    string
	labels  []string
	needs   []string
	state   jobState
	attempt int64
	runner  *runner // Nil until one has taken it.
	log     strings.Builder
	gone    bool // Whether the log was cleaned up.

	started, stopped time.Time
}

// runner is a runner of a repository, or of an account.
type runner struct {
	id       int64
	repo     *repo
	owner    *account
	name     string
	labels   []string
	offline  bool
	disabled bool
}

// variable is a variable, or the name of a secret.
type variable struct {
	name, value string
	created     time.Time
}

// issue is an issue that is no pull request.
type issue struct {
	number  int64
	author  *account
	title   string
	body    string
	closed  bool
	created time.Time
}

// state is what Gitea makes of the states of the jobs: it says that a run was
// cancelled also while another of its jobs goes on.
func (r *run) state() jobState {
	has := func(s jobState) bool {
		return slices.ContainsFunc(r.jobs, func(j *job) bool { return j.state == s })
	}
	all := func(states ...jobState) bool {
		return !slices.ContainsFunc(r.jobs, func(j *job) bool { return !slices.Contains(states, j.state) })
	}
	switch {
	case all(skipped):
		return skipped
	case all(succeeded, skipped):
		return succeeded
	case has(cancelled):
		return cancelled
	case has(running):
		return running
	case has(queued):
		return queued
	case has(failed):
		return failed
	}
	return waiting
}

// job finds a job by its name.
func (r *run) job(name string) *job {
	for _, j := range r.jobs {
		if j.name == name {
			return j
		}
	}
	return nil
}

// run finds a run by its id.
func (r *repo) run(id int64) *run {
	for _, found := range r.runs {
		if found.id == id {
			return found
		}
	}
	return nil
}

// jobByID finds a job and its run.
func (r *repo) jobByID(id int64) (*run, *job) {
	for _, found := range r.runs {
		for _, j := range found.jobs {
			if j.id == id {
				return found, j
			}
		}
	}
	return nil, nil
}

// workflowPath finds the file of a workflow on the default branch, as Gitea
// does: the second folder counts where there is no first.
func (m *model) workflowPath(r *repo, name string) (string, bool) {
	tree := m.treeAt(r.branches["main"])
	for _, dir := range []string{".gitea/workflows", ".github/workflows"} {
		if _, ok := folder(tree, dir); ok {
			full := path.Join(dir, name)
			_, ok = tree[full]
			return full, ok
		}
	}
	return "", false
}

// next is the number of the next pull request or issue.
func (r *repo) next() int64 { return int64(len(r.pulls)+len(r.issues)) + 1 }

func (s *Server) runURL(r *run) string {
	return fmt.Sprintf("%s/%s/actions/runs/%d", s.root, r.repo.fullName(), r.id)
}

func (s *Server) jobURL(r *run, j *job) string { return fmt.Sprintf("%s/jobs/%d", s.runURL(r), j.id) }
