//go:build e2e

package realserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/test/realserver"
)

func TestDendriteKeepsItsAccounts(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	started := time.Now()
	d, err := realserver.StartDendrite(ctx, realserver.DendriteOptions{Options: realserver.Options{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	t.Logf("a Dendrite started in %s", time.Since(started).Round(10*time.Millisecond))
	alice, err := d.CreateAccount(ctx, "alice")
	if err != nil {
		t.Fatal(err)
	}
	if alice.ID != "@alice:"+d.Name() {
		t.Errorf("the account is %s", alice.ID)
	}
	if _, err := d.CreateAccount(ctx, "alice"); err == nil || !strings.Contains(err.Error(), "M_USER_IN_USE") {
		t.Errorf("a second account of that name: %v", err)
	}
	whoami := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL()+"/_matrix/client/v3/account/whoami", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}

	d.Kill()
	if err := d.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if code := whoami(alice.Token); code != http.StatusOK {
		t.Errorf("after a restart the token is answered with %d", code)
	}
	again, err := d.Login(ctx, alice, alice.Device)
	if err != nil {
		t.Fatal(err)
	}
	if again.Device != alice.Device || again.Token == alice.Token {
		t.Errorf("a login of the same device gave device %s, before %s", again.Device, alice.Device)
	}
	if err := d.Logout(ctx, again); err != nil {
		t.Fatal(err)
	}
	if code := whoami(again.Token); code != http.StatusUnauthorized {
		t.Errorf("a token that was logged out is answered with %d", code)
	}
}
