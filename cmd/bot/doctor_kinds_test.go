package main

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/doctor"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/kube"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// kindsClinic is a clinic of a running signalbox whose policy has the given
// preconditions, with nothing else to be said.
func kindsClinic(t *testing.T, preconditions string, files map[string]string) *clinic {
	t.Helper()
	all := map[string]string{
		policy.Path: "version: 1\npreconditions:\n" + preconditions +
			"approvals: [{name: owners, from: {users: [alice, carol]}}]\noverride: {from: {users: [alice]}}\n",
	}
	maps.Copy(all, files)
	c := newClinic(t, all)
	c.protect(nil)
	c.start(worldOptions{})
	return c
}

const clusterKinds = `  - {name: volumes are healthy, objects: {kind: volumes.longhorn.io, namespace: longhorn-system}}
  - {name: nodes are ready, objects: {kind: nodes}}
  - {name: no node is rebooting, kured: {daemonSet: kube-system/kured}}
  - {name: only dry runs, renovate: {cronJob: renovate/renovate, mode: dry-run}}
`

// remedy returns that of a finding.
func (c *clinic) remedy(check string) string {
	c.t.Helper()
	findings, _ := c.look()
	i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Check == check && f.Severity == doctor.Problem })
	if i < 0 {
		c.t.Fatalf("there is no problem of %s", check)
	}
	return findings[i].Remedy
}

func TestDoctorOfWhatClustersAreAsked(t *testing.T) {
	c := kindsClinic(t, clusterKinds, nil)
	c.cluster.Serve(kubetest.Nodes, kubetest.DaemonSets, kubetest.CronJobs, kubetest.Jobs)
	c.excess = wishRight
	same(t, []string{
		`warning cluster-resources: precondition "volumes are healthy" is unknown until it is installed: the cluster has no resource volumes.longhorn.io; it has no API group longhorn.io`,
		`warning cluster-objects: precondition "no node is rebooting" asks about daemonsets.apps kured in kube-system, which does not exist`,
		`warning cluster-objects: precondition "only dry runs" asks about cronjobs.batch renovate in renovate, which does not exist`,
	}, c.examine())

	c.cluster.Serve(kubetest.Volumes)
	c.must(c.cluster.Apply(kured("")))
	c.excess = func(r kube.Right) bool { return wishRight(r) && r.Resource != "nodes" && r.Resource != "cronjobs" }
	got := c.examine()
	same(t, []string{
		`problem cluster-rights: each of the preconditions "nodes are ready", "no node is rebooting" and "only dry runs" reads what the account may not: ` +
			`list, watch nodes and list, watch cronjobs.batch renovate in renovate`,
	}, got)
	// What is printed gives each role that lacks something, whole, and no other.
	if want := `kubectl apply -f - with this; it replaces what was given by the same names:
apiVersion: v1
kind: List
items:
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: signalbox-preconditions}
    rules:
      - apiGroups: [""]
        resources: [nodes]
        verbs: [list, watch]
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: signalbox-preconditions}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: signalbox-preconditions}
    subjects:
      - kind: ServiceAccount
        name: bot
        namespace: signalbox
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: signalbox-preconditions, namespace: renovate}
    rules:
      - apiGroups: [""]
        resources: [pods]
        verbs: [list]
      - apiGroups: [""]
        resources: [pods/log]
        verbs: [get]
      - apiGroups: [batch]
        resources: [cronjobs]
        resourceNames: [renovate]
        verbs: [list, watch]
      - apiGroups: [batch]
        resources: [jobs]
        verbs: [list, watch]
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: signalbox-preconditions, namespace: renovate}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: signalbox-preconditions}
    subjects:
      - kind: ServiceAccount
        name: bot
        namespace: signalbox`; c.remedy("cluster-rights") != want {
		t.Errorf("the remedy is\n%s", c.remedy("cluster-rights"))
	}
}

// wishRight reports whether a right is of what the tests ask about.
func wishRight(r kube.Right) bool {
	return slices.Contains([]string{"volumes", "nodes", "daemonsets", "cronjobs", "jobs"}, r.Resource) && slices.Contains([]string{"list", "watch"}, r.Verb) ||
		r.Resource == "pods" && slices.Contains([]string{"list", "get"}, r.Verb)
}

func TestDoctorOfAClusterThatHangs(t *testing.T) {
	c := kindsClinic(t, clusterKinds, nil)
	c.cluster.Serve(kubetest.Nodes)
	c.excess = wishRight
	c.doctor = c.examiner()
	// unknown lets the cluster hang from the first request on that it is to, and the
	// time of the look end there.
	unknown := func(want string, hangs func(kubetest.Request) bool) {
		t.Helper()
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		c.cluster.Break(func(ctx context.Context, r kubetest.Request) error {
			if !hangs(r) {
				return nil
			}
			end(context.DeadlineExceeded)
			return kubetest.Hang(ctx, r)
		})
		findings, _ := c.doctor.look(ctx)
		if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
			return f.Severity == doctor.Unknown && strings.Contains(f.What, want)
		}) {
			t.Errorf("nothing unknown says %q: %+v", want, findings)
		}
	}
	unknown("asks about cannot be read: no answer from the API server in time: discover", func(r kubetest.Request) bool { return r.Verb == "discover" })
	unknown("no answer from the API server in time: list customresourcedefinitions", func(kubetest.Request) bool { return true })
}

func TestDoctorOfWhatFollowsTheRepository(t *testing.T) {
	c := kindsClinic(t, "  - {name: what it depends on, dependsOn: {applied: true}}\n", nil)
	same(t, []string{
		`warning cluster-follows: no Kustomization follows main of ops/home-gitops, and precondition "what it depends on" asks what is applied`,
	}, c.examine())
	c.ready()
	same(t, nil, c.examine())
	c.cluster.Kustomization("flux-system", "platform-config").Ready("other@sha1:" + strings.Repeat("a", 40))
	if got := c.examine(); len(got) != 1 || !strings.HasPrefix(got[0], "warning cluster-follows") {
		t.Errorf("of one that follows another branch: %q", got)
	}
}

func TestDoctorOfActions(t *testing.T) {
	c := kindsClinic(t, `  - {name: conformance ran, workflow: {file: conformance.yaml}}
  - {name: only dry runs, renovate: {workflow: renovate.yaml, mode: dry-run}}
  - {name: ci, status: {context: "ci / *"}}
  - {name: nights, window: {deny: "03:00-06:00", timezone: America/Chicago}}
`, map[string]string{".gitea/workflows/renovate.yaml": renovateWorkflow})
	ctx := t.Context()
	const (
		noFile   = `warning workflow: main has no workflow conformance.yaml, and precondition "conformance ran" asks about it`
		runners  = "info actions-visible: Gitea shows the runners of ops/home-gitops to its owner alone"
		secrets  = "info actions-visible: it is not known which secrets and variables there are: Gitea shows the secrets of ops/home-gitops to its owner alone"
		noStatus = `info status: no status on the tip of main is called "ci / *", which precondition "ci" asks for`
	)
	starts := func(want ...string) {
		t.Helper()
		got := c.examine()
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	starts(noFile, runners, secrets, noStatus)

	c.must(c.forge.Unprotect(ctx, c.repo, "main"))
	sha, err := c.forge.Push(ctx, c.repo, giteatest.Push{
		Branch: "main", As: "alice", Files: map[string]string{".gitea/workflows/conformance.yaml": "on: [pull_request]\n"}, Message: "conformance",
	})
	c.must(err)
	c.protect(nil)
	c.must(c.forge.SetStatus(ctx, c.repo, sha, "carol", pull.Status{Context: "ci / test (push)", State: "success"}))
	c.must(c.forge.SetTeam(ctx, owner, "Owners", "signalbox"))
	c.forge.ResetCalls()
	got := c.examine()
	if len(got) != 1 || !strings.HasPrefix(got[0], "info actions-visible: no runner of ops/home-gitops or its owner is online") {
		t.Errorf("an owner: %q", got)
	}
	if n := c.forge.Calls()["GET /repos/{owner}/{repo}/actions/runs"]; n != 1 {
		t.Errorf("the runs were read %d times", n)
	}
	findings, _ := c.look()
	for _, want := range []string{"main has conformance.yaml and renovate.yaml, and their runs can be read", `precondition "nights", by the clock of America/Chicago: it is`} {
		if !slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.OK && strings.Contains(f.What, want) }) {
			t.Errorf("nothing says %q", want)
		}
	}

	refuse := func(path string, code int, body string) {
		c.forge.Fail(func(r *http.Request) *giteatest.Response {
			if strings.HasSuffix(r.URL.Path, path) {
				return &giteatest.Response{Code: code, Body: body}
			}
			return c.answer(r)
		})
	}
	refuse("/actions/runs", http.StatusForbidden, `{"message":"user should have a permission to read from repo unit Actions"}`)
	if got := c.examine(); !strings.HasPrefix(got[0], "problem actions: the account may not read the runs of workflows") {
		t.Errorf("without the right: %q", got)
	}
	refuse("/actions/runs", http.StatusInternalServerError, "")
	if got := c.examine(); !strings.HasPrefix(got[0], "unknown actions: whether the account may read the runs") {
		t.Errorf("broken: %q", got)
	}
}
