package precondition_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
	"signalbox/internal/yamlfile"
)

const (
	headSHA  = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	mergeSHA = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	baseSHA  = "cccccccccccccccccccccccccccccccccccccccc"
	nextSHA  = "dddddddddddddddddddddddddddddddddddddddd"
	otherSHA = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
)

// now is half an hour after since.
var (
	now   = time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC)
	since = now.Add(-30 * time.Minute)
)

// world is what a precondition is evaluated in: facts of one or two clusters
// that are heard from, and a pull request.
type world struct {
	facts    map[fact.Key]fact.Fact
	answers  map[precondition.Ask]precondition.Answer
	body     string
	clusters []string
}

func newWorld() *world {
	w := &world{facts: map[fact.Key]fact.Fact{}, answers: map[precondition.Ask]precondition.Answer{}, clusters: []string{"prod"}}
	w.hear("prod")
	return w
}

func (w *world) hear(cluster string) {
	w.put(fact.Fact{Key: fact.HeartbeatKey(cluster), Heartbeat: &fact.Heartbeat{}})
	w.put(fact.Fact{Key: fact.ClusterKey(cluster), Cluster: &fact.Cluster{Kinds: map[string]fact.Watch{
		"kustomization": {State: fact.WatchSynced},
	}}})
}

// put puts a fact that holds since "since".
func (w *world) put(f fact.Fact) {
	if f.Since.IsZero() {
		f.Since = since
	}
	if f.SeenAt.IsZero() {
		f.SeenAt = now
	}
	w.facts[f.Key] = f
}

// Lookup implements precondition.Facts.
func (w *world) Lookup(k fact.Key) (fact.Fact, bool) {
	f, ok := w.facts[k]
	return f, ok
}

// Select implements precondition.Facts.
func (w *world) Select(source, scope, kind string) []fact.Fact {
	var out []fact.Fact
	for k, f := range w.facts {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return out
}

// evaluate reads a kind as people write it, in one line, and evaluates it.
func (w *world) evaluate(t *testing.T, text string) ([]precondition.Check, *precondition.Evaluation) {
	t.Helper()
	kinds, problems := load(text)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	e := &precondition.Evaluation{
		Snapshot: &pull.Snapshot{Pull: pull.Pull{
			Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Number: 12, Body: w.body,
			URL:  "https://gitea.example.org/ops/home-gitops/pulls/12",
			Head: pull.Branch{Name: "cdi", SHA: headSHA}, Base: pull.Branch{Name: "main", SHA: baseSHA},
		}},
		Facts: w, Answers: w.answers, Clusters: []string{"prod", "dev"}, Now: now,
	}
	return kinds.Given()[0].Kind.Evaluate(e, w.clusters), e
}

// load reads and validates a kind.
func load(text string) (*precondition.Kinds, yamlfile.Problems) {
	var k precondition.Kinds
	doc, problems := yamlfile.Decode("p.yaml", []byte(text), &k)
	if len(problems) > 0 {
		return nil, problems
	}
	v := precondition.NewValidator(doc)
	for _, g := range k.Given() {
		g.Kind.Validate(v, yamlfile.Path(nil).At(g.Name))
	}
	return &k, v.Problems()
}

// kindCase is one evaluation with one finding.
type kindCase struct {
	name string
	// text is the kind, as people write it.
	text  string
	world func(*world)
	want  precondition.State
	// reason is the whole of it.
	reason string
	// again is when it must be looked at again; zero for never.
	again time.Time
}

func runCases(t *testing.T, base func(*world), cases []kindCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if base != nil {
				base(w)
			}
			if tt.world != nil {
				tt.world(w)
			}
			checks, e := w.evaluate(t, tt.text)
			if len(checks) != 1 {
				t.Fatalf("there are %d findings, want 1: %+v", len(checks), checks)
			}
			if c := checks[0]; c.State != tt.want || c.Reason != tt.reason {
				t.Errorf("%s: %s\nwant %s: %s", c.State, c.Reason, tt.want, tt.reason)
			}
			if got := e.LookAgain(); !got.Equal(tt.again) {
				t.Errorf("it is to be looked at again at %v, want %v", got, tt.again)
			}
			reads := e.Reads()
			for _, wish := range e.Wishes() {
				if !slices.Contains(reads, wish.Key) {
					t.Errorf("%s is wished for and not read", wish.Key)
				}
			}
		})
	}
}

// problemCases are kinds as people write them, and what is wrong with each.
func problemCases(t *testing.T, cases map[string][]string) {
	t.Helper()
	for text, want := range cases {
		_, problems := load(text)
		var got []string
		for _, p := range problems {
			got = append(got, p.Error())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", text, diff)
		}
	}
}

func equal[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
