package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Severity says how bad a finding is.
type Severity string

// The severities, from the worst to the best.
const (
	// Problem: the gate is open where it should be closed, stays closed for
	// ever, or hears nothing.
	Problem Severity = "problem"
	// Warning: it works, with less safety or less well than it could.
	Warning Severity = "warning"
	// Unknown: it could not be looked at.
	Unknown Severity = "unknown"
	// Info is worth knowing.
	Info Severity = "info"
	OK   Severity = "ok"
)

var severities = []Severity{Problem, Warning, Unknown, Info, OK}

// Finding is one thing that a look at the installation has shown.
type Finding struct {
	// Check names the check for machines, such as "protection-push". It stays
	// the same over versions.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Subject is what it is about: "gitea", "ops/home-gitops", "cluster prod".
	Subject string `json:"subject"`
	// What was found, in one line.
	What string `json:"what"`
	// Why it matters; empty where What says it.
	Why string `json:"why,omitempty"`
	// Remedy is what to do, and may have several lines; empty where nothing is
	// to be done.
	Remedy string `json:"remedy,omitempty"`
	// Fixable says that [Fix] can do the remedy.
	Fixable bool `json:"fixable,omitempty"`
}

// Report is everything that was found.
type Report struct {
	// At is when the installation was looked at, in UTC.
	At time.Time `json:"at"`
	// Findings are ordered by severity, and within it as they were found.
	Findings []Finding `json:"findings"`
	// Counts is how many findings there are of each severity.
	Counts map[Severity]int `json:"counts"`
	// ExitCode is that of the program; see [Report.Exit].
	ExitCode int `json:"exitCode"`
}

// NewReport makes a report of findings.
func NewReport(at time.Time, findings []Finding) Report {
	r := Report{At: at.UTC(), Findings: slices.Clone(findings), Counts: map[Severity]int{}}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	for _, f := range r.Findings {
		r.Counts[f.Severity]++
	}
	r.ExitCode = r.exit()
	return r
}

// rank orders severities; a word that is not known is the worst.
func rank(s Severity) int { return slices.Index(severities, s) }

// Exit codes of a check of an installation.
const (
	ExitFine      = 0
	ExitProblem   = 1
	ExitUnchecked = 2
)

// exit is [ExitProblem] where there is a problem, else [ExitUnchecked] where
// something could not be checked, else [ExitFine].
func (r Report) exit() int {
	switch {
	case r.Counts[Problem] > 0:
		return ExitProblem
	case r.Counts[Unknown] > 0:
		return ExitUnchecked
	}
	return ExitFine
}

// Fixable reports whether some finding can be fixed by the program.
func (r Report) Fixable() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Fixable })
}

// about collects the findings about one subject.
type about struct {
	subject  string
	findings []Finding
}

func (a *about) add(f Finding) {
	f.Subject = a.subject
	a.findings = append(a.findings, f)
}

func (a *about) ok(check, format string, args ...any) {
	a.add(Finding{Check: check, Severity: OK, What: fmt.Sprintf(format, args...)})
}

// names joins names for a sentence: "alice", "alice and bob", "alice, bob and
// carol".
func names(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// some shortens a long list.
func some(list []string) string {
	const most = 6
	if len(list) > most {
		list = append(slices.Clone(list[:most-1]), fmt.Sprintf("%d more", len(list)-most+1))
	}
	return names(list)
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
