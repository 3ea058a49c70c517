package doctor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/doctor"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

var now = time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)

// judged is a case of a table: what was seen, and the checks it must give.
type judged struct {
	name string
	see  func() []doctor.Finding
	want []string
	// says must be in the findings.
	says []string
}

func run(t *testing.T, tests []judged) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := tt.see()
			if diff := cmp.Diff(tt.want, checks(found)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			complete(t, found)
			text := doctor.NewReport(now, found).Text(doctor.Style{Width: 1000})
			for _, s := range tt.says {
				if !strings.Contains(text, s) {
					t.Errorf("it does not say %q:\n%s", s, text)
				}
			}
		})
	}
}

func TestClockSkew(t *testing.T) {
	tests := []struct {
		name string
		date time.Time
		want time.Duration
	}{
		{"the same second", now.Truncate(time.Second), 0},
		{"told within the second", now.Add(900 * time.Millisecond).Truncate(time.Second), 0},
		{"ahead", now.Add(time.Minute), time.Minute - 200*time.Millisecond},
		{"behind", now.Add(-time.Minute), -59 * time.Second},
		{"not told", time.Time{}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := doctor.Clock{Date: tt.date, Before: now, After: now.Add(200 * time.Millisecond)}
			if got := c.Skew(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestForge(t *testing.T) {
	needed := []string{"read:organization", "read:user", "write:issue", "write:repository"}
	see := func(edit func(*doctor.Forge)) func() []doctor.Finding {
		return func() []doctor.Finding {
			f := doctor.Forge{
				URL: "https://gitea.example.org/", Version: "1.26.0", Clock: doctor.Clock{Date: now, Before: now, After: now},
				Account: doctor.Account{Login: "signalbox", Scopes: needed, Complete: true, Needed: needed},
			}
			edit(&f)
			return f.Judge()
		}
	}
	const fine = "ok token-scopes"
	run(t, []judged{
		{"fine", see(func(*doctor.Forge) {}), []string{"ok gitea-version", fine}, nil},
		{"down", see(func(f *doctor.Forge) { f.Fault = "connection refused" }), []string{"unknown gitea"}, []string{"connection refused", "curl https://gitea.example.org/api/v1/version"}},
		{"old", see(func(f *doctor.Forge) { f.Version = "1.21.3" }), []string{"warning gitea-version", fine}, []string{"1.26"}},
		{"newer", see(func(f *doctor.Forge) { f.Version = "1.27.0+dev-12-gabc" }), []string{"ok gitea-version", fine}, nil},
		{"a next major", see(func(f *doctor.Forge) { f.Version = "2.0" }), []string{"ok gitea-version", fine}, nil},
		{"development", see(func(f *doctor.Forge) { f.Version = "development" }), []string{"info gitea-version", fine}, nil},
		{"forgejo", see(func(f *doctor.Forge) { f.Version = "11.0.1+gitea-1.22.0" }), []string{"warning gitea-version", fine}, []string{"like Gitea 1.22.0"}},
		{"clock", see(func(f *doctor.Forge) { f.Clock.Date = now.Add(-3 * time.Minute) }), []string{"ok gitea-version", "warning clock", fine}, []string{"2m59s behind the clock"}},
		{"token", see(func(f *doctor.Forge) { f.Account = doctor.Account{Refused: true, Fault: "401", Needed: needed} }), []string{"ok gitea-version", "problem token"}, []string{"write:issue and write:repository"}},
		{"admin", see(func(f *doctor.Forge) { f.Account.Admin = true }), []string{"ok gitea-version", "warning account-admin", fine}, nil},
		{"scope missing", see(func(f *doctor.Forge) { f.Account.Scopes = []string{"write:repository", "read:user", "read:issue"} }), []string{"ok gitea-version", "problem token-scopes"}, []string{"lacks read:organization and write:issue", "to read teams and to comment"}},
		{"to write includes to read", see(func(f *doctor.Forge) {
			f.Account.Scopes = []string{"write:repository", "write:issue", "write:organization", "read:user"}
		}), []string{"ok gitea-version", "warning token-scopes"}, []string{"more than is needed: write:organization"}},
		{"all", see(func(f *doctor.Forge) { f.Account.Scopes, f.Account.Complete = []string{"read:admin"}, false }), []string{"ok gitea-version", "warning token-scopes"}, nil},
		{"public only", see(func(f *doctor.Forge) { f.Account.Scopes = append([]string{"public-only"}, needed...) }), []string{"ok gitea-version", "problem token-scopes"}, []string{"limited to public"}},
		{"not told", see(func(f *doctor.Forge) { f.Account.Scopes, f.Account.Complete = nil, false }), []string{"ok gitea-version", "info token-scopes"}, nil},
	})
}

func TestRepository(t *testing.T) {
	see := func(edit func(*doctor.Repository)) func() []doctor.Finding {
		return func() []doctor.Finding {
			r := doctor.Repository{
				Name: "ops/home-gitops", NowName: "ops/home-gitops", Pulls: true, Login: "signalbox", Permission: pull.PermissionAdmin,
				Webhook: doctor.Webhook{Manage: true},
			}
			edit(&r)
			return r.Judge()
		}
	}
	run(t, []judged{
		{"fine", see(func(*doctor.Repository) {}), []string{"ok repository"}, nil},
		{"absent", see(func(r *doctor.Repository) { r.Fault, r.Absent = "404", true }), []string{"problem repository"}, []string{"Collaborators"}},
		{"broken", see(func(r *doctor.Repository) { r.Fault = "500" }), []string{"unknown repository"}, nil},
		{"renamed", see(func(r *doctor.Repository) { r.NowName = "ops/gitops" }), []string{"warning repository-name"}, nil},
		{"letter case", see(func(r *doctor.Repository) { r.NowName = "Ops/Home-GitOps" }), []string{"ok repository"}, nil},
		{"archived", see(func(r *doctor.Repository) { r.Archived = true }), []string{"warning repository-archived"}, nil},
		{"empty", see(func(r *doctor.Repository) { r.Empty = true }), []string{"info repository-empty"}, nil},
		{"without pull requests", see(func(r *doctor.Repository) { r.Pulls = false }), []string{"problem repository-pulls"}, nil},
		{"reads", see(func(r *doctor.Repository) { r.Permission = pull.PermissionRead }), []string{"problem repository-permission"}, []string{"may only read"}},
		{"reads and observes", see(func(r *doctor.Repository) { r.Permission, r.Observe = pull.PermissionRead, true }), []string{"ok repository"}, nil},
		{"writes", see(func(r *doctor.Repository) { r.Permission = pull.PermissionWrite }), []string{"warning repository-permission"}, []string{"manage: false"}},
		{"writes, and nothing is managed", see(func(r *doctor.Repository) { r.Permission, r.Webhook.Manage = pull.PermissionWrite, false }), []string{"warning repository-permission"}, nil},
	})
}

func TestAgent(t *testing.T) {
	run(t, []judged{
		{"answers", doctor.Agent{Cluster: "prod"}.Judge, []string{"ok agent"}, nil},
		{"silent", doctor.Agent{Cluster: "prod", Fault: "nobody answers there"}.Judge, []string{"problem agent"}, []string{"nobody answers there", "bot agent --cluster prod"}},
	})
}

func TestWebhook(t *testing.T) {
	good := doctor.Hook{Active: true, Sealed: true}
	see := func(edit func(*doctor.Webhook)) func() []doctor.Finding {
		return func() []doctor.Finding {
			w := doctor.Webhook{
				Receiver: "https://signalbox.example.org/hooks/gitea", Manage: true, Running: true, Hooks: []doctor.Hook{good},
				Delivery: doctor.Arrived, Waited: 120 * time.Millisecond, Instructions: "INSTRUCTIONS\n",
			}
			edit(&w)
			return w.Judge("ops/home-gitops")
		}
	}
	run(t, []judged{
		{"fine", see(func(*doctor.Webhook) {}), []string{"ok webhook-delivery"}, []string{"120ms"}},
		{"nobody says where", see(func(w *doctor.Webhook) { w.Receiver = "" }), []string{"info webhook"}, nil},
		{"may not be read", see(func(w *doctor.Webhook) { w.Fault, w.Refused = "403", true }), []string{"unknown webhook"}, []string{"INSTRUCTIONS"}},
		{"none", see(func(w *doctor.Webhook) { w.Hooks = nil }), []string{"problem webhook"}, []string{"--fix"}},
		{"none yet", see(func(w *doctor.Webhook) { w.Hooks, w.Running = nil, false }), []string{"warning webhook"}, []string{"when it starts"}},
		{"none, by hand", see(func(w *doctor.Webhook) { w.Hooks, w.Manage = nil, false }), []string{"problem webhook"}, []string{"INSTRUCTIONS", "organisation"}},
		{"off", see(func(w *doctor.Webhook) { w.Hooks[0].Active = false }), []string{"problem webhook"}, nil},
		{"faulty", see(func(w *doctor.Webhook) { w.Hooks[0].Faults = []string{"it lacked status"} }), []string{"problem webhook"}, []string{"it lacked status"}},
		{"two, of which one is good", see(func(w *doctor.Webhook) { w.Hooks = []doctor.Hook{{}, good} }), []string{"warning webhook", "ok webhook-delivery"}, nil},
		{"with another secret, not running", see(func(w *doctor.Webhook) {
			w.Hooks[0].Sealed, w.Delivery, w.Running = false, doctor.NotTried, false
		}), []string{"warning webhook-secret", "unknown webhook-delivery"}, nil},
		{"made by hand, and it works", see(func(w *doctor.Webhook) { w.Hooks[0].Sealed = false }), []string{"ok webhook-delivery"}, nil},
		{"lost", see(func(w *doctor.Webhook) { w.Delivery, w.Waited = doctor.Lost, 8*time.Second }), []string{"problem webhook-delivery"}, []string{"none arrived in 8s", "ALLOWED_HOST_LIST = external, signalbox.example.org"}},
		{"not tried", see(func(w *doctor.Webhook) { w.Delivery = doctor.NotTried }), []string{"unknown webhook-delivery"}, []string{"Run bot doctor where signalbox runs"}},
		{"not tried, in the cluster", see(func(w *doctor.Webhook) {
			w.Receiver, w.Delivery = "http://signalbox.signalbox.svc:8080/hooks/gitea", doctor.NotTried
		}), []string{"unknown webhook-delivery"}, []string{"ALLOWED_HOST_LIST = external, signalbox.signalbox.svc\n"}},
		{"failed", see(func(w *doctor.Webhook) { w.Delivery, w.DeliveryFault = doctor.Failed, "500" }), []string{"unknown webhook-delivery"}, nil},
	})
}

func TestPrivate(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:8080/": true, "http://[::1]/": true, "http://10.1.2.3/": true, "http://169.254.1.1/": true,
		"http://signalbox:8080/": true, "http://signalbox.ns.svc/": true, "http://signalbox.ns.svc.cluster.local./": true, "http://nas.lan/": true,
		"https://signalbox.example.org/": false, "http://8.8.8.8/": false, "://": false,
	} {
		if got := doctor.Private(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// file compiles a policy.
func file(t *testing.T, text string) *policy.File {
	t.Helper()
	p, problems := policy.Load("p", []byte("version: 1\n"+text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	f := p.File()
	return &f
}

func TestRules(t *testing.T) {
	alice, bob, carol := pull.Person{ID: 1, Login: "alice"}, pull.Person{ID: 2, Login: "bob"}, pull.Person{ID: 3, Login: "carol"}
	bot := pull.Person{ID: 9, Login: "signalbox"}
	const usual = `
preconditions: [{name: apps, flux: {kustomization: flux-system/apps}}]
approvals: [{name: owners, from: {teams: [maintainers], users: [alice]}}]
override: {from: {users: [alice]}}
`
	found := func(people ...pull.Person) doctor.Lookup { return doctor.Lookup{People: people} }
	see := func(text string, edit func(*doctor.Rules)) func() []doctor.Finding {
		return func() []doctor.Finding {
			r := doctor.Rules{
				Base: "main", File: file(t, text), Owner: "ops", Bot: "signalbox", Clusters: []string{"prod"},
				Users: map[string]doctor.Lookup{"alice": found(alice), "bob": found(bob), "signalbox": found(bot)},
				Teams: map[string]doctor.Lookup{"ops/maintainers": found(carol, bot)},
			}
			edit(&r)
			return r.Judge("ops/home-gitops")
		}
	}
	nothing := func(*doctor.Rules) {}
	run(t, []judged{
		{"fine", see(usual, nothing), []string{"ok policy"}, []string{"1 precondition and 1 approval rule"}},
		{"unreadable", see(usual, func(r *doctor.Rules) { r.Fault = "500" }), []string{"unknown policy"}, nil},
		{"invalid", see(usual, func(r *doctor.Rules) { r.Invalid = []string{"p.yaml:4: no"} }), []string{"problem policy"}, []string{"p.yaml:4: no"}},
		{"none", see(usual, func(r *doctor.Rules) { r.File = nil }), []string{"problem policy"}, []string{"clear at once"}},
		{"empty", see("", nothing), []string{"problem policy"}, nil},
		{"the operator's alone", see(usual, func(r *doctor.Rules) { r.File, r.Operator = nil, r.File }), []string{"ok policy"}, nil},
		{"no such account", see(usual, func(r *doctor.Rules) { r.Users["alice"] = doctor.Lookup{Absent: true} }), []string{"warning approvers", "warning approvers-enough", "warning override"}, []string{"becomes an approver"}},
		{"no such team", see(usual, func(r *doctor.Rules) { r.Teams["ops/maintainers"] = doctor.Lookup{Absent: true} }), []string{"problem approvers", "warning approvers-enough"}, []string{"no such team"}},
		{"a team that keeps its members to itself", see(usual, func(r *doctor.Rules) { r.Teams["ops/maintainers"] = doctor.Lookup{Refused: true} }), []string{"problem approvers"}, []string{"only to members of that very team", "Add signalbox to team ops/maintainers"}},
		{"a team that fails", see(usual, func(r *doctor.Rules) { r.Teams["ops/maintainers"] = doctor.Lookup{Fault: "500"} }), []string{"unknown approvers"}, nil},
		{"a team of bots", see(usual, func(r *doctor.Rules) { r.Teams["ops/maintainers"] = found(bot) }), []string{"warning approvers", "warning approvers-enough"}, nil},
		{"an approver who may not see it", see(usual, func(r *doctor.Rules) {
			r.Users["alice"] = doctor.Lookup{People: []pull.Person{alice}, NoAccess: true}
		}), []string{"warning approvers", "warning approvers-enough", "warning override"}, []string{"may not see the repository"}},
		{"the only approver", see("approvals: [{name: owners, from: {users: [alice]}}]\noverride: {from: {users: [alice]}}", nothing), []string{"warning approvers-enough"}, []string{"nobody to spare", "at least 2 persons"}},
		{"one person by two names", see("approvals: [{name: owners, count: 2, from: {users: [alice, ALICE]}}]\noverride: {from: {users: [alice]}}", nothing), []string{"problem approvers-enough"}, []string{"2 approvals of alice", "Nobody can ever meet it"}},
		{"a bot as approver", see("approvals: [{name: owners, from: {users: [signalbox, alice, bob]}}]\noverride: {from: {users: [alice]}}", nothing), []string{"warning approvers"}, []string{"which is a bot"}},
		{"nobody overrides", see("approvals: [{name: owners, from: {users: [alice, bob]}}]", nothing), []string{"warning override"}, nil},
		{"two people override, and there is one", see("approvals: [{name: owners, from: {users: [alice, bob]}}]\noverride: {from: {users: [alice]}, secondPerson: true}", nothing), []string{"warning override"}, []string{"2 persons"}},
		{"no cluster", see(usual, func(r *doctor.Rules) { r.Clusters = nil }), []string{"problem policy-clusters"}, nil},
		{"another cluster", see("targets: [{cluster: dev, paths: [\"**\"]}]\n"+usual, nothing), []string{"problem policy-clusters"}, []string{`"dev"`}},
	})
}

func TestCluster(t *testing.T) {
	apps := doctor.Object{Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	see := func(edit func(*doctor.Cluster)) func() []doctor.Finding {
		return func() []doctor.Finding {
			c := doctor.Cluster{
				Name: "prod", Version: "v1.36.3", Asked: []doctor.Object{apps},
				Kinds: []doctor.Kind{{Name: "Kustomization", Version: "v1"}, {Name: "Bucket", Why: "no CRD"}},
			}
			edit(&c)
			return c.Judge()
		}
	}
	run(t, []judged{
		{"fine", see(func(*doctor.Cluster) {}), []string{"ok cluster"}, []string{"Kubernetes v1.36.3", "Kustomization v1"}},
		{"misconfigured", see(func(c *doctor.Cluster) { c.Misconfigured = "no context" }), []string{"problem cluster"}, nil},
		{"down", see(func(c *doctor.Cluster) { c.Fault = "refused" }), []string{"unknown cluster"}, nil},
		{"credentials", see(func(c *doctor.Cluster) { c.Fault, c.Refused = "expired", true }), []string{"problem cluster-credentials"}, nil},
		{"rights missing", see(func(c *doctor.Cluster) {
			c.Missing = []string{"list kustomizations.kustomize.toolkit.fluxcd.io", "watch kustomizations.kustomize.toolkit.fluxcd.io"}
			c.Unread = []doctor.Object{apps}
		}), []string{"problem cluster-rights"}, []string{"list, watch kustomizations.kustomize.toolkit.fluxcd.io\n"}},
		{"administrator", see(func(c *doctor.Cluster) { c.Excess = []string{"* *"} }), []string{"warning cluster-rights"}, []string{"cluster-admin"}},
		{"secrets", see(func(c *doctor.Cluster) { c.Excess = []string{"get secrets"} }), []string{"warning cluster-rights"}, []string{"may also get secrets"}},
		{"rights not told", see(func(c *doctor.Cluster) { c.RightsFault = "forbidden" }), []string{"unknown cluster-rights"}, nil},
		{"kind missing", see(func(c *doctor.Cluster) {
			c.Kinds[0] = doctor.Kind{Name: "Kustomization", Why: "the cluster has no CustomResourceDefinition"}
			c.Kinds[1].Version, c.Unread = "v1", []doctor.Object{apps}
		}), []string{"problem cluster-kinds"}, nil},
		{"no Flux, and nobody asks", see(func(c *doctor.Cluster) { c.Kinds, c.Asked = []doctor.Kind{{Name: "Bucket"}}, nil }), []string{"warning cluster-kinds"}, nil},
		{"object missing", see(func(c *doctor.Cluster) { c.Absent = []doctor.Object{apps} }), []string{"warning cluster-objects"}, []string{"Kustomization flux-system/apps, which does not exist"}},
		{"clock", see(func(c *doctor.Cluster) { c.Clock = doctor.Clock{Date: now.Add(time.Hour), Before: now, After: now} }), []string{"warning clock"}, nil},
	})
}

func TestObjectsAndElsewhere(t *testing.T) {
	apps := doctor.Object{Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	chart := doctor.Object{Kind: "HelmRelease", Namespace: "a", Name: "b"}
	got := doctor.Objects([]string{"dev", "prod"}, nil,
		file(t, "preconditions: [{name: x, flux: {kustomization: flux-system/apps}}]"),
		file(t, "targets: [{cluster: prod, paths: [\"**\"]}, {cluster: gone, paths: [a]}]\npreconditions: [{name: x, flux: {helmRelease: a/b}}, {name: y, flux: {kustomization: flux-system/apps}}]"))
	want := map[string][]doctor.Object{"dev": {apps}, "prod": {chart, apps}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	clusters := []doctor.Cluster{
		{Name: "dev", Asked: []doctor.Object{apps}, Absent: []doctor.Object{apps}, Kinds: []doctor.Kind{{Name: "Kustomization", Version: "v1"}}},
		{Name: "prod", Asked: []doctor.Object{apps}},
	}
	doctor.Elsewhere(clusters)
	if got := checks(clusters[0].Judge()); !slices.Equal(got, []string{"info cluster-objects"}) {
		t.Errorf("dev: %v", got)
	}
	clusters[1].Fault = "down"
	clusters[0].Elsewhere = nil
	doctor.Elsewhere(clusters)
	if got := checks(clusters[0].Judge()); !slices.Equal(got, []string{"warning cluster-objects"}) {
		t.Errorf("dev, where prod is not known: %v", got)
	}
}

func TestDirectory(t *testing.T) {
	running := doctor.Running{Version: "1", Started: now}
	see := func(edit func(*doctor.Directory)) func() []doctor.Finding {
		return func() []doctor.Finding {
			d := doctor.Directory{Path: "/data", Parent: "/", IsFolder: true, Mode: 0o700, Writable: true, Free: 10 << 30, InUse: true, Running: &running}
			edit(&d)
			return d.Judge("1")
		}
	}
	const runs = "ok running"
	run(t, []judged{
		{"fine", see(func(*doctor.Directory) {}), []string{runs}, []string{"runs since 2026-09-07 03:00 UTC"}},
		{"absent", see(func(d *doctor.Directory) { d.Absent = true }), []string{"info bus-directory"}, nil},
		{"absent for ever", see(func(d *doctor.Directory) { d.Absent, d.Writable = true, false }), []string{"problem bus-directory"}, nil},
		{"not to be looked at", see(func(d *doctor.Directory) { d.Fault = "denied" }), []string{"unknown bus-directory"}, nil},
		{"a file", see(func(d *doctor.Directory) { d.IsFolder = false }), []string{"problem bus-directory"}, nil},
		{"not writable", see(func(d *doctor.Directory) { d.Writable = false }), []string{"problem bus-directory", runs}, nil},
		{"of a group, as volumes are", see(func(d *doctor.Directory) { d.Mode = 0o2770 }), []string{runs}, nil},
		{"readable", see(func(d *doctor.Directory) { d.Mode = 0o755 }), []string{"warning bus-directory", runs}, []string{"chmod o-rwx /data"}},
		{"writable by all", see(func(d *doctor.Directory) { d.Mode = 0o777 }), []string{"problem bus-directory", runs}, nil},
		{"little space", see(func(d *doctor.Directory) { d.Free = 300 << 20 }), []string{"warning bus-space", runs}, []string{"300 MiB"}},
		{"no space", see(func(d *doctor.Directory) { d.Free = 1 << 20 }), []string{"problem bus-space", runs}, nil},
		{"space not known", see(func(d *doctor.Directory) { d.Free = -1 }), []string{runs}, nil},
		{"free", see(func(d *doctor.Directory) { d.Running, d.InUse = nil, false }), []string{"info running"}, nil},
		{"silent", see(func(d *doctor.Directory) { d.Running, d.RunningFault = nil, "refused" }), []string{"unknown running"}, nil},
		{"lock unknown", see(func(d *doctor.Directory) { d.Running, d.InUse, d.InUseFault = nil, false, "denied" }), []string{"unknown running"}, nil},
		{"another version", see(func(d *doctor.Directory) { d.Running = &doctor.Running{Version: "0"} }), []string{"warning running"}, nil},
		{"unhealthy", see(func(d *doctor.Directory) { d.Running = &doctor.Running{Version: "1", Unhealthy: "no"} }), []string{"problem bus-health"}, nil},
		{"dead letters", see(func(d *doctor.Directory) {
			d.Running = &doctor.Running{Version: "1", Started: now, Dead: doctor.Dead{Total: 2, NewestAt: now, NewestReason: "bad\n data"}}
		}), []string{"warning dead-letters", runs}, []string{"2 messages could not be handled; the newest of 2026-09-07 03:00 UTC: bad data"}},
	})
}

func TestNATS(t *testing.T) {
	see := func(edit func(*doctor.NATS)) func() []doctor.Finding {
		return func() []doctor.Finding {
			n := doctor.NATS{Servers: "nats://nats.example.org", Running: true, Streams: []doctor.Stream{{Name: "EVENTS", Clustered: true, Replicas: 3, Current: 3, Leader: "n1"}}}
			edit(&n)
			return n.Judge()
		}
	}
	const runs = "ok running"
	run(t, []judged{
		{"fine", see(func(*doctor.NATS) {}), []string{runs}, nil},
		{"down", see(func(n *doctor.NATS) { n.Fault = "no servers" }), []string{"problem bus"}, nil},
		{"one replica", see(func(n *doctor.NATS) { n.Streams[0].Replicas, n.Streams[0].Current = 1, 1 }), []string{"warning bus-replicas", runs}, nil},
		{"one server alone", see(func(n *doctor.NATS) { n.Streams[0] = doctor.Stream{Name: "EVENTS", Replicas: 1, Current: 1} }), []string{runs}, nil},
		{"behind", see(func(n *doctor.NATS) { n.Streams[0].Current = 2 }), []string{"warning bus-replicas", runs}, nil},
		{"no leader", see(func(n *doctor.NATS) { n.Streams[0].Leader = "" }), []string{"problem bus-health", runs}, nil},
		{"not as configured", see(func(n *doctor.NATS) { n.Wanted = 5 }), []string{"info bus-replicas", runs}, nil},
		{"fresh", see(func(n *doctor.NATS) { n.Streams, n.Missing, n.Running = nil, []string{"EVENTS", "WORK"}, false }), []string{"info bus", "info running"}, nil},
		{"unknown", see(func(n *doctor.NATS) { n.RunningFault = "x" }), []string{"unknown running"}, nil},
	})
}
