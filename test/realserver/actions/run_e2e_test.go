//go:build e2e

package actions_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"signalbox/test/realserver/actions"
)

var (
	//go:embed testdata/check.yaml
	checkWorkflow string
	//go:embed testdata/simple.yaml
	simpleWorkflow string
)

// unset is how Gitea writes a time that is not set.
var unset = time.Unix(0, 0).UTC()

// pull opens a pull request that brings the workflow check and returns its head and its run.
func (h home) pull(ctx context.Context, t *testing.T) (head string, run int64) {
	t.Helper()
	must(t, h.clone.Branch(ctx, "change", "origin/main"))
	head = h.push(ctx, t, "change", map[string]string{".gitea/workflows/check.yaml": checkWorkflow})
	owner, name, _ := strings.Cut(h.name, "/")
	_, _, err := h.api.CreatePullRequest(owner, name, sdk.CreatePullRequestOption{Head: "change", Base: "main", Title: "A change"})
	must(t, err)
	h.until(ctx, t, "/actions/runs?event=pull_request", func(body string) bool { return strings.Contains(body, `"total_count":1`) })
	runs, _, err := h.api.ListRepoActionRuns(owner, name, sdk.ListRepoActionRunsOptions{HeadSHA: head})
	must(t, err)
	if len(runs.WorkflowRuns) != 1 {
		t.Fatalf("the head has %d runs", len(runs.WorkflowRuns))
	}
	return head, runs.WorkflowRuns[0].ID
}

// check works on the jobs of the workflow check: lint fails, never is skipped.
func (h home) check(ctx context.Context, t *testing.T) {
	t.Helper()
	for range 2 {
		task := h.next(ctx, t)
		wanted, err := task.Wanted()
		must(t, err)
		if want := task.Job.ID == "lint"; wanted != want {
			t.Errorf("job %s is wanted: %t", task.Job.ID, wanted)
		}
		if !wanted {
			must(t, task.Finish(ctx, actions.Skipped))
			continue
		}
		must(t, task.Log(ctx, "a.yaml:3: too long"))
		must(t, task.Finish(ctx, actions.Failure))
	}
}

func TestRunOnPullRequest(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{"README.md": "home\n"})
	head, id := h.pull(ctx, t)
	run := h.run(t, id)
	if run.Event != "pull_request" || run.Path != "check.yaml@refs/pull/1/head" || run.HeadSha != head || run.HeadBranch != "" {
		t.Errorf("run %+v", run)
	}
	h.check(ctx, t)
	h.until(ctx, t, fmt.Sprintf("/actions/runs/%d/jobs?status=skipped", id), func(body string) bool { return strings.Contains(body, `"total_count":2`) })

	type job struct {
		name, status, conclusion string
		taken                    bool
		attempt                  int64
	}
	var got []job
	for _, j := range h.jobs(t, id) {
		got = append(got, job{j.Name, j.Status, j.Conclusion, j.RunnerID == h.runner.ID, j.RunAttempt})
		for _, step := range j.Steps {
			if step.Status != j.Status || step.Conclusion != j.Conclusion {
				t.Errorf("step %s of %s is %s, %s", step.Name, j.Name, step.Status, step.Conclusion)
			}
		}
		if started := !j.StartedAt.Equal(unset); started != (j.RunnerID != 0) {
			t.Errorf("job %s started at %s", j.Name, j.StartedAt)
		}
	}
	want := []job{
		{"lint", "completed", "failure", true, 1},
		{"never", "completed", "skipped", true, 1},
		{"after", "completed", "skipped", false, 0},
		{"elsewhere", "queued", "", false, 0},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(job{})); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if run := h.run(t, id); run.Status != "queued" || run.RunAttempt != 0 {
		t.Errorf("the run is %s in attempt %d", run.Status, run.RunAttempt)
	}
}

func TestRerun(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{".gitea/workflows/simple.yaml": simpleWorkflow})
	id := h.dispatch(ctx, t, "simple.yaml", nil)
	task := h.next(ctx, t)
	must(t, task.Log(ctx, "the first attempt"))
	must(t, task.Finish(ctx, actions.Failure))
	first := h.jobs(t, id)[0]
	if first.Conclusion != "failure" || first.RunAttempt != 1 {
		t.Errorf("the first attempt: %+v", first)
	}

	if status, body := h.ask(ctx, t, h.owner.Token, http.MethodPost, fmt.Sprintf("/actions/runs/%d/rerun", id), ""); status != http.StatusCreated {
		t.Fatalf("rerun: %d %s", status, body)
	}
	waiting := h.jobs(t, id)[0]
	if waiting.ID != first.ID || waiting.Status != "queued" || waiting.Conclusion != "" || waiting.RunAttempt != 1 || !waiting.StartedAt.Equal(unset) {
		t.Errorf("between the attempts: %+v", waiting)
	}
	if status, body := h.logOf(ctx, t, first.ID); status != http.StatusNotFound || !strings.Contains(body, "job not started") {
		t.Errorf("the log between the attempts: %d %s", status, body)
	}
	task = h.next(ctx, t)
	must(t, task.Log(ctx, "the second attempt"))
	must(t, task.Finish(ctx, actions.Success))
	if second := h.jobs(t, id)[0]; second.ID != first.ID || second.Conclusion != "success" || second.RunAttempt != 2 {
		t.Errorf("the second attempt: %+v", second)
	}
	if diff := cmp.Diff([]string{"the second attempt", "🏁  Job succeeded"}, log(ctx, t, h, id)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// TestCancelledRun lets a newer run of the same group take the place of one whose job runs.
func TestCancelledRun(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	alone := strings.Replace(simpleWorkflow, "jobs:", "concurrency: {group: simple, cancel-in-progress: true}\njobs:", 1)
	h := settle(ctx, t, map[string]string{".gitea/workflows/simple.yaml": alone})
	id := h.dispatch(ctx, t, "simple.yaml", nil)
	task := h.next(ctx, t)
	must(t, task.Log(ctx, "working"))
	newer := h.dispatch(ctx, t, "simple.yaml", nil)
	if err := task.Log(ctx, "still working"); !errors.Is(err, actions.ErrCancelled) {
		t.Errorf("a cancelled job reports %v", err)
	}
	if run, job := h.run(t, id), h.jobs(t, id)[0]; run.Conclusion != "cancelled" || job.Conclusion != "cancelled" {
		t.Errorf("the run is %s and its job %s", run.Conclusion, job.Conclusion)
	}
	must(t, h.next(ctx, t).Finish(ctx, actions.Success))
	if run := h.run(t, newer); run.Conclusion != "success" {
		t.Errorf("the newer run is %s, %s", run.Status, run.Conclusion)
	}
}

// TestCancelledBeforeItIsOver shows that a run counts as completed when one job is cancelled, whatever the
// others do.
func TestCancelledBeforeItIsOver(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{"README.md": "home\n"})
	_, id := h.pull(ctx, t)
	must(t, h.next(ctx, t).Finish(ctx, actions.Cancelled))
	running := h.next(ctx, t)
	if run := h.run(t, id); run.Status != "completed" || run.Conclusion != "cancelled" {
		t.Errorf("the run is %s, %s", run.Status, run.Conclusion)
	}
	if jobs := h.jobs(t, id); jobs[1].Status != "in_progress" || jobs[3].Status != "queued" {
		t.Errorf("jobs are %s and %s", jobs[1].Status, jobs[3].Status)
	}
	must(t, running.Finish(ctx, actions.Success))
}

func TestFiltersOfRuns(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{
		".gitea/workflows/simple.yaml": simpleWorkflow, ".gitea/workflows/renovate.yaml": renovateWorkflow,
	})
	dispatched := h.dispatch(ctx, t, "simple.yaml", nil)
	must(t, h.next(ctx, t).Finish(ctx, actions.Success))
	head, pulled := h.pull(ctx, t)
	h.schedule(ctx, t)
	_, body := h.get(ctx, t, "/actions/runs?event=schedule")
	scheduled := ids(t, body)[0]
	if run := h.run(t, scheduled); run.Event != "push" || run.Actor.UserName != "gitea-actions" {
		t.Errorf("the scheduled run says event %s and actor %s", run.Event, run.Actor.UserName)
	}

	all := []int64{scheduled, pulled, dispatched}
	tests := []struct {
		query  string
		status int
		want   []int64
	}{
		{"", 200, all},
		{"head_sha=" + head, 200, []int64{pulled}},
		{"head_sha=" + head[:10], 200, nil},
		{"event=workflow_dispatch", 200, []int64{dispatched}},
		{"event=pull_request", 200, []int64{pulled}},
		{"event=schedule", 200, []int64{scheduled}},
		{"event=push", 200, nil},
		{"status=completed", 200, []int64{dispatched}},
		{"status=success", 200, []int64{dispatched}},
		{"status=queued", 200, []int64{scheduled, pulled}},
		{"status=queued&status=success", 200, all},
		{"status=unheard-of", 400, nil},
		{"branch=main", 200, []int64{scheduled, dispatched}},
		{"branch=change", 200, nil},
		{"actor=" + url.QueryEscape(h.owner.Name), 200, []int64{pulled, dispatched}},
		{"actor=nobody-at-all", 500, nil},
		{"workflow=simple.yaml", 200, all},
		{"workflow_id=simple.yaml", 200, all},
		{"limit=1&page=2", 200, []int64{pulled}},
		{"page=9", 200, nil},
	}
	for _, tt := range tests {
		status, body := h.get(ctx, t, "/actions/runs?"+tt.query)
		if status != tt.status {
			t.Errorf("%s: %d %s", tt.query, status, body)
			continue
		}
		if status != http.StatusOK {
			continue
		}
		if diff := cmp.Diff(tt.want, ids(t, body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
	}
}

// TestRunners shows that jobs go by labels, what Gitea says of a runner, and that a repository shows only
// those that were registered for it.
func TestRunners(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{"README.md": "home\n"})
	_, id := h.pull(ctx, t)
	gpu, err := actions.Register(ctx, gitea, actions.Options{Owner: h.owner, Repository: h.name, Name: "gpu", Labels: []string{"self-hosted", "gpu"}})
	must(t, err)
	task, err := gpu.Next(ctx)
	must(t, err)
	if job := h.jobs(t, id)[3]; task.Job.ID != "elsewhere" || job.RunnerName != "gpu" {
		t.Errorf("the runner has job %s, and the job has runner %s", task.Job.ID, job.RunnerName)
	}
	runners := func() map[string]string {
		owner, name, _ := strings.Cut(h.name, "/")
		list, _, err := h.api.ListRepoActionRunners(owner, name, sdk.ListActionRunnersOptions{})
		must(t, err)
		got := map[string]string{}
		for _, r := range list.Runners {
			got[r.Name] = fmt.Sprintf("%s, busy %t", r.Status, r.Busy)
		}
		return got
	}
	if diff := cmp.Diff(map[string]string{"runner": "online, busy false", "gpu": "online, busy false"}, runners()); diff != "" {
		t.Errorf("runners (-want +got):\n%s", diff)
	}
	// A runner counts as busy for ten seconds after it has told of a job.
	must(t, task.Log(ctx, "working"))
	if diff := cmp.Diff(map[string]string{"runner": "online, busy false", "gpu": "online, busy true"}, runners()); diff != "" {
		t.Errorf("runners (-want +got):\n%s", diff)
	}
	must(t, task.Finish(ctx, actions.Success))
	must(t, gpu.Close(ctx))
	if diff := cmp.Diff(map[string]string{"runner": "online, busy false"}, runners()); diff != "" {
		t.Errorf("runners (-want +got):\n%s", diff)
	}

	// A runner of the owner takes jobs of the repository and is not in its list.
	must(t, h.runner.Close(ctx))
	owners, err := actions.Register(ctx, gitea, actions.Options{Owner: h.owner, Name: "owners"})
	must(t, err)
	task, err = owners.Next(ctx)
	must(t, err)
	if job := h.jobs(t, id)[0]; job.RunnerName != "owners" {
		t.Errorf("job %s has runner %q", job.Name, job.RunnerName)
	}
	if got := runners(); len(got) != 0 {
		t.Errorf("the repository shows %v", got)
	}
	must(t, task.Finish(ctx, actions.Success))
	must(t, owners.Close(ctx))
}

// ids returns the ids of a list of runs, in its order.
func ids(t *testing.T, body string) []int64 {
	t.Helper()
	var list sdk.ActionWorkflowRunsResponse
	must(t, json.Unmarshal([]byte(body), &list))
	var found []int64
	for _, run := range list.WorkflowRuns {
		found = append(found, run.ID)
	}
	return found
}
