package digest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Facts is where facts are looked up. It must not change during a call of [Find] in
// a way that one key gives two answers.
type Facts interface {
	Lookup(key fact.Key) (fact.Fact, bool)
	// Select returns the facts of a kind, sorted by key, absent ones included.
	Select(source, scope, kind string) []fact.Fact
}

// Repository is a repository with its main branch; the branch is empty while it is
// not known. One that is only observed is not held to anything.
type Repository struct {
	pull.Repo
	Main     string
	Observed bool
}

// Input is all that a digest is made of.
type Input struct {
	Facts Facts
	// Clusters are those that the digest is about, in the order in which they are
	// shown.
	Clusters []string
	// Pulls are the open pull requests, in any order, and Repositories all that are
	// looked after. What is of another repository is left out.
	Pulls        []policy.Standing
	Repositories []Repository
	// Unread is how many more should be looked after that could not be read yet.
	Unread int
	// Sections are those that are wanted; none stands for all.
	Sections []Section
	// Checks and Kured say what is asked of the clusters; see [Wishes].
	Checks []Check
	Kured  []Kured
	// Decisions is the whole ledger.
	Decisions decision.Ledger
	// Since is when the report before was made: what was done from then on is told
	// once. Zero tells nothing of that.
	Since time.Time
	// DeadLetters is how many messages could not be handled.
	DeadLetters int
	// Began is since when this process listens to the clusters; zero for always.
	Began time.Time
	Now   time.Time
}

// grace is for what a healthy system passes through: an object that was just made,
// a revision that is just being rolled out, a deletion.
const grace = 10 * time.Minute

// connecting is how long it may take after a start until a cluster is heard from.
const connecting = time.Minute

// Find finds what is not as it should be. The same input gives the same result.
func Find(in Input) Result {
	in.Now = in.Now.UTC()
	f := finder{in: in, repos: map[int64]Repository{}}
	for _, r := range in.Repositories {
		f.repos[r.ID] = r
	}
	f.res.Asked = f.asked()
	for _, cluster := range in.Clusters {
		if !f.heard(cluster) {
			continue
		}
		f.flux(cluster)
		f.nodes(cluster)
		f.storage(cluster)
		f.cronJobs(cluster)
	}
	f.unread()
	f.pipelines()
	f.gate()
	f.sort()
	f.res.Counts.Open = open(f.res.Findings)
	return f.res
}

// finder gathers a result.
type finder struct {
	in    Input
	repos map[int64]Repository
	res   Result
}

// wants reports whether a section is wanted.
func (f *finder) wants(s Section) bool {
	return len(f.in.Sections) == 0 || slices.Contains(f.in.Sections, s)
}

// add adds a finding of a section that is wanted.
func (f *finder) add(found Finding) {
	if f.wants(found.Section) {
		f.res.Findings = append(f.res.Findings, found.clean())
	}
}

func (f *finder) blind(b Blind) {
	if f.wants(b.Section) {
		b.Why = oneLine(b.Why)
		f.res.Blind = append(f.res.Blind, b)
	}
}

func (f *finder) summary(s Section, line Summary) {
	if !f.wants(s) {
		return
	}
	if f.res.Summaries == nil {
		f.res.Summaries = map[Section][]Summary{}
	}
	line.Text = oneLine(line.Text)
	f.res.Summaries[s] = append(f.res.Summaries[s], line)
	f.res.Counts.Pulls += line.Pulls
	f.res.Counts.Clear += line.Clear
}

// sort orders the findings by section and severity, and leaves those of one in the
// order in which they were found.
func (f *finder) sort() {
	slices.SortStableFunc(f.res.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Section.place(), b.Section.place()), cmp.Compare(a.worst(), b.worst()))
	})
	slices.SortStableFunc(f.res.Blind, func(a, b Blind) int { return cmp.Compare(a.Section.place(), b.Section.place()) })
}

// place is where a section is in the order of a digest.
func (s Section) place() int { return slices.Index(Sections(), s) }

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Broken, Unclear, Notable}, s) }

// worst is the rank of the worst of a finding and those under it.
func (f *Finding) worst() int {
	r := f.Severity.rank()
	for i := range f.Under {
		r = min(r, f.Under[i].worst())
	}
	return r
}

// open counts what is broken or unclear.
func open(findings []Finding) map[Section]int {
	n := map[Section]int{}
	for _, f := range flat(findings) {
		if f.Alerts() {
			n[f.Section]++
		}
	}
	return n
}

// flat returns findings and those under them as findings of their own. The ones
// that had others under them have them still.
func flat(findings []Finding) []Finding {
	out := make([]Finding, 0, len(findings))
	for _, f := range findings {
		out = append(out, f)
		out = append(out, flat(f.Under)...)
	}
	return out
}

// unread tells that of some repositories nothing can be known. It does not name them:
// who may read them is not known either.
func (f *finder) unread() {
	if f.in.Unread == 0 {
		return
	}
	why := "a repository of the configuration has not been read yet"
	if f.in.Unread > 1 {
		why = fmt.Sprintf("%d repositories of the configuration have not been read yet", f.in.Unread)
	}
	for _, s := range []Section{Pipelines, Gate} {
		f.blind(Blind{Section: s, Prefix: prefix(s, "repo"), Why: why})
	}
}

// heard reports whether a cluster is heard from, and tells it if not.
func (f *finder) heard(cluster string) bool {
	beat, ok := f.in.Facts.Lookup(fact.HeartbeatKey(cluster))
	if ok && !beat.Absent && beat.Heartbeat != nil && !beat.Heartbeat.Silent {
		return true
	}
	found := Finding{
		ID: id(Gate, cluster, "silent"), Section: Gate, Cluster: cluster, Severity: Unclear,
		Subject: "Cluster " + cluster, Text: "has not been heard from yet",
	}
	if ok && beat.Heartbeat != nil && !beat.Heartbeat.LastHeard.IsZero() {
		found.Severity, found.Since = Broken, beat.Heartbeat.LastHeard
		found.Text = "is silent: nothing has been heard from it"
		// While nothing ran, nobody listened. What was silent before that was told then.
		if began := f.in.Began; !beat.SeenAt.Before(began) && found.Since.Before(began) {
			found.Since = began
			if f.in.Now.Sub(began) < connecting {
				found.Severity, found.Text = Unclear, "has not been heard from since signalbox started"
			}
		}
	}
	f.add(found)
	sections := []Section{Flux, Nodes, Storage}
	if len(f.in.Facts.Select(fact.SourceKube, cluster, fact.KindRenovate)) > 0 {
		sections = append(sections, Pipelines)
	}
	for _, s := range sections {
		f.blind(Blind{Section: s, Cluster: cluster, Why: "cluster " + cluster + " is not heard from"})
	}
	return false
}
