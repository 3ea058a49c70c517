package web_test

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/overview"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/web/fluxgraph"
	"signalbox/internal/web/webtest"
)

const commit = "4f0c2ab9d1e877a6b3c5d2e1f0a9b8c7d6e5f4a3"

// heard says that a cluster is heard from, and that all kinds of it are known.
func heard(w *webtest.World, cluster string) {
	w.SetFact(fact.Fact{Key: fact.HeartbeatKey(cluster), Since: webtest.Now.Add(-72 * time.Hour), Heartbeat: &fact.Heartbeat{}})
	w.SetFact(kindsOf(cluster, nil))
}

func kindsOf(cluster string, edit func(map[string]fact.Watch)) fact.Fact {
	kinds := map[string]fact.Watch{}
	for _, k := range fluxgraph.Kinds() {
		kinds[k] = fact.Watch{State: fact.WatchSynced, Since: webtest.Now.Add(-72 * time.Hour)}
	}
	if edit != nil {
		edit(kinds)
	}
	return fact.Fact{Key: fact.ClusterKey(cluster), Cluster: &fact.Cluster{Kinds: kinds}}
}

// fluxObject is the fact of a ready object on a cluster, edited.
func fluxObject(cluster, kind, name string, edit func(*fact.Flux)) fact.Fact {
	f := fact.Fact{
		Key: fact.Kube(cluster, kind, "flux-system", name), Since: webtest.Now.Add(-26 * time.Hour), SeenAt: webtest.Now.Add(-time.Minute),
		Flux: &fact.Flux{
			Generation: 3, ObservedGeneration: 3, Applied: "main@sha1:" + commit, Attempted: "main@sha1:" + commit,
			Ready: fact.Condition{Status: fact.True, Reason: "ReconciliationSucceeded", Message: "Applied revision: main@sha1:" + commit},
		},
	}
	if edit != nil {
		edit(f.Flux)
	}
	return f
}

// from makes an edit: a Kustomization of home-gitops that needs others.
func from(names ...string) func(*fact.Flux) {
	return func(f *fact.Flux) {
		f.Path = "./clusters/prod"
		f.Source = &fact.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "home-gitops"}
		for _, n := range names {
			f.DependsOn = append(f.DependsOn, fact.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: n})
		}
	}
}

func failed(reason, message string, then func(*fact.Flux)) func(*fact.Flux) {
	return func(f *fact.Flux) {
		f.Ready = fact.Condition{Status: fact.False, Reason: reason, Message: message}
		f.Attempted = "main@sha1:" + strings.Repeat("ab", 20)
		then(f)
	}
}

// house is a world as somebody lives with it: a cluster where some things do not work,
// one that is silent, digests, a ledger and dead letters.
func house() *webtest.World {
	w := webtest.New()
	heard(w, "prod")
	for _, f := range []fact.Fact{
		fluxObject("prod", "GitRepository", "home-gitops", nil),
		fluxObject("prod", "OCIRepository", "podinfo", nil),
		fluxObject("prod", "HelmRepository", "bitnami-oci", func(f *fact.Flux) { f.Ready = fact.Condition{} }),
		fluxObject("prod", "HelmRepository", "jetstack", nil),
		fluxObject("prod", "Kustomization", "flux-system", from()),
		fluxObject("prod", "Kustomization", "infra-crds", from()),
		fluxObject("prod", "Kustomization", "infra-controllers", from("infra-crds")),
		fluxObject("prod", "Kustomization", "infra-storage", failed("HealthCheckFailed", "timeout waiting for: [StatefulSet/longhorn-system/longhorn-manager status: 'InProgress']\nhealth check failed after 5m0s", from("infra-controllers"))),
		fluxObject("prod", "Kustomization", "infra-certificates", from("infra-controllers")),
		fluxObject("prod", "Kustomization", "infra-configs", from("infra-controllers", "infra-certificates")),
		fluxObject("prod", "Kustomization", "databases", failed("DependencyNotReady", "dependency 'flux-system/infra-storage' is not ready", from("infra-storage"))),
		fluxObject("prod", "Kustomization", "apps", failed("DependencyNotReady", "dependency 'flux-system/databases' is not ready", from("databases", "infra-configs"))),
		fluxObject("prod", "Kustomization", "monitoring", from("infra-storage", "infra-configs")),
		fluxObject("prod", "Kustomization", "photos", func(f *fact.Flux) { from("infra-configs")(f); f.Suspended = true }),
		fluxObject("prod", "HelmRelease", "cert-manager", func(f *fact.Flux) {
			f.Applied, f.Source = "v1.19.1", &fact.Ref{Kind: "HelmRepository", Namespace: "flux-system", Name: "jetstack"}
		}),
		fluxObject("prod", "HelmRelease", "redis", func(f *fact.Flux) {
			f.Applied, f.Source = "21.0.3", &fact.Ref{Kind: "HelmRepository", Namespace: "flux-system", Name: "bitnami-oci"}
		}),
		fluxObject("prod", "HelmRelease", "podinfo", func(f *fact.Flux) {
			failed("UpgradeFailed", "Helm upgrade failed for release default/podinfo with chart podinfo@6.9.2", func(f *fact.Flux) { f.Stalled = true })(f)
			f.Source = &fact.Ref{Kind: "OCIRepository", Namespace: "flux-system", Name: "podinfo"}
		}),
		fluxObject("prod", "HelmRelease", "old-dashboard", func(f *fact.Flux) {
			f.Source = &fact.Ref{Kind: "HelmRepository", Namespace: "flux-system", Name: "kubernetes-dashboard"}
		}),
	} {
		w.SetFact(f)
	}
	for i := range 6 {
		w.SetFact(fluxObject("prod", "HelmChart", fmt.Sprintf("default-chart-%d", i), nil))
	}
	w.SetFact(fact.Fact{Key: fact.HeartbeatKey("test"), Since: webtest.Now.Add(-2 * time.Hour), Heartbeat: &fact.Heartbeat{Silent: true, LastHeard: webtest.Now.Add(-2*time.Hour - 3*time.Minute)}})
	w.SetFact(kindsOf("test", func(k map[string]fact.Watch) {
		k["helmrelease"] = fact.Watch{State: fact.WatchFailing, Since: webtest.Now.Add(-5 * time.Hour), Message: `helmreleases.helm.toolkit.fluxcd.io is forbidden: User "signalbox" cannot list`}
		k["bucket"] = fact.Watch{State: fact.WatchNotInstalled}
	}))
	w.SetFact(fluxObject("test", "GitRepository", "home-gitops", nil))
	w.SetFact(fluxObject("test", "Kustomization", "apps", from()))
	addPulls(w)
	addDigests(w)
	addLedger(w)
	w.SetHealth(overview.Health{
		Version: "v0.5.0", Started: webtest.Now.Add(-50 * time.Hour), DeadLetters: 2,
		Parts: []overview.Part{
			{Name: "bus", State: overview.OK, Detail: "embedded, 14 MB", Since: webtest.Now.Add(-50 * time.Hour)},
			{Name: "Gitea", State: overview.OK, Detail: "1.25.2", Since: webtest.Now.Add(-3 * time.Hour)},
			{Name: "cluster test", State: overview.Unknown, Detail: "nothing is heard from it", Since: webtest.Now.Add(-2 * time.Hour)},
			{Name: "Matrix", State: overview.Failing, Detail: "sync: 502 Bad Gateway", Since: webtest.Now.Add(-20 * time.Minute)},
		},
		Lag: []overview.Lag{{Consumer: "handlers-events", Waiting: 0, InHand: 1}, {Consumer: "work-03", Waiting: 12, InHand: 1, Again: 3}},
	},
		overview.DeadLetter{ID: 42, At: webtest.Now.Add(-30 * time.Minute), Stream: "EVENTS", Subject: "events.gitea.7.pull_request", Consumer: "handlers-events", Reason: "decode the event: <b>unexpected</b> end of JSON input", Deliveries: 5},
		overview.DeadLetter{ID: 41, At: webtest.Now.Add(-25 * time.Hour), Stream: "WORK", Subject: "work.3", Consumer: "work-03", Reason: "pull request ops/apps#4: 404 Not Found", Deliveries: 1},
	)
	return w
}

func addPulls(w *webtest.World) {
	for i, p := range []pull.Pull{
		{Repo: webtest.Home, Number: 12, Title: "Update longhorn to v1.10.1"},
		{Repo: webtest.Secret, Number: 3, Title: "Rotate the hidden keys"},
	} {
		p.State, p.URL, p.Head, p.Base = pull.Open, "https://gitea.example.org/x", pull.Branch{Name: "renovate", SHA: commit}, pull.Branch{Name: "main"}
		w.SetPull(policy.Standing{Pull: p, EvaluatedAt: webtest.Now.Add(-time.Duration(i) * time.Hour), Verdict: policy.Verdict{
			Reads: []fact.Key{fact.Kube("prod", "Kustomization", "flux-system", "infra-storage")},
		}})
	}
}

func addDigests(w *webtest.World) {
	storage := digest.Finding{
		ID: "flux/prod/kustomization/flux-system/infra-storage/not-ready", Section: digest.Flux, Cluster: "prod", Severity: digest.Broken, New: true,
		Subject: "Kustomization flux-system/infra-storage", Text: "is not Ready: HealthCheckFailed: timeout waiting for StatefulSet/longhorn-system/longhorn-manager", Since: webtest.Now.Add(-26 * time.Hour),
		Under: []digest.Finding{
			{ID: "a", Section: digest.Flux, Cluster: "prod", Severity: digest.Broken, Subject: "Kustomization flux-system/databases", Text: "waits for flux-system/infra-storage", New: true},
			{ID: "b", Section: digest.Flux, Cluster: "prod", Severity: digest.Broken, Subject: "Kustomization flux-system/apps", Text: "waits for flux-system/databases"},
		},
	}
	hidden := digest.Finding{ID: "gate/hold", Section: digest.Gate, Repo: webtest.Secret.ID, Severity: digest.Notable, New: true, Subject: "vault/private#3", Text: "is held by root: hidden reason", Since: webtest.Now.Add(-time.Hour)}
	hold := digest.Finding{ID: "gate/hold2", Section: digest.Gate, Repo: webtest.Home.ID, Severity: digest.Notable, Subject: "ops/home-gitops#12", Text: "is held by alice: <i>wait</i> for the weekend", Since: webtest.Now.Add(-50 * time.Hour), URL: "https://signalbox.example.org/pulls/ops/home-gitops/12"}
	reboot := digest.Finding{ID: "nodes/prod/n2", Section: digest.Nodes, Cluster: "prod", Severity: digest.Notable, Subject: "Node n2", Text: "waits for a reboot", Since: webtest.Now.Add(-40 * time.Hour)}
	blind := digest.Blind{Section: digest.Flux, Cluster: "test", Why: "nothing is heard from it since 2026-09-07 00:57 UTC"}
	counts := digest.Counts{Ready: 14, Total: 19, Open: map[digest.Section]int{digest.Flux: 4, digest.Nodes: 1}}
	var reports []digest.Report
	for day := range 14 {
		at := webtest.Now.AddDate(0, 0, -day).Add(2*time.Hour).Truncate(24*time.Hour).Add(5*time.Hour).AddDate(0, 0, -1)
		r := digest.Report{Name: "morning", Scheduled: at, Made: at.Add(time.Second), Zone: "Europe/Berlin", Before: at.AddDate(0, 0, -1), Counts: counts}
		switch day {
		case 0:
			r.New, r.Still, r.Unknown = 3, 3, 2
			r.Sections = []digest.Part{
				{Section: digest.Flux, Summary: []digest.Summary{{Text: "14 of 19 objects of Flux on prod are ready"}}, Findings: []digest.Finding{storage}, Blind: []digest.Blind{blind}},
				{Section: digest.Nodes, Summary: []digest.Summary{{Text: "3 nodes on prod are ready"}}, Findings: []digest.Finding{reboot}},
				{Section: digest.Storage, Summary: []digest.Summary{{Text: "12 volumes on prod are healthy"}}},
				{Section: digest.Gate, Summary: []digest.Summary{{Text: "7 open pull requests, 2 clear"}}, Findings: []digest.Finding{hidden, hold}, More: 2},
			}
			r.Recovered = []digest.Finding{{ID: "r", Section: digest.Pipelines, Severity: digest.Broken, Subject: "Renovate", Text: "has not run since Friday", Since: webtest.Now.Add(-80 * time.Hour)}}
		case 2:
			r.Late, r.Made = true, at.Add(4*time.Hour)
			r.Still = 2
			r.Sections = []digest.Part{{Section: digest.Nodes, Findings: []digest.Finding{reboot}}}
		default:
			r.Counts.Ready, r.Counts.Total = 19, 19
			r.Sections = []digest.Part{{Section: digest.Flux}}
		}
		reports = append(reports, r)
	}
	var trend []digest.Sample
	for i := range 30 * 24 {
		if i > 300 && i < 360 {
			continue
		}
		c := digest.Counts{Ready: 19, Total: 19, Open: map[digest.Section]int{digest.Nodes: i / 20 % 3}}
		if i%140 > 120 {
			c.Ready, c.Open = 16, map[digest.Section]int{digest.Flux: 4, digest.Storage: 2}
		}
		if i > 690 {
			c = counts
		}
		trend = append(trend, digest.Sample{At: webtest.Now.Add(-time.Duration(30*24-1-i) * time.Hour), Counts: c})
	}
	w.SetDigests(reports, digest.Result{
		Findings: []digest.Finding{storage, reboot, hidden, hold}, Blind: []digest.Blind{blind}, Counts: counts,
		Summaries: map[digest.Section][]digest.Summary{digest.Flux: {{Text: "14 of 19 objects of Flux on prod are ready"}}, digest.Nodes: {{Text: "3 nodes on prod are ready"}}},
	}, trend)
}

func addLedger(w *webtest.World) {
	entry := func(kind decision.Kind, by pull.Person, repo pull.Repo, age time.Duration, edit func(*decision.Entry)) {
		at := webtest.Now.Add(-age)
		e := decision.Entry{
			ID: fmt.Sprintf("comment/%d/0", at.Unix()), Kind: kind, By: by, Place: "comment", URL: "https://gitea.example.org/ops/home-gitops/pulls/12#issuecomment-1",
			Repo: repo, Number: 12, Base: "main", Head: commit, At: at, Command: "/" + string(kind),
		}
		if edit != nil {
			edit(&e)
		}
		w.Enter(e)
	}
	old := webtest.Home
	old.Name = "gitops"
	entry(decision.Approve, pull.Person{ID: 1, Login: "alice-old"}, old, 20*24*time.Hour, nil)
	entry(decision.Merged, webtest.Alice, webtest.Home, 19*24*time.Hour, nil)
	entry(decision.Override, webtest.Bob, webtest.Home, 5*24*time.Hour, func(e *decision.Entry) {
		e.Reason, e.Until, e.Passes = "=HYPERLINK(\"https://example.org\")", e.At.Add(4*time.Hour), []string{"precondition: apps", "approval: owners"}
	})
	entry(decision.Refused, webtest.Carol, webtest.Home, 50*time.Hour, func(e *decision.Entry) {
		e.Command, e.Reason = "/approve", "<script>alert(1)</script> carol is not an approver"
	})
	entry(decision.Hold, webtest.Alice, webtest.Home, 49*time.Hour, func(e *decision.Entry) { e.Reason = "wait for the weekend" })
	entry(decision.Approve, webtest.Root, webtest.Secret, 2*time.Hour, func(e *decision.Entry) { e.Reason = "hidden reason"; e.Number = 3 })
}

// bigFacts is a cluster of n Kustomizations in ten tiers, of which every hundredth
// failed.
func bigFacts(cluster string, n int) []fact.Fact {
	facts := []fact.Fact{fluxObject(cluster, "GitRepository", "home-gitops", nil)}
	for i := range n {
		var on []string
		if tier := n / 10; i >= tier {
			on = []string{fmt.Sprintf("app-%04d", i-tier)}
		}
		edit := from(on...)
		if i%100 == 99 {
			edit = failed("HealthCheckFailed", "timeout waiting for: [Deployment/apps/app status: 'InProgress']", edit)
		}
		facts = append(facts, fluxObject(cluster, "Kustomization", fmt.Sprintf("app-%04d", i), edit))
	}
	return facts
}
