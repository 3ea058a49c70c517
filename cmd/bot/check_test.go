package main

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/kube"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// checker checks pull requests of the world, beside its signalbox or without.
func (w *world) checker() checker {
	w.t.Helper()
	root, err := url.Parse(w.forge.URL())
	w.must(err)
	return checker{
		config:   &config.Config{Gitea: config.Gitea{URL: root, Token: secret.New(w.token), Timeout: 5 * time.Second}},
		clusters: []kube.Config{{Cluster: "prod", Client: w.cluster.Client(), Probe: w.cluster.Probe, Discovery: w.cluster.Discovery()}},
		bus:      bus.Config{Embedded: bus.Embedded{Dir: w.dir}},
		patience: 10 * time.Second,
	}
}

// checks runs a check and returns what it prints, and its exit code.
func (w *world) checks(k checker, number int64, explain bool) (out string, code int) {
	w.t.Helper()
	var b bytes.Buffer
	err := k.command(w.t.Context(), &b, target{owner, repoName, number}, explain)
	var exit exitCode
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return b.String(), int(exit)
}

// has reports which of some texts an output lacks.
func (w *world) has(out string, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			w.t.Errorf("it lacks %q:\n%s", text, out)
		}
	}
}

// changing are the times and commits of an output.
var changing = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{5,8} UTC|\b[0-9a-f]{40}\b|\b[0-9a-f]{10}\b`)

func TestCheckExplains(t *testing.T) {
	w := kindWorld(t, volumesRule+`  - {name: ci has run, status: {context: "ci / *"}}
  - {name: platform-config is Ready, flux: {kustomization: flux-system/platform-config}}
`)
	w.cluster.Serve(kubetest.Volumes)
	w.must(w.cluster.Apply(volume("a", "healthy")))
	w.must(w.cluster.Apply(volume("b", "degraded")))
	w.ready()
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	p, err := w.eyes.Pull(t.Context(), w.repo, number)
	w.must(err)
	w.must(w.forge.SetStatus(t.Context(), w.repo, p.Head.SHA, "carol", pull.Status{Context: "ci / test", State: "success"}))
	w.must(w.forge.SetStatus(t.Context(), w.repo, p.Head.SHA, "carol", pull.Status{Context: "ci / lint", State: "failure", Description: "2 faults"}))
	k := w.checker()
	out, code := w.checks(k, number, true)
	const want = `Waiting for 2 preconditions
  preconditions waiting   volumes are healthy: resource volumes.longhorn.io in longhorn-system on prod: 1 does not pass: longhorn-system/b (and 1 more)
  approval      clear     this change needs no approval

unmet: volumes are healthy (.gitea/signalbox.yaml@X)
└─ unmet: resource volumes.longhorn.io in longhorn-system on prod: 1 does not pass: longhorn-system/b
   ├─ since: X
   ├─ looked at: 2 objects
   ├─ read: X
   ├─ objects: resource volumes.longhorn.io in longhorn-system
   ├─ read as: longhorn.io/v1beta2
   ├─ test: object.status.state != "attached" || object.status.robustness == "healthy"
   └─ do not pass: 1
      └─ longhorn-system/b: since X

unmet: ci has run (.gitea/signalbox.yaml@X)
└─ unmet: status ci / lint is failure (2 faults), posted by carol at X on X
   ├─ since: X
   ├─ read: X
   ├─ ci / lint: failure (2 faults), posted by carol at X
   └─ ci / test: success, posted by carol at X

met: platform-config is Ready (.gitea/signalbox.yaml@X)
└─ met: Kustomization flux-system/platform-config on prod is Ready at X
   ├─ since: X
   ├─ read: X
   ├─ object: Kustomization flux-system/platform-config
   ├─ Ready: True (ReconciliationSucceeded)
   ├─ message: Applied revision: main@sha1:X
   └─ applied revision: main@sha1:X

policies: .gitea/signalbox.yaml@X

The ledger was not read, so approvals by command, overrides, holds and freezes do not count here: no signalbox answers on `
	rest := adminPath(w.dir) + ", which only the user that it runs as may use.\n"
	if diff := cmp.Diff(want+rest, changing.ReplaceAllString(out, "X")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if code != exitNotClear {
		t.Errorf("exit code %d", code)
	}
	k.bus = bus.Config{}
	out, _ = w.checks(k, number, false)
	w.has(out, "unmet           volumes are healthy\n", ": the configuration names no bus.\n")
	if strings.Contains(out, "read as") {
		t.Errorf("without --explain:\n%s", out)
	}
}

func TestCheckOfAPolicyFile(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.cluster.Serve(kubetest.Volumes, kubetest.Nodes, kubetest.DaemonSets)
	w.must(w.cluster.Apply(volume("a", "healthy")))
	w.must(w.cluster.Apply(node("node-1")))
	w.must(w.cluster.Apply(kured("")))
	w.must(w.forge.SetTeam(t.Context(), owner, "storage", "bob", "carol", "signalbox"))
	w.ready()
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	p, err := w.eyes.Pull(t.Context(), w.repo, number)
	w.must(err)
	w.must(w.forge.SetStatus(t.Context(), w.repo, p.Head.SHA, "carol", pull.Status{Context: "ci", State: "success"}))
	k := w.checker()
	if out, code := w.checks(k, number, false); code != 0 || !strings.Contains(out, "Clear to merge") {
		t.Errorf("with the policy of the base: exit code %d\n%s", code, out)
	}
	path := filepath.Join(t.TempDir(), "next.yaml")
	w.must(os.WriteFile(path, []byte("version: 1\npreconditions:\n"+volumesRule+`  - {name: no node is rebooting, kured: {daemonSet: kube-system/kured}}
  - {name: ci has run, status: {context: ci}}
  - {name: conformance ran, workflow: {file: conformance.yaml}}
  - {name: dependencies, dependsOn: {applied: true}}
approvals: [{name: storage, from: {teams: [storage]}}]
`), 0o600))
	k.instead, err = readPolicy(path)
	w.must(err)
	// All of it is wished for by nobody else, and read and waited for all the same.
	out, code := w.checks(k, number, false)
	if code != exitNotClear {
		t.Errorf("exit code %d", code)
	}
	w.has(out, "resource volumes.longhorn.io in longhorn-system on prod: all pass", "no node of prod is rebooting", "status ci is success on",
		"unmet           conformance ran\n", "workflow conformance.yaml never ran on", "the description names no dependency",
		"unmet           storage\n", "needs 1 approval by carol")
	if strings.Contains(out, "platform-config is Ready") {
		t.Errorf("the policy of the base is evaluated too:\n%s", out)
	}
	w.approve(number, "carol")
	out, _ = w.checks(k, number, false)
	w.has(out, "met             storage\n", "approved by carol")
}

// TestCheckOfABadPolicyFile runs the command as a person does. That the exit code
// is 2 is up to main: it is an error.
func TestCheckOfABadPolicyFile(t *testing.T) {
	t.Setenv("SIGNALBOX_GITEA_URL", "http://127.0.0.1:1/")
	t.Setenv("SIGNALBOX_GITEA_TOKEN", "a token")
	t.Setenv("SIGNALBOX_REPOSITORIES", "ops/home-gitops")
	dir := t.TempDir()
	write := func(name, preconditions string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("version: 1\npreconditions:\n"+preconditions), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shape := write("shape.yaml", "  - name: a\n    objects: {kind: nodes, al: x}\n")
	meaning := write("meaning.yaml", "  - name: a\n    kured: {daemonSet: kured}\n  - name: b\n    objects: {kind: nodes, all: 'object.status ='}\n")
	for path, want := range map[string][]string{
		shape:                          {"the policy is not valid:\n" + shape + ":4: ", `unknown field (did you mean "all"?)`},
		meaning:                        {"the policy is not valid:\n" + meaning + ":4: ", `"kured" does not name an object`, "\n" + meaning + ":6: "},
		filepath.Join(dir, "not-here"): {"read the policy: ", "not-here", "no such file"},
	} {
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs([]string{"check", "--policy", path, "ops/home-gitops#1"})
		root.SetOut(&out)
		root.SetErr(&out)
		err := root.ExecuteContext(t.Context())
		var code exitCode
		if err == nil || errors.As(err, &code) {
			t.Fatalf("error %v", err)
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("it lacks %q: %v", text, err)
			}
		}
	}
}

func TestCheckNeverHangs(t *testing.T) {
	w := kindWorld(t, volumesRule+"  - {name: platform-config is Ready, flux: {kustomization: flux-system/platform-config}}\n")
	w.cluster.Serve(kubetest.Volumes)
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	for name, test := range map[string]struct {
		fault kubetest.Fault
		want  []string
	}{
		"all": {kubetest.Hang, []string{"unknown         volumes are healthy\n", "unknown         platform-config is Ready\n", "cluster prod has not been heard from yet"}},
		"one kind": {func(ctx context.Context, r kubetest.Request) error {
			if !strings.HasPrefix(r.Resource, "volumes.") {
				return nil
			}
			return kubetest.Hang(ctx, r)
		}, []string{"unknown         volumes are healthy\n", "the list of resource volumes.longhorn.io in longhorn-system on prod has not arrived yet", "platform-config does not exist on prod"}},
		"discovery": {func(ctx context.Context, r kubetest.Request) error {
			if r.Verb != "discover" {
				return nil
			}
			return kubetest.Hang(ctx, r)
		}, []string{"unknown         volumes are healthy\n", "has not arrived yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.cluster.Break(test.fault)
			k := w.checker()
			k.patience = 300 * time.Millisecond
			start := time.Now()
			out, code := w.checks(k, number, false)
			if took := time.Since(start); code != exitNotClear || took > 20*time.Second {
				t.Errorf("exit code %d after %s", code, took)
			}
			w.has(out, test.want...)
		})
	}
}

func TestCheckReadsTheLedger(t *testing.T) {
	w := newDecidingWorld(t)
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	k := w.checker()
	out, _ := w.checks(k, number, false)
	w.has(out, "The ledger was read: it holds 0 entries of this pull request, and 0 freezes in force in its repository.\n", "needs 1 approval")

	w.reacts(w.say(number, "carol", "/approve"), "+1")
	w.shows(number, "success", "success")
	out, code := w.checks(k, number, true)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.has(out, "approved by carol on", "it holds 1 entry of this pull request, and 0 freezes")

	w.reacts(w.say(number, "bob", "/hold until the backup ran"), "+1")
	other := w.open("other", map[string]string{"docs/a.md": "a\n"})
	w.reacts(w.say(other, "carol", "/freeze 2h restoring"), "+1")
	w.shows(number, "pending", "pending", "Held by bob")
	out, code = w.checks(k, number, false)
	if code != exitNotClear {
		t.Errorf("exit code %d", code)
	}
	w.has(out, "held by bob: until the backup ran", "frozen by carol until", "restoring", "it holds 2 entries of this pull request, and 1 freeze in force in its repository.")
	out, _ = w.checks(k, other, false)
	w.has(out, "frozen by carol until", "it holds 1 entry of this pull request, and 1 freeze in force")

	w.stop()
	out, _ = w.checks(k, number, false)
	w.has(out, "needs 1 approval", "The ledger was not read")
	if strings.Contains(out, "held by") {
		t.Errorf("without the ledger:\n%s", out)
	}
}

// TestCheckOfAPullRequestThatChangesThePolicy: it is judged by the policy of the
// base, and told what its own would say.
func TestCheckOfAPullRequestThatChangesThePolicy(t *testing.T) {
	w := kindWorld(t, `  - {name: ci has run, status: {context: ci}}`+"\n")
	good := w.open("good", map[string]string{policy.Path: "version: 1\npreconditions: [{name: late, window: {allow: \"2026-01-01 08:00-2026-01-01 09:00\"}}]\n"})
	bad := w.open("bad", map[string]string{policy.Path: "version: 1\npreconditions: 7\n"})
	k := w.checker()
	out, _ := w.checks(k, good, true)
	w.has(out, "unmet: ci has run", "by the policy in this pull request\n├─ preconditions waiting: unmet: late\n", "└─ approval clear: ")
	out, _ = w.checks(k, bad, true)
	w.has(out, "the policy in this pull request is not valid\n└─ .gitea/signalbox.yaml@")
}
