package api_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"signalbox/internal/api"
	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/overview"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

const (
	token      = "5f2c8f2b6f2a4d1c9b7e3a60d1e4c5b8a9f0e1d2c3b4a5968778695a4b3c2d1e"
	otherToken = "another-token-that-has-also-enough-characters"
	headSHA    = "5c0ffee51ab1e5c0ffee51ab1e5c0ffee51ab1e5"
	baseSHA    = "f21e89d9d20c4f2b9a6d1e7e5a5f4c3b2a190817"
)

var (
	now   = time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC)
	since = now.Add(-90 * time.Minute)
	alice = pull.Person{ID: 1, Login: "alice"}
	bob   = pull.Person{ID: 2, Login: "bob"}
	carol = pull.Person{ID: 3, Login: "carol"}
	home  = pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
	apps  = pull.Repo{ID: 9, Owner: "ops", Name: "apps"}
)

// world is every source of the API in memory.
type world struct {
	pulls    map[pull.Ref]policy.Standing
	repos    []pull.Repo
	facts    map[fact.Key]fact.Fact
	ledger   decision.Ledger
	reports  []digest.Report
	now      digest.Result
	samples  []digest.Sample
	health   overview.Health
	dead     []overview.DeadLetter
	deadErr  error
	clusters []string
	// onHealth is called by Health, if it is set.
	onHealth func(context.Context)
}

// source hands a world out as what the API needs; Health is also the name of a method.
type source struct{ *world }

func (w source) All() iter.Seq[policy.Standing] {
	return func(yield func(policy.Standing) bool) {
		for _, st := range w.pulls {
			if !yield(st) {
				return
			}
		}
	}
}

func (w source) Get(ref pull.Ref) (policy.Standing, bool) {
	st, ok := w.pulls[ref]
	return st, ok
}

func (w source) Repositories() []pull.Repo { return w.repos }

func (w source) Lookup(k fact.Key) (fact.Fact, bool) {
	f, ok := w.facts[k]
	return f, ok
}

func (w source) Select(from, scope, kind string) []fact.Fact {
	keys := map[string]fact.Key{}
	for k := range w.facts {
		if k.Source == from && k.Scope == scope && k.Kind == kind {
			keys[k.String()] = k
		}
	}
	var out []fact.Fact
	for _, s := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, w.facts[keys[s]])
	}
	return out
}

func (w source) Reports() []digest.Report { return w.reports }
func (w source) Now() digest.Result       { return w.now }
func (w source) Trend() []digest.Sample   { return w.samples }

func (w source) Health(ctx context.Context) overview.Health {
	if w.onHealth != nil {
		w.onHealth(ctx)
	}
	return w.health
}

func (w source) DeadLetters(_ context.Context, limit int) ([]overview.DeadLetter, int, error) {
	return w.dead[:min(limit, len(w.dead))], len(w.dead), w.deadErr
}

// ledgerOf has a method of the same name with another result.
type ledgerOf struct{ *world }

func (l ledgerOf) All() decision.Ledger { return l.ledger }

// config is that of an API over a world.
func (w *world) config() api.Config {
	return api.Config{
		Tokens:   []secret.Value{secret.New(token), secret.New(otherToken)},
		URL:      &url.URL{Scheme: "https", Host: "signalbox.example.org", Path: "/"},
		Clusters: w.clusters, Pulls: source{w}, Facts: source{w}, Decisions: ledgerOf{w}, Digests: source{w}, Health: source{w},
		Version: "0.5.0", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}
}

func (w *world) handler(t testing.TB) http.Handler {
	t.Helper()
	h, err := api.New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get asks with the token.
func get(t testing.TB, h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const homePolicy = `version: 1
preconditions:
  - name: platform-config is Ready
    flux: {kustomization: flux-system/platform-config, contains: base}
  - name: outside the reboot window
    window: {deny: ["03:00-06:00"], timezone: UTC}
approvals:
  - {name: platform owners, from: {users: [alice, carol]}}
override: {from: {users: [alice, carol]}, ttl: 2h}
merge: {enabled: true}
`

const appsPolicy = `version: 1
preconditions:
  - name: apps is Ready
    flux: {kustomization: flux-system/apps}
approvals:
  - {name: owners, from: {users: [alice, carol]}}
`

// theWorld has two repositories, a cluster that is heard from and one that is silent.
func theWorld(t testing.TB) *world {
	t.Helper()
	w := &world{repos: []pull.Repo{apps, home}, clusters: []string{"prod", "staging"}, facts: theFacts()}
	w.ledger = theLedger()
	w.pulls = map[pull.Ref]policy.Standing{}
	w.evaluate(t, home, 12, "Profile the storage", homePolicy, []pull.File{
		{Path: "platform-config/profile.yaml", Change: pull.Modified},
		{Path: "platform-config/longhorn/values.yaml", Previous: "longhorn/values.yaml", Change: pull.Renamed},
	})
	w.evaluate(t, apps, 3, "Update dependency left-pad to v1.3.0", appsPolicy, []pull.File{{Path: "apps/left-pad.yaml", Change: pull.Modified}})
	w.pulls[pull.Ref{RepoID: apps.ID, Number: 5}] = policy.Standing{Pull: thePull(apps, 5, "Add a dashboard")}
	theDigests(w)
	w.health = overview.Health{
		Started: now.Add(-26 * time.Hour),
		Parts: []overview.Part{
			{Name: "bus", State: overview.OK, Since: now.Add(-26 * time.Hour)},
			{Name: "cluster staging", State: overview.Unknown, Detail: "nothing has been heard from it", Since: since},
		},
		Lag: []overview.Lag{{Consumer: "events", Waiting: 2, InHand: 1, Again: 1}},
	}
	w.dead = []overview.DeadLetter{{
		ID: 4, At: since, Stream: "EVENTS", Subject: "events.gitea.7.12", Consumer: "events", Reason: "decode event: unexpected end of JSON input", Deliveries: 1,
	}}
	return w
}

func theFacts() map[fact.Key]fact.Fact {
	facts := map[fact.Key]fact.Fact{}
	add := func(f fact.Fact) {
		f.Since, f.SeenAt = since, now.Add(-time.Minute)
		facts[f.Key] = f
	}
	watches := map[string]fact.Watch{}
	for _, kind := range []string{"kustomization", "helmrelease", "gitrepository", "helmrepository"} {
		watches[kind] = fact.Watch{State: fact.WatchSynced, Since: now.Add(-26 * time.Hour)}
	}
	watches["bucket"] = fact.Watch{State: fact.WatchNotInstalled, Since: now.Add(-26 * time.Hour)}
	watches["ocirepository"] = fact.Watch{State: fact.WatchNotInstalled, Since: now.Add(-26 * time.Hour)}
	watches["helmchart"] = fact.Watch{State: fact.WatchFailing, Since: since, Message: "missing right: watch helmcharts.source.toolkit.fluxcd.io"}
	add(fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{}})
	add(fact.Fact{Key: fact.ClusterKey("prod"), Cluster: &fact.Cluster{Kinds: watches}})
	add(fact.Fact{Key: fact.HeartbeatKey("staging"), Heartbeat: &fact.Heartbeat{Silent: true, LastHeard: since}})
	add(fact.Fact{Key: fact.ClusterKey("staging"), Cluster: &fact.Cluster{Kinds: watches}})
	flux := func(cluster, kind, name string, change func(*fact.Flux)) {
		o := &fact.Flux{
			Generation: 3, ObservedGeneration: 3, Applied: "main@sha1:" + baseSHA, Attempted: "main@sha1:" + baseSHA,
			Ready: fact.Condition{Status: fact.True, Reason: "ReconciliationSucceeded", Message: "Applied revision: main@sha1:" + baseSHA},
		}
		if kind == "Kustomization" {
			o.Path, o.Source = "./"+name, &fact.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
		}
		if change != nil {
			change(o)
		}
		add(fact.Fact{Key: fact.Kube(cluster, kind, "flux-system", name), Flux: o})
	}
	flux("prod", "GitRepository", "flux-system", nil)
	flux("prod", "Kustomization", "apps", func(o *fact.Flux) { o.DependsOn = []fact.Ref{{Namespace: "flux-system", Name: "platform-config"}} })
	flux("prod", "Kustomization", "platform-config", func(o *fact.Flux) {
		o.Ready = fact.Condition{Status: fact.False, Reason: "ReconciliationFailed", Message: `StorageProfile/longhorn dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`}
	})
	flux("prod", "HelmRelease", "grafana", func(o *fact.Flux) { o.Suspended = true })
	flux("prod", "HelmChart", "grafana", nil)
	flux("staging", "Kustomization", "apps", nil)
	gone := fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "old"), Absent: true}
	facts[gone.Key] = gone
	return facts
}

func entry(seq uint64, kind decision.Kind, by pull.Person, repo pull.Repo, number int64) decision.Entry {
	at := now.Add(-2 * time.Hour).Add(time.Duration(seq) * time.Minute)
	return decision.Entry{
		ID: decision.CommentID(1000+int64(seq)) + "/0", Kind: kind, By: by, Place: "comment", Repo: repo, Number: number,
		URL:     fmt.Sprintf("https://gitea.example.org/%s/pulls/%d#issuecomment-%d", repo, number, 1000+seq),
		Command: "/" + string(kind), Base: "main", Head: headSHA, At: at, Seq: seq,
	}
}

func theLedger() decision.Ledger {
	hold := entry(3, decision.Hold, carol, home, 12)
	hold.Reason, hold.Command = "until the backup is done", "/hold until the backup is done"
	refused := entry(4, decision.Refused, bob, home, 12)
	refused.Command, refused.Reason = "/approve", "bob is the author"
	freeze := entry(6, decision.Freeze, alice, apps, 3)
	freeze.Until, freeze.Reason = now.Add(6*time.Hour), "the release is on its way"
	renamed := entry(1, decision.Approve, pull.Person{ID: 1, Login: "alicia"}, pull.Repo{ID: 7, Owner: "ops", Name: "homelab"}, 11)
	return decision.Ledger{renamed, entry(2, decision.Approve, alice, home, 12), hold, refused, entry(5, decision.Approve, carol, apps, 3), freeze}
}

func thePull(repo pull.Repo, number int64, title string) pull.Pull {
	return pull.Pull{
		Repo: repo, Number: number, State: pull.Open, Title: title,
		URL:    fmt.Sprintf("https://gitea.example.org/%s/pulls/%d", repo, number),
		Author: bob, Labels: []string{"storage"}, CreatedAt: now.Add(-3 * time.Hour), UpdatedAt: since,
		Head: pull.Branch{Repo: repo.String(), Name: "profile", SHA: headSHA}, Base: pull.Branch{Repo: repo.String(), Name: "main", SHA: baseSHA},
	}
}

// evaluate adds a pull request with the verdict that the policy really gives.
func (w *world) evaluate(t testing.TB, repo pull.Repo, number int64, title, rules string, files []pull.File) {
	t.Helper()
	p, problems := policy.Load(".signalbox/policy.yaml", []byte(rules))
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	st := policy.Standing{Pull: thePull(repo, number, title), Files: files, EvaluatedAt: now}
	st.Verdict = policy.Evaluate(policy.Input{
		Snapshot: &pull.Snapshot{Pull: st.Pull, Files: files}, Repository: p, Facts: source{w}, Clusters: w.clusters[:1], Now: now,
		Decisions: w.ledger.Of(st.Pull.Ref()), Freezes: w.ledger.OfRepo(repo.ID),
		Accounts: map[int64]pull.Person{1: alice, 2: bob, 3: carol},
	})
	st.History = []policy.Change{{
		At: since, Head: headSHA, Preconditions: st.Verdict.Preconditions, Approval: st.Verdict.Approval,
		Rules:   []policy.RuleChange{{Name: st.Verdict.Results[len(st.Verdict.Results)-1].Name, To: st.Verdict.Results[0].State, Reason: st.Verdict.Results[0].Reason}},
		Because: "webhook",
	}}
	w.pulls[st.Pull.Ref()] = st
}

func theDigests(w *world) {
	root := digest.Finding{
		ID: "flux/prod/kustomization/flux-system/platform-config/not-ready", Section: digest.Flux, Cluster: "prod", Severity: digest.Broken,
		Subject: "Kustomization flux-system/platform-config", Text: "is not Ready: StorageProfile/longhorn dry-run failed", Since: since, New: true,
		Under: []digest.Finding{{
			ID: "flux/prod/kustomization/flux-system/apps/not-ready", Section: digest.Flux, Cluster: "prod", Severity: digest.Broken,
			Subject: "Kustomization flux-system/apps", Text: "waits for flux-system/platform-config", Since: since,
		}},
	}
	held := digest.Finding{
		ID: "gate/7/12/hold", Section: digest.Gate, Repo: home.ID, Severity: digest.Notable,
		Subject: "ops/home-gitops#12", Text: "carol holds it: until the backup is done", Since: since, URL: "https://gitea.example.org/ops/home-gitops/pulls/12",
	}
	blind := digest.Blind{Section: digest.Flux, Cluster: "staging", Why: "nothing has been heard from it since 2026-09-07T01:44:00Z"}
	counts := digest.Counts{Ready: 2, Total: 3, Open: map[digest.Section]int{digest.Flux: 2}, Pulls: 3}
	w.now = digest.Result{
		Findings: []digest.Finding{root, held}, Blind: []digest.Blind{blind}, Counts: counts,
		Summaries: map[digest.Section][]digest.Summary{digest.Flux: {{Text: "1 of 2 Kustomizations on prod are ready"}}},
	}
	for i := range 3 {
		scheduled := time.Date(2026, 9, 6-i, 6, 0, 0, 0, time.UTC)
		w.reports = append(w.reports, digest.Report{
			Name: "morning", Scheduled: scheduled, Made: scheduled.Add(2 * time.Second), Zone: "Europe/Berlin", Before: scheduled.AddDate(0, 0, -1),
			Sections: []digest.Part{
				{Section: digest.Flux, Summary: []digest.Summary{{Text: "1 of 2 Kustomizations on prod are ready"}}, Findings: []digest.Finding{root}, Blind: []digest.Blind{blind}},
				{Section: digest.Gate, Findings: []digest.Finding{held}},
			},
			Recovered: []digest.Finding{{ID: "nodes/prod/node-2/not-ready", Section: digest.Nodes, Cluster: "prod", Severity: digest.Broken, Subject: "Node node-2", Text: "was not Ready"}},
			New:       2, Still: 1, Counts: counts,
		})
		w.samples = append(w.samples, digest.Sample{At: now.AddDate(0, 0, i-3), Counts: counts})
	}
}
