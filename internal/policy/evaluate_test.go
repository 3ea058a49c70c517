package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

const (
	headSHA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	oldSHA  = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	baseSHA = "cccccccccccccccccccccccccccccccccccccccc"
	nextSHA = "dddddddddddddddddddddddddddddddddddddddd"
)

var (
	now   = time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC)
	since = now.Add(-30 * time.Minute)
	alice = pull.Person{ID: 1, Login: "alice"}
	bob   = pull.Person{ID: 2, Login: "bob"}
	carol = pull.Person{ID: 3, Login: "carol"}
	robot = pull.Person{ID: 9, Login: "signalbox"}
)

// factMap is the facts of a test.
type factMap map[fact.Key]fact.Fact

func (m factMap) Lookup(k fact.Key) (fact.Fact, bool) {
	f, ok := m[k]
	return f, ok
}

func (m factMap) Select(source, scope, kind string) []fact.Fact {
	var out []fact.Fact
	for _, f := range m {
		if f.Key.Source == source && f.Key.Scope == scope && f.Key.Kind == kind {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return out
}

func (m factMap) put(f fact.Fact) { m[f.Key] = f }

// flux puts a Kustomization that is Ready at baseSHA, changed by edit.
func (m factMap) flux(cluster, name string, edit func(*fact.Fact)) {
	f := fact.Fact{
		Key: fact.Kube(cluster, "Kustomization", "flux-system", name), UID: "u", Since: since, SeenAt: now,
		Flux: &fact.Flux{
			Generation: 3, ObservedGeneration: 3,
			Ready:   fact.Condition{Status: fact.True, Reason: "ReconciliationSucceeded", Message: "Applied revision"},
			Applied: "main@sha1:" + baseSHA, Attempted: "main@sha1:" + baseSHA,
		},
	}
	if edit != nil {
		edit(&f)
	}
	m.put(f)
}

func (m factMap) cluster(name string, edit func(*fact.Fact)) {
	f := fact.Fact{Key: fact.ClusterKey(name), Since: since, Cluster: &fact.Cluster{
		Kinds: map[string]fact.Watch{"kustomization": {State: fact.WatchSynced, Since: since}},
	}}
	if edit != nil {
		edit(&f)
	}
	m.put(f)
	m.beat(name, fact.Heartbeat{})
}

func (m factMap) beat(cluster string, h fact.Heartbeat) {
	m.put(fact.Fact{Key: fact.HeartbeatKey(cluster), Since: since, Heartbeat: &h})
}

func healthy(names ...string) factMap {
	m := factMap{}
	m.cluster("prod", nil)
	for _, n := range names {
		m.flux("prod", n, nil)
	}
	return m
}

func snapshot(paths ...string) *pull.Snapshot {
	s := &pull.Snapshot{Pull: pull.Pull{
		Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Number: 12, Author: bob, State: pull.Open,
		Head: pull.Branch{Name: "cdi", SHA: headSHA}, Base: pull.Branch{Name: "main", SHA: baseSHA},
	}}
	for _, p := range paths {
		s.Files = append(s.Files, pull.File{Path: p, Change: pull.Modified})
	}
	return s
}

func load(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, problems := policy.Load(policy.Path, []byte("version: 1\n"+text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return p
}

func input(s *pull.Snapshot, p *policy.Policy, facts factMap) policy.Input {
	return policy.Input{
		Snapshot: s, Repository: p, Facts: facts, Clusters: []string{"prod"}, Now: now,
		Bots: []pull.Person{robot},
	}
}

const readyRule = `
preconditions:
  - name: config is Ready
    paths: ["clusters/**"]
    flux: {kustomization: flux-system/platform-config%s}
`

func TestFluxPrecondition(t *testing.T) {
	set := func(edit func(*fact.Flux)) func(factMap) {
		return func(m factMap) { m.flux("prod", "platform-config", func(f *fact.Fact) { edit(f.Flux) }) }
	}
	kind := func(w fact.Watch) func(factMap) {
		return func(m factMap) {
			m.cluster("prod", func(f *fact.Fact) { f.Cluster.Kinds = map[string]fact.Watch{"kustomization": w} })
		}
	}
	tests := []struct {
		name    string
		options string
		change  func(factMap)
		answers map[policy.Ask]policy.Answer
		want    policy.ResultState
		reason  string
	}{
		{name: "ready", want: policy.Met, reason: "Kustomization flux-system/platform-config on prod is Ready at cccccccccc"},
		{
			name: "failed", want: policy.Unmet,
			change: set(func(f *fact.Flux) {
				f.Ready = fact.Condition{Status: fact.False, Reason: "ReconciliationFailed", Message: "StorageProfile/longhorn dry-run failed:\n no matches for kind \"StorageProfile\""}
			}),
			reason: `Kustomization flux-system/platform-config on prod is not Ready at cccccccccc: ReconciliationFailed: StorageProfile/longhorn dry-run failed: no matches for kind "StorageProfile"`,
		},
		{
			name: "failed at a later revision", want: policy.Unmet,
			change: set(func(f *fact.Flux) {
				f.Ready, f.Attempted = fact.Condition{Status: fact.False, Reason: "BuildFailed"}, "main@sha1:"+nextSHA
			}),
			reason: "Kustomization flux-system/platform-config on prod is not Ready at cccccccccc (tried dddddddddd): BuildFailed",
		},
		{
			name: "failed before anything was applied", want: policy.Unmet,
			change: set(func(f *fact.Flux) {
				f.Ready, f.Applied = fact.Condition{Status: fact.False, Reason: "BuildFailed"}, ""
			}),
			reason: "Kustomization flux-system/platform-config on prod is not Ready (tried cccccccccc): BuildFailed",
		},
		{
			name: "ready with an old observed generation", want: policy.Unmet,
			change: set(func(f *fact.Flux) { f.ObservedGeneration = 2 }),
			reason: "Kustomization flux-system/platform-config on prod is not Ready: its latest change (generation 3) has not been taken up by the controller (at 2)",
		},
		{
			name: "suspended keeps its old Ready", want: policy.Unmet,
			change: set(func(f *fact.Flux) { f.Suspended = true }),
			reason: "Kustomization flux-system/platform-config on prod is suspended",
		},
		{
			name: "being deleted", want: policy.Unmet,
			change: set(func(f *fact.Flux) { f.Deleting = true }),
			reason: "Kustomization flux-system/platform-config on prod is being deleted",
		},
		{
			name: "no condition at all", want: policy.Unmet,
			change: set(func(f *fact.Flux) { f.Ready = fact.Condition{} }),
			reason: "Kustomization flux-system/platform-config on prod has not been reconciled yet",
		},
		{
			name: "progressing beyond the limit", want: policy.Unknown,
			change: set(func(f *fact.Flux) {
				f.Ready = fact.Condition{Status: fact.Unknown, Reason: "Progressing", Message: "Detecting drift"}
			}),
			reason: "Kustomization flux-system/platform-config on prod has been reconciling for too long to tell: Progressing: Detecting drift",
		},
		{
			name: "missing", want: policy.Unmet,
			change: func(m factMap) { delete(m, fact.Kube("prod", "Kustomization", "flux-system", "platform-config")) },
			reason: "Kustomization flux-system/platform-config does not exist on prod",
		},
		{
			name: "deleted", want: policy.Unmet,
			change: func(m factMap) {
				m.put(fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "platform-config"), Absent: true, Since: since})
			},
			reason: "Kustomization flux-system/platform-config does not exist on prod",
		},
		{
			name: "the same name in another namespace", want: policy.Unmet,
			change: func(m factMap) {
				k := fact.Kube("prod", "Kustomization", "flux-system", "platform-config")
				f := m[k]
				delete(m, k)
				f.Key.Namespace = "other"
				m.put(f)
			},
			reason: "Kustomization flux-system/platform-config does not exist on prod",
		},
		{
			name: "Flux is not installed", want: policy.Unknown, change: kind(fact.Watch{State: fact.WatchNotInstalled}),
			reason: "cluster prod has no Kustomization: its CustomResourceDefinition is not installed",
		},
		{
			name: "not listed yet", want: policy.Unknown, change: kind(fact.Watch{State: fact.WatchSyncing}),
			reason: "the list of Kustomization objects on prod has not arrived yet",
		},
		{
			name: "the watch fails", want: policy.Unknown, change: kind(fact.Watch{State: fact.WatchFailing, Since: since, Message: "forbidden"}),
			reason: "Kustomization objects on prod cannot be watched since 2026-09-07 02:44 UTC: forbidden",
		},
		{
			name: "the kind is not watched", want: policy.Unknown,
			change: func(m factMap) { m.cluster("prod", func(f *fact.Fact) { f.Cluster.Kinds = nil }) },
			reason: "signalbox does not watch Kustomization on prod",
		},
		{
			name: "the cluster fell silent", want: policy.Unknown,
			change: func(m factMap) { m.beat("prod", fact.Heartbeat{Silent: true, LastHeard: since}) },
			reason: "nothing has been heard from cluster prod since 2026-09-07 02:44 UTC",
		},
		{
			name: "the cluster was never heard from", want: policy.Unknown,
			change: func(m factMap) { m.beat("prod", fact.Heartbeat{Silent: true}) },
			reason: "cluster prod has not been heard from yet",
		},
		{
			name: "no heartbeat at all", want: policy.Unknown,
			change: func(m factMap) { delete(m, fact.HeartbeatKey("prod")) },
			reason: "cluster prod has not been heard from yet",
		},
		{
			name: "nothing said of its kinds", want: policy.Unknown,
			change: func(m factMap) { delete(m, fact.ClusterKey("prod")) },
			reason: "it is not known yet what cluster prod has",
		},
		{name: "contains the base, the same commit", options: ", contains: base", want: policy.Met, reason: "Kustomization flux-system/platform-config on prod is Ready at cccccccccc"},
		{
			name: "contains the base, a later commit", options: ", contains: base", want: policy.Met,
			change:  set(func(f *fact.Flux) { f.Applied = "main/" + nextSHA }),
			answers: map[policy.Ask]policy.Answer{{Applied: nextSHA, Needed: baseSHA}: precondition.Contained},
			reason:  "Kustomization flux-system/platform-config on prod is Ready at dddddddddd",
		},
		{
			name: "does not contain the base", options: ", contains: base", want: policy.Unmet,
			change:  set(func(f *fact.Flux) { f.Applied = "main@sha1:" + oldSHA }),
			answers: map[policy.Ask]policy.Answer{{Applied: oldSHA, Needed: baseSHA}: precondition.NotContained},
			reason:  "Kustomization flux-system/platform-config on prod has applied bbbbbbbbbb, which does not contain the tip cccccccccc of main yet",
		},
		{
			name: "ancestry is not known", options: ", contains: base", want: policy.Unknown,
			change: set(func(f *fact.Flux) { f.Applied = "main@sha1:" + oldSHA }),
			reason: "Kustomization flux-system/platform-config on prod has applied bbbbbbbbbb, and it is not known whether that contains cccccccccc of main",
		},
		{
			name: "a commit of another repository", options: ", contains: base", want: policy.Unmet,
			change:  set(func(f *fact.Flux) { f.Applied = "main@sha1:" + oldSHA }),
			answers: map[policy.Ask]policy.Answer{{Applied: oldSHA, Needed: baseSHA}: precondition.Foreign},
			reason:  "Kustomization flux-system/platform-config on prod has applied bbbbbbbbbb, which is no commit of this repository",
		},
		{
			name: "another branch, though it contains the base", options: ", contains: base", want: policy.Unmet,
			change:  set(func(f *fact.Flux) { f.Applied = "staging@sha1:" + nextSHA }),
			answers: map[policy.Ask]policy.Answer{{Applied: nextSHA, Needed: baseSHA}: precondition.Contained},
			reason:  "Kustomization flux-system/platform-config on prod follows staging, not main",
		},
		{
			name: "an OCI artifact that says its commit", options: ", contains: base", want: policy.Met,
			change: set(func(f *fact.Flux) {
				f.Applied, f.Origin = "latest@sha256:"+strings.Repeat("e", 64), "main@sha1:"+baseSHA
			}),
			reason: "Kustomization flux-system/platform-config on prod is Ready",
		},
		{
			name: "a revision without a commit", options: ", contains: base", want: policy.Unknown,
			change: set(func(f *fact.Flux) { f.Applied = "6.3.1" }),
			reason: "Kustomization flux-system/platform-config on prod has applied 6.3.1, which names no commit",
		},
		{name: "settled", options: ", settle: 30m", want: policy.Met, reason: "Kustomization flux-system/platform-config on prod is Ready at cccccccccc"},
		{
			name: "not settled", options: ", settle: 31m", want: policy.Unmet,
			reason: "Kustomization flux-system/platform-config on prod has been Ready only since 2026-09-07 02:44 UTC; it must stay so until 2026-09-07 03:15 UTC",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			facts := healthy("platform-config")
			if tt.change != nil {
				tt.change(facts)
			}
			in := input(snapshot("clusters/prod/a.yaml"), load(t, fmt.Sprintf(readyRule, tt.options)), facts)
			in.Answers = tt.answers
			v := policy.Evaluate(in)
			if got := v.Results[0]; got.State != tt.want || got.Reason != tt.reason {
				t.Errorf("got %s: %s\nwant %s: %s", got.State, got.Reason, tt.want, tt.reason)
			}
			if wantGate := map[bool]policy.GateState{true: policy.Clear, false: policy.Waiting}[tt.want == policy.Met]; v.Preconditions.State != wantGate {
				t.Errorf("gate is %s, want %s", v.Preconditions.State, wantGate)
			}
		})
	}
}

func TestVerdictSaysWhatItNeeds(t *testing.T) {
	facts := healthy("platform-config", "other")
	facts.flux("prod", "platform-config", func(f *fact.Fact) { f.Flux.Applied = "main@sha1:" + oldSHA })
	in := input(snapshot("clusters/prod/a.yaml"), load(t, fmt.Sprintf(readyRule, ", contains: base, settle: 31m")), facts)

	v := policy.Evaluate(in)
	ask := policy.Ask{Applied: oldSHA, Needed: baseSHA}
	if diff := cmp.Diff([]policy.Ask{ask}, v.Asks); diff != "" {
		t.Errorf("asks (-want +got):\n%s", diff)
	}
	in.Answers = map[policy.Ask]policy.Answer{ask: precondition.Contained}
	v = policy.Evaluate(in)
	wantReads := []fact.Key{fact.HeartbeatKey("prod"), fact.ClusterKey("prod"), fact.Kube("prod", "Kustomization", "flux-system", "platform-config"), fact.ProtectionKey(7, "main")}
	if diff := cmp.Diff(wantReads, v.Reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	if want := since.Add(31 * time.Minute); !v.LookAgain.Equal(want) {
		t.Errorf("look again at %s, want %s", v.LookAgain, want)
	}
	if len(v.Asks) > 0 {
		t.Errorf("answered questions are asked again: %v", v.Asks)
	}
}

func TestScope(t *testing.T) {
	const rule = `
preconditions:
  - name: a
    %s
    flux: {kustomization: flux-system/platform-config}
`
	tests := []struct {
		name, scope string
		change      func(*pull.Snapshot)
		files       []pull.File
		applies     bool
	}{
		{"no scope", "", nil, nil, true},
		{"no file matches", `paths: ["apps/**"]`, nil, []pull.File{{Path: "clusters/a"}}, false},
		{"one file of many, last", `paths: ["clusters/**"]`, nil, append(manyFiles(119), pull.File{Path: "clusters/a", Change: pull.Modified}), true},
		{"renamed out", `paths: ["clusters/**"]`, nil, []pull.File{{Path: "old/a", Previous: "clusters/a", Change: pull.Renamed}}, true},
		{"renamed in", `paths: ["clusters/**"]`, nil, []pull.File{{Path: "clusters/a", Previous: "old/a", Change: pull.Renamed}}, true},
		{"deleted", `paths: ["clusters/**"]`, nil, []pull.File{{Path: "clusters/a", Change: pull.Deleted}}, true},
		{"mode or binary only", `paths: ["clusters/**"]`, nil, []pull.File{{Path: "clusters/a", Change: pull.Unchanged}}, true},
		{"one level", `paths: ["clusters/*"]`, nil, []pull.File{{Path: "clusters/x/a"}}, false},
		{"base matches", `base: [main, "release/*"]`, nil, nil, true},
		{"base differs", `base: ["release/*"]`, nil, nil, false},
		{"label", `labels: ["risk/*"]`, func(s *pull.Snapshot) { s.Pull.Labels = []string{"a", "risk/high"} }, nil, true},
		{"no label", `labels: ["risk/*"]`, nil, nil, false},
		{"author in another case", `author: [BOB]`, nil, nil, true},
		{"another author", `author: [alice]`, nil, nil, false},
		{"unless author", `unless: {author: [bob]}`, nil, nil, false},
		{"unless another author", `unless: {author: [alice]}`, nil, nil, true},
		{"unless all files", `unless: {paths: ["docs/**"]}`, nil, []pull.File{{Path: "docs/a"}}, false},
		{"unless some files", `unless: {paths: ["docs/**"]}`, nil, []pull.File{{Path: "docs/a"}, {Path: "b"}}, true},
		{"unless, but moved out of the exempted folder", `unless: {paths: ["docs/**"]}`, nil, []pull.File{{Path: "docs/a", Previous: "b", Change: pull.Renamed}}, true},
		{"unless files and author", `unless: {paths: ["docs/**"], author: [alice]}`, nil, []pull.File{{Path: "docs/a"}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := snapshot("clusters/a")
			if tt.files != nil {
				s.Files = tt.files
			}
			if tt.change != nil {
				tt.change(s)
			}
			text := strings.Replace(fmt.Sprintf(rule, tt.scope), "    \n", "", 1)
			v := policy.Evaluate(input(s, load(t, text), healthy("platform-config")))
			if got := v.Results[0].State != policy.NotApplicable; got != tt.applies {
				t.Errorf("applies = %v, want %v", got, tt.applies)
			}
		})
	}
}

func manyFiles(n int) []pull.File {
	files := make([]pull.File, n)
	for i := range files {
		files[i] = pull.File{Path: fmt.Sprintf("apps/app-%d/deployment.yaml", i), Change: pull.Modified}
	}
	return files
}

func TestTargets(t *testing.T) {
	const text = `
targets:
  - {cluster: prod, paths: ["clusters/prod/**", "clusters/base/**"]}
  - {cluster: dev, paths: ["clusters/dev/**", "clusters/base/**"]}
  - {cluster: moon, paths: ["clusters/moon/**"]}
preconditions:
  - name: ready
    flux: {kustomization: flux-system/platform-config}
`
	facts := healthy("platform-config")
	facts.cluster("dev", nil)
	facts.flux("dev", "platform-config", func(f *fact.Fact) { f.Flux.Suspended = true })
	tests := []struct {
		name     string
		files    []pull.File
		clusters []string
		want     policy.ResultState
	}{
		{"prod only", []pull.File{{Path: "clusters/prod/a"}}, []string{"prod"}, policy.Met},
		{"dev only", []pull.File{{Path: "clusters/dev/a"}}, []string{"dev"}, policy.Unmet},
		{"both by one path", []pull.File{{Path: "clusters/base/a"}}, []string{"dev", "prod"}, policy.Unmet},
		{"a path that no target names reaches all", []pull.File{{Path: "clusters/prod/a"}, {Path: "apps/a"}}, []string{"dev", "prod"}, policy.Unmet},
		{"moved from where no target is", []pull.File{{Path: "clusters/prod/a", Previous: "apps/a"}}, []string{"dev", "prod"}, policy.Unmet},
		{"a cluster nobody watches", []pull.File{{Path: "clusters/moon/a"}}, []string{"moon"}, policy.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := snapshot()
			s.Files = tt.files
			in := input(s, load(t, text), facts)
			in.Clusters = []string{"dev", "prod"}
			r := policy.Evaluate(in).Results[0]
			var clusters []string
			for _, c := range r.Checks {
				clusters = append(clusters, c.Cluster)
			}
			if diff := cmp.Diff(tt.clusters, clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if r.State != tt.want {
				t.Errorf("state = %s, want %s", r.State, tt.want)
			}
		})
	}
}

func TestStatusSaysTheControllersWords(t *testing.T) {
	facts := healthy("platform-config")
	facts.flux("prod", "platform-config", func(f *fact.Fact) {
		f.Flux.Ready = fact.Condition{Status: fact.False, Reason: "ReconciliationFailed", Message: "StorageProfile/longhorn dry-run failed:\n no matches for kind"}
	})
	v := policy.Evaluate(input(snapshot("clusters/a"), load(t, fmt.Sprintf(readyRule, "")), facts))
	want := policy.Gate{State: policy.Waiting, Reason: "platform-config on prod is not Ready: StorageProfile/longhorn dry-run failed: no matches for kind"}
	if v.Preconditions != want {
		t.Errorf("gate is %+v, want %+v", v.Preconditions, want)
	}
}

func TestProblemsDecide(t *testing.T) {
	in := input(snapshot("clusters/a"), load(t, fmt.Sprintf(readyRule, "")), healthy("platform-config"))
	in.Problems = []policy.Problem{
		{State: policy.Blocked, Text: "the policy on main is not valid\n.gitea/signalbox.yaml:3: bad"},
		{State: policy.Undecided, Text: "Gitea cannot be reached"},
	}
	v := policy.Evaluate(in)
	want := policy.Gate{State: policy.Undecided, Reason: "Gitea cannot be reached"}
	if v.Preconditions != want || v.Approval != want {
		t.Errorf("gates are %+v and %+v, want %+v", v.Preconditions, v.Approval, want)
	}
}

func TestGapsAreShownAndDecideNothing(t *testing.T) {
	facts := healthy()
	gap := []string{"nothing protects the branch"}
	facts.put(fact.Fact{Key: fact.ProtectionKey(7, "main"), Protection: &fact.Protection{Gaps: gap}})
	facts.put(fact.Fact{Key: fact.ProtectionKey(8, "main"), Protection: &fact.Protection{Gaps: []string{"of another repository"}}})
	v := policy.Evaluate(input(snapshot("docs/a"), nil, facts))
	if diff := cmp.Diff(gap, v.Gaps); diff != "" || v.State() != policy.Clear {
		t.Errorf("verdict is %s, gaps (-want +got):\n%s", v.State(), diff)
	}
}

func TestNoPolicyIsClear(t *testing.T) {
	v := policy.Evaluate(input(snapshot("clusters/a"), nil, factMap{}))
	if v.State() != policy.Clear || v.Preconditions.Reason != "no precondition is about this change" || v.Approval.Reason != "this change needs no approval" {
		t.Errorf("verdict is %+v", v)
	}
}

func TestOperatorAndRepositoryBothHold(t *testing.T) {
	in := input(snapshot("clusters/a"), load(t, fmt.Sprintf(readyRule, "")), healthy("platform-config"))
	in.Operator = load(t, `
approvals:
  - {name: operator, from: {users: [alice]}}
`)
	v := policy.Evaluate(in)
	if v.Preconditions.State != policy.Clear || v.Approval.State != policy.Waiting {
		t.Errorf("gates are %s and %s", v.Preconditions.State, v.Approval.State)
	}
}

// bench is the size of the bound: 10 preconditions, 5 approval rules, 300 files.
func benchInput(b *testing.B, held int) policy.Input {
	var text strings.Builder
	text.WriteString("targets:\n  - {cluster: prod, paths: [\"clusters/**\", \"apps/**\", \"platform*/**\"]}\npreconditions:\n")
	facts := healthy()
	for i := range 10 {
		fmt.Fprintf(&text, "  - {name: p%d, paths: [\"clusters/**\", \"platform-%d/**\"], flux: {kustomization: flux-system/k%d, contains: base, settle: 10m}}\n", i, i, i)
	}
	text.WriteString("approvals:\n")
	for i := range 5 {
		fmt.Fprintf(&text, "  - {name: a%d, paths: [\"clusters/**\", \"team-%d/**\"], from: {users: [alice, carol]}, survive: identical-diff}\n", i, i)
	}
	for i := range held {
		facts.flux("prod", fmt.Sprintf("k%d", i), nil)
	}
	s := snapshot()
	s.Files = append(manyFiles(299), pull.File{Path: "clusters/prod/a.yaml", Change: pull.Modified})
	s.Reviews = []pull.Review{{ID: 1, Author: alice, State: pull.Approved, Commit: headSHA}}
	s.Timeline = []pull.Moment{{Kind: pull.MomentReview, ReviewID: 1}}
	return input(s, load(b, text.String()), facts)
}

func BenchmarkEvaluate(b *testing.B) {
	for _, held := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("facts=%d", held), func(b *testing.B) {
			in := benchInput(b, held)
			if v := policy.Evaluate(in); v.State() != policy.Clear {
				b.Fatalf("the benchmark's verdict is %s: %s, %s", v.State(), v.Preconditions.Reason, v.Approval.Reason)
			}
			for b.Loop() {
				policy.Evaluate(in)
			}
		})
	}
}
