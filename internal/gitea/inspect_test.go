package gitea_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

func TestServerTellsItsClock(t *testing.T) {
	s, client := inspected(t)
	info, err := client.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Version != "1.26.0" || time.Since(info.Date).Abs() > time.Minute || info.After.Before(info.Before) {
		t.Errorf("got %+v", info)
	}
	s.Fail(func(*http.Request) *giteatest.Response {
		return &giteatest.Response{Code: 200, Header: http.Header{"Date": {"soon"}}, Body: `{"version":"1.26.0"}`}
	})
	if info, err = client.Server(t.Context()); err != nil || !info.Date.IsZero() {
		t.Errorf("a date that is none: %+v, %v", info, err)
	}
}

// inspected is a stand-in and a client of an account in it.
func inspected(t *testing.T) (*giteatest.Server, *gitea.Client) {
	t.Helper()
	s, err := giteatest.New(giteatest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	_, token, err := s.CreateUser(t.Context(), "signalbox")
	if err != nil {
		t.Fatal(err)
	}
	client, err := gitea.New(gitea.Config{URL: s.URL(), Token: secret.New(token), Attempts: 1}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func TestScopesAreLearnedFromARefusal(t *testing.T) {
	const refusal = "token does not have at least one of required scope(s), required=[read:notification], token scope="
	tests := []struct {
		name     string
		answers  map[string]giteatest.Response
		scopes   []string
		complete bool
		fails    bool
	}{
		{"told at once", map[string]giteatest.Response{
			"notifications": {Code: 403, Body: `{"message":"` + refusal + `read:organization,read:user,write:issue,write:repository"}`},
		}, gitea.NeededScopes(), true, false},
		{"told by the second", map[string]giteatest.Response{
			"notifications": {Code: 200, Body: `{"new":0}`},
			"packages":      {Code: 403, Body: `{"message":"` + refusal + `public-only,write:notification"}`},
		}, []string{"public-only", "write:notification"}, true, false},
		{"the token may everything", map[string]giteatest.Response{
			"notifications": {Code: 200, Body: `{"new":0}`}, "packages": {Code: 200, Body: `[]`},
			"admin": {Code: 403, Body: `{"message":"user should be the site admin"}`},
		}, []string{"read:notification", "read:package", "read:admin"}, false, false},
		{"refused without telling", map[string]giteatest.Response{
			"notifications": {Code: 403, Body: `{"message":"token does not have at least one of required scope(s): [read:notification]"}`},
			"packages":      {Code: 403, Body: `{"message":"token does not have at least one of required scope(s): [read:package]"}`},
			"admin":         {Code: 403, Body: `{"message":"token does not have at least one of required scope(s): [read:admin]"}`},
		}, nil, false, false},
		{"broken", map[string]giteatest.Response{"notifications": {Code: 200, Body: `{`, Break: true}}, nil, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, client := inspected(t)
			s.Fail(func(r *http.Request) *giteatest.Response {
				for word, answer := range tt.answers {
					if strings.Contains(r.URL.Path, "/"+word) {
						return &answer
					}
				}
				return nil
			})
			account, err := client.Account(t.Context())
			if (err != nil) != tt.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.scopes, account.Scopes); diff != "" || account.Complete != tt.complete {
				t.Errorf("complete %v, scopes (-want +got):\n%s", account.Complete, diff)
			}
			if account.Login != "signalbox" || account.ID == 0 || account.Admin {
				t.Errorf("account %+v", account)
			}
		})
	}
}

func TestRepoInfo(t *testing.T) {
	s, client := inspected(t)
	ctx := t.Context()
	if err := s.CreateOrg(ctx, "ops"); err != nil {
		t.Fatal(err)
	}
	repo, err := s.CreateRepo(ctx, "ops", "home-gitops", map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		given giteatest.Permission
		want  pull.Permission
	}{{giteatest.Read, pull.PermissionRead}, {giteatest.Write, pull.PermissionWrite}, {giteatest.Admin, pull.PermissionAdmin}} {
		if err := s.Grant(ctx, repo, "signalbox", tt.given); err != nil {
			t.Fatal(err)
		}
		info, err := client.RepoInfo(ctx, "ops", "home-gitops")
		if err != nil {
			t.Fatal(err)
		}
		want := gitea.RepoInfo{Repo: repo, DefaultBranch: "main", Pulls: true, Actions: true, Permission: tt.want}
		if diff := cmp.Diff(want, info); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestTestHook(t *testing.T) {
	s, client := inspected(t)
	asked := ""
	s.Fail(func(r *http.Request) *giteatest.Response {
		asked = r.Method + " " + r.URL.Path
		return &giteatest.Response{Code: http.StatusNoContent}
	})
	if err := client.TestHook(t.Context(), pull.Repo{Owner: "ops", Name: "home-gitops"}, 4); err != nil {
		t.Error(err)
	}
	if want := "POST /api/v1/repos/ops/home-gitops/hooks/4/tests"; asked != want {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

func TestHookFits(t *testing.T) {
	spec := gitea.HookSpec{URL: "https://signalbox.example.org/hooks/gitea", Secret: secret.New("a")}
	other := gitea.HookSpec{URL: spec.URL, Secret: secret.New("b")}
	for url, want := range map[string][2]bool{
		spec.Target():                                {true, true},
		other.Target():                               {true, false},
		spec.URL:                                     {true, false},
		"https://signalbox.example.org/other":        {false, false},
		"https://ci.example.org/hooks/gitea?a=b":     {false, false},
		"https://SIGNALBOX.example.org/hooks/gitea/": {true, false},
	} {
		ours, sealed := spec.Fits(pull.Hook{URL: url})
		if ours != want[0] || sealed != want[1] {
			t.Errorf("%s: ours %v, sealed %v", url, ours, sealed)
		}
	}
}

func TestTipAndWorkflowFile(t *testing.T) {
	s, client := inspected(t)
	ctx := t.Context()
	if err := s.CreateOrg(ctx, "ops"); err != nil {
		t.Fatal(err)
	}
	repo, err := s.CreateRepo(ctx, "ops", "home-gitops", map[string]string{".github/workflows/ci.yaml": "on: [push]\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Grant(ctx, repo, "signalbox", giteatest.Admin); err != nil {
		t.Fatal(err)
	}
	want, err := s.Tip(ctx, repo, "main")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Tip(ctx, repo, "main"); got != want || err != nil {
		t.Errorf("tip %q, %v; want %q", got, err, want)
	}
	if _, err := client.Tip(ctx, repo, "gone"); !errors.Is(err, gitea.ErrNotFound) {
		t.Errorf("a branch that is not there: %v", err)
	}
	if data, err := client.WorkflowFile(ctx, repo, "main", "ci.yaml"); string(data) != "on: [push]\n" || err != nil {
		t.Errorf("workflow %q, %v", data, err)
	}
	// The second folder counts only where there is no first.
	_, err = s.Push(ctx, repo, giteatest.Push{Branch: "main", As: "signalbox", Files: map[string]string{".gitea/workflows/other.yaml": "on: [push]\n"}, Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.WorkflowFile(ctx, repo, "main", "ci.yaml"); !errors.Is(err, gitea.ErrNotFound) {
		t.Errorf("a workflow that Gitea does not look at: %v", err)
	}
}
