package digest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/digest"
)

func broken(id string, under ...digest.Finding) digest.Finding {
	return digest.Finding{ID: id, Section: digest.Flux, Cluster: "prod", Severity: digest.Broken, Subject: "Kustomization " + id, Text: "is not ready", Since: since, Under: under}
}

func options() digest.Options {
	return digest.Options{Name: "morning", Scheduled: now, Made: now, Zone: "Europe/Berlin", Clusters: []string{"prod"}}
}

// ids are those of findings, with a star for what is new.
func ids(findings []digest.Finding) string {
	var parts []string
	for _, f := range findings {
		text := f.ID
		if f.New {
			text += "*"
		}
		if len(f.Under) > 0 {
			text += "(" + ids(f.Under) + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func part(r digest.Report, s digest.Section) digest.Part {
	for _, p := range r.Sections {
		if p.Section == s {
			return p
		}
	}
	return digest.Part{}
}

func TestMake(t *testing.T) {
	first := digest.Make(digest.Result{Findings: []digest.Finding{broken("a", broken("b")), broken("c")}}, nil, options())
	if got := ids(part(first, digest.Flux).Findings); got != "a(b) c" || first.New != 0 || first.Still != 3 || !first.Before.IsZero() {
		t.Errorf("the first has %q, %d new, %d still, before %v", got, first.New, first.Still, first.Before)
	}
	for name, tt := range map[string]struct {
		findings                 []digest.Finding
		blind                    []digest.Blind
		sections                 []digest.Section
		clusters                 []string
		want, recovered, unseen  string
		newOnes, still, notKnown int
	}{
		"the same":            {findings: []digest.Finding{broken("a", broken("b")), broken("c")}, want: "a(b) c", still: 3},
		"in another place":    {findings: []digest.Finding{broken("b"), broken("c", broken("a"))}, want: "b c(a)", still: 3},
		"one more, under one": {findings: []digest.Finding{broken("a", broken("b"), broken("d")), broken("c")}, want: "a(b d*) c", newOnes: 1, still: 3},
		"all gone":            {recovered: "a b c"},
		"not seen":            {blind: []digest.Blind{{Section: digest.Flux, Cluster: "prod"}}, unseen: "a b c", notKnown: 3},
		"one not seen":        {blind: []digest.Blind{{Section: digest.Flux, Cluster: "prod", Prefix: "b"}}, recovered: "a c", unseen: "b", notKnown: 1},
		"blind elsewhere":     {blind: []digest.Blind{{Section: digest.Flux, Cluster: "dev"}, {Section: digest.Nodes, Cluster: "prod"}}, recovered: "a b c"},
		"not asked":           {sections: []digest.Section{digest.Gate}},
		"another cluster":     {clusters: []string{"dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Sections = tt.sections
			if tt.clusters != nil {
				o.Clusters = tt.clusters
			}
			r := digest.Make(digest.Result{Findings: tt.findings, Blind: tt.blind}, &first, o)
			if got := ids(part(r, digest.Flux).Findings); got != tt.want || ids(r.Recovered) != tt.recovered || ids(r.Unseen) != tt.unseen {
				t.Errorf("%q, recovered %q, unseen %q", got, ids(r.Recovered), ids(r.Unseen))
			}
			if r.New != tt.newOnes || r.Still != tt.still || r.Unknown != tt.notKnown || !r.Before.Equal(first.Made) {
				t.Errorf("%d new, %d still, %d unknown, before %v", r.New, r.Still, r.Unknown, r.Before)
			}
		})
	}
}

func TestUnseenIsCarriedOn(t *testing.T) {
	blind := []digest.Blind{{Section: digest.Flux, Cluster: "prod"}}
	first := digest.Make(digest.Result{Findings: []digest.Finding{broken("a"), broken("b")}}, nil, options())
	second := digest.Make(digest.Result{Blind: blind}, &first, options())
	third := digest.Make(digest.Result{Blind: blind}, &second, options())
	last := digest.Make(digest.Result{Findings: []digest.Finding{broken("a")}}, &third, options())
	if third.Unknown != 2 || third.Quiet() || ids(part(last, digest.Flux).Findings) != "a" || ids(last.Recovered) != "b" || last.New != 0 {
		t.Errorf("unknown %d, then %q, recovered %q", third.Unknown, ids(part(last, digest.Flux).Findings), ids(last.Recovered))
	}
}

func TestOnceDoesNotRecover(t *testing.T) {
	once := broken("a")
	once.Once = true
	first := digest.Make(digest.Result{Findings: []digest.Finding{once}}, nil, options())
	if r := digest.Make(digest.Result{}, &first, options()); len(r.Recovered) != 0 || !r.Quiet() {
		t.Errorf("recovered %q", ids(r.Recovered))
	}
}

func TestReportIsBounded(t *testing.T) {
	var all []digest.Finding
	for i := range 3000 {
		f := broken(fmt.Sprintf("flux/prod/kustomization/flux-system/apps-%04d/not-ready", i))
		f.Text = strings.Repeat("<&>", 100)
		if i%3 != 0 {
			all[len(all)-1].Under = append(all[len(all)-1].Under, f)
			continue
		}
		all = append(all, f)
	}
	node := broken("n")
	node.Section = digest.Nodes
	all = append(all, node)
	var old []digest.Finding
	for i := range 1500 {
		old = append(old, broken(fmt.Sprint("old", i)))
	}
	before := digest.Make(digest.Result{Findings: old}, nil, options())
	r := digest.Make(digest.Result{Findings: all, Counts: digest.Counts{Open: map[digest.Section]int{digest.Flux: 3000, digest.Nodes: 1}}}, &before, options())
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	flux := part(r, digest.Flux)
	shown := 0
	for _, f := range flux.Findings {
		shown += 1 + len(f.Under)
	}
	if len(text) > 600_000 || shown == 0 || shown+flux.More != 3000 || len(part(r, digest.Nodes).Findings) != 1 || r.New != 3001 || len(r.Recovered)+r.MoreRecovered != 1500 {
		t.Errorf("%d bytes, %d shown, %d more, %d new, %d+%d recovered", len(text), shown, flux.More, r.New, len(r.Recovered), r.MoreRecovered)
	}
	var back digest.Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("the way through JSON changes it (-want +got):\n%s", diff)
	}
	// What was left out is not new the next time, unless it began since.
	all[len(all)-2].Since = now.Add(time.Minute)
	next := digest.Make(digest.Result{Findings: all}, &r, options())
	if next.New != 1 || next.Still != 3000 {
		t.Errorf("then %d are new, %d still", next.New, next.Still)
	}
}

func TestVisible(t *testing.T) {
	mine, theirs, cluster := broken("a"), broken("b"), broken("c")
	mine.Repo, mine.Section, theirs.Repo, theirs.Section = 7, digest.Gate, 8, digest.Gate
	theirs.Severity = digest.Unclear
	res := digest.Result{
		Findings: []digest.Finding{cluster, mine, theirs},
		Blind:    []digest.Blind{{Section: digest.Gate, Repo: 8, Why: "secret"}, {Section: digest.Gate, Repo: 7}, {Section: digest.Nodes}},
		Summaries: map[digest.Section][]digest.Summary{
			digest.Gate: {{Repo: 7, Text: "mine", Pulls: 2, Clear: 1}, {Repo: 8, Text: "theirs", Pulls: 3, Clear: 3}}, digest.Pipelines: {{Repo: 8, Text: "theirs"}},
		},
		Counts: digest.Counts{Open: map[digest.Section]int{digest.Flux: 1, digest.Gate: 2}, Pulls: 5, Clear: 4},
	}
	may := func(repo int64) bool { return repo == 7 }
	seen := res.Visible(may)
	want := digest.Counts{Open: map[digest.Section]int{digest.Flux: 1, digest.Gate: 1}, Pulls: 2, Clear: 1}
	if diff := cmp.Diff(want, seen.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ids(seen.Findings) != "c a" || len(seen.Blind) != 2 || len(seen.Summaries) != 1 || len(seen.Summaries[digest.Gate]) != 1 {
		t.Errorf("%+v", seen)
	}
	if len(res.Findings) != 3 || len(res.Blind) != 3 || res.Counts.Open[digest.Gate] != 2 {
		t.Error("what was handed in has changed")
	}
	gone := digest.Make(digest.Result{Findings: []digest.Finding{mine, theirs}}, nil, options())
	report := digest.Make(res, &gone, options()).Visible(may)
	if diff := cmp.Diff(want, report.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if report.New+report.Still != 2 || len(part(report, digest.Gate).Findings) != 1 {
		t.Errorf("%d new, %d still", report.New, report.Still)
	}
	recovered := digest.Make(digest.Result{}, &gone, options())
	if len(recovered.Recovered) != 2 || ids(recovered.Visible(may).Recovered) != "a" {
		t.Errorf("recovered %q", ids(recovered.Visible(may).Recovered))
	}
	unseen := digest.Make(digest.Result{Blind: []digest.Blind{{Section: digest.Gate, Cluster: "prod"}}}, &gone, options())
	if unseen.Unknown != 2 || unseen.Visible(may).Unknown != 1 {
		t.Errorf("unknown %d", unseen.Visible(may).Unknown)
	}
	if text, _ := json.Marshal([]any{seen, report}); strings.Contains(string(text), "theirs") || strings.Contains(string(text), "secret") {
		t.Errorf("it shows what it must not: %s", text)
	}
}

func TestQuiet(t *testing.T) {
	r := digest.Make(digest.Result{Summaries: map[digest.Section][]digest.Summary{digest.Gate: {{Text: "3 open pull requests"}}}, Counts: digest.Counts{Pulls: 3}}, nil, options())
	if !r.Quiet() || part(r, digest.Gate).Summary[0].String() != "3 open pull requests" {
		t.Errorf("%+v", r)
	}
}
