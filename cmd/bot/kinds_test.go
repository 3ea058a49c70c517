package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/fact"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// kindWorld is a world whose policy has the given preconditions and no other
// rule.
func kindWorld(t *testing.T, preconditions string) *world {
	t.Helper()
	w := newWorld(t, worldOptions{files: map[string]string{
		policy.Path: "version: 1\npreconditions:\n" + preconditions,
	}})
	return w
}

func TestStatusesOfTheHeadAreFollowed(t *testing.T) {
	w := kindWorld(t, `  - {name: conformance ran, paths: ["apps/**"], status: {context: "ci / *"}}`)
	w.start(worldOptions{})
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	other := w.open("b", map[string]string{"docs/b.md": "b\n"})
	w.shows(number, "pending", "success", "Status ci / * was never reported on")
	w.shows(other, "success", "success")
	p, err := w.eyes.Pull(t.Context(), w.repo, number)
	w.must(err)
	post := func(sha, context, state string) {
		t.Helper()
		w.must(w.forge.SetStatus(t.Context(), w.repo, sha, "carol", pull.Status{Context: context, State: state, Description: "in a test"}))
	}
	w.quiet()
	w.forge.ResetCalls()
	post(p.Head.SHA, "ci / build", "success")
	w.shows(number, "success", "success", "Status ci / build is success on")
	w.quiet()
	t.Logf("a status that clears: %v", w.forge.Calls())
	// One reading of the statuses, and what a changed verdict costs. The test
	// itself looks by calls of another account, which are counted too.
	if n := w.forge.Calls()["GET /repos/{owner}/{repo}/commits/{ref}/statuses"]; n > 6 {
		t.Errorf("the statuses were read %d times", n)
	}
	post(p.Head.SHA, "ci / test", "skipped")
	w.shows(number, "pending", "success", "Status ci / test is skipped (in a test), posted by carol")

	w.quiet()
	evaluated := w.evaluations()
	w.forge.ResetCalls()
	post(p.Base.SHA, "ci / build", "failure")
	post(p.Head.SHA, "lint", "failure")
	w.quiet()
	// What is not on the head is not read; what is on it and is not asked about
	// changes no verdict.
	if n, calls := w.evaluations()-evaluated, w.forge.TotalCalls(); n > 1 || calls > 1 {
		t.Errorf("statuses that nobody asks about led to %d evaluations and %d calls: %v", n, calls, w.forge.Calls())
	}
	for i := range 35 {
		post(p.Head.SHA, fmt.Sprintf("ci / part %d", i), "success")
	}
	post(p.Head.SHA, "ci / test", "success")
	w.shows(number, "success", "success", "37 accepted statuses on")
}

// TestStatusDuringTheFirstVerdict: what changes while the first verdict is
// published is not lost.
func TestStatusDuringTheFirstVerdict(t *testing.T) {
	w := kindWorld(t, `  - {name: conformance ran, status: {context: "ci"}}`)
	w.start(worldOptions{})
	sha, err := w.forge.Push(t.Context(), w.repo, giteatest.Push{Branch: "b", From: "main", As: "bob", Files: map[string]string{"c": "d"}, Message: "b"})
	w.must(err)
	post := func(state string) {
		w.must(w.forge.SetStatus(t.Context(), w.repo, sha, "carol", pull.Status{Context: "ci", State: state}))
	}
	post("success")
	held, release := w.holdComment()
	number, err := w.forge.OpenPull(t.Context(), w.repo, giteatest.NewPull{As: "bob", Title: "x", Head: "b", Base: "main"})
	w.must(err)
	<-held
	post("failure")
	k := fact.StatusesKey(w.repo.ID, sha)
	w.eventually("the webhook is handled", func() string {
		if f, ok := w.app.bus.Facts().Lookup(k); !ok || f.Statuses == nil || f.Statuses.Statuses[0].State != "failure" {
			return "the fact is the former one"
		}
		return ""
	})
	release()
	w.shows(number, "pending", "success", "Status ci is failure")
}

// TestWindowClosesBeforeTheMerge: time alone can close the gate between the
// verdict and the merge.
func TestWindowClosesBeforeTheMerge(t *testing.T) {
	now := time.Now().UTC()
	const form = "2006-01-02 15:04"
	span := now.Add(time.Hour).Format(form) + "-" + now.Add(5*time.Hour).Format(form)
	w := newWorld(t, worldOptions{files: map[string]string{
		policy.Path: "version: 1\nmerge: {enabled: true}\npreconditions:\n  - {name: hours, window: {deny: \"" + span + "\"}}\n",
	}})
	w.start(worldOptions{})
	var ahead atomic.Int64
	w.app.evaluator.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	w.shows(number, "success", "success", "closes at")
	w.quiet()
	w.forge.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/comments/") {
			// The verdict is made, and now the window closes.
			ahead.Store(int64(2 * time.Hour))
		}
		return nil
	})
	w.say(number, "bob", "/merge")
	w.shows(number, "pending", "success", "it opens at")
	p, err := w.eyes.Pull(t.Context(), w.repo, number)
	w.must(err)
	if p.State != pull.Open {
		t.Errorf("it is %s after the window has closed", p.State)
	}
}

// TestProposalAsksNothing: a policy that is not merged has nothing read, and
// tells nothing of what is known.
func TestProposalAsksNothing(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.cluster.Serve(kubetest.Volumes)
	w.must(w.cluster.Apply(volume("secret-name", "degraded")))
	w.start(worldOptions{})
	number := w.open("a", map[string]string{policy.Path: "version: 1\npreconditions:\n" + volumesRule})
	s := w.shows(number, "success", "pending", "Under its own it would be", "unknown: volumes are healthy")
	if strings.Contains(s.comments[0].Body, "secret") || len(w.app.demand.Index.Wishes()) > 0 {
		t.Errorf("it was read, and the comment says\n%s", s.comments[0].Body)
	}
}

// TestStatusesOfANewHead: a new head is not judged by the statuses of the former
// one, and what happens while signalbox is away is found when it is back.
func TestStatusesOfANewHead(t *testing.T) {
	w := kindWorld(t, `  - {name: conformance ran, status: {context: "ci"}}`)
	w.start(worldOptions{})
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	p, err := w.eyes.Pull(t.Context(), w.repo, number)
	w.must(err)
	w.must(w.forge.SetStatus(t.Context(), w.repo, p.Head.SHA, "carol", pull.Status{Context: "ci", State: "success"}))
	w.shows(number, "success", "success")
	first := fact.StatusesKey(w.repo.ID, p.Head.SHA)
	sha := w.push("a", map[string]string{"apps/b.yaml": "b: 1\n"})
	w.shows(number, "pending", "success", "Status ci was never reported on "+sha[:10])
	w.stop()
	w.must(w.forge.SetStatus(t.Context(), w.repo, sha, "carol", pull.Status{Context: "ci", State: "success"}))
	w.must(w.forge.Settle(t.Context()))
	w.start(worldOptions{})
	w.shows(number, "success", "success")
	if w.app.demand.Index.Wished(first) {
		t.Error("the statuses of the former head are still wished for")
	}
}

func volume(name, robustness string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
		"metadata": map[string]any{"namespace": "longhorn-system", "name": name},
		"status":   map[string]any{"state": "attached", "robustness": robustness},
	}}
}

const volumesRule = `  - name: volumes are healthy
    objects: {kind: volumes.longhorn.io, namespace: longhorn-system, all: 'object.status.state != "attached" || object.status.robustness == "healthy"'}
`

func TestObjectsAreFollowed(t *testing.T) {
	w := kindWorld(t, volumesRule)
	w.cluster.Serve(kubetest.Volumes)
	w.start(worldOptions{})
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	w.shows(number, "pending", "success", "there are 0, and there should be at least 1")
	w.must(w.cluster.Apply(volume("a", "healthy")))
	w.must(w.cluster.Apply(volume("b", "degraded")))
	w.shows(number, "pending", "success", "1 does not pass: longhorn-system/b")
	w.must(w.cluster.Apply(volume("b", "healthy")))
	w.shows(number, "success", "success", "all pass")

	// What comes and goes and is as it should be is no news.
	w.quiet()
	w.forge.ResetCalls()
	for i := range 200 {
		w.must(w.cluster.Apply(volume(fmt.Sprint("more-", i), "healthy")))
	}
	w.quiet()
	if n := w.forge.TotalCalls(); n != 0 {
		t.Errorf("healthy volumes led to %d calls: %v", n, w.forge.Calls())
	}
	w.must(w.cluster.Apply(volume("more-100", "faulted")))
	w.shows(number, "pending", "success", "1 does not pass: longhorn-system/more-100")
}

func TestObjectsThatMayNotBeRead(t *testing.T) {
	w := kindWorld(t, volumesRule)
	w.cluster.Serve(kubetest.Volumes)
	w.must(w.cluster.Apply(volume("a", "healthy")))
	w.cluster.Break(func(_ context.Context, r kubetest.Request) error {
		if !strings.HasPrefix(r.Resource, "volumes") {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Group: "longhorn.io", Resource: "volumes"}, "", errors.New("no role allows it"))
	})
	w.start(worldOptions{})
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	w.shows(number, "pending", "success", "Resource volumes.longhorn.io in longhorn-system on prod cannot be watched since", "list")
	w.cluster.Break(nil)
	w.shows(number, "success", "success", "all pass")
}

func node(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
	}}
}

func kured(lock string) *unstructured.Unstructured {
	meta := map[string]any{"namespace": "kube-system", "name": "kured"}
	if lock != "" {
		meta["annotations"] = map[string]any{fact.DefaultKuredLock: lock}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta}}
}

func TestKuredIsFollowed(t *testing.T) {
	w := kindWorld(t, `  - {name: no node is rebooting, kured: {daemonSet: kube-system/kured}}`+"\n")
	w.cluster.Serve(kubetest.Nodes, kubetest.DaemonSets)
	w.must(w.cluster.Apply(node("node-1")))
	w.must(w.cluster.Apply(kured("")))
	w.start(worldOptions{})
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	w.shows(number, "success", "success", "No node of prod is rebooting")
	w.must(w.cluster.Apply(kured(`{"nodeID":"node-1","metadata":{"unschedulable":false},"created":"2026-09-07T02:44:00Z","TTL":0}`)))
	w.shows(number, "pending", "success", "Kured holds its lock for node-1 since 2026-09-07 02:44 UTC on prod")
	w.must(w.cluster.Apply(kured("")))
	w.shows(number, "success", "success")
}

func TestWorkflowsAreFollowed(t *testing.T) {
	w := newWorld(t, worldOptions{files: map[string]string{
		policy.Path:                         "version: 1\npreconditions:\n  - {name: conformance ran, workflow: {file: conformance.yaml}}\n",
		".gitea/workflows/conformance.yaml": "on: [pull_request]\n",
	}})
	ctx := t.Context()
	w.start(worldOptions{})
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	w.shows(number, "pending", "success", "Workflow conformance.yaml never ran on")
	_, err := w.forge.Run(ctx, w.repo, giteatest.NewRun{
		Workflow: "conformance.yaml", Event: "pull_request", Pull: number, As: "bob",
		Jobs: []giteatest.NewJob{{Name: "build"}, {Name: "conformance", Needs: []string{"build"}}},
	})
	w.must(err)
	w.shows(number, "pending", "success", "has not ended", "no runner is known to be online")
	runner, err := w.forge.Register(ctx, w.repo, "one")
	w.must(err)
	finish := func(job, conclusion string) {
		t.Helper()
		name, err := runner.Next(ctx)
		w.must(err)
		if name != job {
			t.Fatalf("the job is %s, want %s", name, job)
		}
		w.must(runner.Finish(ctx, conclusion))
	}
	finish("build", "success")
	finish("conformance", "skipped")
	w.shows(number, "pending", "success", "skipped its job conformance, although it says success")
	_, err = w.forge.Run(ctx, w.repo, giteatest.NewRun{
		Workflow: "conformance.yaml", Event: "pull_request", Pull: number, As: "bob",
		Jobs: []giteatest.NewJob{{Name: "conformance"}},
	})
	w.must(err)
	finish("conformance", "success")
	w.shows(number, "success", "success", "ended with success", "1 of 1 job ran")
}

// renovateWorkflow has an input that a schedule leaves empty.
const renovateWorkflow = `on:
  schedule: [{cron: "0 4 * * *"}]
  workflow_dispatch: {inputs: {dryRun: {default: full}}}
jobs:
  renovate:
    runs-on: ubuntu-latest
    steps:
      - run: renovate
        env: {RENOVATE_DRY_RUN: "${{ inputs.dryRun }}"}
`

func TestRenovateIsFollowed(t *testing.T) {
	w := newWorld(t, worldOptions{files: map[string]string{
		policy.Path:                      "version: 1\npreconditions:\n  - {name: only dry runs, renovate: {workflow: renovate.yaml, mode: dry-run}}\n",
		".gitea/workflows/renovate.yaml": renovateWorkflow,
	}})
	ctx := t.Context()
	w.start(worldOptions{})
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	w.shows(number, "pending", "success", "Renovate in renovate.yaml has never run")
	runner, err := w.forge.Register(ctx, w.repo, "one")
	w.must(err)
	run := func(event, conclusion string, log ...string) {
		t.Helper()
		_, err := w.forge.Run(ctx, w.repo, giteatest.NewRun{
			Workflow: "renovate.yaml", Event: event, As: "alice", Jobs: []giteatest.NewJob{{Name: "renovate"}},
		})
		w.must(err)
		_, err = runner.Next(ctx)
		w.must(err)
		w.must(runner.Log(ctx, log...))
		w.must(runner.Finish(ctx, conclusion))
	}
	const line = `{"name":"renovate","hostname":"runner","pid":1,"level":30,"logContext":"x","repository":"ops/home-gitops","msg":%q,"time":"2026-09-07T02:44:00.000Z","v":0}`
	run("workflow_dispatch", "success", fmt.Sprintf(line, "Repository started"), fmt.Sprintf(line, "DRY-RUN: Would create branch renovate/left-pad-1.x"), fmt.Sprintf(line, "Repository finished"))
	w.shows(number, "success", "success", "was a dry run (full)")
	run("schedule", "success", fmt.Sprintf(line, "Repository started"), fmt.Sprintf(line, "Branch created"), fmt.Sprintf(line, "PR created"), fmt.Sprintf(line, "Repository finished"))
	w.shows(number, "pending", "success", "was a live run, not a dry run")
	run("workflow_dispatch", "skipped")
	w.shows(number, "pending", "success", "skipped its job renovate, so nothing ran")
}

func TestDependenciesAreFollowed(t *testing.T) {
	w := kindWorld(t, `  - {name: what it depends on, dependsOn: {applied: true}}`+"\n")
	ctx := t.Context()
	w.ready()
	w.start(worldOptions{})
	first := w.open("first", map[string]string{"apps/a.yaml": "a: 1\n"})
	second := w.open("second", map[string]string{"apps/b.yaml": "b: 1\n"})
	w.must(w.forge.EditPull(ctx, w.repo, second, "bob", giteatest.Edit{Body: fmt.Sprintf("Words.\n\nDepends-On: #%d\n", first)}))
	w.shows(first, "success", "success", "The description names no dependency")
	w.shows(second, "pending", "success", fmt.Sprintf("Pull request #%d (Move the profile) is not merged yet", first))
	_, err := w.forge.Merge(ctx, w.repo, first, "alice")
	w.must(err)
	w.shows(second, "pending", "success", fmt.Sprintf("Pull request #%d is merged, but not applied on prod yet by flux-system/platform-config", first))
	w.ready()
	w.shows(second, "success", "success", fmt.Sprintf("Pull request #%d is merged, and applied on prod", first))
}
