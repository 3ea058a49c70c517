package web

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/digest"
)

// manyReports is how many reports of one digest are listed beside those of others.
const manyReports = 10

// digestsPage is what the list of digests shows.
type digestsPage struct {
	Names []digestName
	// Only is the name of the one digest whose reports are all listed, or empty.
	Only  string
	Pager pager
	All   string
	Trend *trendPage
	// Open counts what is found now.
	Open countsOfNow
}

// countsOfNow are what is found at this moment, by severity.
type countsOfNow struct{ Broken, Unclear, Notable, Blind int }

// digestName is the reports of one digest, the newest first.
type digestName struct {
	Name    string
	Reports []reportRow
	// More are the reports that are not listed, and AllURL leads to them.
	More   int
	AllURL string
}

// reportRow is a report in a list.
type reportRow struct {
	URL       string
	Scheduled time.Time
	Local     string
	Late      bool
	Quiet     bool
	reportCounts
	Ready, Total int
}

// reportCounts are what a viewer sees of the counts of a report.
type reportCounts struct{ New, Still, Recovered, Unknown int }

// digests lists the reports, the newest first.
func (s *Server) digests(w http.ResponseWriter, v *visit) error {
	reports := slices.Clone(s.Digests.Reports())
	slices.SortStableFunc(reports, func(a, b digest.Report) int { return b.Scheduled.Compare(a.Scheduled) })
	only := v.URL.Query().Get("name")
	data := digestsPage{Only: only, All: s.path("/digests"), Trend: newTrend(s.Digests.Trend(), v.now, v.sight)}
	data.Open = countNow(s.Digests.Now().Visible(v.sight.repo))
	byName := map[string][]digest.Report{}
	var names []string
	for _, r := range reports {
		if only != "" && r.Name != only {
			continue
		}
		if _, ok := byName[r.Name]; !ok {
			names = append(names, r.Name)
		}
		byName[r.Name] = append(byName[r.Name], r)
	}
	slices.Sort(names)
	for _, name := range names {
		of := byName[name]
		d := digestName{Name: name, AllURL: s.path("/digests?" + url.Values{"name": {name}}.Encode())}
		if only != "" {
			of, data.Pager = paginate(of, v.URL.Query(), func(u url.Values) string { return s.path("/digests?" + u.Encode()) })
		} else if len(of) > manyReports {
			d.More = len(of) - manyReports
			of = of[:manyReports]
		}
		for _, r := range of {
			d.Reports = append(d.Reports, s.reportRowOf(v.sight, r))
		}
		data.Names = append(data.Names, d)
	}
	return s.show(w, v, page{Template: "digests", Title: "Digests", Nav: "/digests", Live: "all", Data: data})
}

func (s *Server) reportRowOf(see sight, r digest.Report) reportRow {
	r = r.Visible(see.repo)
	return reportRow{
		URL: s.reportURL(r), Scheduled: r.Scheduled, Local: local(r.Scheduled, r.Zone), Late: r.Late, Quiet: r.Quiet(),
		reportCounts: countsOf(&r), Ready: r.Counts.Ready, Total: r.Counts.Total,
	}
}

func (s *Server) reportURL(r digest.Report) string {
	return s.path("/digests/" + url.PathEscape(r.Name) + "/" + url.PathEscape(r.Scheduled.UTC().Format(time.RFC3339)))
}

// local writes a time in a zone for people; a zone that is not known is UTC.
func local(t time.Time, zone string) string {
	if l, err := time.LoadLocation(zone); err == nil {
		t = t.In(l)
	} else {
		t = t.UTC()
	}
	return t.Format("Monday 2 January 2006, 15:04 MST")
}

func countsOf(r *digest.Report) reportCounts {
	return reportCounts{New: r.New, Still: r.Still, Recovered: len(r.Recovered) + r.MoreRecovered, Unknown: r.Unknown}
}

func countNow(r digest.Result) countsOfNow {
	c := countsOfNow{Blind: len(r.Blind)}
	var count func(all []digest.Finding)
	count = func(all []digest.Finding) {
		for _, f := range all {
			switch f.Severity {
			case digest.Broken:
				c.Broken++
			case digest.Notable:
				c.Notable++
			default:
				c.Unclear++
			}
			count(f.Under)
		}
	}
	count(r.Findings)
	return c
}

// digestPage is what a report, or what is found now, shows.
type digestPage struct {
	Name, Local string
	// Now says that it is no report, but what is found at this moment.
	Now          bool
	Report       digest.Report
	Counts       reportCounts
	Quiet        bool
	Sections     []sectionPage
	Recovered    []findingPage
	Older, Newer string
	Trend        *trendPage
	Open         countsOfNow
}

// sectionPage is one section.
type sectionPage struct {
	Name    string
	Summary []digest.Summary
	// Findings are in the order of the digest.
	Findings []findingPage
	More     int
	Blind    []digest.Blind
	// Fine says that nothing was found, and that all could be looked at.
	Fine bool
}

// findingPage is a finding as it is shown.
type findingPage struct {
	digest.Finding
	Sign sign
	// Link is where it leads, or empty.
	Link  string
	Under []findingPage
}

// digest shows one report.
func (s *Server) digest(w http.ResponseWriter, v *visit) error {
	at, err := time.Parse(time.RFC3339, v.PathValue("scheduled"))
	if err != nil {
		return errNotFound
	}
	var of []digest.Report
	for _, r := range s.Digests.Reports() {
		if r.Name == v.PathValue("name") {
			of = append(of, r)
		}
	}
	slices.SortStableFunc(of, func(a, b digest.Report) int { return b.Scheduled.Compare(a.Scheduled) })
	i := slices.IndexFunc(of, func(r digest.Report) bool { return r.Scheduled.Equal(at) })
	if i < 0 {
		return errNotFound
	}
	r := of[i].Visible(v.sight.repo)
	data := digestPage{Name: r.Name, Local: local(r.Scheduled, r.Zone), Report: r, Quiet: r.Quiet(), Counts: countsOf(&r)}
	if i > 0 {
		data.Newer = s.reportURL(of[i-1])
	}
	if i+1 < len(of) {
		data.Older = s.reportURL(of[i+1])
	}
	for _, p := range r.Sections {
		data.Sections = append(data.Sections, sectionPage{
			Name: sectionName(p.Section), Summary: p.Summary, Findings: s.findings(p.Findings), More: p.More, Blind: p.Blind,
			Fine: len(p.Findings)+len(p.Blind)+p.More == 0,
		})
	}
	data.Recovered = s.findings(r.Recovered)
	return s.show(w, v, page{Template: "digest", Title: "Digest " + r.Name + ", " + data.Local, Nav: "/digests", Data: data})
}

// digestNow shows what is found at this moment.
func (s *Server) digestNow(w http.ResponseWriter, v *visit) error {
	r := s.Digests.Now().Visible(v.sight.repo)
	data := digestPage{Now: true, Trend: newTrend(s.Digests.Trend(), v.now, v.sight), Open: countNow(r)}
	for _, section := range digest.Sections() {
		p := sectionPage{Name: sectionName(section), Summary: r.Summaries[section]}
		for _, f := range r.Findings {
			if f.Section == section {
				p.Findings = append(p.Findings, s.finding(f))
			}
		}
		for _, b := range r.Blind {
			if b.Section == section {
				p.Blind = append(p.Blind, b)
			}
		}
		p.Fine = len(p.Findings)+len(p.Blind) == 0
		data.Sections = append(data.Sections, p)
	}
	return s.show(w, v, page{Template: "digest", Title: "Found now", Nav: "/digests", Live: "all", Data: data})
}

func sectionName(s digest.Section) string {
	switch s {
	case digest.Flux:
		return "Flux"
	case digest.Nodes:
		return "Nodes"
	case digest.Storage:
		return "Storage"
	case digest.Pipelines:
		return "Pipelines"
	case digest.Gate:
		return "The gate"
	default:
		return clean(string(s))
	}
}

func (s *Server) findings(all []digest.Finding) []findingPage {
	var out []findingPage
	for _, f := range all {
		out = append(out, s.finding(f))
	}
	return out
}

func (s *Server) finding(f digest.Finding) findingPage {
	p := findingPage{Finding: f, Sign: severitySign(f.Severity), Link: webAddress(f.URL), Under: s.findings(f.Under)}
	if f.Cluster != "" && p.Link == "" && slices.Contains(s.Clusters, f.Cluster) {
		p.Link = s.path("/clusters/" + url.PathEscape(f.Cluster))
		// The ID of a finding about an object of Flux names it, see [digest.Finding].
		if parts := strings.Split(f.ID, "/"); f.Section == digest.Flux && len(parts) == 6 && parts[1] == f.Cluster {
			p.Link += "?" + url.Values{"object": {strings.Join(parts[2:5], "/")}}.Encode()
		}
	}
	return p
}

// severitySign shows a severity; one that is not known is unclear.
func severitySign(s digest.Severity) sign {
	switch s {
	case digest.Broken:
		return sign{"blocked", "✕", "broken"}
	case digest.Notable:
		return sign{"waiting", "•", "notable"}
	default:
		return sign{"undecided", "?", "unclear"}
	}
}

// All counts a finding and those under it.
func (f findingPage) All() int {
	n := 1
	for _, u := range f.Under {
		n += u.All()
	}
	return n
}

// trendPage is how things went in the last 30 days.
type trendPage struct {
	Ready, Open template.HTML
	// Found says what Open counts.
	Found string
	Days  []trendDay
}

// trendDay is one day, in UTC.
type trendDay struct {
	Day time.Time
	// Lowest is the lowest readiness in percent, or empty where there was nothing to
	// be ready; Open is the highest number of open findings.
	Lowest string
	Open   int
}

// Trend bounds: what is shown, and when a break between samples is one.
const (
	trendDays = 30
	trendTime = trendDays * 24 * time.Hour
)

// ofRepositories are the sections whose findings are of repositories. Samples do not
// say of which, so who does not see all of them is shown the others only.
func ofRepositories(s digest.Section) bool {
	return !slices.Contains([]digest.Section{digest.Flux, digest.Nodes, digest.Storage}, s)
}

// newTrend draws samples as far as a viewer sees what was counted, or returns nil where
// there are too few.
func newTrend(samples []digest.Sample, now time.Time, see sight) *trendPage {
	samples = slices.Clone(samples)
	samples = slices.DeleteFunc(samples, func(s digest.Sample) bool { return s.At.After(now) || now.Sub(s.At) > trendTime })
	slices.SortStableFunc(samples, func(a, b digest.Sample) int { return a.At.Compare(b.At) })
	if len(samples) < 2 {
		return nil
	}
	p := &trendPage{Found: "Open findings"}
	if !see.everything {
		p.Found = "Open findings on the clusters"
	}
	ready, open := series{Name: "Objects of Flux that are ready", Unit: "%", Top: 100}, series{Name: p.Found, Bars: true}
	days := map[time.Time]*trendDay{}
	for _, sample := range samples {
		day := sample.At.UTC().Truncate(24 * time.Hour)
		d, ok := days[day]
		if !ok {
			d = &trendDay{Day: day}
			days[day] = d
		}
		found := 0
		for section, n := range sample.Open {
			if see.everything || !ofRepositories(section) {
				found += n
			}
		}
		d.Open = max(d.Open, found)
		open.add(sample.At, float64(found))
		if sample.Total > 0 {
			percent := 100 * float64(sample.Ready) / float64(sample.Total)
			ready.add(sample.At, percent)
			if was, err := strconv.ParseFloat(d.Lowest, 64); err != nil || percent < was {
				d.Lowest = strconv.FormatFloat(percent, 'f', 1, 64)
			}
		}
	}
	p.Ready, p.Open = ready.draw(now), open.draw(now)
	for _, d := range days {
		p.Days = append(p.Days, *d)
	}
	slices.SortFunc(p.Days, func(a, b trendDay) int { return cmp.Compare(b.Day.Unix(), a.Day.Unix()) })
	return p
}
