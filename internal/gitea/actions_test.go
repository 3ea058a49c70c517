package gitea_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/secret"
)

func TestActionsOf(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 2})
	ctx := t.Context()
	busy, err := w.Register(ctx, w.repo, "b-runner", "ubuntu-latest", "arm")
	w.must(err)
	_, err = w.RegisterFor(ctx, "bot", "a-runner")
	w.must(err)
	_, err = w.RegisterFor(ctx, "alice", "not-ours")
	w.must(err)
	w.must(w.SetRunner(ctx, "a-runner", false, true))
	w.start("check.yaml", "main")
	_, err = busy.Next(ctx)
	w.must(err)
	w.ResetCalls()
	got, err := w.client.ActionsOf(ctx, w.repo)
	w.must(err)
	want := fact.Actions{
		Runners: []fact.Runner{
			{Name: "a-runner", Labels: []string{"ubuntu-latest"}},
			{Name: "b-runner", Labels: []string{"arm", "ubuntu-latest"}, Online: true},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
	if n := w.TotalCalls(); n != 3 {
		t.Errorf("%d calls, want 3: %v", n, w.Calls())
	}
	w.must(w.SetRunner(ctx, "b-runner", true, false))
	if got, err := w.client.ActionsOf(ctx, w.repo); err != nil || !strings.Contains(got.RunnersProblem, "no runner") || len(got.Runners) != 2 {
		t.Errorf("without a runner that is ready: %+v, error %v", got, err)
	}
}

func TestActionsOfAnOrganisation(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	w.must(w.CreateOrg(ctx, "ops"))
	w.must(w.SetTeam(ctx, "ops", "Owners", "bot"))
	r, err := w.CreateRepo(ctx, "ops", "infra", map[string]string{"a": "b"})
	w.must(err)
	_, err = w.RegisterFor(ctx, "ops", "shared")
	w.must(err)
	w.ResetCalls()
	got, err := w.client.ActionsOf(ctx, r)
	if err != nil || len(got.Runners) != 1 || got.RunnersProblem != "" || w.TotalCalls() != 3 {
		t.Errorf("%+v, error %v, %d calls; want the runner of the organisation after 3", got, err, w.TotalCalls())
	}
}

func TestActionsWithoutTheRight(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	_, token, err := w.CreateUser(ctx, "helper")
	w.must(err)
	w.must(w.Grant(ctx, w.repo, "helper", giteatest.Admin))
	c, err := gitea.New(gitea.Config{URL: w.URL(), Token: secret.New(token)}, nil, nil)
	w.must(err)
	w.ResetCalls()
	got, err := c.ActionsOf(ctx, w.repo)
	if err != nil || w.TotalCalls() != 1 {
		t.Fatalf("error %v after %d calls, want 1", err, w.TotalCalls())
	}
	secrets, variables, err := c.Hidden(ctx, w.repo)
	if err != nil || w.TotalCalls() != 3 {
		t.Fatalf("error %v after %d calls, want 3", err, w.TotalCalls())
	}
	for what, problem := range map[string]string{
		"runners": got.RunnersProblem, "secrets": secrets, "variables": variables,
	} {
		if !strings.Contains(problem, what) || !strings.Contains(problem, "owner") {
			t.Errorf("problem with the %s: %q", what, problem)
		}
	}
	bad, _ := serve(t, map[string]http.HandlerFunc{"/": answer(404, ""), "s": answer(403, recorded(t, "error-scope.json"))})
	if got, err := bad.ActionsOf(ctx, repo); err != nil || !strings.Contains(got.RunnersProblem, "write:repository") {
		t.Errorf("without the scope: %+v, error %v", got, err)
	}
	if secrets, variables, err := bad.Hidden(ctx, repo); err != nil || !strings.Contains(secrets, "write:repository") || !strings.Contains(variables, "write:repository") {
		t.Errorf("without the scope: %q and %q, error %v", secrets, variables, err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"down": answer(502, ""), "not JSON": answer(200, "<html>", "X-Total-Count", "1"), "not accepted": answer(401, "{}"), "cut": cut("{"),
	} {
		broken, _ := serve(t, map[string]http.HandlerFunc{"s": answer})
		if got, err := broken.ActionsOf(ctx, repo); err == nil || !cmp.Equal(got, fact.Actions{}) {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
		if secrets, variables, err := broken.Hidden(ctx, repo); err == nil || secrets+variables != "" {
			t.Errorf("%s: hidden %q and %q, error %v", name, secrets, variables, err)
		}
	}
}

func TestRecordedActions(t *testing.T) {
	c, calls := serve(t, map[string]http.HandlerFunc{
		"/repos/ops/home.gitops/actions/runners": answer(200, recorded(t, "runners-busy.json")),
		"/user":                                  answer(200, `{"id":1,"login":"bot"}`),
		"/orgs/ops/actions/runners":              answer(403, `{"message":"Must be an organization owner"}`),
		"/actions/secrets":                       answer(200, recorded(t, "secrets.json"), "X-Total-Count", "1"),
		"/actions/variables":                     answer(200, recorded(t, "variables.json"), "X-Total-Count", "1"),
	})
	got, err := c.ActionsOf(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	want := fact.Actions{
		Runners: []fact.Runner{{Name: "runner", Labels: []string{"ubuntu-latest"}, Online: true}},
	}
	if d := cmp.Diff(want, got); d != "" || *calls != 3 {
		t.Errorf("%d calls, actions (-want +got):\n%s", *calls, d)
	}
	if secrets, variables, err := c.Hidden(t.Context(), repo); err != nil || secrets+variables != "" || *calls != 5 {
		t.Errorf("hidden %q and %q, error %v, %d calls; want nothing hidden after 5", secrets, variables, err, *calls)
	}
}
