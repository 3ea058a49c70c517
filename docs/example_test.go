package docs

import (
	"slices"
	"strings"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

var (
	exampleNow   = time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC)
	exampleSince = exampleNow.Add(-90 * time.Minute)
)

const (
	exampleHead = "5c0ffee51ab1e5c0ffee51ab1e5c0ffee51ab1e5"
	exampleBase = "f21e89d9d20c4f2b9a6d1e7e5a5f4c3b2a190817"
)

// exampleFacts are what an example is evaluated in.
type exampleFacts []fact.Fact

// Lookup implements precondition.Facts.
func (fs exampleFacts) Lookup(k fact.Key) (fact.Fact, bool) {
	i := slices.IndexFunc(fs, func(f fact.Fact) bool { return f.Key == k })
	if i < 0 {
		return fact.Fact{}, false
	}
	return fs[i], true
}

// Select implements precondition.Facts.
func (fs exampleFacts) Select(source, scope, kind string) []fact.Fact {
	out := slices.DeleteFunc(slices.Clone(fs), func(f fact.Fact) bool {
		return f.Key.Source != source || f.Key.Scope != scope || f.Key.Kind != kind
	})
	slices.SortFunc(out, func(a, b fact.Fact) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return out
}

// exampleInput is a pull request on a cluster that is heard from, with facts.
func exampleInput(facts ...fact.Fact) policy.Input {
	facts = append(facts,
		fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{}},
		fact.Fact{Key: fact.ClusterKey("prod"), Cluster: &fact.Cluster{Kinds: map[string]fact.Watch{"kustomization": {State: fact.WatchSynced}}}},
	)
	for i := range facts {
		if facts[i].Since.IsZero() {
			facts[i].Since = exampleSince
		}
		facts[i].SeenAt = exampleNow.Add(-time.Minute)
	}
	return policy.Input{
		Snapshot: &pull.Snapshot{
			Pull: pull.Pull{
				Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Number: 12, State: pull.Open,
				Title: "Profile the storage", Body: "Depends-On: #41", URL: "https://gitea.example.org/ops/home-gitops/pulls/12",
				Author: pull.Person{ID: 2, Login: "bob"},
				Head:   pull.Branch{Name: "profile", SHA: exampleHead}, Base: pull.Branch{Name: "main", SHA: exampleBase},
			},
			Files: []pull.File{{Path: "platform-config/profile.yaml", Change: pull.Modified}},
		},
		Facts: exampleFacts(facts), Clusters: []string{"prod"}, Now: exampleNow,
	}
}

// examples has one of each kind. What is given reads on as "..., it says".
var examples = map[string]example{
	"flux": {
		given: "While the CustomResourceDefinition of a StorageProfile is not installed",
		policy: `version: 1
preconditions:
  - name: platform-config is Ready
    paths: ["platform-config*/**", "clusters/**"]
    flux: {kustomization: flux-system/platform-config, contains: base, settle: 10m}
`,
		input: func() policy.Input {
			return exampleInput(fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "platform-config"), Flux: &fact.Flux{
				Generation: 3, ObservedGeneration: 3, Applied: "main@sha1:" + exampleBase, Attempted: "main@sha1:" + exampleBase,
				Ready: fact.Condition{Status: fact.False, Reason: "ReconciliationFailed", Message: `StorageProfile/longhorn dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`},
			}})
		},
	},
	"renovate": {
		given: "When the last run was started by the schedule, which leaves RENOVATE_DRY_RUN empty",
		policy: `version: 1
preconditions:
  - name: Renovate has only been dry-run
    paths: [renovate.json, ".gitea/workflows/renovate.yaml", "platform-config/**"]
    renovate: {workflow: renovate.yaml, mode: dry-run, maxAge: 36h, next: true}
`,
		input: func() policy.Input {
			return exampleInput(fact.Fact{Key: fact.RenovateKey(7, "renovate.yaml"), Renovate: &fact.Renovate{
				Last: &fact.RenovateRun{
					ID: "41", Event: "schedule", Conclusion: "success", Job: "renovate", Branch: "main", Commit: exampleBase,
					URL:     "https://gitea.example.org/ops/home-gitops/actions/runs/41",
					Started: exampleSince.Add(-2 * time.Minute), Completed: exampleSince,
					Mode: fact.RenovateLive, Proof: []string{"Branch created", "PR created"},
					Branches: []string{"renovate/left-pad-1.x"}, Pulls: []string{"Update dependency left-pad to v1.3.0"}, Version: "39.264.1",
				},
				Configured: fact.RenovateConfigured{
					Schedules: []string{"0 4 * * *"}, OnSchedule: fact.RenovateLive, ByHand: fact.RenovateFull,
					Why: "RENOVATE_DRY_RUN is ${{ inputs.dryRun }}, which a schedule leaves empty",
				},
				Dashboard: map[string]int{"rate-limited": 3},
			}})
		},
	},
	"status": {
		given: "When the workflow was skipped, which Gitea takes for a success",
		policy: `version: 1
preconditions:
  - name: conformance really ran
    status: {context: "gate / conformance*", accept: [success], by: [gitea-actions]}
`,
		input: func() policy.Input {
			return exampleInput(fact.Fact{Key: fact.StatusesKey(7, exampleHead), Statuses: &fact.Statuses{Statuses: []fact.Status{
				{Context: "gate / conformance (pull_request)", State: "skipped", Description: "Has been skipped", At: exampleSince},
			}}})
		},
	},
	"workflow": {
		given: "While the run waits for a runner",
		policy: `version: 1
preconditions:
  - name: conformance ran on this head
    workflow: {file: conformance.yaml, events: [pull_request], jobs: ["conformance*"]}
`,
		input: func() policy.Input {
			return exampleInput(
				fact.Fact{Key: fact.RunsKey(7, "conformance.yaml", exampleHead), Runs: &fact.Runs{Runs: []fact.Run{{
					ID: 52, Number: 9, Workflow: "conformance.yaml", Event: "pull_request", Branch: "profile", Commit: exampleHead, Actor: "bob",
					URL: "https://gitea.example.org/ops/home-gitops/actions/runs/9", Status: "queued", Created: exampleSince,
					Jobs: []fact.Job{{Name: "conformance", Status: "queued"}},
				}}}},
				fact.Fact{Key: fact.ActionsKey(7), Actions: &fact.Actions{Runners: []fact.Runner{{Name: "one"}}}},
			)
		},
	},
	"kured": {
		given: "While a node is being rebooted",
		policy: `version: 1
preconditions:
  - name: no node is rebooting
    kured: {daemonSet: kube-system/kured}
`,
		input: func() policy.Input {
			q := fact.KuredQuery{Namespace: "kube-system", Name: "kured"}
			return exampleInput(fact.Fact{Key: fact.KuredKey("prod", q), Kured: &fact.Kured{
				Watch: fact.Watch{State: fact.WatchSynced},
				Locks: []fact.KuredLock{{Node: "node-2", Since: exampleSince, Until: exampleSince.Add(2 * time.Hour)}},
			}})
		},
	},
	"objects": {
		given: "While one volume rebuilds a replica",
		policy: `version: 1
preconditions:
  - name: volumes are healthy
    objects:
      kind: volumes.longhorn.io
      namespace: longhorn-system
      all: 'object.status.state != "attached" || object.status.robustness == "healthy"'
`,
		input: func() policy.Input {
			q := fact.ObjectsQuery{
				Resource: "volumes.longhorn.io", Namespace: "longhorn-system",
				Test: `object.status.state != "attached" || object.status.robustness == "healthy"`,
			}
			return exampleInput(fact.Fact{Key: fact.ObjectsKey("prod", q), Objects: &fact.Objects{
				Query: q, Watch: fact.Watch{State: fact.WatchSynced}, Version: "longhorn.io/v1beta2",
				Passing: fact.ObjectSet{Count: 36},
				Failing: fact.ObjectSet{Count: 1, Notes: []fact.ObjectNote{{Namespace: "longhorn-system", Name: "pvc-media", Since: exampleSince}}},
			}})
		},
	},
	"window": {
		given: "In the night of a Sunday to a Monday in Chicago",
		policy: `version: 1
preconditions:
  - name: outside the reboot window
    window: {deny: ["03:00-06:00", "Fri 16:00-Mon 07:00"], timezone: America/Chicago}
`,
		input: func() policy.Input { return exampleInput() },
	},
	"dependsOn": {
		given: "When the description says `Depends-On: #41`, and that is merged but not applied by all",
		policy: `version: 1
preconditions:
  - name: what it depends on is merged and applied
    dependsOn: {applied: true}
`,
		input: func() policy.Input {
			const merged = "0123456789abcdef0123456789abcdef01234567"
			in := exampleInput(
				fact.Fact{Key: fact.PullKey("ops", "home-gitops", 41), Pull: &fact.Pull{
					Repo: "ops/home-gitops", RepoID: 7, Number: 41, Title: "Install CDI", State: fact.PullMerged, Base: "main",
					MergeCommit: merged, MergedAt: exampleSince, URL: "https://gitea.example.org/ops/home-gitops/pulls/41",
				}},
				fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "platform"), Flux: &fact.Flux{Applied: "main@sha1:" + merged}},
				fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "platform-config"), Flux: &fact.Flux{Applied: "main@sha1:" + exampleBase}},
			)
			in.Answers = map[policy.Ask]policy.Answer{{Applied: exampleBase, Needed: merged}: "not-contained"}
			return in
		},
	},
}
