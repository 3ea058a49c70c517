//go:build e2e

package realserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// TestRenovate runs Renovate in every way that a dry run can be asked for, or be missed, and looks at what
// it says and at what it does.
func TestRenovate(t *testing.T) {
	dryRun := []string{
		"Repository started", "Dependency extraction complete",
		"DRY-RUN: Would commit files to branch " + seed.UpdateBranch, "DRY-RUN: Would ensure Dependency Dashboard",
		"DRY-RUN: Would save repository cache.", "Repository finished",
	}
	const token = "RENOVATE_TOKEN=%token%" // Replaced by the bot's.
	tests := []struct {
		name string
		env  []string
		code int
		want []string // Messages in their order, without the remark about the log's level.
		live bool     // A branch, a pull request and a dashboard are made.
	}{
		{name: "full", env: []string{token, "RENOVATE_DRY_RUN=full"}, want: dryRun},
		{name: "lookup", env: []string{token, "RENOVATE_DRY_RUN=lookup"}, want: []string{
			"Repository started", "Dependency extraction complete", "Repository finished",
		}},
		{name: "extract", env: []string{token, "RENOVATE_DRY_RUN=extract"}, want: []string{
			"Repository started", "Dependency extraction complete", "Extracted dependencies", "Repository finished",
		}},
		{
			name: "true", env: []string{token, "RENOVATE_DRY_RUN=true"},
			want: append([]string{"env config dryRun property has been changed to full"}, dryRun...),
		},
		{name: "a word that Renovate does not know", env: []string{token, "RENOVATE_DRY_RUN=please"}, want: dryRun},
		{name: "empty", env: []string{token, "RENOVATE_DRY_RUN="}, live: true, want: []string{
			"Repository started", "Dependency extraction complete", "Branch created", "PR created", "Repository finished",
		}},
		{name: "false", env: []string{token, "RENOVATE_DRY_RUN=false"}, live: true, want: []string{
			"env config dryRun property has been changed to null",
			"Repository started", "Dependency extraction complete", "Branch created", "PR created", "Repository finished",
		}},
		{name: "no token", env: []string{"RENOVATE_DRY_RUN=full"}, code: 1, want: []string{
			"Initialization error", "Renovate is exiting with a non-zero code due to the following logged errors",
		}},
		{name: "bad token", env: []string{"RENOVATE_TOKEN=0123456789", "RENOVATE_DRY_RUN=full"}, code: 1, want: []string{
			"Initialization error", "Renovate is exiting with a non-zero code due to the following logged errors",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := limit(t, 3*time.Minute)
			repo := outdated(ctx, t)
			code, lines := renovate(ctx, t, repo, append(tt.env, "LOG_FORMAT=json")...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if diff := cmp.Diff(tt.want, messages(t, lines)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			branches, pulls, issues := made(ctx, t, repo)
			want := 0
			if tt.live {
				want = 1
			}
			if branches != 1+want || pulls != want || issues != want {
				t.Errorf("there are %d branches, %d pull requests and %d issues", branches, pulls, issues)
			}
		})
	}
}

// TestRenovateLogs looks at the two forms of the log, at both levels.
func TestRenovateLogs(t *testing.T) {
	ctx := limit(t, 3*time.Minute)
	repo := outdated(ctx, t)
	has := func(lines []string, part string) bool {
		for _, line := range lines {
			if strings.Contains(line, part) {
				return true
			}
		}
		return false
	}
	for name, tt := range map[string]struct {
		env   []string
		parts []string
		level string // Of the debug log: what names the dry run.
	}{
		"json":   {env: []string{"LOG_FORMAT=json"}, parts: []string{`"msg":"DRY-RUN: Would commit files to branch ` + seed.UpdateBranch + `"`}, level: `"dryRun":"full"`},
		"pretty": {parts: []string{" INFO: DRY-RUN: Would commit files to branch " + seed.UpdateBranch}, level: `"dryRun": "full"`},
	} {
		for _, level := range []string{"info", "debug"} {
			t.Run(name+" "+level, func(t *testing.T) {
				code, lines := renovate(ctx, t, repo, append(tt.env, "RENOVATE_DRY_RUN=full", "RENOVATE_TOKEN=%token%", "LOG_LEVEL="+level)...)
				if code != 0 {
					t.Errorf("exit code %d", code)
				}
				for _, part := range tt.parts {
					if !has(lines, part) {
						t.Errorf("no line has %s", part)
					}
				}
				if got := has(lines, tt.level); got != (level == "debug") {
					t.Errorf("a line with %s: %t", tt.level, got)
				}
				if has(lines, repo.Token) {
					t.Error("the token is in the log")
				}
			})
		}
	}
}

// TestRenovateWithNothingLeft runs Renovate live a second time: it has nothing to do and says nothing from
// which one could tell that it was not a dry run.
func TestRenovateWithNothingLeft(t *testing.T) {
	ctx := limit(t, 3*time.Minute)
	repo := outdated(ctx, t)
	for range 2 {
		code, lines := renovate(ctx, t, repo, "RENOVATE_TOKEN=%token%", "LOG_FORMAT=json")
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, lines)
		}
		if _, pulls, _ := made(ctx, t, repo); pulls != 1 {
			t.Errorf("there are %d pull requests", pulls)
		}
		if len(lines) < 4 {
			t.Errorf("the log has %d lines", len(lines))
		}
	}
	_, lines := renovate(ctx, t, repo, "RENOVATE_TOKEN=%token%", "LOG_FORMAT=json")
	want := []string{"Repository started", "Dependency extraction complete", "Repository finished"}
	if diff := cmp.Diff(want, messages(t, lines)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func outdated(ctx context.Context, t *testing.T) seed.Outdated {
	t.Helper()
	name := world.Name(t)
	owner, err := world.User(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	bot, err := world.User(ctx, "renovate")
	if err != nil {
		t.Fatal(err)
	}
	repo, err := seed.PlantOutdated(ctx, world.Gitea, owner, bot, name)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// renovate runs Renovate on a repository and returns its exit code and the lines of its log.
func renovate(ctx context.Context, t *testing.T, repo seed.Outdated, env ...string) (int, []string) {
	t.Helper()
	registry := realserver.StartRegistry(seed.Packages())
	defer registry.Close()
	for i := range env {
		env[i] = strings.ReplaceAll(env[i], "%token%", repo.Token)
	}
	var lines []string
	code, err := realserver.Renovate(ctx, realserver.RenovateOptions{
		Options: realserver.Options{Dir: t.TempDir()}, Gitea: world.Gitea, Repository: repo.Name, Registry: registry.URL, Env: env,
		Line: func(line string) error { lines = append(lines, line); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return code, lines
}

// messages returns the messages of a log in JSON, without the remark about the level at its end.
func messages(t *testing.T, lines []string) []string {
	t.Helper()
	var found []string
	for _, line := range lines {
		var entry struct {
			Message string `json:"msg"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("%v in %s", err, line)
			continue
		}
		if !strings.HasPrefix(entry.Message, "Renovate was run at log level") {
			found = append(found, entry.Message)
		}
	}
	return found
}

// made counts what is in the repository.
func made(ctx context.Context, t *testing.T, repo seed.Outdated) (branches, pulls, issues int) {
	t.Helper()
	api, err := world.Gitea.API(ctx, repo.Owner.Token)
	if err != nil {
		t.Fatal(err)
	}
	owner, name, _ := strings.Cut(repo.Name, "/")
	b, _, err := api.ListRepoBranches(owner, name, sdk.ListRepoBranchesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := api.ListRepoPullRequests(owner, name, sdk.ListPullRequestsOptions{State: sdk.StateAll})
	if err != nil {
		t.Fatal(err)
	}
	i, _, err := api.ListRepoIssues(owner, name, sdk.ListIssueOption{State: sdk.StateAll, Type: sdk.IssueTypeIssue})
	if err != nil {
		t.Fatal(err)
	}
	for _, issue := range i {
		if issue.Title != "Dependency Dashboard" || issue.Poster.UserName != repo.Bot.Name {
			t.Errorf("issue %q by %s", issue.Title, issue.Poster.UserName)
		}
	}
	return len(b), len(p), len(i)
}
