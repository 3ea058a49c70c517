//go:build e2e

package conformance_test

import (
	"context"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/gitea/giteatest/conformance"
	"signalbox/test/realserver"
)

func TestGitea(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	server, err := realserver.StartGitea(ctx, realserver.GiteaOptions{
		Options: realserver.Options{Dir: t.TempDir()}, SubPath: "git",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	// The suite acts as people by the right of an administrator.
	admin, err := server.CreateUser(ctx, "conformance")
	if err != nil {
		t.Fatal(err)
	}
	api, err := server.Admin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	if _, err := api.AdminEditUser(admin.Name, sdk.EditUserOption{LoginName: admin.Name, Admin: &yes}); err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.NewGitea(server.URL(), admin.Token))
}
