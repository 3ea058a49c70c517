package actions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const workflow = `name: Renovate
on: workflow_dispatch
env: {A: workflow, B: workflow, C: workflow}
jobs:
  renovate:
    if: inputs.dryRun != 'off'
    env: {B: job, C: job}
    steps:
      - name: One
        run: echo
        env:
          C: ${{ secrets.token }}-${{ vars.Kind || 'json' }}
      - run: echo
`

func taskOf(t *testing.T, inputs map[string]any) *Task {
	t.Helper()
	job, err := parseJob([]byte(workflow))
	if err != nil {
		t.Fatal(err)
	}
	return &Task{
		Job: job, Secrets: map[string]string{"TOKEN": "t0ken"},
		Context: map[string]any{"event_name": "workflow_dispatch", "event": map[string]any{"inputs": inputs}},
	}
}

func TestEnv(t *testing.T) {
	task := taskOf(t, nil)
	for step, want := range []map[string]string{
		{"A": "workflow", "B": "job", "C": "t0ken-json"},
		{"A": "workflow", "B": "job", "C": "job"},
	} {
		got, err := task.Env(step)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", step, diff)
		}
	}
	task.Job.Env["A"] = "${{ hashFiles('go.sum') }}"
	if _, err := task.Env(0); err == nil || !strings.Contains(err.Error(), `environment variable A of job renovate: the test runner does not know the expression "hashFiles('go.sum')"`) {
		t.Errorf("got %v", err)
	}
}

func TestWanted(t *testing.T) {
	tests := []struct {
		condition string
		want      bool
	}{
		{"", true},
		{"true", true},
		{"false", false},
		{"${{ github.event_name == 'schedule' }}", false},
		{"github.event_name == 'WORKFLOW_dispatch'", true},
		{"inputs.dryRun", true},
		{"inputs.other", false},
		{"inputs.other || inputs.dryRun", true},
		{"inputs.other && inputs.dryRun", false},
		{"inputs.dryRun == 'full' && gitea.event_name != 'push'", true},
		{"inputs.other == ''", true},
		{"vars.missing == 'x' || 0", false},
		{"secrets.token == 't0ken'", true},
	}
	for _, tt := range tests {
		task := taskOf(t, map[string]any{"dryRun": "full"})
		task.Job.If = tt.condition
		got, err := task.Wanted()
		if err != nil || got != tt.want {
			t.Errorf("%q: %t, %v", tt.condition, got, err)
		}
	}
	for _, bad := range []string{"always()", "matrix.v == 1", "nothing"} {
		task := taskOf(t, nil)
		task.Job.If = bad
		if _, err := task.Wanted(); err == nil {
			t.Errorf("%q was evaluated", bad)
		}
	}
}

func TestParseJobRefusesAWholeWorkflow(t *testing.T) {
	for _, bad := range []string{"jobs: {a: {}, b: {}}", "jobs: {}", "jobs: ["} {
		if _, err := parseJob([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestMaskingHidesTheLongestFirst(t *testing.T) {
	task := &Task{Secrets: map[string]string{"A": "abc", "B": "abcdef", "C": ""}, Context: map[string]any{"token": "tok"}}
	if got := task.masking().Replace("x abcdef abc tok"); got != "x *** *** ***" {
		t.Errorf("got %q", got)
	}
}
