package api

import (
	"time"

	"signalbox/internal/digest"
)

// maxFindings bounds the findings of a section, those under others apart.
const maxFindings = 500

// DigestSummary is a digest as a list shows it.
type DigestSummary struct {
	Name      string    `json:"name" example:"morning" doc:"The name of the digest in the configuration."`
	Scheduled time.Time `json:"scheduled" doc:"The time that the schedule names."`
	Made      time.Time `json:"made"`
	Late      bool      `json:"late" doc:"It was made much later, because nothing ran."`
	Zone      string    `json:"zone,omitempty" example:"Europe/Berlin" doc:"The time zone of the schedule."`
	Before    time.Time `json:"before,omitzero" doc:"When the digest before was made; missing for the first."`
	Quiet     bool      `json:"quiet" doc:"Nothing was found, nothing recovered, and everything could be looked at."`
	New       int       `json:"new" minimum:"0" doc:"Findings that the digest before did not have."`
	Still     int       `json:"still" minimum:"0" doc:"Findings that it had too."`
	Unknown   int       `json:"unknown" minimum:"0" doc:"Findings that it had, of which nothing can be known now."`
	Recovered int       `json:"recovered" minimum:"0" doc:"Findings that it had and that are gone."`
	Counts    Counts    `json:"counts"`
}

func newDigestSummary(r digest.Report) DigestSummary {
	return DigestSummary{
		Name: clip(r.Name), Scheduled: utc(r.Scheduled), Made: utc(r.Made), Late: r.Late, Zone: clip(r.Zone), Before: utc(r.Before),
		Quiet: r.Quiet(), New: r.New, Still: r.Still, Unknown: r.Unknown, Recovered: len(r.Recovered), Counts: newCounts(r.Counts),
	}
}

// Digest is one digest as it was made.
type Digest struct {
	DigestSummary
	Sections []Section `json:"sections"`
	Gone     []Finding `json:"recoveredFindings" maxItems:"500" doc:"What recovered, at most 500 of it."`
}

// DigestNow is what a digest would find now.
type DigestNow struct {
	Counts   Counts    `json:"counts"`
	Sections []Section `json:"sections" doc:"All sections, in the order of a digest."`
}

// Section is a part of a digest.
type Section struct {
	Section  string    `json:"section" enum:"flux,nodes,storage,pipelines,gate"`
	Summary  []string  `json:"summary" example:"[\"213 of 214 Kustomizations on prod are ready\"]" doc:"What there is in all, in lines."`
	Findings []Finding `json:"findings" maxItems:"500" doc:"What is not as it should be, the worst first."`
	More     int       `json:"more" minimum:"0" doc:"How many findings were left out at the end, because there were too many."`
	Blind    []Blind   `json:"blind" doc:"Where nothing can be known now: no finding there means nothing."`
}

// Finding is one thing that is not as it should be.
type Finding struct {
	ID           string    `json:"id" example:"flux/prod/kustomization/flux-system/apps/not-ready" doc:"The same as long as the same thing has the same fault."`
	Section      string    `json:"section" enum:"flux,nodes,storage,pipelines,gate"`
	Cluster      string    `json:"cluster,omitempty" example:"prod" doc:"Missing for what belongs to none."`
	RepositoryID int64     `json:"repositoryId,omitempty" doc:"The id of the repository; missing for what belongs to none."`
	Repository   string    `json:"repository,omitempty" example:"ops/home-gitops" doc:"Its name; missing where it is not known any more."`
	Severity     string    `json:"severity" enum:"broken,unclear,notable" doc:"broken: something does not work. unclear: it cannot be known whether something works. notable: people should know, and nothing is broken."`
	Subject      string    `json:"subject" example:"Kustomization flux-system/apps"`
	Text         string    `json:"text" doc:"What is the matter with it, in one line."`
	Since        time.Time `json:"since,omitzero" doc:"When it began; missing if that is not known."`
	URL          string    `json:"url,omitempty" doc:"Leads to it."`
	New          bool      `json:"new" doc:"The digest before did not have it."`
	Under        []Finding `json:"under,omitempty" doc:"Findings that merely follow from this one."`
}

// Blind is where nothing can be known now.
type Blind struct {
	Cluster string `json:"cluster,omitempty" example:"prod" doc:"Missing for what belongs to none."`
	Prefix  string `json:"prefix,omitempty" doc:"Narrows it to the findings whose id begins so."`
	Why     string `json:"why"`
}

// Counts are numbers at one moment.
type Counts struct {
	Ready int            `json:"ready" minimum:"0" doc:"Objects of Flux that are ready, of those that are not suspended."`
	Total int            `json:"total" minimum:"0" doc:"Objects of Flux that are not suspended."`
	Open  map[string]int `json:"open" doc:"Broken and unclear findings by section; a section without any may be missing."`
	Pulls int            `json:"pulls" minimum:"0" doc:"Open pull requests."`
	Clear int            `json:"clear" minimum:"0" doc:"Those of them that may be merged."`
}

func newCounts(c digest.Counts) Counts {
	out := Counts{Ready: c.Ready, Total: c.Total, Open: map[string]int{}, Pulls: c.Pulls, Clear: c.Clear}
	for section, n := range c.Open {
		out.Open[string(section)] = n
	}
	return out
}

// Trend is how the counts went.
type Trend struct {
	Total   int      `json:"total" minimum:"0" doc:"How many samples match."`
	Samples []Sample `json:"samples" maxItems:"10000"`
}

// Sample is counts with their time.
type Sample struct {
	At time.Time `json:"at"`
	Counts
}

// names are those of the repositories by their id.
type names map[int64]string

func (s *server) names() names {
	out := names{}
	for _, r := range s.Pulls.Repositories() {
		out[r.ID] = r.String()
	}
	return out
}

func (n names) digest(r *digest.Report) Digest {
	return Digest{
		DigestSummary: newDigestSummary(*r), Sections: list(r.Sections, n.section),
		Gone: list(r.Recovered[:min(maxFindings, len(r.Recovered))], n.finding),
	}
}

func (n names) section(p digest.Part) Section {
	shown := min(maxFindings, len(p.Findings))
	return Section{
		Section: string(p.Section), Summary: list(p.Summary, func(s digest.Summary) string { return clip(s.Text) }), Findings: list(p.Findings[:shown], n.finding),
		More: p.More + len(p.Findings) - shown,
		Blind: list(p.Blind, func(b digest.Blind) Blind {
			return Blind{Cluster: clip(b.Cluster), Prefix: clip(b.Prefix), Why: clip(b.Why)}
		}),
	}
}

func (n names) finding(f digest.Finding) Finding {
	out := Finding{
		ID: clip(f.ID), Section: string(f.Section), Cluster: clip(f.Cluster), RepositoryID: f.Repo, Repository: clip(n[f.Repo]),
		Severity: oneOf(f.Severity, digest.Unclear, digest.Broken, digest.Notable), Subject: clip(f.Subject), Text: clip(f.Text), Since: utc(f.Since), URL: clip(f.URL), New: f.New,
	}
	if len(f.Under) > 0 {
		out.Under = list(f.Under, n.finding)
	}
	return out
}
