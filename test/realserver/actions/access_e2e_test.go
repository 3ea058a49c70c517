//go:build e2e

package actions_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"signalbox/test/realserver/actions"
)

// TestAccess shows who may read what, and who may dispatch.
func TestAccess(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	h := settle(ctx, t, map[string]string{".gitea/workflows/simple.yaml": simpleWorkflow})
	owner, name, _ := strings.Cut(h.name, "/")
	id := h.dispatch(ctx, t, "simple.yaml", nil)
	task := h.next(ctx, t)
	must(t, task.Log(ctx, "a line"))
	must(t, task.Finish(ctx, actions.Success))
	job := h.jobs(t, id)[0].ID
	read := []string{
		"/actions/runs", fmt.Sprintf("/actions/runs/%d", id), fmt.Sprintf("/actions/runs/%d/jobs", id), "/actions/jobs",
		fmt.Sprintf("/actions/jobs/%d", job), fmt.Sprintf("/actions/jobs/%d/logs", job), "/actions/workflows", "/actions/tasks",
	}
	settings := []string{"/actions/runners", "/actions/secrets", "/actions/variables"}

	type answers struct{ read, settings, dispatch int }
	tests := []struct {
		name  string
		right sdk.AccessMode // Empty for nobody; "owner" for the owner.
		scope sdk.AccessTokenScope
		want  answers
	}{
		{"owner", "owner", "write:repository", answers{200, 200, 204}},
		{"owner with a token to read", "owner", "read:repository", answers{200, 200, 403}},
		{"owner with a token for something else", "owner", "write:issue", answers{403, 403, 403}},
		{"administrator", sdk.AccessModeAdmin, "write:repository", answers{200, 403, 204}},
		{"writer", sdk.AccessModeWrite, "write:repository", answers{200, 403, 204}},
		{"writer with a token to read", sdk.AccessModeWrite, "read:repository", answers{200, 403, 403}},
		{"reader", sdk.AccessModeRead, "write:repository", answers{200, 403, 403}},
		{"stranger", "", "write:repository", answers{404, 404, 404}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			who := h.owner
			if tt.right != "owner" {
				who = user(ctx, t)
			}
			if tt.right != "owner" && tt.right != "" {
				_, err := h.api.AddCollaborator(owner, name, who.Name, sdk.AddCollaboratorOption{Permission: &tt.right})
				must(t, err)
			}
			token, err := gitea.CreateToken(ctx, who, tt.name, tt.scope)
			must(t, err)
			same := func(paths []string) int {
				t.Helper()
				first, _ := h.ask(ctx, t, token, http.MethodGet, paths[0], "")
				for _, path := range paths[1:] {
					if status, body := h.ask(ctx, t, token, http.MethodGet, path, ""); status != first {
						t.Errorf("%s is answered with %d, not with %d: %s", path, status, first, body)
					}
				}
				return first
			}
			dispatched, _ := h.ask(ctx, t, token, http.MethodPost, "/actions/workflows/simple.yaml/dispatches", `{"ref":"main"}`)
			got := answers{same(read), same(settings), dispatched}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(answers{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if status, _ := h.ask(ctx, t, "", http.MethodGet, "/actions/runs", ""); status != http.StatusNotFound {
		t.Errorf("without a token the runs are answered with %d", status)
	}
}
