package doctor_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/doctor"
	"signalbox/internal/fact"
)

// everyKind is a policy with each kind that needs more than Flux.
const everyKind = `
targets: [{cluster: prod, paths: ["**"]}]
preconditions:
  - {name: volumes, objects: {kind: volumes.longhorn.io}}
  - {name: volumes again, objects: {kind: volumes.longhorn.io}}
  - {name: reboots, kured: {daemonSet: kube-system/kured}}
  - {name: dry runs, renovate: {cronJob: renovate/renovate, mode: dry-run}}
  - {name: applied, dependsOn: {applied: true}}
  - {name: applied by one, dependsOn: {applied: true, kustomization: flux-system/apps}}
  - {name: conformance, workflow: {file: conformance.yaml}}
  - {name: renovate, renovate: {workflow: renovate.yaml, mode: live}}
  - {name: renovate ran, workflow: {file: renovate.yaml, on: base}}
  - {name: ci, status: {context: "ci / *"}}
`

func TestWhatRulesAsk(t *testing.T) {
	f := file(t, everyKind)
	clusters := []string{"dev", "prod"}
	want := map[string][]doctor.Wished{"prod": {
		{Wish: fact.WishObjects("prod", fact.ObjectsQuery{Resource: "volumes.longhorn.io"}), For: []string{"volumes", "volumes again"}},
		{Wish: fact.WishKured("prod", fact.KuredQuery{Namespace: "kube-system", Name: "kured"}), For: []string{"reboots"}},
		{Wish: fact.WishRenovate("prod", fact.RenovateQuery{Namespace: "renovate", Name: "renovate"}), For: []string{"dry runs"}},
	}}
	// The same rule twice, as of two repositories, is one wish.
	if diff := cmp.Diff(want, doctor.Wishes(clusters, nil, f, f)); diff != "" {
		t.Errorf("wishes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"prod": {"applied"}}, doctor.AppliedAsks(clusters, f)); diff != "" {
		t.Errorf("what is applied (-want +got):\n%s", diff)
	}
	apps := doctor.Object{Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	if diff := cmp.Diff(map[string][]doctor.Object{"prod": {apps}}, doctor.Objects(clusters, f)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	pipelines := doctor.Pipelines{
		Workflows: []doctor.Workflow{
			{Name: "conformance.yaml", For: []string{"conformance"}},
			{Name: "renovate.yaml", Renovate: true, For: []string{"renovate", "renovate ran"}},
		},
		Contexts: []doctor.Context{{Pattern: "ci / *", For: []string{"ci"}}},
	}
	if diff := cmp.Diff(pipelines, doctor.PipelinesOf(nil, f)); diff != "" {
		t.Errorf("pipelines (-want +got):\n%s", diff)
	}
}

func TestClusterWishes(t *testing.T) {
	volumes := doctor.SeenWish{Wished: doctor.Wished{For: []string{"volumes", "other volumes"}}}
	kured := doctor.SeenWish{Wished: doctor.Wished{For: []string{"reboots"}}}
	see := func(edit func(c *doctor.Cluster, volumes, kured *doctor.SeenWish)) func() []doctor.Finding {
		return func() []doctor.Finding {
			c := doctor.Cluster{Name: "prod", Kinds: []doctor.Kind{{Name: "Kustomization", Version: "v1"}}}
			v, k := volumes, kured
			edit(&c, &v, &k)
			c.Wishes = []doctor.SeenWish{v, k}
			return c.Judge()
		}
	}
	const fine = "ok cluster"
	const crd = "the cluster has no resource volumes.longhorn.io; it has no API group longhorn.io"
	type cluster = doctor.Cluster
	type wish = doctor.SeenWish
	run(t, []judged{
		{"fine", see(func(*cluster, *wish, *wish) {}), []string{fine, "ok cluster-resources"}, []string{`"volumes", "other volumes" and "reboots"`}},
		{"not installed", see(func(_ *cluster, v, _ *wish) { v.NotInstalled = crd }), []string{fine, "warning cluster-resources"}, []string{
			`each of the preconditions "volumes" and "other volumes" is unknown until it is installed: ` + crd,
		}},
		{"said once", see(func(_ *cluster, v, k *wish) { v.NotInstalled, k.NotInstalled = "no", "no" }), []string{fine, "warning cluster-resources"}, []string{`"volumes", "other volumes" and "reboots" is unknown`}},
		{"never", see(func(_ *cluster, v, _ *wish) { v.Refused = "nodes are in no namespace; ask for them without one" }), []string{fine, "problem cluster-resources"}, []string{"can never be read: nodes are in no namespace"}},
		{"rights", see(func(_ *cluster, _, k *wish) {
			k.Missing = []string{"list daemonsets.apps kured in kube-system", "watch daemonsets.apps kured in kube-system", "list nodes"}
		}), []string{fine, "problem cluster-rights"}, []string{
			`precondition "reboots" reads what the account may not: list, watch daemonsets.apps kured in kube-system and list nodes`, "Give the account:", "  list nodes",
		}},
		{"rights with a role", see(func(c *cluster, _, k *wish) {
			k.Missing, c.Role = []string{"list nodes"}, "kind: List\nitems: []\n"
		}), []string{fine, "problem cluster-rights"}, []string{"kubectl apply -f -", "  kind: List\n", "  items: []\n"}},
		{"rights not told", see(func(c *cluster, _, _ *wish) { c.WishesFault = "no reviews" }), []string{fine, "unknown cluster-rights"}, []string{"no reviews"}},
		{"rights not told for both", see(func(c *cluster, _, _ *wish) { c.WishesFault, c.RightsFault = "no", "no" }), []string{"unknown cluster-rights"}, nil},
		{"object", see(func(_ *cluster, _, k *wish) { k.Absent = []string{"daemonsets.apps kured in kube-system"} }), []string{fine, "warning cluster-objects"}, []string{
			`precondition "reboots" asks about daemonsets.apps kured in kube-system, which does not exist`,
		}},
		{"unread", see(func(_ *cluster, v, _ *wish) { v.Fault = "no answer" }), []string{fine, "unknown cluster-resources"}, []string{"no answer"}},
		{"too many", see(func(c *cluster, _, _ *wish) { c.Unlooked = 7 }), []string{fine, "info cluster-resources"}, []string{"9 things", "the first 2"}},
		{"followed", see(func(c *cluster, _, _ *wish) {
			c.Followers = []doctor.Follower{{Repo: "ops/a", Branch: "main", For: []string{"x"}, Found: true}}
		}), []string{fine, "ok cluster-resources"}, nil},
		{"not followed", see(func(c *cluster, _, _ *wish) {
			c.Followers = []doctor.Follower{{Repo: "ops/a", Branch: "main", For: []string{"x"}}}
		}), []string{"warning cluster-follows", "ok cluster-resources"}, []string{`no Kustomization follows main of ops/a, and precondition "x" asks what is applied`}},
		{"nobody knows", see(func(c *cluster, _, _ *wish) {
			c.Followers = []doctor.Follower{{Repo: "ops/a", Branch: "main", For: []string{"x"}, Fault: "500"}}
		}), []string{"unknown cluster-follows", "ok cluster-resources"}, []string{"500"}},
	})
}

func TestPipelines(t *testing.T) {
	see := func(edit func(*doctor.Pipelines)) func() []doctor.Finding {
		return func() []doctor.Finding {
			p := doctor.PipelinesOf(file(t, everyKind))
			p.Branch, p.Actions, p.Statuses = "main", true, []string{"lint", "ci / test (push)"}
			edit(&p)
			return p.Judge("ops/home-gitops")
		}
	}
	type pipelines = doctor.Pipelines
	const fine = "ok actions"
	run(t, []judged{
		{"fine", see(func(*pipelines) {}), []string{fine}, []string{"main has conformance.yaml and renovate.yaml"}},
		{"nothing asked", func() []doctor.Finding { return doctor.Pipelines{Runners: "x"}.Judge("r") }, nil, nil},
		{"no Actions", see(func(p *pipelines) { p.Actions = false }), []string{"problem actions"}, []string{"has no Gitea Actions", "Enable Repository Actions"}},
		{"runs refused", see(func(p *pipelines) { p.RunsFault, p.RunsRefused = "HTTP 403", true }), []string{"problem actions"}, []string{"may not read the runs", "stays unknown"}},
		{"runs unread", see(func(p *pipelines) { p.RunsFault = "HTTP 500" }), []string{"unknown actions"}, []string{"HTTP 500"}},
		{"no file", see(func(p *pipelines) { p.Workflows[0].Absent = true }), []string{"warning workflow"}, []string{`main has no workflow conformance.yaml, and precondition "conformance" asks`, "no .gitea/workflows"}},
		{"no Renovate", see(func(p *pipelines) { p.Workflows[1].Absent = true }), []string{"warning workflow"}, []string{"Renovate is not there, so the rule is unmet"}},
		{"file unread", see(func(p *pipelines) { p.Workflows[0].Fault = "HTTP 500" }), []string{"unknown workflow"}, nil},
		{"hidden", see(func(p *pipelines) { p.Runners, p.Secrets, p.Variables = "no runners", "no secrets", "no variables" }), []string{
			fine, "info actions-visible", "info actions-visible",
		}, []string{"no runners", "which secrets and variables there are: no secrets"}},
		{"hidden variables", see(func(p *pipelines) { p.Variables = "no variables" }), []string{fine, "info actions-visible"}, []string{"no variables"}},
		{"hidden, and no Renovate", see(func(p *pipelines) { p.Workflows, p.Secrets = p.Workflows[:1], "no secrets" }), []string{fine}, nil},
		{"hidden, or not", see(func(p *pipelines) { p.HiddenFault = "HTTP 500" }), []string{fine, "info actions-visible"}, nil},
		{"a status that was never there", see(func(p *pipelines) { p.Statuses = []string{"ci"} }), []string{fine, "info status"}, []string{`no status on the tip of main is called "ci / *", which precondition "ci" asks for`}},
		{"statuses unread", see(func(p *pipelines) { p.StatusesFault = "HTTP 500" }), []string{fine, "unknown status"}, nil},
	})
}

func TestWindows(t *testing.T) {
	see := func(window string) func() []doctor.Finding {
		return func() []doctor.Finding {
			return doctor.Windows("configuration", file(t, "preconditions: [{name: nights, window: "+window+"}, {name: ci, status: {context: ci}}]"), now)
		}
	}
	run(t, []judged{
		{"none", func() []doctor.Finding { return doctor.Windows("configuration", nil, time.Time{}) }, nil, nil},
		{"open", see(`{deny: "23:00-23:30", timezone: Europe/Berlin}`), []string{"ok window"}, []string{`precondition "nights", by the clock of Europe/Berlin: it is`, "it closes at 2026-09-07 23:00 CEST (2026-09-07 21:00 UTC)"}},
		{"closed", see(`{deny: "02:00-04:00"}`), []string{"ok window"}, []string{"by the clock of UTC", "it opens at 2026-09-07 04:00 UTC"}},
		{"for ever", see(`{allow: "2026-01-01 08:00-2026-01-02 08:00"}`), []string{"warning window"}, []string{"never met again"}},
	})
}

// TestNoClusterIsNeeded: not every kind asks about clusters.
func TestNoClusterIsNeeded(t *testing.T) {
	for rule, want := range map[string]string{
		`{name: a, status: {context: ci}}`:                    "warning override",
		`{name: a, workflow: {file: a.yaml}}`:                 "warning override",
		`{name: a, renovate: {workflow: a.yaml, mode: live}}`: "warning override",
		`{name: a, window: {deny: "02:00-04:00"}}`:            "warning override",
		`{name: a, dependsOn: {}}`:                            "warning override",
		`{name: a, dependsOn: {applied: true}}`:               "problem policy-clusters",
		`{name: a, renovate: {cronJob: a/b, mode: live}}`:     "problem policy-clusters",
		`{name: a, objects: {kind: nodes}}`:                   "problem policy-clusters",
		`{name: a, kured: {daemonSet: a/b}}`:                  "problem policy-clusters",
		`{name: a, flux: {kustomization: a/b}}`:               "problem policy-clusters",
	} {
		r := doctor.Rules{Base: "main", File: file(t, "preconditions: ["+rule+"]"), Owner: "ops", Bot: "signalbox"}
		if got := checks(r.Judge("ops/home-gitops")); got[0] != want {
			t.Errorf("%s: %v, want %s first", rule, got, want)
		}
	}
}
