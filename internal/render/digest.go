package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/digest"
)

// DigestMarker is the first line of a digest in an issue, which is invisible and
// tells it apart from what others write there.
func DigestMarker(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
	return "<!-- signalbox digest " + strings.ReplaceAll(safe, "--", "__") + " -->"
}

// digestRows bounds what is shown of a digest.
type digestRows struct {
	// findings are of each section, under of each finding, summaries of each section.
	findings, under, summaries, recovered int
	// runes bounds a text.
	runes int
}

var (
	chatRows = digestRows{findings: 10, under: 3, summaries: 4, recovered: 8, runes: 180}
	fullRows = digestRows{findings: 400, under: 40, summaries: 60, recovered: 100, runes: 300}
	// allRows shows everything that a report holds.
	allRows = digestRows{findings: 5000, under: 5000, summaries: 5000, recovered: 5000, runes: 300}
)

// Digest is a digest for a chat: what is the matter, what is new and what recovered;
// one line where all is well. Title names it, and page, if it is not empty, leads to
// all of it. What has been left out is counted.
func Digest(r digest.Report, title, page string) Talk { return digestTalk(&r, title, page, chatRows) }

// DigestText is all of a digest as text for a terminal.
func DigestText(r digest.Report, title, page string) string {
	return Text(digestTalk(&r, title, page, allRows))
}

// DigestIssue is a digest as Markdown for an issue, at most [MaxComment] bytes.
func DigestIssue(r digest.Report, title, page string) string {
	for rows := fullRows; ; rows.halve() {
		s := DigestMarker(r.Name) + "\n" + Markdown(digestTalk(&r, title, page, rows))
		if len(s) <= MaxComment || rows.findings == 1 {
			return s
		}
	}
}

func (d *digestRows) halve() {
	for _, n := range []*int{&d.findings, &d.under, &d.summaries, &d.recovered} {
		*n = max(1, *n/2)
	}
}

// digester makes a talk of a digest.
type digester struct {
	rows digestRows
	zone *time.Location
}

// zoned reads the name of a zone; one that is not known is UTC.
func zoned(name string) *time.Location {
	if zone, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
		return zone
	}
	return time.UTC
}

func (d digester) stamp(t time.Time) string { return t.In(d.zone).Format("2006-01-02 15:04 MST") }

func digestTalk(r *digest.Report, title, page string, rows digestRows) Talk {
	d := digester{rows, zoned(r.Zone)}
	title = cmp.Or(oneLine(title), r.Name)
	var t Talk
	if r.Quiet() {
		t = Talk{d.quiet(r, title)}
	} else {
		t = Talk{Paragraph{Plain(digestSign(r) + " "), Strong(title), Plain(": " + tally(r))}}
	}
	if small := d.times(r); len(small) > 0 {
		t = append(t, small)
	}
	if !r.Quiet() {
		for i := range r.Sections {
			t = append(t, d.section(&r.Sections[i])...)
		}
		t = append(t, d.recovered(r)...)
	}
	if r.Unknown > 0 {
		t = append(t, Small{Plain("Nothing can be known now of " + count(r.Unknown, "finding") + " of the digest before.")})
	}
	if page != "" {
		t = append(t, Small{Link("All of it, with the trend", page)})
	}
	return t
}

// quiet is the one line of a digest in which all is well.
func (d digester) quiet(r *digest.Report, title string) Paragraph {
	p := Paragraph{Plain("🟢 "), Strong(title), Plain(": all quiet")}
	for _, text := range d.summaries(r.Sections) {
		p = append(p, Plain(" · "+text))
	}
	return p
}

// summaries are the lines of what there is in all.
func (d digester) summaries(of []digest.Part) []string {
	var texts []string
	for _, p := range of {
		for _, s := range p.Summary {
			texts = append(texts, clip(oneLine(s.Text), d.rows.runes))
		}
	}
	if more := len(texts) - d.rows.summaries; more > 0 {
		texts = append(texts[:d.rows.summaries:d.rows.summaries], fmt.Sprintf("and %d more", more))
	}
	return texts
}

// tally counts what is the matter.
func tally(r *digest.Report) string {
	var parts []string
	switch {
	case r.Before.IsZero():
		parts = append(parts, count(r.New+r.Still, "finding"))
	case r.New+r.Still == 0:
		parts = append(parts, "nothing found")
	default:
		for _, c := range []struct {
			n    int
			what string
		}{{r.New, "new"}, {r.Still, "still"}} {
			if c.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
	}
	if n := len(r.Recovered) + r.MoreRecovered; n > 0 {
		parts = append(parts, fmt.Sprintf("%d recovered", n))
	}
	if blind := blindParts(r); blind > 0 {
		parts = append(parts, "not everything could be looked at")
	}
	return strings.Join(parts, ", ")
}

func blindParts(r *digest.Report) int {
	n := 0
	for _, p := range r.Sections {
		n += len(p.Blind)
	}
	return n
}

// times says when a digest was made and what it is compared with, where that does
// not go without saying.
func (d digester) times(r *digest.Report) Small {
	var parts []string
	if r.Late {
		parts = append(parts, fmt.Sprintf("late: it was due at %s, and made at %s", d.stamp(r.Scheduled), d.stamp(r.Made)))
	}
	switch {
	case r.Quiet():
	case r.Before.IsZero():
		parts = append(parts, "the first digest")
	default:
		parts = append(parts, "since the digest of "+d.stamp(r.Before))
	}
	if len(parts) == 0 {
		return nil
	}
	return Small{Plain(capital(strings.Join(parts, " · ")))}
}

// digestSign is the sign of the worst of a digest that is not quiet.
func digestSign(r *digest.Report) string {
	worst := digest.Notable
	if blindParts(r) > 0 {
		worst = digest.Unclear
	}
	some := blindParts(r) > 0
	for _, p := range r.Sections {
		for i := range p.Findings {
			worst, some = worse(worst, &p.Findings[i]), true
		}
	}
	if !some {
		return "🟢" // only something recovered
	}
	return severitySign(worst)
}

// worse is the worse of a severity and those of a finding and what is under it.
func worse(s digest.Severity, f *digest.Finding) digest.Severity {
	if f.Severity == digest.Broken || f.Severity == digest.Unclear && s == digest.Notable {
		s = f.Severity
	}
	for i := range f.Under {
		s = worse(s, &f.Under[i])
	}
	return s
}

// severitySign is the sign of a severity; one that is not known is unclear.
func severitySign(s digest.Severity) string {
	switch s {
	case digest.Broken:
		return "🔴"
	case digest.Notable:
		return "🟡"
	case digest.Unclear:
	}
	return "❓"
}

// sectionTitle names a section.
func sectionTitle(s digest.Section) string { return capital(string(s)) }

// section is what a digest says of one section.
func (d digester) section(p *digest.Part) Talk {
	var items Items
	for i := range p.Findings {
		if i == d.rows.findings {
			break
		}
		items = append(items, d.finding(&p.Findings[i], 0))
	}
	more := p.More
	for i := len(items); i < len(p.Findings); i++ {
		more += 1 + len(p.Findings[i].Under)
	}
	if more > 0 {
		items = append(items, moreOf(more))
	}
	for i, b := range p.Blind {
		if i == d.rows.findings {
			items = append(items, moreOf(len(p.Blind)-i))
			break
		}
		items = append(items, Item{Sign: "❓", Text: Line{Plain("Cannot be looked at: " + clip(oneLine(b.Why), d.rows.runes))}})
	}
	summaries := d.summaries([]digest.Part{*p})
	if len(items) == 0 && len(summaries) == 0 {
		return nil
	}
	sign := ""
	if len(items) == 0 {
		sign = "🟢 "
	}
	t := Talk{Paragraph{Plain(sign), Strong(sectionTitle(p.Section))}}
	if len(summaries) > 0 {
		t = append(t, Small{Plain(strings.Join(summaries, " · "))})
	}
	if len(items) > 0 {
		t = append(t, items)
	}
	return t
}

// moreOf is the item that counts what is left out.
func moreOf(n int) Item {
	return Item{Sign: "…", Text: Line{Plain(fmt.Sprintf("and %d more", n))}, Stands: n}
}

// finding is one finding with those under it, of which some more were left out.
func (d digester) finding(f *digest.Finding, more int) Item {
	item := Item{Sign: severitySign(f.Severity), Text: append(d.what(f), d.since(f)...)}
	for i := range f.Under[:min(len(f.Under), d.rows.under)] {
		item.Under = append(item.Under, Item{Sign: "↳", Text: append(d.what(&f.Under[i]), d.since(&f.Under[i])...)})
	}
	if more += len(f.Under) - len(item.Under); more > 0 {
		item.Under = append(item.Under, moreOf(more))
	}
	return item
}

// what names the thing and says what is the matter with it.
func (d digester) what(f *digest.Finding) Line {
	name := Link(clip(oneLine(f.Subject), d.rows.runes), f.URL)
	name.Style = StyleStrong
	l := Line{name}
	if f.Cluster != "" && !strings.HasSuffix(f.Subject, " "+f.Cluster) {
		l = append(l, Plain(" on "+f.Cluster))
	}
	return append(l, Plain(" "+clip(oneLine(f.Text), d.rows.runes)))
}

// since says since when, and whether it is new.
func (d digester) since(f *digest.Finding) Line {
	var l Line
	if !f.Since.IsZero() {
		l = append(l, Plain(" · since "+d.stamp(f.Since)))
	}
	if f.New {
		l = append(l, Plain(" · "), Strong("new"))
	}
	return l
}

// recovered lists what is there no longer.
func (d digester) recovered(r *digest.Report) Talk {
	if len(r.Recovered) == 0 {
		return nil
	}
	var items Items
	for i := range r.Recovered {
		if i == d.rows.recovered {
			break
		}
		f := r.Recovered[i]
		items = append(items, Item{Sign: "✅", Text: d.gone(&f)})
	}
	if more := len(r.Recovered) - len(items) + r.MoreRecovered; more > 0 {
		items = append(items, moreOf(more))
	}
	return Talk{Paragraph{Strong("Recovered")}, items}
}

// gone names a thing with what was the matter with it.
func (d digester) gone(f *digest.Finding) Line {
	l := d.what(f)
	last := len(l) - 1
	l[last] = Plain(" – it " + was(strings.TrimSpace(l[last].Text)))
	return l
}

// was puts what was the matter with a thing in the past, where that is plain.
func was(text string) string {
	for now, then := range map[string]string{"is ": "was ", "has ": "had ", "cannot ": "could not "} {
		if rest, ok := strings.CutPrefix(text, now); ok {
			return then + rest
		}
	}
	return "was: " + text
}
