package digest

import (
	"slices"
	"time"
)

// What a [Report] holds at most. What is left out is counted.
const (
	maxFindings = 2000
	// maxRecovered bounds the findings that recovered, and those that are unseen.
	maxRecovered = 300
	// maxReport is of its JSON, in bytes.
	maxReport = 600_000
)

// Options are what a report is made with.
type Options struct {
	// Name, Scheduled, Made, Late and Zone are those of the [Report].
	Name            string
	Scheduled, Made time.Time
	Late            bool
	Zone            string
	// Sections are those that the digest has, none for all, and Clusters those that it
	// is about: what the report before says of others did not recover, it is asked no
	// more.
	Sections []Section
	Clusters []string
}

// asks reports whether a digest with these options asks about a finding.
func (o *Options) asks(f *Finding) bool {
	return (len(o.Sections) == 0 || slices.Contains(o.Sections, f.Section)) &&
		(f.Cluster == "" || slices.Contains(o.Clusters, f.Cluster))
}

// Make makes a report of what was found, and of the report before, which is nil for
// the first. Nothing is new in the first one.
func Make(res Result, before *Report, o Options) Report {
	r := Report{
		Name: o.Name, Scheduled: o.Scheduled.UTC(), Made: o.Made.UTC(), Late: o.Late, Zone: o.Zone, Counts: res.Counts,
	}
	old := &history{}
	if before != nil {
		r.Before = before.Made
		old = historyOf(before)
	}
	now := map[string]bool{}
	for _, f := range flat(res.Findings) {
		now[f.ID] = true
	}
	findings := old.mark(res.Findings, &r)
	for _, f := range old.findings {
		f.New, f.Under = false, nil
		switch {
		case now[f.ID] || f.Once || !o.asks(&f):
		case res.covers(&f):
			r.Unseen = append(r.Unseen, f)
		case !res.Asked.About(&f):
		default:
			r.Recovered = append(r.Recovered, f)
		}
	}
	r.Unknown = len(r.Unseen)
	for _, s := range Sections() {
		if len(o.Sections) > 0 && !slices.Contains(o.Sections, s) {
			continue
		}
		p := Part{Section: s, Summary: res.Summaries[s]}
		for _, f := range findings {
			if f.Section == s {
				p.Findings = append(p.Findings, f)
			}
		}
		for _, b := range res.Told() {
			if b.Section == s {
				p.Blind = append(p.Blind, b)
			}
		}
		r.Sections = append(r.Sections, p)
	}
	r.bound()
	return r
}

// history is what a report has of before.
type history struct {
	findings []Finding
	ids      map[string]bool
	// whole are the sections of which nothing was left out, and some those of which
	// something was.
	whole, some map[Section]bool
	made        time.Time
}

func historyOf(r *Report) *history {
	h := &history{ids: map[string]bool{}, whole: map[Section]bool{}, some: map[Section]bool{}, made: r.Made}
	for _, p := range r.Sections {
		h.findings = append(h.findings, flat(p.Findings)...)
		if p.More > 0 {
			h.some[p.Section] = true
		} else {
			h.whole[p.Section] = true
		}
	}
	h.findings = append(h.findings, r.Unseen...)
	for _, f := range h.findings {
		h.ids[f.ID] = true
	}
	return h
}

// mark returns a copy of findings in which those are marked that are new, and counts
// them. Where the report before left something out, only what began since is new for
// certain.
func (h *history) mark(findings []Finding, r *Report) []Finding {
	out := slices.Clone(findings)
	for i := range out {
		f := &out[i]
		f.New = !h.ids[f.ID] && (h.whole[f.Section] || h.some[f.Section] && f.Since.After(h.made))
		if f.New {
			r.New++
		} else {
			r.Still++
		}
		f.Under = h.mark(f.Under, r)
	}
	return out
}

// bound leaves out what is too much for a report: of the sections with the most
// findings first, and of each from its end.
func (r *Report) bound() {
	r.Recovered = cut(r.Recovered, maxRecovered, &r.MoreRecovered)
	r.Unseen = r.Unseen[:min(len(r.Unseen), maxRecovered)]
	most := r.fair(maxFindings)
	r.keep(most)
	for most > 1 && r.size() > maxReport {
		most = most * 3 / 4
		r.keep(most)
		r.Recovered = cut(r.Recovered, most, &r.MoreRecovered)
		r.Unseen = r.Unseen[:min(len(r.Unseen), most)]
		for i := range r.Sections {
			p := &r.Sections[i]
			p.Summary, p.Blind = p.Summary[:min(len(p.Summary), most)], p.Blind[:min(len(p.Blind), most)]
		}
	}
}

func (r *Report) size() int { return jsonSize(r) }

// fair returns how many findings each section may have for all to have no more than
// a number.
func (r *Report) fair(all int) int {
	var sizes []int
	for _, p := range r.Sections {
		sizes = append(sizes, len(flat(p.Findings)))
	}
	slices.Sort(sizes)
	left := all
	for i, n := range sizes {
		share := left / (len(sizes) - i)
		if n > share {
			return share
		}
		left -= n
	}
	return all
}

// keep keeps the first findings of each section.
func (r *Report) keep(most int) {
	for i := range r.Sections {
		p := &r.Sections[i]
		p.Findings = cut(p.Findings, most, &p.More)
	}
}

// cut keeps the first of some findings, those under others counted, and adds how
// many it left out.
func cut(findings []Finding, most int, more *int) []Finding {
	if n := len(flat(findings)); n > most {
		*more += n - most
		return firstOf(findings, &most)
	}
	return findings
}

func firstOf(findings []Finding, left *int) []Finding {
	var out []Finding
	for _, f := range findings {
		if *left == 0 {
			return out
		}
		*left--
		f.Under = firstOf(f.Under, left)
		out = append(out, f)
	}
	return out
}
