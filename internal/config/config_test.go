package config_test

import (
	"log/slog"
	"maps"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/internal/config"
	"signalbox/internal/policy"
	"signalbox/internal/secret"
	"signalbox/internal/yamlfile"
)

// load loads a text as the file "c.yaml" in a folder of its own, which becomes
// the working directory. An empty text is no file.
func load(t *testing.T, text string, env map[string]string, purpose config.Purpose) (*config.Config, yamlfile.Problems, yamlfile.Problems) {
	t.Helper()
	t.Chdir(t.TempDir())
	src := config.Source{Env: lookup(env), Purpose: purpose}
	if text != "" {
		src.Path = "c.yaml"
		writeFile(t, src.Path, text, 0o600)
	}
	return config.Load(src)
}

func lookup(env map[string]string) config.Lookup {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// lines writes problems as a person sees them.
func lines(ps yamlfile.Problems) string {
	if err := ps.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// secrets are those that every run needs.
var secrets = map[string]string{
	config.EnvGiteaToken:    "the-token-of-the-bot",
	config.EnvWebhookSecret: "the-key-of-the-webhooks",
}

// with returns the secrets and more variables: name, value, name, value.
func with(pairs ...string) map[string]string {
	env := map[string]string{}
	maps.Copy(env, secrets)
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return env
}

const complete = `
gitea:
  url: https://example.org/git
  timeout: 20s
  webhook: {url: "https://signalbox.example.org", manage: false}
repositories:
  - {name: ops/home-gitops}
  - {name: alice/Lab.2, observe: true}
clusters:
  - {name: prod, kubeconfig: /dev/null, context: admin@prod}
  - {name: here, inCluster: true}
bots: [renovate]
policy:
  version: 1
  targets: [{cluster: prod, paths: [apps/**]}]
  approvals: [{name: owners, from: {teams: [ops]}}]
bus:
  nats:
    urls: [nats://a.example.org:4222, tls://b.example.org]
    credentials: /dev/null
    tls: {ca: /dev/null, cert: /dev/null, key: /dev/null}
    replicas: 3
http: {listen: "127.0.0.1:9000"}
timing: {debounce: 1s, maxWait: 4s, reconcile: 10m, clusterSilence: 2m}
log: {level: debug, format: json}
tracing: {endpoint: "http://localhost:4318/otlp", sampleRatio: 0.5}
`

// equal compares configurations: secrets by their values, addresses by their
// text. Policies are compared by what they show.
var equal = cmp.Options{
	cmp.Comparer(func(a, b secret.Value) bool { return a == b }),
	cmp.Comparer(func(a, b *url.URL) bool { return a == b || a != nil && b != nil && *a == *b }),
	cmpopts.IgnoreUnexported(policy.Policy{}),
}

func TestLoadComplete(t *testing.T) {
	got, warnings, problems := load(t, complete, with(config.EnvWebhookSecretPrevious, "the-key-before-it"), config.Run)
	if err := append(problems, warnings...).Err(); err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Gitea: config.Gitea{
			URL:     &url.URL{Scheme: "https", Host: "example.org", Path: "/git/"},
			Token:   secret.New("the-token-of-the-bot"),
			Timeout: 20 * time.Second,
			Budget:  5000,
			Webhook: config.Webhook{
				URL:            &url.URL{Scheme: "https", Host: "signalbox.example.org", Path: "/"},
				Secret:         secret.New("the-key-of-the-webhooks"),
				PreviousSecret: secret.New("the-key-before-it"),
			},
		},
		Repositories: []config.Repository{
			{Owner: "ops", Name: "home-gitops"},
			{Owner: "alice", Name: "Lab.2", Observe: true},
		},
		Clusters: []config.Cluster{
			{Name: "prod", Kubeconfig: "/dev/null", Context: "admin@prod"},
			{Name: "here", InCluster: true},
		},
		Bots:   []string{"renovate"},
		Policy: &policy.Policy{Name: "operator"},
		PolicyText: `version: 1
targets: [{cluster: prod, paths: [apps/**]}]
approvals: [{name: owners, from: {teams: [ops]}}]
`,
		Bus: config.Bus{NATS: &config.NATS{
			URLs:            []string{"nats://a.example.org:4222", "tls://b.example.org"},
			CredentialsFile: "/dev/null",
			CAFile:          "/dev/null", CertFile: "/dev/null", KeyFile: "/dev/null",
			Replicas: 3,
		}},
		Listen: "127.0.0.1:9000",
		Timing: config.Timing{Debounce: time.Second, MaxWait: 4 * time.Second, Reconcile: 10 * time.Minute, ClusterSilence: 2 * time.Minute},
		Log:    config.Log{Level: slog.LevelDebug, Format: config.LogJSON},
		Tracing: config.Tracing{
			Endpoint:    &url.URL{Scheme: "http", Host: "localhost:4318", Path: "/otlp/v1/traces"},
			SampleRatio: 0.5,
		},
	}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := got.Gitea.Webhook.Receiver(), "https://signalbox.example.org/hooks/gitea"; got != want {
		t.Errorf("receiver is %s, want %s", got, want)
	}
	if got := got.Policy.Teams(); !cmp.Equal(got, []string{"ops"}) {
		t.Errorf("the policy names the teams %v", got)
	}
}

// TestLoadDefaults also shows that no file is needed.
func TestLoadDefaults(t *testing.T) {
	got, warnings, problems := load(t, "", with(
		config.EnvGiteaURL, "https://gitea.example.org",
		config.EnvWebhookURL, "https://example.org/signalbox/",
		config.EnvRepositories, "ops/home-gitops, alice/lab",
		config.EnvKubeconfig, "/dev/null",
		config.EnvDataDir, "data",
	), config.Run)
	if err := append(problems, warnings...).Err(); err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Gitea: config.Gitea{
			URL:     &url.URL{Scheme: "https", Host: "gitea.example.org", Path: "/"},
			Token:   secret.New("the-token-of-the-bot"),
			Timeout: 15 * time.Second,
			Budget:  5000,
			Webhook: config.Webhook{
				URL:    &url.URL{Scheme: "https", Host: "example.org", Path: "/signalbox/"},
				Manage: true,
				Secret: secret.New("the-key-of-the-webhooks"),
			},
		},
		Repositories: []config.Repository{{Owner: "ops", Name: "home-gitops"}, {Owner: "alice", Name: "lab"}},
		Clusters:     []config.Cluster{{Name: "default", Kubeconfig: "/dev/null"}},
		Bus:          config.Bus{Embedded: &config.Embedded{Dir: "data"}},
		Listen:       ":8080",
		Timing:       config.Timing{Debounce: 300 * time.Millisecond, MaxWait: 2 * time.Second, Reconcile: 5 * time.Minute, ClusterSilence: time.Minute},
		Log:          config.Log{Level: slog.LevelInfo, Format: config.LogAuto},
	}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnvironmentWins(t *testing.T) {
	got, _, problems := load(t, complete, with(
		config.EnvGiteaURL, "http://127.0.0.1:3000/",
		config.EnvWebhookURL, "http://localhost:8080/",
		config.EnvRepositories, "ALICE/lab.2,bob/new",
		config.EnvKubeconfig, "in-cluster",
		config.EnvCluster, "prod",
		config.EnvListen, ":1",
		config.EnvDataDir, "",
	), config.Run)
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	if got.Gitea.URL.Host != "127.0.0.1:3000" || got.Gitea.Webhook.URL.Host != "localhost:8080" || got.Listen != ":1" || got.Bus.NATS == nil {
		t.Errorf("loaded %+v", got)
	}
	if diff := cmp.Diff([]config.Cluster{{Name: "prod", InCluster: true}}, got.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	// What the file only observes is not posted to because the list is another.
	if diff := cmp.Diff([]config.Repository{{Owner: "ALICE", Name: "lab.2", Observe: true}, {Owner: "bob", Name: "new"}}, got.Repositories); diff != "" {
		t.Errorf("repositories (-want +got):\n%s", diff)
	}
}

func TestPathsStartAtTheirSource(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/kubeconfig", "", 0o600)
	text := "gitea: {url: 'https://a', webhook: {manage: false}}\nrepositories: [{name: a/b}]\nclusters: [{name: a, kubeconfig: kubeconfig}]\nbus: {embedded: {dir: data, sync: 2s}}\n"
	writeFile(t, dir+"/c.yaml", text, 0o600)
	c, _, problems := config.Load(config.Source{Path: dir + "/c.yaml", Env: lookup(secrets)})
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	if c.Clusters[0].Kubeconfig != dir+"/kubeconfig" || *c.Bus.Embedded != (config.Embedded{Dir: dir + "/data", SyncInterval: 2 * time.Second}) {
		t.Errorf("loaded %+v, %+v", c.Clusters[0], *c.Bus.Embedded)
	}
	c, _, problems = config.Load(config.Source{Path: dir + "/c.yaml", Env: lookup(with(config.EnvDataDir, "elsewhere"))})
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	if *c.Bus.Embedded != (config.Embedded{Dir: "elsewhere", SyncInterval: 2 * time.Second}) {
		t.Errorf("loaded %+v", *c.Bus.Embedded)
	}
}

func TestMaxWaitFollowsDebounce(t *testing.T) {
	c, _, problems := load(t, strings.Replace(complete, "debounce: 1s, maxWait: 4s", "debounce: 5s", 1), secrets, config.Run)
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	if c.Timing.MaxWait != 5*time.Second {
		t.Errorf("waits for %s in total, want 5s", c.Timing.MaxWait)
	}
}

func TestPurposes(t *testing.T) {
	minimal := "gitea: {url: 'https://a'}\n"
	noSecrets := "environment: SIGNALBOX_GITEA_TOKEN: is not set (set it, or SIGNALBOX_GITEA_TOKEN_FILE to the path of a file, to the token of the account that signalbox uses)"
	tests := []struct {
		name    string
		text    string
		env     map[string]string
		purpose config.Purpose
		want    string
	}{
		{"a check needs little", minimal, secrets, config.Check, ""},
		{"a check needs the token", minimal, nil, config.Check, noSecrets},
		{"a check needs no file of the bus", minimal + "bus: {nats: {urls: ['nats://a'], nkey: /nowhere}}\n", secrets, config.Check, ""},
		{
			"a check needs the clusters", minimal + "clusters: [{name: a, kubeconfig: /nowhere}]\n", secrets, config.Check,
			"c.yaml:2: clusters[0].kubeconfig: the file it names cannot be read: no such file or directory (a relative path starts at the folder of this file)",
		},
		{"a check of the environment alone", "", map[string]string{config.EnvGiteaURL: "https://a", config.EnvGiteaToken: "token"}, config.Check, ""},
		{
			"validation opens nothing",
			"gitea: {url: 'https://a', webhook: {manage: false}}\nrepositories: [{name: a/b}]\nclusters: [{name: a, kubeconfig: /nowhere}]\nbus: {nats: {urls: ['nats://a'], nkey: /nowhere}}\n",
			nil, config.Validate, "",
		},
		{
			"validation wants what a run wants", minimal, nil, config.Validate,
			strings.Join([]string{
				"c.yaml:1: bus: is missing (name a folder for the data of the embedded bus, or the URLs of an external one; or set SIGNALBOX_DATA_DIR)",
				"c.yaml:1: gitea.webhook.url: is missing (write the address of signalbox as Gitea reaches it; or set SIGNALBOX_WEBHOOK_URL)",
				"c.yaml:1: repositories: is missing (name at least one; or set SIGNALBOX_REPOSITORIES)",
			}, "\n"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, problems := load(t, tt.text, tt.env, tt.purpose)
			if diff := cmp.Diff(tt.want, lines(problems)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (c == nil) != (tt.want != "") {
				t.Errorf("configuration %v", c)
			}
		})
	}
}
