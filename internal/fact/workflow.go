package fact

import (
	"strconv"
	"time"
)

// StatusesKey returns the key of the [Statuses] fact of a commit.
func StatusesKey(repo int64, commit string) Key {
	return Key{Source: SourceGitea, Kind: KindStatuses, Namespace: strconv.FormatInt(repo, 10), Name: commit}
}

// Statuses are the commit statuses of one commit.
type Statuses struct {
	// Statuses holds the newest status of each context, sorted by context.
	Statuses []Status `json:"statuses,omitempty"`
	// More says that there are older ones that were not read, so that a context
	// may be missing.
	More bool `json:"more,omitempty"`
}

// Status is a commit status.
type Status struct {
	Context string `json:"context"`
	// State is one of Gitea's: pending, success, error, failure, warning,
	// skipped.
	State       string `json:"state"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url,omitempty"`
	// Creator is the login of who posted it. It is empty for Gitea Actions, and for
	// an account that was deleted since.
	Creator string `json:"creator,omitempty"`
	// Job is the id of the job of Gitea Actions that bears it out: one of the name
	// that the context has, of a run on this commit, which ended with this state. 0
	// if none is known, and for what still goes on or failed.
	Job int64     `json:"job,omitempty"`
	At  time.Time `json:"at,omitzero"`
}

// RunsKey returns the key of the [Runs] fact of a workflow: of its newest runs
// on a commit, or on a branch that is named as "refs/heads/main".
func RunsKey(repo int64, workflow, on string) Key {
	return Key{Source: SourceGitea, Kind: KindRuns, Namespace: strconv.FormatInt(repo, 10), Name: workflow + "@" + on}
}

// Runs are runs of one workflow, the newest first. At most [MaxRuns] are kept; on
// a commit only the newest of each event, and of the events of pull requests the
// newest for each pull request.
type Runs struct {
	Runs []Run `json:"runs,omitempty"`
	// More says that there are older ones that may matter.
	More bool `json:"more,omitempty"`
}

// MaxRuns bounds [Runs].
const MaxRuns = 20

// Run is a run of a workflow of Gitea Actions.
type Run struct {
	ID      int64 `json:"id"`
	Number  int64 `json:"number,omitempty"`
	Attempt int64 `json:"attempt,omitempty"`
	// Workflow is the name of the file, such as "renovate.yaml".
	Workflow string `json:"workflow"`
	Title    string `json:"title,omitempty"`
	// Event is what started it: push, pull_request, schedule, workflow_dispatch.
	Event string `json:"event"`
	// Ref is what it ran on: "refs/heads/main", or "refs/pull/12/head" for what
	// happened to pull request 12. Branch is the name of a branch.
	Ref    string `json:"ref,omitempty"`
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit"`
	Actor  string `json:"actor,omitempty"`
	URL    string `json:"url,omitempty"`
	// Status is queued, waiting, in_progress or completed; Conclusion is set on a
	// completed one: success, failure, cancelled, skipped.
	Status     string `json:"status"`
	Conclusion string `json:"conclusion,omitempty"`
	// Created, Started and Completed are zero where they are not known.
	Created   time.Time `json:"created,omitzero"`
	Started   time.Time `json:"started,omitzero"`
	Completed time.Time `json:"completed,omitzero"`
	Jobs      []Job     `json:"jobs,omitempty"`
}

// Job is one job of a run. A job whose condition did not hold is completed with
// conclusion skipped, and its run may still say success.
type Job struct {
	ID         int64     `json:"id"`
	Name       string    `json:"name"`
	Status     string    `json:"status"`
	Conclusion string    `json:"conclusion,omitempty"`
	Started    time.Time `json:"started,omitzero"`
	Completed  time.Time `json:"completed,omitzero"`
	// Runner is the name of the runner that took it, or empty.
	Runner string `json:"runner,omitempty"`
}

// ActionsKey returns the key of the [Actions] fact of a repository.
func ActionsKey(repo int64) Key {
	return Key{Source: SourceGitea, Kind: KindActions, Namespace: strconv.FormatInt(repo, 10)}
}

// Actions is what a repository has to run its workflows with.
type Actions struct {
	// Runners are those that may take jobs of the repository, by name, as far as
	// signalbox may see them; RunnersProblem says why it may not.
	Runners        []Runner `json:"runners,omitempty"`
	RunnersProblem string   `json:"runnersProblem,omitempty"`
}

// Runner is a runner of Gitea Actions.
type Runner struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels,omitempty"`
	// Online and Disabled are what Gitea says of it.
	Online   bool `json:"online"`
	Disabled bool `json:"disabled,omitempty"`
}
