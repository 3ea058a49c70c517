package digest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

func TestPulls(t *testing.T) {
	long, lately := now.Add(-80*time.Hour), now.Add(-time.Hour)
	w := newWorld()
	draft, observed, newly := standing(4, policy.Waiting, long), standing(5, policy.Blocked, long), standing(6, policy.Waiting, long)
	draft.Pull.Draft, observed.Observed, newly.EvaluatedAt, newly.Verdict = true, true, time.Time{}, policy.Verdict{}
	again := standing(8, policy.Waiting, lately)
	again.History = append([]policy.Change{
		{At: long.Add(-time.Hour), Preconditions: policy.Gate{State: policy.Waiting}}, {At: long, Preconditions: policy.Gate{State: policy.Clear}, Approval: policy.Gate{State: policy.Clear}},
	}, again.History...)
	w.Pulls = []policy.Standing{
		standing(3, policy.Undecided, lately), standing(1, policy.Clear, long), draft, observed, newly, standing(2, policy.Waiting, lately), again, standing(7, policy.Blocked, long),
	}
	elsewhere := standing(1, policy.Undecided, long)
	elsewhere.Pull.Repo.ID = 9
	w.Pulls = append(w.Pulls, elsewhere)
	res := w.find()
	if diff := cmp.Diff([]string{
		"unclear gate/repo/7/pull/3/undecided: ops/home-gitops#3 a change cannot be decided: the reason",
		"notable gate/repo/7/pull/7/waits: ops/home-gitops#7 a change is blocked: the reason",
	}, lines(res.Findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []digest.Summary{{Repo: 7, Text: "8 open pull requests of ops/home-gitops: 1 clear, 3 waiting, 2 blocked, 1 undecided and 1 not looked at yet", Pulls: 8, Clear: 1}}
	if diff := cmp.Diff(want, res.Summaries[digest.Gate]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if res.Counts.Pulls != 8 || res.Counts.Clear != 1 {
		t.Errorf("counts %+v", res.Counts)
	}
}

func TestManyPulls(t *testing.T) {
	w := newWorld()
	for i := range 30 {
		w.Pulls = append(w.Pulls, standing(int64(i)+1, policy.Waiting, now.Add(-time.Duration(100+i)*time.Hour)))
	}
	res := w.find()
	got := lines(res.Findings)
	if len(got) != 6 || res.Findings[0].Subject != "ops/home-gitops#30 a change" {
		t.Errorf("%d findings: %q", len(got), got)
	}
	has(t, got, "notable gate/repo/7/pulls/waits: 25 pull requests more of ops/home-gitops the same, for less long")
}

func entry(id string, kind decision.Kind, number int64) decision.Entry {
	return decision.Entry{
		ID: id, Kind: kind, By: pull.Person{ID: 1, Login: "alice"}, Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Number: number,
		At: since, Reason: "etcd is restored", Passes: []string{"apps are Ready"},
	}
}

func TestDecisions(t *testing.T) {
	w := newWorld()
	w.DeadLetters = 2
	p := standing(1, policy.Waiting, since)
	override := entry("comment/5/0", decision.Override, 1)
	override.Until = now.Add(time.Hour)
	ended := override
	ended.ID, ended.Until = "comment/6/0", now
	p.Verdict.Overrides = []decision.Entry{override, ended}
	p.Verdict.Gaps = []string{"anybody may push"}
	w.Pulls = []policy.Standing{p}
	freeze, lifted, unfreeze := entry("comment/2/0", decision.Freeze, 9), entry("comment/3/0", decision.Freeze, 9), entry("comment/4/0", decision.Unfreeze, 9)
	freeze.Until, lifted.Until, unfreeze.Lifts = now.Add(time.Hour), now.Add(time.Hour), []string{"comment/3/0"}
	unheld := entry("comment/8/0", decision.Unhold, 1)
	unheld.Lifts = []string{"comment/7/0"}
	used, older := entry("comment/9/0", decision.Override, 12), entry("comment/10/0", decision.Override, 13)
	older.At = since.Add(-2 * time.Hour)
	w.Decisions = decision.Ledger{
		entry("comment/1/0", decision.Hold, 1), freeze, lifted, unfreeze, override, ended, entry("comment/7/0", decision.Hold, 1), unheld, used, older,
	}
	w.put(fact.Fact{Key: fact.ProtectionKey(7, "release"), Protection: &fact.Protection{Gaps: []string{"a", "b"}}})
	for _, told := range []bool{true, false} {
		w.Since = time.Time{}
		if told {
			w.Since = since.Add(-time.Hour)
		}
		want := []string{
			"broken gate/dead-letters: signalbox 2 messages could not be handled; they wait as dead letters",
			"broken gate/repo/7/protection/release: Branch release of ops/home-gitops can be gone round: a; b",
			"broken gate/repo/7/protection/main: Branch main of ops/home-gitops can be gone round: anybody may push",
			"notable gate/repo/7/decision/comment%2f2%2f0: ops/home-gitops is frozen by alice: etcd is restored (until 2026-09-07 04:14 UTC)",
			"notable gate/repo/7/decision/comment%2f1%2f0: ops/home-gitops#1 a change is held by alice: etcd is restored",
			"notable gate/repo/7/decision/comment%2f5%2f0: ops/home-gitops#1 a change was let past apps are Ready by alice: etcd is restored (until 2026-09-07 04:14 UTC)",
		}
		if told {
			want = append(want,
				"notable gate/repo/7/decision/comment%2f6%2f0: ops/home-gitops#1 was let past apps are Ready by alice: etcd is restored",
				"notable gate/repo/7/decision/comment%2f9%2f0: ops/home-gitops#12 was let past apps are Ready by alice: etcd is restored")
		}
		res := w.find()
		if diff := cmp.Diff(want, lines(res.Findings)); diff != "" {
			t.Errorf("told %t: (-want +got):\n%s", told, diff)
		}
		if n := len(slices.DeleteFunc(res.Findings, func(f digest.Finding) bool { return !f.Once })); (n == 2) != told {
			t.Errorf("%d happened once", n)
		}
	}
	// The order of what is handed in decides nothing.
	q := standing(2, policy.Waiting, since)
	q.Verdict.Overrides = []decision.Entry{override}
	w.Pulls = []policy.Standing{q, p}
	a := w.find()
	w.Pulls = []policy.Standing{p, q}
	if diff := cmp.Diff(a, w.find()); diff != "" {
		t.Errorf("the order of pull requests makes a difference:\n%s", diff)
	}
}

func TestSections(t *testing.T) {
	w := newWorld("prod")
	w.flux("Kustomization", "apps", failing("x", "y"))
	w.DeadLetters = 1
	w.Pulls = []policy.Standing{standing(1, policy.Clear, since)}
	w.put(fact.Fact{Key: fact.ActionsKey(7), Actions: &fact.Actions{}})
	w.put(fact.Fact{Key: fact.RunsKey(7, "ci.yaml", "refs/heads/main"), Runs: &fact.Runs{}})
	for _, s := range []digest.Section{digest.Flux, digest.Gate, digest.Pipelines} {
		w.Sections = []digest.Section{s}
		res := w.find()
		if len(res.Findings) != 1 || res.Findings[0].Section != s {
			t.Errorf("%s: %q", s, lines(res.Findings))
		}
		for of := range res.Summaries {
			if of != s {
				t.Errorf("%s: a summary of %s", s, of)
			}
		}
		if (res.Counts.Pulls > 0) != (s == digest.Gate) {
			t.Errorf("%s: counts %+v", s, res.Counts)
		}
	}
}

// BenchmarkFind is one look of an alert at a large installation.
func BenchmarkFind(b *testing.B) {
	w := newWorld("prod", "dev")
	w.flux("GitRepository", "flux-system", nil)
	for i := range 2000 {
		change := func(*fact.Fact) {}
		switch {
		case i%20 == 1:
			change = failing("BuildFailed", "kustomize build failed: accumulating resources: no such file")
		case i%20 > 1 && i%20 < 5:
			change = waitsFor(fmt.Sprintf("apps-%04d", i-1))
		}
		w.flux("Kustomization", fmt.Sprintf("apps-%04d", i), change)
	}
	for i := range 5000 {
		s := standing(int64(i)+1, []policy.GateState{policy.Clear, policy.Waiting, policy.Blocked, policy.Undecided}[i%4], now.Add(-time.Duration(i)*time.Hour))
		for range 50 {
			s.History = append(s.History, s.History[0])
		}
		w.Pulls = append(w.Pulls, s)
		kind := decision.Approve
		if i%10 == 0 {
			kind = decision.Hold
		}
		w.Decisions = append(w.Decisions, entry(fmt.Sprint("comment/", i), kind, int64(i)+1))
	}
	w.Checks, w.Kured = digest.DefaultChecks(), digest.DefaultKured()
	w.Facts = byKind(w)
	b.ReportAllocs()
	for b.Loop() {
		w.find()
	}
}

// kinds are facts as the bus has them, by kind.
type kinds struct {
	*world
	of map[string][]fact.Fact
}

func byKind(w *world) kinds {
	k := kinds{w, map[string][]fact.Fact{}}
	for _, f := range w.facts {
		k.of[f.Key.Scope+"/"+f.Key.Kind] = w.Select(fact.SourceKube, f.Key.Scope, f.Key.Kind)
	}
	return k
}

func (k kinds) Select(source, scope, kind string) []fact.Fact {
	if source == fact.SourceKube {
		return slices.Clone(k.of[scope+"/"+kind])
	}
	return k.world.Select(source, scope, kind)
}
