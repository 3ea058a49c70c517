package realserver

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// dendriteName is the part of every id on a Dendrite of the harness behind the colon.
const dendriteName = "localhost"

// DendriteOptions are the options of a Dendrite. The zero value of all but Options.Dir suits most tests.
type DendriteOptions struct {
	Options
	// Limit is how many requests of an account are taken at once before each costs Cooloff. Zero means that
	// there is no limit.
	Limit   int
	Cooloff time.Duration
}

// Dendrite is a running Matrix homeserver with SQLite that talks to no other. Its methods may be called from
// several goroutines, except where the package says otherwise.
type Dendrite struct {
	process *process
	port    port
	url     string
	secret  string // With it accounts are made.
}

// StartDendrite starts a Dendrite and returns when it answers.
func StartDendrite(ctx context.Context, o DendriteOptions) (*Dendrite, error) {
	var err error
	if o.Options, err = o.check(); err != nil {
		return nil, err
	}
	program, err := o.Builder.one(ctx, nameDendrite)
	if err != nil {
		return nil, err
	}
	p, err := reservePort()
	if err != nil {
		return nil, err
	}
	d := &Dendrite{port: p, url: "http://" + p.addr(), secret: randomSecret()}
	if err := d.start(ctx, o, program); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

func (d *Dendrite) start(ctx context.Context, o DendriteOptions, program Built) error {
	work := filepath.Join(o.Dir, "dendrite")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("start dendrite: %w", err)
	}
	key, err := signingKey()
	if err != nil {
		return fmt.Errorf("start dendrite: %w", err)
	}
	config, err := yaml.Marshal(d.settings(o))
	if err != nil {
		return fmt.Errorf("start dendrite: %w", err)
	}
	for name, content := range map[string][]byte{"matrix_key.pem": key, "dendrite.yaml": config} {
		if err := os.WriteFile(filepath.Join(work, name), content, 0o600); err != nil {
			return fmt.Errorf("start dendrite: %w", err)
		}
	}
	d.process = &process{command: command{
		name: nameDendrite,
		path: program.Binary(),
		args: []string{"-config", "dendrite.yaml", "-http-bind-address", d.port.addr()},
		dir:  work, // Where its relative paths begin.
		log:  o.logFile(nameDendrite),
		// It listens before its parts are up, and this one asks the database for the nonce's secret.
		ready: answers(http.DefaultClient, d.url+registerPath),
	}}
	return d.process.start(ctx)
}

// signingKey makes the key of a homeserver in the form that Dendrite reads.
func signingKey() ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{
		Type: "MATRIX PRIVATE KEY", Headers: map[string]string{"Key-ID": "ed25519:harness"}, Bytes: private.Seed(),
	}), nil
}

// settings returns Dendrite's configuration. Each part has a database file of its own: parts that share one
// wait for each other's locks until they fail.
func (d *Dendrite) settings(o DendriteOptions) map[string]any {
	database := func(name string) map[string]any {
		return map[string]any{"connection_string": "file:" + name + ".db"}
	}
	part := func(name string) map[string]any { return map[string]any{"database": database(name)} }
	with := func(settings map[string]any, name string, value any) map[string]any {
		settings[name] = value
		return settings
	}
	limit := map[string]any{"enabled": o.Limit > 0}
	if o.Limit > 0 {
		limit["threshold"], limit["cooloff_ms"] = o.Limit, o.Cooloff.Milliseconds()
	}
	return map[string]any{
		"version": 2,
		"global": map[string]any{
			"server_name": dendriteName, "private_key": "matrix_key.pem", "disable_federation": true,
			"jetstream": map[string]any{"storage_path": "jetstream"},
		},
		"client_api": map[string]any{
			"registration_disabled": true, "registration_shared_secret": d.secret, "rate_limiting": limit,
		},
		"federation_api": with(part("federationapi"), "key_perspectives", []any{}),
		"key_server":     part("keyserver"),
		"media_api":      with(part("mediaapi"), "base_path", "media"),
		"mscs":           part("mscs"),
		"relay_api":      part("relayapi"),
		"room_server":    part("roomserver"),
		"sync_api":       part("syncapi"),
		// The lowest cost that its hash of passwords has: tests make many accounts.
		"user_api": map[string]any{"account_database": database("userapi"), "bcrypt_cost": 4},
		"logging":  []any{map[string]any{"type": "std", "level": "warn"}},
	}
}

// URL returns the address of the homeserver for clients, without a slash at the end.
func (d *Dendrite) URL() string { return d.url }

// Addr returns the host and port behind URL, the target for a [Proxy].
func (d *Dendrite) Addr() string { return strings.TrimPrefix(d.url, "http://") }

// Name returns the name of the server, as it stands in ids.
func (d *Dendrite) Name() string { return dendriteName }

// Stop ends Dendrite for good and gives its port back.
func (d *Dendrite) Stop() {
	if d.process != nil {
		d.process.stop()
	}
	d.port.release()
}

// Kill ends Dendrite without warning.
func (d *Dendrite) Kill() { d.process.kill() }

// Restart starts Dendrite again with the same port and data, ending it first if it runs.
func (d *Dendrite) Restart(ctx context.Context) error { return d.process.restart(ctx) }
