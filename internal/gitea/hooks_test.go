package gitea_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/secret"
)

var spec = gitea.HookSpec{URL: "https://signalbox.example.org/webhook/gitea", Secret: secret.New("a long and random secret")}

// hookAPI is the SDK as the bot, for setting webhooks up in odd ways.
func (w *world) hookAPI() *sdk.Client {
	w.t.Helper()
	_, token, err := w.CreateUser(w.t.Context(), "owner")
	w.must(err)
	w.must(w.Grant(w.t.Context(), w.repo, "owner", giteatest.Admin))
	c, err := sdk.NewClient(w.URL(), sdk.SetToken(token), sdk.SetGiteaVersion(""))
	w.must(err)
	return c
}

func TestEnsureHook(t *testing.T) {
	all := []string{"push", "pull_request", "status", "workflow_run", "workflow_job"}
	good := func() sdk.CreateHookOption {
		return sdk.CreateHookOption{
			Type: sdk.HookTypeGitea, Active: true, Events: all, BranchFilter: "*",
			Config: map[string]string{"url": spec.Target(), "content_type": "json", "secret": spec.Secret.Reveal()},
		}
	}
	but := func(change func(*sdk.CreateHookOption)) sdk.CreateHookOption {
		h := good()
		change(&h)
		return h
	}
	foreign := but(func(h *sdk.CreateHookOption) { h.Config["url"] = "https://ci.example.org/hook" })
	tests := []struct {
		name   string
		before []sdk.CreateHookOption
		want   gitea.HookChange
		why    string
		after  int
	}{
		{"none", nil, gitea.HookCreated, "", 1},
		{"another program's", []sdk.CreateHookOption{foreign}, gitea.HookCreated, "", 2},
		{"as it should be", []sdk.CreateHookOption{good()}, gitea.HookUnchanged, "", 1},
		{"with more events", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.Events = append(slices.Clone(all), "release") })}, gitea.HookUnchanged, "", 1},
		{"for all branches by an empty filter", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.BranchFilter = "" })}, gitea.HookUnchanged, "", 1},
		{"inactive", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.Active = false })}, gitea.HookRepaired, "it was not active", 1},
		{"with push alone", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.Events = nil })}, gitea.HookRepaired, "it lacked status, it lacked workflow_run, it lacked workflow_job, it lacked pull_request", 1},
		{"of a version that knew no Actions", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.Events = []string{"push", "pull_request", "status"} })}, gitea.HookRepaired, "it lacked workflow_run, it lacked workflow_job", 1},
		{"without reviews", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) {
			h.Events = []string{"push", "status", "workflow_run", "workflow_job", "pull_request_only", "pull_request_sync", "pull_request_label", "pull_request_comment", "pull_request_review_request"}
		})}, gitea.HookRepaired, "it lacked pull_request_review", 1},
		{"as a form", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.Config["content_type"] = "form" })}, gitea.HookRepaired, `its content type was "form"`, 1},
		{"for one branch", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.BranchFilter = "main" })}, gitea.HookRepaired, "it was limited to branches", 1},
		{"twice", []sdk.CreateHookOption{good(), good()}, gitea.HookRepaired, "there was more than one", 1},
		{"made with another secret", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) {
			h.Config["url"] = gitea.HookSpec{URL: spec.URL, Secret: secret.New("old")}.Target()
		})}, gitea.HookReplaced, "it was not made with this secret", 1},
		{"made by hand without the tag", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.Config["url"] = spec.URL })}, gitea.HookReplaced, "", 1},
		{"an old and a good one", []sdk.CreateHookOption{but(func(h *sdk.CreateHookOption) { h.Config["url"] = spec.URL }), good()}, gitea.HookRepaired, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, giteatest.Options{})
			api := w.hookAPI()
			for _, h := range tt.before {
				_, _, err := api.CreateRepoHook(w.repo.Owner, w.repo.Name, h)
				w.must(err)
			}
			list := func() []*sdk.Hook {
				hooks, _, err := api.ListRepoHooks(w.repo.Owner, w.repo.Name, sdk.ListHooksOptions{})
				w.must(err)
				return hooks
			}
			w.Fail(func(r *http.Request) *giteatest.Response {
				if r.Method == http.MethodDelete && len(list()) < 2 {
					t.Error("the only webhook is removed")
				}
				return nil
			})
			got, err := w.client.EnsureHook(t.Context(), w.repo, spec)
			w.must(err)
			if got.Change != tt.want || !strings.Contains(got.Why, tt.why) {
				t.Errorf("change %q because %q, want %q because %q", got.Change, got.Why, tt.want, tt.why)
			}
			if n := len(list()); n != tt.after {
				t.Errorf("%d webhooks after, want %d", n, tt.after)
			}
			w.ResetCalls()
			again, err := w.client.EnsureHook(t.Context(), w.repo, spec)
			w.must(err)
			if again.Change != gitea.HookUnchanged || again.ID != got.ID || w.TotalCalls() != 1 {
				t.Errorf("the second time: %+v after %d calls, want %d unchanged after 1", again, w.TotalCalls(), got.ID)
			}
		})
	}
}

// TestHooksOfSeveralReplicas: all of them start at once, and one webhook is left.
func TestHooksOfSeveralReplicas(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	list := w.hookAPI()
	// All have seen that there is none before any has made one.
	var seen sync.WaitGroup
	seen.Add(3)
	var lists atomic.Int32
	w.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/hooks") && lists.Add(1) <= 3 {
			seen.Done()
		} else if r.Method == http.MethodPost {
			seen.Wait()
		}
		return nil
	})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := w.client.EnsureHook(t.Context(), w.repo, spec); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	hooks, _, err := list.ListRepoHooks(w.repo.Owner, w.repo.Name, sdk.ListHooksOptions{})
	w.must(err)
	if len(hooks) != 1 {
		t.Errorf("%d webhooks are left", len(hooks))
	}
}

func TestInstructions(t *testing.T) {
	text := spec.Instructions()
	for _, want := range []string{spec.Target(), "application/json", "Commit status", "Workflow run", "Workflow job", "ALLOWED_HOST_LIST"} {
		if !strings.Contains(text, want) {
			t.Errorf("instructions lack %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, spec.Secret.Reveal()) {
		t.Errorf("instructions tell the secret:\n%s", text)
	}
	other := gitea.HookSpec{URL: spec.URL, Secret: secret.New("another secret")}
	if other.Target() == spec.Target() || !strings.HasPrefix(spec.Target(), spec.URL+"?") {
		t.Errorf("targets %q and %q", spec.Target(), other.Target())
	}
}
