package digest

import (
	"maps"
	"slices"
)

// Visible returns a report without what is of repositories that a viewer may not
// read. The counts are without it too.
func (r Report) Visible(may func(repo int64) bool) Report {
	v := viewer{may: may, open: maps.Clone(r.Counts.Open)}
	r.Sections = slices.Clone(r.Sections)
	for i := range r.Sections {
		p := &r.Sections[i]
		p.Findings, p.Blind, p.Summary = v.findings(p.Findings), v.blind(p.Blind), v.summary(p.Summary)
	}
	r.New, r.Still = r.New-v.newOnes, r.Still-v.oldOnes
	r.Recovered = v.past(r.Recovered)
	n := len(r.Unseen)
	r.Unseen = v.past(r.Unseen)
	r.Unknown -= n - len(r.Unseen)
	r.Counts.Open = v.open
	r.Counts.Pulls, r.Counts.Clear = r.Counts.Pulls-v.pulls, r.Counts.Clear-v.clear
	return r
}

// Visible returns a result without what is of repositories that a viewer may not
// read; see [Report.Visible].
func (r Result) Visible(may func(repo int64) bool) Result {
	v := viewer{may: may, open: maps.Clone(r.Counts.Open)}
	r.Findings, r.Blind = v.findings(r.Findings), v.blind(r.Blind)
	summaries := map[Section][]Summary{}
	for s, lines := range r.Summaries {
		if lines = v.summary(lines); len(lines) > 0 {
			summaries[s] = lines
		}
	}
	r.Summaries = summaries
	r.Counts.Open = v.open
	r.Counts.Pulls, r.Counts.Clear = r.Counts.Pulls-v.pulls, r.Counts.Clear-v.clear
	return r
}

// Visible returns a batch without what is of repositories that a viewer may not read,
// or nil if nothing is left.
func (b *Batch) Visible(may func(repo int64) bool) *Batch {
	v := viewer{may: may}
	out := &Batch{Broke: v.notices(b.Broke), Recovered: v.notices(b.Recovered)}
	// Of what was left out nobody can tell whose it is: it is not counted.
	if len(out.Broke)+len(out.Recovered) == 0 {
		return nil
	}
	return out
}

func (v *viewer) notices(all []Notice) []Notice {
	return slices.DeleteFunc(slices.Clone(all), func(n Notice) bool { return !v.sees(n.Finding.Repo) })
}

// viewer takes out what somebody may not see, and counts that.
type viewer struct {
	may              func(repo int64) bool
	open             map[Section]int
	newOnes, oldOnes int
	pulls, clear     int
}

func (v *viewer) sees(repo int64) bool { return repo == 0 || v.may(repo) }

func (v *viewer) findings(all []Finding) []Finding {
	var out []Finding
	for _, f := range all {
		under := v.findings(f.Under)
		if v.sees(f.Repo) {
			f.Under = under
			out = append(out, f)
			continue
		}
		// What stands under it stands in its place.
		out = append(out, under...)
		if f.New {
			v.newOnes++
		} else {
			v.oldOnes++
		}
		if f.Alerts() && v.open[f.Section] > 0 {
			v.open[f.Section]--
		}
	}
	for s, n := range v.open {
		if n <= 0 {
			delete(v.open, s)
		}
	}
	return out
}

// past takes out of findings that are not counted.
func (v *viewer) past(all []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return !v.sees(f.Repo) })
}

func (v *viewer) blind(all []Blind) []Blind {
	return slices.DeleteFunc(slices.Clone(all), func(b Blind) bool { return !v.sees(b.Repo) })
}

func (v *viewer) summary(all []Summary) []Summary {
	var out []Summary
	for _, s := range all {
		if v.sees(s.Repo) {
			out = append(out, s)
			continue
		}
		v.pulls, v.clear = v.pulls+s.Pulls, v.clear+s.Clear
	}
	return out
}
