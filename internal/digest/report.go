package digest

import "time"

// Report is one digest as it was made.
type Report struct {
	// Name is that of the digest in the configuration.
	Name string `json:"name"`
	// Scheduled is the time that the schedule names, and Made when it was made, both
	// in UTC. Late says that it was made much later, because nothing ran.
	Scheduled time.Time `json:"scheduled"`
	Made      time.Time `json:"made"`
	Late      bool      `json:"late,omitempty"`
	// Zone is the time zone of the schedule, in which times are shown.
	Zone string `json:"zone,omitempty"`
	// Before is when the report before was made; zero for the first.
	Before   time.Time `json:"before,omitzero"`
	Sections []Part    `json:"sections"`
	// Recovered are the findings of the report before that are there no longer, with
	// those under others as findings of their own.
	Recovered []Finding `json:"recovered,omitempty"`
	// MoreRecovered is how many of them were left out.
	MoreRecovered int `json:"moreRecovered,omitempty"`
	// Unseen are the findings of the report before of which nothing can be known
	// now. They are carried on from report to report until something is known.
	Unseen []Finding `json:"unseen,omitempty"`
	// New, Still and Unknown count findings, those under others included, and those
	// that were left out. Unknown are the unseen ones.
	New     int    `json:"new"`
	Still   int    `json:"still"`
	Unknown int    `json:"unknown,omitempty"`
	Counts  Counts `json:"counts"`
}

// Part is one section of a report.
type Part struct {
	Section  Section   `json:"section"`
	Summary  []Summary `json:"summary,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// More is how many findings were left out at the end, because there were too
	// many.
	More  int     `json:"more,omitempty"`
	Blind []Blind `json:"blind,omitempty"`
}

// Quiet reports whether there is nothing to say: nothing was found and nothing
// recovered, and everything could be looked at.
func (r *Report) Quiet() bool {
	for _, p := range r.Sections {
		if len(p.Findings) > 0 || len(p.Blind) > 0 {
			return false
		}
	}
	return len(r.Recovered) == 0
}
