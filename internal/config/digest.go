package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/precondition"
	"signalbox/internal/schedule"
	"signalbox/internal/yamlfile"
)

// About is what a digest or an alert is about.
type About struct {
	Sections []digest.Section
	// Clusters are names, and Repositories "owner/name"; none are all.
	Clusters, Repositories []string
}

// Digest is a report on how things stand, sent by the clock.
type Digest struct {
	Name  string
	Times *schedule.Times
	About About
	Rooms []chat.Room
	// Issues are repositories, "owner/name", in which an issue is kept up to date.
	Issues []string
	Chart  bool
}

// Alert tells when something breaks, and when it recovers.
type Alert struct {
	Name          string
	About         About
	After, Settle time.Duration
	Rooms         []chat.Room
}

// Watch is what digests and alerts look at beside what is always known.
type Watch struct {
	// Kured stands in the place of the defaults of package digest, and Checks come
	// after them.
	Kured    []digest.Kured
	Checks   []digest.Check
	Renovate []Renovate
}

// Renovate is where Renovate runs: a workflow if Repository is set, else a CronJob.
type Renovate struct {
	Repository, Workflow string
	Cluster              string
	Namespace, CronJob   string
}

func (l *loader) digests(f *File) []Digest {
	var out []Digest
	seen := map[string]bool{}
	for i, d := range f.Digests {
		at := yamlfile.Path{"digests", i}
		l.label(at, d.Name, "digest", seen)
		if d.Name == "now" {
			l.problem(at.At("name"), `"now" stands for how things stand at this moment`, "take another name")
		}
		o := Digest{Name: d.Name, Chart: d.Chart == nil || *d.Chart, About: l.about(at, f, d.Sections, d.Clusters, d.Repositories)}
		o.Times = l.times(at, d.Schedule, d.Timezone)
		if len(d.To) == 0 {
			l.problem(at.At("to"), "is missing", "name at least one place")
		}
		for j, p := range d.To {
			at := at.At("to", j)
			if p.Issue == "" {
				o.Rooms = append(o.Rooms, l.room(at, f, p.Slack, p.Matrix, "give slack, matrix or issue"))
				continue
			}
			switch {
			case p.Slack != "" || p.Matrix != "":
				l.problem(at, "names more than one place", "give each an entry of its own")
			case !l.knownRepository(at.At("issue"), f, p.Issue):
			case observed(f, p.Issue):
				l.problem(at.At("issue"), fmt.Sprintf("%q is only observed, so nothing is posted there", p.Issue), "")
			case slices.Contains(o.Issues, p.Issue):
				l.problem(at.At("issue"), fmt.Sprintf("%q is given twice", p.Issue), "")
			}
			o.Issues = append(o.Issues, p.Issue)
		}
		out = append(out, o)
	}
	return out
}

func (l *loader) alerts(f *File) []Alert {
	var out []Alert
	seen := map[string]bool{}
	for i, a := range f.Alerts {
		at := yamlfile.Path{"alerts", i}
		l.label(at, a.Name, "alert", seen)
		o := Alert{
			Name: a.Name, About: l.about(at, f, a.Sections, a.Clusters, a.Repositories),
			After:  l.duration(at.At("after"), a.After, bounds{5 * time.Minute, 0, 24 * time.Hour}),
			Settle: l.duration(at.At("settle"), a.Settle, bounds{2 * time.Minute, 10 * time.Second, 24 * time.Hour}),
		}
		if len(a.To) == 0 {
			l.problem(at.At("to"), "is missing", "name at least one room")
		}
		for j, p := range a.To {
			o.Rooms = append(o.Rooms, l.room(at.At("to", j), f, p.Slack, p.Matrix, "give slack or matrix"))
		}
		out = append(out, o)
	}
	return out
}

// label checks the name of something that is named once.
func (l *loader) label(at yamlfile.Path, name, what string, seen map[string]bool) {
	switch {
	case !labelPattern.MatchString(name):
		l.problem(at.At("name"), fmt.Sprintf("%q does not name %s %s", name, article(what), what), "use up to 63 lower-case letters, digits and hyphens, with no hyphen at the ends")
	case seen[name]:
		l.problem(at.At("name"), fmt.Sprintf("%q is the name of an earlier %s", name, what), "")
	}
	seen[name] = true
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

func (l *loader) times(at yamlfile.Path, text, zone string) *schedule.Times {
	if zone == "" {
		zone = "UTC"
	}
	times, err := schedule.Parse(text, zone)
	if err == nil {
		return times
	}
	// Which of the two is wrong shows with the other in its place.
	field := "schedule"
	if _, wrong := schedule.Parse("@daily", zone); wrong != nil {
		field = "timezone"
	}
	l.problem(at.At(field), err.Error(), "")
	return nil
}

// about reads what a digest or an alert is about.
func (l *loader) about(at yamlfile.Path, f *File, sections, clusters, repositories []string) About {
	a := About{Sections: digest.Sections()}
	var names []string
	for _, s := range digest.Sections() {
		names = append(names, string(s))
	}
	if len(sections) > 0 {
		a.Sections = nil
	}
	for i, s := range sections {
		switch {
		case !slices.Contains(names, s):
			l.problem(at.At("sections", i), fmt.Sprintf("%q is no section", s), yamlfile.Suggest(s, names))
		case slices.Contains(a.Sections, digest.Section(s)):
			l.problem(at.At("sections", i), fmt.Sprintf("%q is given twice", s), "")
		}
		a.Sections = append(a.Sections, digest.Section(s))
	}
	for i, c := range clusters {
		l.knownCluster(at.At("clusters", i), f, c)
	}
	a.Clusters = clusters
	for i, r := range repositories {
		l.knownRepository(at.At("repositories", i), f, r)
	}
	a.Repositories = repositories
	return a
}

// knownCluster checks the name of a cluster.
func (l *loader) knownCluster(at yamlfile.Path, f *File, name string) {
	known := make([]string, len(f.Clusters))
	for i, c := range f.Clusters {
		known[i] = c.Name
	}
	if !slices.Contains(known, name) {
		l.problem(at, fmt.Sprintf("%q is no cluster of this configuration", name), yamlfile.Suggest(name, known))
	}
}

// knownRepository checks the name of a repository, and reports whether it is known.
func (l *loader) knownRepository(at yamlfile.Path, f *File, name string) bool {
	known := slices.ContainsFunc(f.Repositories, func(r RepositoryFile) bool { return strings.EqualFold(r.Name, name) })
	if !known {
		l.problem(at, fmt.Sprintf("%q is no repository of this configuration", name), "")
	}
	return known
}

func observed(f *File, name string) bool {
	return slices.ContainsFunc(f.Repositories, func(r RepositoryFile) bool { return r.Observe && strings.EqualFold(r.Name, name) })
}

// room reads one room of a chat.
func (l *loader) room(at yamlfile.Path, f *File, slack, matrix, hint string) chat.Room {
	switch {
	case (slack == "") == (matrix == ""):
		l.problem(at, "needs one place", hint)
	case slack != "" && !slackChannel.MatchString(slack):
		l.problem(at.At("slack"), fmt.Sprintf("%q is no channel", slack), "write its id, such as C0123456, and not its name")
	case slack != "" && f.Chat.Slack == nil, matrix != "" && f.Chat.Matrix == nil:
		l.problem(at, "is on a platform that signalbox is not connected to", "configure it as chat.slack or chat.matrix")
	case matrix != "" && !matrixRoom.MatchString(matrix):
		l.problem(at.At("matrix"), fmt.Sprintf("%q is no room", matrix), "write its id, such as !abc:example.org")
	}
	if matrix != "" {
		return chat.Room{Platform: chat.Matrix, ID: matrix}
	}
	return chat.Room{Platform: chat.Slack, ID: slack}
}

func (l *loader) watch(f *File) Watch {
	var w Watch
	for _, k := range f.Watch.Kured {
		w.Kured = append(w.Kured, digest.Kured{Query: fact.KuredQuery{
			Namespace: cmp.Or(k.Namespace, "kube-system"), Name: cmp.Or(k.Name, "kured"),
		}})
	}
	seen := map[string]bool{}
	for _, c := range digest.DefaultChecks() {
		seen[c.Name] = true
	}
	for i, c := range f.Watch.Checks {
		at := yamlfile.Path{"watch", "checks", i}
		l.label(at, c.Name, "check", seen)
		w.Checks = append(w.Checks, l.check(at, &c))
	}
	for i, r := range f.Watch.Renovate {
		w.Renovate = append(w.Renovate, l.renovate(yamlfile.Path{"watch", "renovate", i}, f, &r))
	}
	return w
}

func (l *loader) check(at yamlfile.Path, f *CheckFile) digest.Check {
	objects := &precondition.Objects{Kind: f.Kind, Namespace: f.Namespace, Selector: f.Selector, All: f.All}
	v := precondition.NewValidator(l.doc)
	objects.Validate(v, at)
	l.problems = append(l.problems, v.Problems()...)
	c := digest.Check{
		Name: f.Name, Section: digest.Storage, Severity: digest.Broken, Query: objects.Query(), Text: f.Text,
		Grace: l.duration(at.At("after"), f.After, bounds{0, 0, 24 * time.Hour}),
	}
	if strings.TrimSpace(f.Text) == "" {
		l.problem(at.At("text"), "is empty", `say what is the matter with an object that fails, such as "is not healthy"`)
	}
	switch sections := []string{string(digest.Nodes), string(digest.Storage)}; {
	case f.Section == "":
	case !slices.Contains(sections, f.Section):
		l.problem(at.At("section"), fmt.Sprintf("%q cannot hold checks", f.Section), yamlfile.Suggest(f.Section, sections))
	default:
		c.Section = digest.Section(f.Section)
	}
	switch severities := []string{string(digest.Broken), string(digest.Notable)}; {
	case f.Severity == "":
	case !slices.Contains(severities, f.Severity):
		l.problem(at.At("severity"), fmt.Sprintf("%q is not known", f.Severity), yamlfile.Suggest(f.Severity, severities))
	default:
		c.Severity = digest.Severity(f.Severity)
	}
	return c
}

func (l *loader) renovate(at yamlfile.Path, f *File, r *RenovateFile) Renovate {
	workflow, cronJob := r.Repository != "" || r.Workflow != "", r.Cluster != "" || r.Namespace != "" || r.CronJob != ""
	switch {
	case workflow == cronJob:
		l.problem(at, "needs either a workflow or a CronJob", "give repository and workflow, or cluster, namespace and cronJob")
	case workflow && (r.Repository == "" || r.Workflow == ""):
		l.problem(at, "needs both repository and workflow", "")
	case workflow && !l.knownRepository(at.At("repository"), f, r.Repository):
	case workflow && strings.Contains(r.Workflow, "/"):
		l.problem(at.At("workflow"), fmt.Sprintf("%q is a path", r.Workflow), "write the name of the file alone, such as renovate.yaml")
	case cronJob && (r.Cluster == "" || r.Namespace == "" || r.CronJob == ""):
		l.problem(at, "needs cluster, namespace and cronJob", "")
	case cronJob:
		l.knownCluster(at.At("cluster"), f, r.Cluster)
	}
	return Renovate{Repository: r.Repository, Workflow: r.Workflow, Cluster: r.Cluster, Namespace: r.Namespace, CronJob: r.CronJob}
}
