//go:build e2e

package actions_test

import (
	"context"
	_ "embed"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"signalbox/test/realserver"
	"signalbox/test/realserver/actions"
	"signalbox/test/realserver/seed"
)

//go:embed testdata/renovate.yaml
var renovateWorkflow string

// TestRenovateWorkflow runs Renovate as its workflow says, once dispatched and once by schedule, and reads
// from Gitea what became of it. The schedule has no inputs, so that the second run is none without effects.
func TestRenovateWorkflow(t *testing.T) {
	ctx := limit(t, 5*time.Minute)
	owner := user(ctx, t)
	repo, err := seed.PlantOutdated(ctx, gitea, owner, user(ctx, t), "home")
	must(t, err)
	h := move(ctx, t, gitea, owner, repo.Name)
	_, err = h.api.CreateRepoActionSecret(owner.Name, "home", "RENOVATE_TOKEN", sdk.CreateOrUpdateSecretOption{Data: repo.Token})
	must(t, err)
	head := h.push(ctx, t, "main", map[string]string{".gitea/workflows/renovate.yaml": renovateWorkflow})
	pulls := func() int {
		t.Helper()
		all, _, err := h.api.ListRepoPullRequests(owner.Name, "home", sdk.ListPullRequestsOptions{})
		must(t, err)
		return len(all)
	}

	id := h.dispatch(ctx, t, "renovate.yaml", nil)
	lines := h.renovate(ctx, t, repo.Token)
	run := h.run(t, id)
	if run.Event != "workflow_dispatch" || run.Path != "renovate.yaml@refs/heads/main" || run.HeadSha != head || run.HeadBranch != "main" {
		t.Errorf("run %+v", run)
	}
	if run.Status != "completed" || run.Conclusion != "success" {
		t.Errorf("the run is %s, %s", run.Status, run.Conclusion)
	}
	if got := log(ctx, t, h, id); !slices.Equal(got, lines) {
		t.Errorf("the log is not what was sent (-want +got):\n%s", cmp.Diff(lines, got))
	}
	if !contains(lines, "DRY-RUN: Would commit files to branch "+seed.UpdateBranch) || pulls() != 0 {
		t.Errorf("the dispatched run was not dry; there are %d pull requests and the log is:\n%s", pulls(), strings.Join(lines, "\n"))
	}

	h.schedule(ctx, t)
	lines = h.renovate(ctx, t, repo.Token)
	if !contains(lines, "PR created") || pulls() != 1 {
		t.Errorf("the scheduled run was dry; there are %d pull requests and the log is:\n%s", pulls(), strings.Join(lines, "\n"))
	}
}

// renovate takes the next job, runs Renovate with the environment of its step and returns the lines as they
// have to be in the log.
func (h home) renovate(ctx context.Context, t *testing.T, token string) []string {
	t.Helper()
	task := h.next(ctx, t)
	env, err := task.Env(0)
	must(t, err)
	var variables, lines []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		variables = append(variables, name+"="+env[name])
	}
	registry := realserver.StartRegistry(seed.Packages())
	defer registry.Close()
	code, err := realserver.Renovate(ctx, realserver.RenovateOptions{
		Options: realserver.Options{Dir: t.TempDir()}, Gitea: h.gitea, Repository: h.name, Registry: registry.URL, Env: variables,
		Line: func(line string) error {
			lines = append(lines, strings.ReplaceAll(line, token, "***"))
			return task.Log(ctx, line)
		},
	})
	must(t, err)
	result := actions.Success
	if code != 0 {
		result = actions.Failure
	}
	must(t, task.Finish(ctx, result))
	return append(lines, "🏁  Job succeeded")
}

var stamp = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z) `)

// log returns the lines of the log of a run with one job, without their times, which must not go back.
func log(ctx context.Context, t *testing.T, h home, run int64) []string {
	t.Helper()
	jobs := h.jobs(t, run)
	if len(jobs) != 1 {
		t.Fatalf("run %d has %d jobs", run, len(jobs))
	}
	status, body := h.logOf(ctx, t, jobs[0].ID)
	if status != http.StatusOK {
		t.Fatalf("the log is answered with %d: %s", status, body)
	}
	var lines []string
	before := ""
	for line := range strings.Lines(body) {
		time := stamp.FindStringSubmatch(line)
		if time == nil || time[1] < before {
			t.Fatalf("after %s comes the line %q", before, line)
		}
		before = time[1]
		lines = append(lines, strings.TrimSuffix(line[len(time[0]):], "\n"))
	}
	return lines
}

func contains(lines []string, part string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, part) })
}
