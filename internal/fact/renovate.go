package fact

import (
	"strconv"
	"time"
)

// RenovateKey returns the key of the [Renovate] fact of a workflow of a
// repository.
func RenovateKey(repo int64, workflow string) Key {
	return Key{Source: SourceGitea, Kind: KindRenovate, Namespace: strconv.FormatInt(repo, 10), Name: workflow}
}

// RenovateCronJobKey returns the key of the [Renovate] fact of a CronJob.
func RenovateCronJobKey(cluster, namespace, name string) Key {
	return Key{Source: SourceKube, Scope: cluster, Kind: KindRenovate, Namespace: namespace, Name: name}
}

// Modes of a run of Renovate.
const (
	RenovateFull    = "full"
	RenovateLookup  = "lookup"
	RenovateExtract = "extract"
	// RenovateDryRun is a dry run of which nobody can tell the kind.
	RenovateDryRun = "dry-run"
	RenovateLive   = "live"
	// RenovateUnknown: nothing proves any of the others.
	RenovateUnknown = "unknown"
)

// Renovate is what Renovate last did, and what it is told to do now.
type Renovate struct {
	// Watch is set for a CronJob only; while it is not synced, the rest is what
	// was known last, or nothing.
	Watch *Watch `json:"watch,omitempty"`
	// Missing says that there is no such workflow or CronJob.
	Missing bool `json:"missing,omitempty"`
	// Last is the last completed run, or nil: it never ran, or Gitea has
	// forgotten it.
	Last *RenovateRun `json:"last,omitempty"`
	// Running is a run that has not ended, or nil. Its mode is not known.
	Running *RenovateRun `json:"running,omitempty"`
	// Configured is what the next run will be.
	Configured RenovateConfigured `json:"configured"`
	// Dashboard are the rows of the dependency dashboard by section, such as
	// "rate-limited"; nil if there is none of Renovate's own account.
	Dashboard map[string]int `json:"dashboard,omitempty"`
}

// RenovateRun is one run.
type RenovateRun struct {
	// ID and URL name it: a run of Gitea Actions, or "namespace/job".
	ID  string `json:"id"`
	URL string `json:"url,omitempty"`
	// Event is what started it.
	Event string `json:"event,omitempty"`
	// Branch and Commit are where its workflow file came from.
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Conclusion is that of the job in which Renovate runs: success, failure,
	// cancelled or skipped; a run that says success may have skipped the job.
	Conclusion string    `json:"conclusion,omitempty"`
	Job        string    `json:"job,omitempty"`
	Started    time.Time `json:"started,omitzero"`
	Completed  time.Time `json:"completed,omitzero"`

	// Mode is one of the modes above, by what the log proves.
	Mode string `json:"mode"`
	// Proof are lines of the log that prove the mode, or words on why it is not
	// known. They come from outside.
	Proof []string `json:"proof,omitempty"`
	// LogProblem says why the log could not be read whole, or is empty.
	LogProblem string `json:"logProblem,omitempty"`
	// Failures are what Renovate reports as fatal or as an error.
	Failures []string `json:"failures,omitempty"`
	// Branches and Pulls are what it created, or would have. Updates are how many
	// of each kind.
	Branches []string       `json:"branches,omitempty"`
	Pulls    []string       `json:"pulls,omitempty"`
	Updates  map[string]int `json:"updates,omitempty"`
	// Version is that of Renovate.
	Version string `json:"version,omitempty"`
}

// RenovateConfigured is what a workflow or CronJob tells Renovate to do.
type RenovateConfigured struct {
	// Schedules are cron expressions; none if nothing starts it by itself.
	Schedules []string `json:"schedules,omitempty"`
	// OnSchedule and ByHand are the modes of a run that the schedule starts and
	// of one that a person starts without changing anything; unknown where that
	// depends on something else, which Why says.
	OnSchedule string `json:"onSchedule,omitempty"`
	ByHand     string `json:"byHand,omitempty"`
	Why        string `json:"why,omitempty"`
	// MissingSecrets are secrets that the workflow uses and that the repository
	// itself does not have, as far as that can be seen; its owner may have them.
	MissingSecrets []string `json:"missingSecrets,omitempty"`
	// Suspended says that a CronJob is suspended.
	Suspended bool `json:"suspended,omitempty"`
	// Problem says why nothing is known, or is empty.
	Problem string `json:"problem,omitempty"`
}
