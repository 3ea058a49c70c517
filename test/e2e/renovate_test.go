//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/actions"
	"signalbox/test/realserver/seed"
)

// pipeline is what runs the workflows of a stage.
type pipeline struct {
	t      *testing.T
	st     *stage
	alice  *sdk.Client
	runner *actions.Runner
}

// newPipeline registers a runner for the repository of a stage.
func newPipeline(t *testing.T, st *stage) *pipeline {
	t.Helper()
	runner, err := actions.Register(t.Context(), world.Gitea, actions.Options{Owner: st.repo.Alice, Repository: st.repo.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := runner.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return &pipeline{t: t, st: st, alice: client(t, st.repo, st.repo.Alice), runner: runner}
}

// dispatch starts a workflow of main as alice does by hand.
func (p *pipeline) dispatch(workflow string, inputs map[string]string) {
	p.t.Helper()
	_, _, err := p.alice.DispatchRepoActionWorkflow(p.st.repo.Owner, p.st.repo.Name, workflow,
		sdk.CreateActionWorkflowDispatchOption{Ref: "main", Inputs: inputs}, true)
	if err != nil {
		p.t.Fatalf("dispatch %s: %v", workflow, err)
	}
}

// next takes the next job.
func (p *pipeline) next() *actions.Task {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	task, err := p.runner.Next(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	return task
}

func (p *pipeline) finish(task *actions.Task, r actions.Result) {
	p.t.Helper()
	if err := task.Finish(p.t.Context(), r); err != nil {
		p.t.Fatal(err)
	}
}

// renovate takes the next job and runs the real Renovate as it says.
func (p *pipeline) renovate() {
	p.t.Helper()
	ctx := p.t.Context()
	task := p.next()
	env, err := task.Env(0)
	if err != nil {
		p.t.Fatal(err)
	}
	var variables []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		variables = append(variables, name+"="+env[name])
	}
	registry := realserver.StartRegistry(seed.Packages())
	defer registry.Close()
	code, err := realserver.Renovate(ctx, realserver.RenovateOptions{
		Options: realserver.Options{Dir: p.t.TempDir()}, Gitea: world.Gitea, Repository: p.st.repo.String(),
		Registry: registry.URL, Env: variables,
		Line: func(line string) error { return task.Log(ctx, line) },
	})
	if err != nil {
		p.t.Fatal(err)
	}
	result := actions.Success
	if code != 0 {
		result = actions.Failure
	}
	p.finish(task, result)
}

const renovateWorkflow = `name: Renovate
on:
  workflow_dispatch: {inputs: {dryRun: {default: full}}}
  schedule: [{cron: "0 4 1 1 *"}]
jobs:
  renovate:
    runs-on: ubuntu-latest
    env: {RENOVATE_DRY_RUN: "${{ inputs.dryRun }}"}
    steps:
      - name: Run Renovate
        run: renovate
        env: {RENOVATE_TOKEN: "${{ secrets.RENOVATE_TOKEN }}", LOG_FORMAT: "${{ vars.LOG_FORMAT || 'json' }}"}
`

// TestRenovate: what the last run of the real Renovate was decides, and never
// the status of its run.
func TestRenovate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	account, err := world.User(ctx, "renovate")
	if err != nil {
		t.Fatal(err)
	}
	st := plantStage(t, seed.Options{Policy: `version: 1
preconditions:
  - name: only dry runs
    paths: ["docs/**"]
    renovate: {workflow: renovate.yaml, mode: dry-run, maxAge: 36h}
  - name: and the schedule too
    paths: ["apps/**"]
    renovate: {workflow: renovate.yaml, mode: dry-run, next: true}
`})
	p := newPipeline(t, st)
	if _, err := p.alice.AddTeamMember(st.repo.Writers, account.Name); err != nil {
		t.Fatal(err)
	}
	token, err := world.Gitea.CreateToken(ctx, account, world.Name(t), "write:repository", "write:issue", "read:user", "read:organization")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.alice.CreateRepoActionSecret(st.repo.Owner, st.repo.Name, "RENOVATE_TOKEN", sdk.CreateOrUpdateSecretOption{Data: token}); err != nil {
		t.Fatal(err)
	}
	st.push(t, "main", "", write(
		"package.json", "{\n  \"dependencies\": { \"left-pad\": \"1.1.0\" }\n}\n",
		"renovate.json", "{\n  \"extends\": [\"config:recommended\"]\n}\n",
		".gitea/workflows/renovate.yaml", renovateWorkflow,
	))
	st.bot = newBot(t, st.repo, settings{extra: "bots: [renovate]\n"})
	st.bot.start()
	docs := st.open(t, "docs", write("docs/a.md", "a\n"))
	docs.shows(patience, "pending", "success", "Renovate in renovate.yaml has never run")

	p.dispatch("renovate.yaml", nil)
	p.renovate()
	docs.shows(patience, "success", "success", "was a dry run (full)", "it would touch 1 branch", seed.UpdateBranch)
	apps := st.open(t, "apps", write("apps/a.yaml", "a: 1\n"))
	apps.shows(patience, "pending", "success", "will be a live run when the schedule starts it next (0 4 1 1 *)")

	p.dispatch("renovate.yaml", nil)
	p.finish(p.next(), actions.Skipped)
	docs.shows(patience, "pending", "success", "skipped its job renovate, so nothing ran")

	// From here on its log is for people to read.
	if _, err := p.alice.CreateRepoActionVariable(st.repo.Owner, st.repo.Name, "LOG_FORMAT", "pretty"); err != nil {
		t.Fatal(err)
	}
	p.dispatch("renovate.yaml", map[string]string{"dryRun": "extract"})
	p.renovate()
	docs.shows(patience, "success", "success", "was a dry run (extract)")

	p.dispatch("renovate.yaml", map[string]string{"dryRun": ""})
	p.renovate()
	docs.shows(patience, "pending", "success", "was a live run, not a dry run", seed.UpdateBranch)

	// Renovate has opened a pull request of its own, which is judged like others.
	st.explains(t, docs, 1, "├─ last completed run: ", "mode: live", "proof: ", "by schedule: live", "by hand: full")
}

// explains asks the command check about a pull request, and looks for texts in
// what it says.
func (st *stage) explains(t *testing.T, p *page, code int, texts ...string) string {
	t.Helper()
	out, errOut, got := st.bot.command("check", "--explain", fmt.Sprintf("%s#%d", st.repo, p.number))
	if got != code {
		t.Errorf("check ends with %d, want %d:\n%s%s", got, code, out, errOut)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("check does not say %q:\n%s", text, out)
		}
	}
	return out
}

const conformanceWorkflow = `on: [pull_request]
jobs:
  conformance:
    runs-on: ubuntu-latest
    steps: [{run: conformance}]
`

// TestWorkflowAndStatus: a run of a workflow on the head, and the status that it
// posts. Skipped passes for neither.
func TestWorkflowAndStatus(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: `version: 1
preconditions:
  - {name: it ran, workflow: {file: conformance.yaml, events: [pull_request]}}
  - {name: it says so, status: {context: "*conformance*", by: [gitea-actions]}}
`}, settings{})
	p := newPipeline(t, st)
	st.push(t, "main", "", write(".gitea/workflows/conformance.yaml", conformanceWorkflow))
	pr := st.open(t, "a", write("apps/a.yaml", "a: 1\n"))
	pr.shows(patience, "pending", "success", "has not ended: it is queued")
	p.finish(p.next(), actions.Skipped)
	pr.shows(patience, "pending", "success", "skipped its job conformance, although it says", "is skipped")
	st.push(t, "a", "", write("apps/a.yaml", "a: 2\n"))
	p.finish(p.next(), actions.Success)
	pr.shows(patience, "success", "success", "ended with success", "1 of 1 job ran", "is success on")
	st.push(t, "a", "", write("apps/a.yaml", "a: 3\n"))
	p.finish(p.next(), actions.Failure)
	pr.shows(patience, "pending", "success", "ended with failure in its job conformance", "is failure")
}
