package fact

import (
	"strconv"
	"time"
)

// StatusesKey returns the key of the [Statuses] fact of a commit.
func StatusesKey(repo int64, commit string) Key {
	return Key{Source: SourceGitea, Kind: KindStatuses, Namespace: strconv.FormatInt(repo, 10), Name: commit}
}

// Statuses are the commit statuses of one commit, all pages of them.
type Statuses struct {
	// Statuses holds the newest status of each context, sorted by context.
	Statuses []Status `json:"statuses,omitempty"`
}

// Status is a commit status.
type Status struct {
	Context string `json:"context"`
	// State is one of Gitea's: pending, success, error, failure, warning,
	// skipped.
	State       string `json:"state"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url,omitempty"`
	// Creator is the login of who posted it; empty for Gitea Actions.
	Creator string    `json:"creator,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// RunsKey returns the key of the [Runs] fact of a workflow: of its newest runs
// on a commit, or on a branch that is named as "refs/heads/main".
func RunsKey(repo int64, workflow, on string) Key {
	return Key{Source: SourceGitea, Kind: KindRuns, Namespace: strconv.FormatInt(repo, 10), Name: workflow + "@" + on}
}

// Runs are runs of one workflow, the newest first. At most [MaxRuns] are kept.
type Runs struct {
	Runs []Run `json:"runs,omitempty"`
	// More says that there are older ones.
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
	Event  string `json:"event"`
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
	// Secrets are the names of the repository's secrets, sorted; SecretsProblem
	// says why they are not known.
	Secrets        []string `json:"secrets,omitempty"`
	SecretsProblem string   `json:"secretsProblem,omitempty"`
	// Variables are the repository's variables by name.
	Variables        map[string]string `json:"variables,omitempty"`
	VariablesProblem string            `json:"variablesProblem,omitempty"`
}

// Runner is a runner of Gitea Actions.
type Runner struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels,omitempty"`
	// Online and Busy are what Gitea says of it.
	Online   bool `json:"online"`
	Busy     bool `json:"busy,omitempty"`
	Disabled bool `json:"disabled,omitempty"`
}
