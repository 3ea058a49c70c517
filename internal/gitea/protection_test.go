package gitea_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

func TestProtectionThatKeepsChanging(t *testing.T) {
	names := 0
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		names++
		if strings.HasSuffix(r.URL.Path, "/branch_protections") {
			answer(200, fmt.Sprintf(`[{"rule_name":"rule %d"}]`, names))(w, r)
			return
		}
		answer(200, fmt.Sprintf(`{"protected":true,"effective_branch_protection_name":"rule %d"}`, names))(w, r)
	}, nil)
	_, found, err := c.Protection(t.Context(), repo, "main")
	if !errors.Is(err, gitea.ErrIncomplete) || found {
		t.Errorf("found %v, error %v; want ErrIncomplete", found, err)
	}
}

// TestProtectionOfForgejo has the word of Forgejo for what binds
// administrators.
func TestProtectionOfForgejo(t *testing.T) {
	var sent map[string]any
	rule := `{"rule_name":"main","enable_push":false,"apply_to_admins":%t,"status_check_contexts":null}`
	bound := false
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPatch:
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			bound = sent["apply_to_admins"] == true
			answer(200, fmt.Sprintf(rule, bound))(w, r)
		case strings.HasSuffix(r.URL.Path, "/branch_protections"):
			answer(200, "["+fmt.Sprintf(rule, bound)+"]")(w, r)
		default:
			answer(200, `{"protected":true,"effective_branch_protection_name":"main"}`)(w, r)
		}
	}, nil)
	yes := true
	before, after, err := c.SetProtection(t.Context(), repo, "main", pull.ProtectionChange{BindsAdmins: &yes})
	if err != nil || before.BindsAdmins || !after.BindsAdmins {
		t.Errorf("binds administrators: before %v, after %v, error %v", before.BindsAdmins, after.BindsAdmins, err)
	}
	// Nothing but what was named was sent.
	want := map[string]any{"block_admin_merge_override": true, "apply_to_admins": true}
	if d := cmp.Diff(want, sent); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
}

func TestSetProtectionIsReadAgain(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	yes := true
	w.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method == http.MethodPost {
			// Somebody puts a rule in front meanwhile.
			w.must(w.Protect(t.Context(), w.repo, pull.Protection{Rule: "m*", Priority: -5}))
		}
		return nil
	})
	_, after, err := w.client.SetProtection(t.Context(), w.repo, "main", pull.ProtectionChange{BindsAdmins: &yes})
	if err == nil || !strings.Contains(err.Error(), "another one goes before it") || after.BindsAdmins {
		t.Errorf("after %+v, error %v", after, err)
	}
}

func TestPermissionThatIsNotKnown(t *testing.T) {
	c, _ := newClient(t, answer(200, `{"permission":"emperor"}`), nil)
	p, err := c.Permission(t.Context(), repo, "alice")
	if err == nil || p != pull.PermissionNone {
		t.Errorf("permission %q, error %v", p, err)
	}
}

func TestBudgetsOfDeciding(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	id, err := w.Comment(ctx, w.repo, w.number, "alice", "/approve")
	w.must(err)
	w.must(w.Protect(ctx, w.repo, pull.Protection{Rule: "main"}))
	for _, tt := range []struct {
		name  string
		calls int
		call  func() error
	}{
		{"React", 1, func() error { return w.client.React(ctx, w.repo, id, "eyes") }},
		{"Unreact", 1, func() error { return w.client.Unreact(ctx, w.repo, id, "eyes") }},
		{"Permission of a writer", 1, func() error { _, err := w.client.Permission(ctx, w.repo, "alice"); return err }},
		{"UserByID", 1, func() error { _, err := w.client.UserByID(ctx, 1); return err }},
		{"UserByName", 1, func() error { _, err := w.client.UserByName(ctx, "bob"); return err }},
		{"Hooks", 1, func() error { _, err := w.client.Hooks(ctx, w.repo); return err }},
		{"Protection", 2, func() error { _, _, err := w.client.Protection(ctx, w.repo, "main"); return err }},
		{"Merge", 1, func() error {
			return w.client.Merge(ctx, w.repo, w.number, pull.MergeOptions{Head: w.head})
		}},
	} {
		w.ResetCalls()
		if err := tt.call(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := w.TotalCalls(); got != tt.calls {
			t.Errorf("%s took %d calls, want %d: %v", tt.name, got, tt.calls, w.Calls())
		}
	}
}
