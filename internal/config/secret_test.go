package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
)

func TestSecretFiles(t *testing.T) {
	const file = config.EnvGiteaToken + "_FILE"
	tests := []struct {
		name string
		// token is the content of the file, or its absence.
		token string
		mode  os.FileMode
		env   map[string]string
		// want is the token, or what is said instead; warning what is said too.
		want, problem, warning string
	}{
		{name: "as it is", token: "t0ken", mode: 0o400, want: "t0ken"},
		{name: "line breaks at the end", token: "t0ken\r\n\n", mode: 0o440, want: "t0ken"},
		{
			name: "for all to read", token: "t0ken", mode: 0o444, want: "t0ken",
			warning: file + ": the file it names can be read by every user of its machine (chmod 0400, or defaultMode: 0400 of a Kubernetes volume)",
		},
		{name: "empty", token: "\n", mode: 0o400, problem: file + ": the file it names is empty (write the secret into it)"},
		{name: "large", token: strings.Repeat("t", 64<<10+1), mode: 0o400, problem: file + ": the file it names is larger than 65536 bytes (name a file that holds the secret alone)"},
		{name: "missing", problem: file + ": the file it names cannot be read: no such file or directory"},
		{name: "a folder", env: map[string]string{file: "."}, problem: file + ": the file it names cannot be read: is a directory"},
		{
			name: "both", token: "t0ken", mode: 0o400, env: map[string]string{config.EnvGiteaToken: "t0ken"},
			problem: config.EnvGiteaToken + ": is set, and so is " + file + " (set one of them)",
		},
		{name: "two lines", token: "t0ken\nmore", mode: 0o400, problem: file + ": has white space around it or a control character in it (check how it was pasted)"},
		{name: "space", env: map[string]string{config.EnvGiteaToken: "t0ken ", file: ""}, problem: config.EnvGiteaToken + ": has white space around it or a control character in it (check how it was pasted)"},
		{
			name: "set to nothing", env: map[string]string{config.EnvGiteaToken: "", file: ""},
			problem: config.EnvGiteaToken + ": is empty (set it, or " + file + " to the path of a file, to the token of the account that signalbox uses)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t0ken")
			if tt.token != "" {
				writeFile(t, path, tt.token, tt.mode)
			}
			env := with(file, path)
			delete(env, config.EnvGiteaToken)
			maps.Copy(env, tt.env)
			c, warnings, problems := load(t, complete, env, config.Run)
			if diff := cmp.Diff(tt.problem, strings.TrimPrefix(lines(problems), "environment: ")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warning, strings.TrimPrefix(lines(warnings), "environment: ")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if c != nil && c.Gitea.Token.Reveal() != tt.want {
				t.Errorf("the token is %q, want %q", c.Gitea.Token.Reveal(), tt.want)
			}
			if strings.Contains(lines(problems)+lines(warnings), "t0ken") {
				t.Error("what was said contains the token")
			}
		})
	}
}

func TestSecretsInTheFile(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{
			"token", "gitea:\n  token: s3cret\n",
			"c.yaml:2: gitea.token: a secret does not belong into this file (give it in the environment as SIGNALBOX_GITEA_TOKEN, or the path of a file that holds it as SIGNALBOX_GITEA_TOKEN_FILE)",
		},
		{
			"key of the webhooks", "gitea:\n  webhook:\n    secret: {value: s3cret}\n",
			"c.yaml:3: gitea.webhook.secret: a secret does not belong into this file (give it in the environment as SIGNALBOX_WEBHOOK_SECRET, or the path of a file that holds it as SIGNALBOX_WEBHOOK_SECRET_FILE)",
		},
		{
			"previous key", "gitea:\n  webhook:\n    previousSecret: s3cret\n",
			"c.yaml:3: gitea.webhook.previousSecret: a secret does not belong into this file (give it in the environment as SIGNALBOX_WEBHOOK_SECRET_PREVIOUS, or the path of a file that holds it as SIGNALBOX_WEBHOOK_SECRET_PREVIOUS_FILE)",
		},
		{
			"as the variable", "SIGNALBOX_GITEA_TOKEN: s3cret\n",
			"c.yaml:1: SIGNALBOX_GITEA_TOKEN: a secret does not belong into this file (give it in the environment as SIGNALBOX_GITEA_TOKEN, or the path of a file that holds it as SIGNALBOX_GITEA_TOKEN_FILE)",
		},
		{
			"password of the bus", "bus:\n  nats:\n    urls: [nats://a]\n    password: s3cret\n",
			"c.yaml:4: bus.nats.password: a secret does not belong into this file (write it into a file and give the path as bus.nats.credentials or bus.nats.nkey)",
		},
		{"instead of a mapping", "gitea:\n  webhook: s3cret\n", "c.yaml:2: gitea.webhook: expected a mapping, found text"},
		{"instead of everything", "s3cret\n", "c.yaml:1: expected a mapping, found text"},
		{"in a URL", strings.Replace(complete, "example.org/git", "bot:s3cret@example.org/git", 1), "c.yaml:3: gitea.url: holds a user or password (remove what stands before the @; what is secret comes from the environment)"},
		{"in a URL that is none", strings.Replace(complete, "example.org/git", "bot:s3cret/@example.org:x/git", 1), "c.yaml:3: gitea.url: is no URL (write it like https://example.org/git/)"},
		{"in a URL of the bus", strings.Replace(complete, "a.example.org", "bot:s3cret@a.example.org", 1), "c.yaml:19: bus.nats.urls[0]: holds a user or password (remove what stands before the @; give credentials, nkey or tls)"},
		{"in a list that is none", "bus:\n  nats:\n    urls: nats://bot:s3cret@a\n", "c.yaml:3: bus.nats.urls: expected a list, found text"},
		{"in place of a number", "bus:\n  nats:\n    urls: [a]\n    replicas: nats://s3cret@a\n", "c.yaml:4: bus.nats.replicas: cannot unmarshal !!str `nats://...` into int"},
		{"in place of a duration", "timing:\n  debounce: nats://s3cret@a\n", `c.yaml:2: timing.debounce: "nats://[redacted]@a" is not a duration; write it like 90s, 10m or 36h`},
		{"instead of a path", strings.Replace(complete, "credentials: /dev/null", "nkey: s3cret", 1), "c.yaml:20: bus.nats.nkey: the file it names cannot be read: no such file or directory (a relative path starts at the folder of this file)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, warnings, problems := load(t, tt.text, secrets, config.Run)
			if diff := cmp.Diff(tt.want, lines(problems)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(lines(problems)+lines(warnings), "s3cret") {
				t.Error("what was said contains the secret")
			}
		})
	}
}

// TestConfigShowsNoSecret prints a configuration in every way that somebody
// might.
func TestConfigShowsNoSecret(t *testing.T) {
	env := with(config.EnvWebhookSecretPrevious, "the-key-before-it")
	c, _, problems := load(t, complete, env, config.Run)
	if c == nil {
		t.Fatal(problems.Err())
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("configuration", "config", c, "again", *c, "gitea", c.Gitea)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("configuration", "config", c, "again", *c, "gitea", c.Gitea)
	fmt.Fprintf(&out, "%v %+v %#v %v\n", c, c, c, c.Gitea)
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"https://example.org/git/", "alice/Lab.2 (observed)", "nats://a.example.org:4222", "https://signalbox.example.org/hooks/gitea"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the configuration does not show %s", want)
		}
	}
	for name, value := range env {
		if strings.Contains(out.String(), value) {
			t.Errorf("the configuration shows %s", name)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte("gitea: {url: 'https://bot:s3cret@example.org', token: s3cret}"))
	f.Add([]byte("bus: {embedded: {sync: [1s]}}\nclusters: [{name: a, kubeconfig: ~}]\n"))
	path := filepath.Join(f.TempDir(), "c.yaml")
	f.Fuzz(func(t *testing.T, in []byte) {
		writeFile(t, path, string(in), 0o600)
		c, warnings, problems := config.Load(config.Source{Path: path, Env: lookup(secrets)})
		if (c == nil) == (len(problems) == 0) {
			t.Errorf("configuration %v with problems %v", c, problems)
		}
		for _, p := range append(problems, warnings...) {
			if p.Message == "" || p.File == "" {
				t.Errorf("problem without message or file: %+v", p)
			}
			for name, value := range secrets {
				if strings.Contains(p.Error(), value) && !bytes.Contains(in, []byte(value)) {
					t.Errorf("a problem shows %s: %v", name, p)
				}
			}
		}
		if c != nil && (c.Gitea.URL.User != nil || c.Timing.MaxWait < c.Timing.Debounce || len(c.Repositories) == 0) {
			t.Errorf("loaded %+v", c)
		}
	})
}
