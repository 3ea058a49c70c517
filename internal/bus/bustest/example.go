package bustest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"signalbox/internal/bus"
)

var (
	tlsBlock   = regexp.MustCompile(`(?m)^tls \{[^}]*\}$`)
	exampleKey = regexp.MustCompile(`nkey: U[A-Z0-9]{55}`)
)

// Example starts a NATS server with a configuration that is an example for people, on
// the loopback, without TLS and with keys of its own, until the test ends. It returns how
// each user of the example connects, in its order.
func Example(t testing.TB, path string) []bus.External {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var users []bus.External
	text := tlsBlock.ReplaceAllString(string(data), "")
	text = exampleKey.ReplaceAllStringFunc(text, func(string) string {
		public, file := newKey(t, dir)
		users = append(users, bus.External{NKeyFile: file})
		return `nkey: "` + public + `"`
	})
	for from, to := range map[string]string{
		"listen: 0.0.0.0:4222": "listen: 127.0.0.1:-1",
		"store_dir: /data":     `store_dir: "` + filepath.Join(dir, "data") + `"`,
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("the example %s does not say %q", path, from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	o.NoSigs, o.NoLog = true, true
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(30 * time.Second) {
		t.Fatal("NATS did not start")
	}
	for i := range users {
		users[i].URLs = []string{srv.ClientURL()}
	}
	return users
}

// newKey makes the key of a user, and returns the public one and the file of the seed.
func newKey(t testing.TB, dir string) (public, file string) {
	t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = user.PublicKey(); err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, public)
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return public, file
}
