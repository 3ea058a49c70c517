package digest_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

const (
	shaA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	shaB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// now is an hour after since.
var (
	now   = time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC)
	since = now.Add(-time.Hour)
)

// world is what a digest is made of: clusters that are heard from and have every kind
// of Flux, and one repository.
type world struct {
	digest.Input
	facts map[fact.Key]fact.Fact
}

func newWorld(clusters ...string) *world {
	w := &world{facts: map[fact.Key]fact.Fact{}}
	w.Input = digest.Input{
		Facts: w, Clusters: clusters, Now: now,
		Repositories: []digest.Repository{{Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Main: "main"}},
	}
	for _, c := range clusters {
		w.put(fact.Fact{Key: fact.HeartbeatKey(c), Heartbeat: &fact.Heartbeat{}})
		kinds := map[string]fact.Watch{}
		for _, k := range []string{"kustomization", "helmrelease", "gitrepository", "ocirepository", "helmrepository", "helmchart", "bucket"} {
			kinds[k] = fact.Watch{State: fact.WatchSynced}
		}
		w.put(fact.Fact{Key: fact.ClusterKey(c), Cluster: &fact.Cluster{Kinds: kinds}})
	}
	return w
}

func (w *world) put(f fact.Fact) {
	if f.Since.IsZero() {
		f.Since = since
	}
	if f.SeenAt.IsZero() {
		f.SeenAt = since
	}
	w.facts[f.Key] = f
}

// Lookup implements [digest.Facts].
func (w *world) Lookup(k fact.Key) (fact.Fact, bool) {
	f, ok := w.facts[k]
	return f, ok
}

// Select implements [digest.Facts].
func (w *world) Select(source, scope, kind string) []fact.Fact {
	var out []fact.Fact
	for k, f := range w.facts {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}

// flux puts an object of Flux that is ready, changed by f.
func (w *world) flux(kind, name string, change func(*fact.Fact)) {
	s := &fact.Flux{Generation: 1, ObservedGeneration: 1, Ready: fact.Condition{Status: fact.True, Reason: "ReconciliationSucceeded"}, Applied: "main@sha1:" + shaA}
	if kind == "Kustomization" {
		s.Source = &fact.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
	}
	f := fact.Fact{Key: fact.Kube("prod", kind, "flux-system", name), Flux: s}
	if change != nil {
		change(&f)
	}
	w.put(f)
}

// failing makes an object fail.
func failing(reason, message string) func(*fact.Fact) {
	return func(f *fact.Fact) {
		f.Flux.Ready = fact.Condition{Status: fact.False, Reason: reason, Message: message}
	}
}

// waitsFor makes a Kustomization wait for another.
func waitsFor(name string) func(*fact.Fact) {
	return func(f *fact.Fact) {
		failing("DependencyNotReady", "dependency 'flux-system/"+name+"' is not ready")(f)
		f.Flux.DependsOn = []fact.Ref{{Namespace: "flux-system", Name: name}}
	}
}

func (w *world) find() digest.Result { return digest.Find(w.Input) }

// lines are findings in short: what a test compares.
func lines(findings []digest.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Severity)+" "+f.ID+": "+f.Subject+" "+f.Text)
		for _, u := range lines(f.Under) {
			out = append(out, "  "+u)
		}
	}
	return out
}

func standing(number int64, state policy.GateState, at time.Time) policy.Standing {
	gate := policy.Gate{State: state, Reason: "the reason"}
	return policy.Standing{
		Pull:        pull.Pull{Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Number: number, Title: "a change", URL: "https://gitea.example.org/ops/home-gitops/pulls/1", Base: pull.Branch{Name: "main"}},
		Verdict:     policy.Verdict{Preconditions: gate, Approval: policy.Gate{State: policy.Clear}},
		EvaluatedAt: now,
		History:     []policy.Change{{At: at, Preconditions: gate, Approval: policy.Gate{State: policy.Clear}}},
	}
}

func has(t *testing.T, all []string, want string) {
	t.Helper()
	if !slices.Contains(all, want) {
		t.Errorf("%q is not among %q", want, all)
	}
}
