package renovate

import "time"

// Report is what a log says.
type Report struct {
	// Mode is the worst of all runs in the log, and Why is one sentence about it.
	// Without any run it is unknown.
	Mode Mode
	Why  string
	// Runs are the runs of Renovate in the order in which they begin.
	Runs []Run
	// Environment is what the runner printed as the environment of a step: how
	// the run was meant to be, not how it was.
	Environment []Variable
	// Lines and Bytes are what was read, and Shortened the lines of it that were
	// longer than the limit.
	Lines     int
	Bytes     int64
	Shortened int
	// Cut says that the log was not read to its end. What was not read is not
	// known, so nothing in a cut log proves a dry run.
	Cut bool
}

// Run is one run of the program, which may handle several repositories.
type Run struct {
	Mode Mode
	Why  string
	// Format is "json" or "text".
	Format string
	// Version is Renovate's, or empty where the log does not tell.
	Version string
	// Started and Finished are the times of the first and the last line. They are
	// zero where lines have no time.
	Started, Finished time.Time
	// Ended says that Renovate said its last words, which it does at the level
	// info, or wherever it failed. Failed says that they were of errors.
	Ended, Failed bool
	// Config is the setting dryRun that Renovate logged, as it does at the level
	// debug; nil where it did not.
	Config *Config
	// Failures are errors and fatal errors outside of a repository.
	Failures []Failure
	// Warnings counts all warnings of the run; FirstWarnings are a few of them.
	Warnings      int
	FirstWarnings []Evidence
	Repositories  []Repository
}

// Config is the setting dryRun in a log.
type Config struct {
	Mode Mode
	Note string
	Line Evidence
}

// Repository is what a run says of one repository. A repository that a run
// starts twice is there twice.
type Repository struct {
	Name string
	Mode Mode
	Why  string
	// Proof are lines that only a dry run writes, and Disproof lines that only a
	// live one does; a few of each, in their order.
	Proof, Disproof []Evidence
	// Started and Finished are times, zero where the lines have none. Begun says
	// that the log has the beginning, and Ended that it has the end.
	Started, Finished time.Time
	Begun, Ended      bool
	// Result is Renovate's own word for the outcome, such as "done", which it
	// logs at the level debug; else empty.
	Result string
	// Actions are what was done, or would be, in order, at most [maxActions].
	Actions []Action
	// Branches are those the log tells of, at most [maxActions].
	Branches []Branch
	// Updates counts updates by their kind, such as "major"; nil where the log
	// does not tell.
	Updates map[string]int
	// Managers are the managers that found something. Nil means not told.
	Managers map[string]Count
	// Total is the sum of Managers as Renovate counts it.
	Total    Count
	Warnings int
	Failures []Failure
}

// Count is of package files, and of the dependencies in them.
type Count struct {
	Files, Dependencies int
}

// Action is one thing that Renovate did, or would do.
type Action struct {
	// What is Renovate's wording, such as "create PR: Update x" or "PR created".
	What string
	// Done is false for what a dry run would do.
	Done bool
	// Branch, Title and Pull are of the pull request, as far as they are told.
	Branch, Title string
	Pull          int
}

// Branch is a branch of Renovate's.
type Branch struct {
	Name, Title string
	// Pull is the number of the pull request, or 0.
	Pull int
	// Result is Renovate's word for what came of it, or empty.
	Result string
}

// Failure is an error that Renovate logged.
type Failure struct {
	Fatal bool
	// Message is the kind, such as "Initialization error", and Detail the reason.
	Message, Detail string
	Line            int
}

// Evidence is a line, counted from 1, and what it says.
type Evidence struct {
	Line int
	Text string
}

// Variable is a variable of the environment as the runner printed it.
type Variable struct {
	Name, Value string
	Line        int
}

// Repositories returns what all runs say of a repository, by its full name.
func (r Report) Repositories(name string) []Repository {
	var found []Repository
	for _, run := range r.Runs {
		for _, repository := range run.Repositories {
			if repository.Name == name {
				found = append(found, repository)
			}
		}
	}
	return found
}

// Bounds of what is kept of a log.
const (
	maxRuns         = 100
	maxRepositories = 500
	maxActions      = 200
	maxEvidence     = 5
	maxFailures     = 20
	maxKinds        = 100
	maxText         = 300
)
