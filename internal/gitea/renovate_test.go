package gitea_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/secret"
)

const (
	workflowPath = ".gitea/workflows/renovate.yaml"
	// plainWorkflow uses neither secrets nor variables.
	plainWorkflow = `
on:
  workflow_dispatch:
  schedule: [{cron: "0 4 * * *"}]
jobs:
  renovate:
    runs-on: ubuntu-latest
    steps: [{run: npx renovate, env: {RENOVATE_DRY_RUN: full}}]
`
	// fullWorkflow has a job before Renovate's.
	fullWorkflow = `
on:
  workflow_dispatch:
    inputs: {dryRun: {default: full}}
  schedule: [{cron: "0 4 * * *"}]
jobs:
  preflight:
    runs-on: ubuntu-latest
    steps: [{run: echo ok}]
  renovate:
    needs: preflight
    runs-on: ubuntu-latest
    steps:
      - run: npx renovate
        env:
          RENOVATE_DRY_RUN: ${{ inputs.dryRun || vars.DRY_RUN }}
          RENOVATE_TOKEN: ${{ secrets.RENOVATE_TOKEN }}
          GITHUB_COM_TOKEN: ${{ secrets.GITHUB_COM_TOKEN }}
`
	dashboardBody = "## Rate-Limited\n\n - [ ] <!-- unlimit-branch=renovate/a -->Update a\n - [ ] <!-- unlimit-branch=renovate/b -->Update b\n"
)

// renovateWorld is a repository in whose workflow Renovate runs.
type renovateWorld struct {
	*world

	runner giteatest.Runner
}

func newRenovateWorld(t *testing.T, file, workflow string) *renovateWorld {
	t.Helper()
	w := &renovateWorld{world: newWorld(t, giteatest.Options{Clock: ticking(), MaxItems: 5})}
	_, _, err := w.CreateUser(t.Context(), "renovate")
	w.must(err)
	w.runner, err = w.Register(t.Context(), w.repo, "runner")
	w.must(err)
	w.put(file, workflow)
	return w
}

// put writes a file to main.
func (w *renovateWorld) put(file, content string) string {
	w.t.Helper()
	sha, err := w.Push(w.t.Context(), w.repo, giteatest.Push{As: "bot", Branch: "main", Files: map[string]string{file: content}})
	w.must(err)
	return sha
}

// dispatch starts a run on a branch.
func (w *renovateWorld) dispatch(branch string, jobs ...giteatest.NewJob) int64 {
	w.t.Helper()
	if len(jobs) == 0 {
		jobs = []giteatest.NewJob{{Name: "renovate"}}
	}
	id, err := w.Run(w.t.Context(), w.repo, giteatest.NewRun{
		Workflow: "renovate.yaml", Event: "workflow_dispatch", Branch: branch, As: "alice", Jobs: jobs,
	})
	w.must(err)
	return id
}

// work lets the runner do the next job.
func (w *renovateWorld) work(conclusion string, lines ...string) {
	w.t.Helper()
	_, err := w.runner.Next(w.t.Context())
	w.must(err)
	w.must(w.runner.Log(w.t.Context(), lines...))
	w.must(w.runner.Finish(w.t.Context(), conclusion))
}

// renovateLog is what a real Renovate wrote about the repository of the tests.
func renovateLog(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "renovate", "testdata", "logs", name))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "boss/infra", "bot/home.gitops")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// read reads the fact, which takes a number of calls.
func (w *renovateWorld) read(before *fact.Renovate, calls int) *fact.Renovate {
	w.t.Helper()
	w.ResetCalls()
	got, err := w.client.RenovateOf(w.t.Context(), w.repo, "main", "renovate.yaml", []string{"nobody", "Renovate"}, before)
	w.must(err)
	if n := w.TotalCalls(); n != calls {
		w.t.Errorf("%d calls, want %d: %v", n, calls, w.Calls())
	}
	return &got
}

// restart makes a client that remembers nothing.
func (w *renovateWorld) restart() {
	w.t.Helper()
	_, token, err := w.CreateUser(w.t.Context(), "another")
	w.must(err)
	w.must(w.Grant(w.t.Context(), w.repo, "another", giteatest.Admin))
	w.client, err = gitea.New(gitea.Config{URL: w.URL(), Token: secret.New(token), Pause: time.Millisecond}, nil, nil)
	w.must(err)
}

func TestRenovateOf(t *testing.T) {
	w := newRenovateWorld(t, workflowPath, fullWorkflow)
	ctx := t.Context()
	w.must(w.SetSecret(ctx, w.repo, "renovate_token", "hidden"))
	w.must(w.SetVariable(ctx, w.repo, "dry_run", "full"))
	_, err := w.OpenIssue(ctx, w.repo, "alice", "Dependency Dashboard", "## Open\n\n - [ ] <!-- rebase-branch=x -->Not Renovate's\n")
	w.must(err)
	issue, err := w.OpenIssue(ctx, w.repo, "renovate", "Dependency Dashboard", dashboardBody)
	w.must(err)

	none := w.read(nil, 6)
	if none.Last != nil || none.Running != nil || none.Missing {
		t.Errorf("before any run: %+v", none)
	}
	jobs := []giteatest.NewJob{{Name: "preflight"}, {Name: "renovate", Needs: []string{"preflight"}}}
	id := w.dispatch("main", jobs...)
	if got := w.read(none, 3); got.Last != nil || got.Running == nil || got.Running.Mode != fact.RenovateUnknown {
		t.Errorf("while it waits: %+v", got)
	}
	w.work("success", "ok")
	w.work("success", renovateLog(t, "full-info.jsonl")...)
	// Runs, jobs, the file at the commit (2), the log, the file, variables, secrets,
	// dashboard of two accounts.
	got := w.read(none, 10)
	head, err := w.Tip(ctx, w.repo, "main")
	w.must(err)
	want := &fact.Renovate{
		Last: &fact.RenovateRun{
			ID: "1", URL: w.URL() + "bot/home.gitops/actions/runs/1", Event: "workflow_dispatch", Branch: "main", Commit: head,
			Conclusion: "success", Job: "renovate", Mode: fact.RenovateFull, Version: "39.264.1",
			Proof: []string{
				"line 4: DRY-RUN: Would commit files to branch renovate/is-number-7.x",
				"line 5: DRY-RUN: Would close Dependency Dashboard",
				"line 6: DRY-RUN: Would save repository cache.",
			},
			Branches: []string{"renovate/is-number-7.x"},
		},
		Configured: fact.RenovateConfigured{
			Schedules: []string{"0 4 * * *"}, OnSchedule: "full", ByHand: "full",
		},
		Dashboard: map[string]int{"rate-limited": 2},
	}
	last := *got.Last
	if last.Started.IsZero() || !last.Completed.After(last.Started) {
		t.Errorf("started at %v, completed at %v", last.Started, last.Completed)
	}
	last.Started, last.Completed = time.Time{}, time.Time{}
	told := *got
	told.Last, told.Configured.Why = &last, ""
	if d := cmp.Diff(want, &told); d != "" {
		t.Errorf("fact (-want +got):\n%s", d)
	}
	if why := got.Configured.Why; !strings.Contains(why, "by schedule: ") || !strings.Contains(why, "by hand: ") {
		t.Errorf("why: %q", why)
	}

	if again := w.read(got, 3); !cmp.Equal(got, again) {
		t.Errorf("with nothing new (-want +got):\n%s", cmp.Diff(got, again))
	}
	// A log that is known is not read again, even if Gitea has lost it.
	w.must(w.ExpireLogs(ctx, w.repo, id))
	w.restart()
	again := w.read(got, 9)
	if !cmp.Equal(got.Last, again.Last) || w.Calls()["GET /repos/{owner}/{repo}/actions/jobs/{id}/logs"] != 0 {
		t.Errorf("after a start: %+v, calls %v", again.Last, w.Calls())
	}
	if !strings.Contains(again.Configured.Why, "owner") || again.Configured.OnSchedule != fact.RenovateUnknown {
		t.Errorf("where variables may not be seen: %+v", again.Configured)
	}

	w.must(w.EditIssue(ctx, w.repo, issue, dashboardBody, false))
	w.dispatch("main")
	w.work("success", renovateLog(t, "live-empty.jsonl")...)
	live := w.read(again, 8)
	if live.Last.Mode != fact.RenovateLive || live.Dashboard != nil || !slices.Equal(live.Last.Pulls, []string{"#1 Update dependency is-number to v7"}) {
		t.Errorf("a live run: %+v, dashboard %v", live.Last, live.Dashboard)
	}
}

func TestRenovateQuietly(t *testing.T) {
	for name, tt := range map[string]struct {
		file                 string
		first, quiet, moving int
	}{
		"in the first folder":  {workflowPath, 6, 2, 5},
		"in the second folder": {".github/workflows/renovate.yaml", 8, 3, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRenovateWorld(t, tt.file, plainWorkflow)
			w.dispatch("main")
			w.work("success", renovateLog(t, "full-info.txt")...)
			first := w.read(nil, tt.first)
			if first.Missing || first.Last.Mode != fact.RenovateFull || first.Configured.OnSchedule != "full" {
				t.Errorf("fact %+v", first)
			}
			if got := w.read(first, tt.quiet); !cmp.Equal(first, got) {
				t.Errorf("with nothing new (-want +got):\n%s", cmp.Diff(first, got))
			}
			w.dispatch("main")
			waiting := w.read(first, tt.quiet)
			if waiting.Running == nil || waiting.Running.ID != "2" || !cmp.Equal(waiting.Last, first.Last) {
				t.Errorf("while a run waits: %+v", waiting)
			}
			w.work("failure", renovateLog(t, "bad-token.jsonl")...)
			got := w.read(waiting, tt.moving+1)
			if got.Last.ID != "2" || got.Last.Conclusion != "failure" || len(got.Last.Failures) == 0 || got.Running != nil {
				t.Errorf("after a failure: %+v", got.Last)
			}
		})
	}
}

func TestRenovateFile(t *testing.T) {
	w := newRenovateWorld(t, "README.md", "Home\n")
	missing := w.read(nil, 6)
	if !missing.Missing || !strings.Contains(missing.Configured.Problem, "renovate.yaml") || missing.Last != nil {
		t.Errorf("without a file: %+v", missing)
	}
	w.put(".github/workflows/renovate.yaml", plainWorkflow)
	second := w.read(missing, 3)
	if second.Missing || second.Configured.Problem != "" {
		t.Errorf("in the second folder: %+v", second)
	}
	// The first folder is there now, so the second one does not count.
	w.put(".gitea/workflows/other.yaml", plainWorkflow)
	if got := w.read(second, 3); !got.Missing {
		t.Errorf("with a first folder: %+v", got)
	}
	w.put(workflowPath, strings.Replace(plainWorkflow, "full", `""`, 1))
	if got := w.read(second, 2); got.Missing || got.Configured.OnSchedule != fact.RenovateLive {
		t.Errorf("in both folders: %+v", got)
	}
	for name, content := range map[string]string{"no YAML": "on: [", "too large": "#" + strings.Repeat("x", 3<<20)} {
		w.put(workflowPath, content)
		if got := w.read(second, 2); got.Missing || got.Configured.Problem == "" || got.Configured.OnSchedule != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRenovateSecretsAndVariables(t *testing.T) {
	w := newRenovateWorld(t, workflowPath, fullWorkflow)
	ctx := t.Context()
	first := w.read(nil, 6)
	if c := first.Configured; !slices.Equal(c.MissingSecrets, []string{"RENOVATE_TOKEN"}) || c.OnSchedule != fact.RenovateUnknown || !strings.Contains(c.Why, "DRY_RUN") {
		t.Errorf("without secret and variable: %+v", c)
	}
	w.must(w.SetSecret(ctx, w.repo, "RENOVATE_TOKEN", "hidden"))
	w.must(w.SetVariable(ctx, w.repo, "DRY_RUN", "lookup"))
	// A secret is looked for as long as it is missing.
	second := w.read(first, 4)
	if c := second.Configured; c.MissingSecrets != nil || c.OnSchedule != fact.RenovateLookup {
		t.Errorf("with both: %+v", c)
	}
	w.read(second, 3)
	w.Fail(func(r *http.Request) *giteatest.Response {
		if strings.HasSuffix(r.URL.Path, "/issues") {
			return &giteatest.Response{Code: 403, Body: "{}"}
		}
		return nil
	})
	if got := w.read(nil, 6); got.Dashboard != nil || got.Configured.OnSchedule != fact.RenovateLookup {
		t.Errorf("without the right to see issues: %+v", got)
	}
}
