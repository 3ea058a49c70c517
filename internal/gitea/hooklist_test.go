package gitea_test

import (
	"errors"
	"strings"
	"testing"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/secret"
)

func TestHooks(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	spec := gitea.HookSpec{URL: "https://signalbox.example.org/webhook/gitea", Secret: secret.New("guess me not")}
	made, err := w.client.EnsureHook(t.Context(), w.repo, spec)
	w.must(err)
	list, err := w.client.Hooks(t.Context(), w.repo)
	w.must(err)
	if len(list) != 1 || list[0].ID != made.ID || list[0].URL != spec.Target() || !list[0].Active || len(list[0].Faults) != 0 {
		t.Errorf("webhooks %+v, want the one that was made, without a fault", list)
	}

	_, carolToken, err := w.CreateUser(t.Context(), "carol")
	w.must(err)
	carol, err := gitea.New(gitea.Config{URL: w.URL(), Token: secret.New(carolToken)}, nil, nil)
	w.must(err)
	if _, err := carol.Hooks(t.Context(), w.repo); !errors.Is(err, gitea.ErrForbidden) {
		t.Errorf("error %v, want ErrForbidden", err)
	}
}

func TestHooksWithFaults(t *testing.T) {
	c, _ := newClient(t, answer(200, `[{"id":3,"type":"gitea","active":false,"branch_filter":"main",
		"config":{"url":"https://example.org/","content_type":"form"},"events":["push"]}]`, "X-Total-Count", "1"), nil)
	list, err := c.Hooks(t.Context(), repo)
	if err != nil || len(list) != 1 || list[0].Active {
		t.Fatalf("webhooks %+v, error %v", list, err)
	}
	for _, fault := range []string{"not active", `"form"`, `"main"`, "status", "pull_request"} {
		if !strings.Contains(strings.Join(list[0].Faults, "\n"), fault) {
			t.Errorf("faults %q lack %s", list[0].Faults, fault)
		}
	}
}
