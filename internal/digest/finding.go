package digest

import (
	"slices"
	"strings"
	"time"
)

// Section is a part of a digest.
type Section string

// The sections, in the order of a digest.
const (
	// Flux: objects that are not ready, suspended, stalled or behind their source.
	Flux Section = "flux"
	// Nodes: not ready, cordoned, a reboot required or under way.
	Nodes Section = "nodes"
	// Storage: volumes that are degraded, faulted or cannot be scheduled, and what
	// else the configuration asks for.
	Storage Section = "storage"
	// Pipelines: runners, Renovate.
	Pipelines Section = "pipelines"
	// Gate: signalbox itself, and the pull requests.
	Gate Section = "gate"
)

// Sections are all sections, in their order.
func Sections() []Section { return []Section{Flux, Nodes, Storage, Pipelines, Gate} }

// Severity is how bad a finding is.
type Severity string

// The severities, from the worst to the best.
const (
	// Broken: something does not work.
	Broken Severity = "broken"
	// Unclear: it cannot be known whether something works.
	Unclear Severity = "unclear"
	// Notable: people should know, and nothing is broken: something is suspended,
	// a node waits for a reboot, a hold is in force.
	Notable Severity = "notable"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	// ID is the same as long as the same thing has the same fault, such as
	// "flux/prod/kustomization/flux-system/apps/not-ready". It never holds a time,
	// a revision or the text of an error.
	ID      string  `json:"id"`
	Section Section `json:"section"`
	// Cluster is empty for what belongs to none; Repo is the id of the repository of
	// what belongs to one, and is shown only to those who may read it.
	Cluster  string   `json:"cluster,omitempty"`
	Repo     int64    `json:"repo,omitempty"`
	Severity Severity `json:"severity"`
	// Subject is the thing, such as "Kustomization flux-system/apps", and Text what
	// is the matter with it, in one line. Both may hold text from outside.
	Subject string `json:"subject"`
	Text    string `json:"text"`
	// Since is when it began; zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	// URL leads to it, or is empty.
	URL string `json:"url,omitempty"`
	// Under are findings that merely follow from this one.
	Under []Finding `json:"under,omitempty"`
	// New is set in a report for what the report before did not have.
	New bool `json:"new,omitempty"`
	// Once marks what happened since the report before, such as an override that was
	// used: it does not recover when it is there no longer.
	Once bool `json:"once,omitempty"`
}

// Alerts reports whether something does not work, or nobody can know.
func (f *Finding) Alerts() bool { return f.Severity == Broken || f.Severity == Unclear }

// Blind is where nothing can be known now: what was found there before is neither
// still there nor gone.
type Blind struct {
	Section Section `json:"section"`
	// Cluster is empty for what belongs to none; Repo is as in a [Finding].
	Cluster string `json:"cluster,omitempty"`
	Repo    int64  `json:"repo,omitempty"`
	// Prefix narrows it to the findings whose ID begins so; empty for all of them.
	Prefix string `json:"prefix,omitempty"`
	// Why is one line.
	Why string `json:"why"`
	// Minor says that nobody needs to hear of it: it is so in many sound installations.
	// No report tells it.
	Minor bool `json:"minor,omitempty"`
}

// Covers reports whether nothing can be known of a finding.
func (b *Blind) Covers(f *Finding) bool {
	return b.Section == f.Section && b.Cluster == f.Cluster && strings.HasPrefix(f.ID, b.Prefix)
}

// Told returns the places where nothing can be known that people need to hear of.
func (r *Result) Told() []Blind {
	return slices.DeleteFunc(slices.Clone(r.Blind), func(b Blind) bool { return b.Minor })
}

// Summary is one line of what there is in all, such as "213 of 214 Kustomizations
// on prod are ready".
type Summary struct {
	Text string `json:"text"`
	// Cluster and Repo are as in a [Finding].
	Cluster string `json:"cluster,omitempty"`
	Repo    int64  `json:"repo,omitempty"`
	// Pulls and Clear are what the line adds to the [Counts].
	Pulls int `json:"pulls,omitempty"`
	Clear int `json:"clear,omitempty"`
}

// String returns the text.
func (s Summary) String() string { return s.Text }

// Result is what [Find] finds.
type Result struct {
	// Findings are sorted: by section, then the worst, and for Flux the root causes
	// in the order of dependencies.
	Findings []Finding `json:"findings,omitempty"`
	Blind    []Blind   `json:"blind,omitempty"`
	// Summaries are what there is in all, for each section.
	Summaries map[Section][]Summary `json:"summaries,omitempty"`
	// Counts are the numbers that trends are drawn of.
	Counts Counts `json:"counts"`
	// Trying is what a controller is at work on after a change: what was found there
	// before is neither still there nor gone. Nobody has to be told.
	Trying []Blind `json:"-"`
	// Asked is what was asked.
	Asked *Asked `json:"-"`
}

// Counts are numbers at one moment.
type Counts struct {
	// Ready and Total are objects of Flux that are not suspended.
	Ready int `json:"ready"`
	Total int `json:"total"`
	// Open are broken and unclear findings by section, those under others included.
	Open map[Section]int `json:"open,omitempty"`
	// Pulls are open pull requests, and Clear those of them that may be merged.
	Pulls int `json:"pulls"`
	Clear int `json:"clear"`
}

// Sample is counts with their time, in UTC.
type Sample struct {
	At time.Time `json:"at"`
	Counts
}

// covers reports whether nothing can be known now of a finding.
func (r *Result) covers(f *Finding) bool {
	covers := func(b Blind) bool { return b.Covers(f) }
	return slices.ContainsFunc(r.Blind, covers) || slices.ContainsFunc(r.Trying, covers)
}
