package renovate

import (
	"regexp"
	"slices"
	"strings"
)

// DashboardTitle is the title of Renovate's issue where nothing else is
// configured.
const DashboardTitle = "Dependency Dashboard"

// IsDashboard says whether an issue is Renovate's: anybody may open one with its
// title, so its author must be one of the bots. wanted is the configured title,
// and empty means [DashboardTitle]. Logins are compared in any letter case.
func IsDashboard(title, author, wanted string, bots []string) bool {
	if wanted == "" {
		wanted = DashboardTitle
	}
	return title == wanted && author != "" &&
		slices.ContainsFunc(bots, func(bot string) bool { return strings.EqualFold(bot, author) })
}

// Rows counts rows of a dashboard.
type Rows struct {
	Total, Checked int
}

// Row is a branch in a dashboard.
type Row struct {
	// Section is the heading above it, such as "Rate-Limited", and Kind what the
	// check box asks for: "approve", "unschedule", "unlimit", "retry",
	// "approvePr", "rebase", "recreate", "other".
	Section, Kind, Branch string
	Checked               bool
}

// Dashboards is what a dashboard lists.
type Dashboards struct {
	// Rows are the branches in their order, at most 1000; Dropped counts more.
	Rows    []Row
	Dropped int
	// Sections and Kinds count all rows by either, at most 100 of each.
	Sections, Kinds map[string]Rows
}

const (
	maxRows      = 1000
	maxDashboard = 1 << 20
)

// The forms of a row and of a heading. Renovate itself finds rows by the first.
var (
	dashboardRow     = regexp.MustCompile(`^ {0,3}- \[([ xX])\] <!-- ([A-Za-z]{1,40})-branch=(\S{1,300}) -->`)
	dashboardHeading = regexp.MustCompile(`^ {0,3}#{2,4} +(.+?)\s*$`)
	fence            = regexp.MustCompile("^ {0,3}(```+|~~~+)")
)

// Dashboard reads the text of Renovate's issue. Whether it is Renovate's is for
// [IsDashboard] to say. Of a text beyond 1 MiB only the beginning is read.
func Dashboard(body string) Dashboards {
	d := Dashboards{Sections: map[string]Rows{}, Kinds: map[string]Rows{}}
	section, fenced := "", ""
	for text := range strings.Lines(body[:min(len(body), maxDashboard)]) {
		text = strings.TrimRight(text, "\r\n")
		if m := fence.FindStringSubmatch(text); m != nil {
			switch {
			case fenced == "":
				fenced = m[1]
			case strings.HasPrefix(m[1], fenced):
				fenced = ""
			}
			continue
		}
		if fenced != "" {
			continue
		}
		if m := dashboardHeading.FindStringSubmatch(text); m != nil {
			section = clean(m[1])
			continue
		}
		m := dashboardRow.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		row := Row{Section: section, Kind: m[2], Branch: clean(m[3]), Checked: m[1] != " "}
		count(d.Sections, row.Section, row.Checked)
		count(d.Kinds, row.Kind, row.Checked)
		if len(d.Rows) == maxRows {
			d.Dropped++
			continue
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

func count(of map[string]Rows, name string, checked bool) {
	n, known := of[name]
	if !known && len(of) == maxKinds {
		return
	}
	n.Total++
	if checked {
		n.Checked++
	}
	of[name] = n
}
