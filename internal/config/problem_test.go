package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
)

func TestLoadReportsEveryProblem(t *testing.T) {
	tests := []struct {
		name, text string
		env        map[string]string
		want       []string
	}{
		{
			"nothing at all", "", nil,
			[]string{
				"environment: SIGNALBOX_GITEA_URL: is not set (write it like https://gitea.example.org/)",
				"environment: SIGNALBOX_WEBHOOK_URL: is not set (write the address of signalbox as Gitea reaches it)",
				"environment: SIGNALBOX_GITEA_TOKEN: is not set (set it, or SIGNALBOX_GITEA_TOKEN_FILE to the path of a file, to the token of the account that signalbox uses)",
				"environment: SIGNALBOX_WEBHOOK_SECRET: is not set (set it, or SIGNALBOX_WEBHOOK_SECRET_FILE to the path of a file, to the key that Gitea signs webhooks with, such as the output of: openssl rand -hex 32)",
				"environment: SIGNALBOX_REPOSITORIES: is not set (name at least one)",
				"environment: SIGNALBOX_DATA_DIR: is not set (name a folder for the data of the embedded bus, or the URLs of an external one)",
			},
		},
		{
			"a shape that does not fit, and secrets", "gitea:\n  urll: x\n  timeout: soon\nrepositories: a/b\n", nil,
			[]string{
				`c.yaml:2: gitea.urll: unknown field (did you mean "url"?)`,
				`c.yaml:3: gitea.timeout: "soon" is not a duration; write it like 90s, 10m or 36h`,
				"c.yaml:4: repositories: expected a list, found text",
				"environment: SIGNALBOX_GITEA_TOKEN: is not set (set it, or SIGNALBOX_GITEA_TOKEN_FILE to the path of a file, to the token of the account that signalbox uses)",
				"environment: SIGNALBOX_WEBHOOK_SECRET: is not set (set it, or SIGNALBOX_WEBHOOK_SECRET_FILE to the path of a file, to the key that Gitea signs webhooks with, such as the output of: openssl rand -hex 32)",
			},
		},
		{
			"every part",
			`gitea:
  url: gitea.example.org:3000
  timeout: 1h
  webhook:
    url: https://signalbox.example.org/hooks/gitea/
repositories:
  - {name: home-gitops}
  - {name: https://gitea.example.org/ops/home}
  - {name: ops/home.git}
  - {name: ops/home}
  - {name: Ops/Home, observe: true}
  - {observe: true}
  - {name: ops/home/more}
clusters:
  - {name: Prod, kubeconfig: /dev/null}
  - {name: prod, kubeconfig: /dev/null, inCluster: true}
  - {name: prod, inCluster: true, context: prod}
  - {name: dev}
  - {name: lab, kubeconfig: ~/.kube/config}
  - {name: far, kubeconfig: nowhere}
bots: ["@renovate", "a b", ""]
policy:
  version: 1
  targets:
    - {cluster: labb, paths: [apps/**]}
  preconditions:
    - name: a
      flux: {kustomization: apps}
bus:
  embedded: {}
  nats:
    urls: [nats.example.org, https://nats.example.org]
    credentials: nowhere.creds
    nkey: /dev/null
    tls: {cert: /dev/null}
    replicas: 2
http: {listen: 8080}
timing: {debounce: 1s, maxWait: 500ms, reconcile: 0s, clusterSilence: 2h}
log: {level: verbose, format: jsn}
`,
			secrets,
			[]string{
				"c.yaml:2: gitea.url: does not start with https:// or http:// (write it like https://example.org/git/)",
				"c.yaml:3: gitea.timeout: 1h is not from 1s to 2m (the default is 15s)",
				"c.yaml:5: gitea.webhook.url: is the address of the receiver (leave out /hooks/gitea: signalbox adds it)",
				`c.yaml:7: repositories[0].name: "home-gitops" does not name a repository (write "owner/name")`,
				`c.yaml:8: repositories[1].name: is a URL (write "owner/name")`,
				`c.yaml:9: repositories[2].name: "ops/home.git" ends with .git, as no repository does (leave it out)`,
				`c.yaml:11: repositories[4].name: "Ops/Home" is given twice; letter case makes no difference`,
				`c.yaml:12: repositories[5].name: is empty (write "owner/name")`,
				`c.yaml:13: repositories[6].name: "ops/home/more" does not name a repository (write "owner/name")`,
				`c.yaml:15: clusters[0].name: "Prod" does not name a cluster (use up to 63 lower-case letters, digits and hyphens, with no hyphen at the ends)`,
				"c.yaml:16: clusters[1]: has both kubeconfig and inCluster (give exactly one)",
				"c.yaml:17: clusters[2].context: belongs to a kubeconfig, not to inCluster (remove it)",
				`c.yaml:17: clusters[2].name: "prod" is the name of an earlier cluster`,
				"c.yaml:18: clusters[3]: says nothing of where the cluster is (give kubeconfig, inCluster: true, or agent: true)",
				"c.yaml:19: clusters[4].kubeconfig: starts with ~, which only a shell knows (write the whole path)",
				"c.yaml:20: clusters[5].kubeconfig: the file it names cannot be read: no such file or directory (a relative path starts at the folder of this file)",
				`c.yaml:21: bots[0]: "@renovate" is no login (leave the @ out)`,
				`c.yaml:21: bots[1]: "a b" is no login (write the name of the account in Gitea)`,
				`c.yaml:21: bots[2]: "" is no login (write the name of the account in Gitea)`,
				`c.yaml:25: policy.targets[0].cluster: "labb" is no cluster of this configuration (did you mean "lab"?)`,
				`c.yaml:28: policy.preconditions[0].flux.kustomization: "apps" does not name an object (write "namespace/name")`,
				"c.yaml:29: bus: has both embedded and nats (keep one of them)",
				"c.yaml:30: bus.embedded.dir: is missing (name a folder that outlives the process; or set SIGNALBOX_DATA_DIR)",
				"c.yaml:31: bus.nats: has both credentials and nkey (give at most one)",
				"c.yaml:32: bus.nats.urls[0]: is no URL of a NATS server (write it like nats://nats.example.org:4222)",
				"c.yaml:32: bus.nats.urls[1]: is no URL of a NATS server (write it like nats://nats.example.org:4222)",
				"c.yaml:33: bus.nats.credentials: the file it names cannot be read: no such file or directory (a relative path starts at the folder of this file)",
				"c.yaml:35: bus.nats.tls: has one of cert and key (give both or neither)",
				"c.yaml:36: bus.nats.replicas: 2 is not 1, 3 or 5 (an even number survives no more than the odd one below it)",
				`c.yaml:37: http.listen: "8080" is no address to listen on (write ":8080", or "127.0.0.1:8080" for this machine alone)`,
				"c.yaml:38: timing.clusterSilence: 2h is not from 1s to 1h (the default is 1m)",
				"c.yaml:38: timing.maxWait: 500ms is less than debounce, 1s",
				"c.yaml:38: timing.reconcile: 0s is not from 1s to 24h (the default is 5m)",
				`c.yaml:39: log.format: "jsn" is not known (did you mean "json"?)`,
				`c.yaml:39: log.level: "verbose" is not known (known: debug, error, info, warn)`,
			},
		},
		{
			"from the environment", complete,
			with(
				config.EnvGiteaURL, "https://gitea.example.org/api/v1/",
				config.EnvWebhookURL, "ftp://example.org",
				config.EnvRepositories, "a/b,,a/b",
				config.EnvKubeconfig, "/nowhere",
				config.EnvCluster, "Prod",
				config.EnvDataDir, "data",
				config.EnvListen, "here",
			),
			[]string{
				`c.yaml:15: policy.targets[0].cluster: "prod" is no cluster of this configuration (did you mean "Prod"?)`,
				"c.yaml:17: bus: has both embedded and nats (remove one of them; embedded comes from SIGNALBOX_DATA_DIR)",
				"environment: SIGNALBOX_GITEA_URL: is the address of the API (leave out /api/v1: write the address as a person opens it)",
				"environment: SIGNALBOX_WEBHOOK_URL: does not start with https:// or http:// (write it like https://example.org/git/)",
				`environment: SIGNALBOX_REPOSITORIES: is empty (write "owner/name")`,
				`environment: SIGNALBOX_REPOSITORIES: "a/b" is given twice; letter case makes no difference`,
				`environment: SIGNALBOX_CLUSTER: "Prod" does not name a cluster (use up to 63 lower-case letters, digits and hyphens, with no hyphen at the ends)`,
				"environment: SIGNALBOX_KUBECONFIG: the file it names cannot be read: no such file or directory",
				`environment: SIGNALBOX_LISTEN: "here" is no address to listen on (write ":8080", or "127.0.0.1:8080" for this machine alone)`,
			},
		},
		{
			"a cluster without a place", complete, with(config.EnvCluster, "prod"),
			[]string{"environment: SIGNALBOX_CLUSTER: names a cluster without saying where it is (set SIGNALBOX_KUBECONFIG too)"},
		},
		{
			"sync", "bus:\n  embedded:\n    sync: never\n", secrets,
			[]string{`c.yaml:3: bus.embedded.sync: must be "always" or an interval such as 1s`},
		},
		{
			"sync too rare", "bus:\n  embedded:\n    sync: 1h\n", secrets,
			[]string{`c.yaml:3: bus.embedded.sync: 1h is not from 10ms to 10m; write "always" to lose nothing`},
		},
		{
			"an address with more than its path", strings.Replace(complete, "example.org/git", "example.org/git?a=b", 1), secrets,
			[]string{"c.yaml:3: gitea.url: holds a ? or # (end it with its path)"},
		},
		{
			"an address without a host", strings.Replace(complete, "https://example.org/git", "https:///git", 1), secrets,
			[]string{"c.yaml:3: gitea.url: names no host (write it like https://example.org/git/)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, problems := load(t, tt.text, tt.env, config.Run)
			if c != nil {
				t.Error("an invalid configuration was loaded")
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), lines(problems)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadWithoutTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	c, _, problems := config.Load(config.Source{Path: "c.yaml", Env: lookup(secrets)})
	if want := "c.yaml: cannot be read: no such file or directory"; c != nil || lines(problems) != want {
		t.Errorf("loaded %v: %s, want %s", c, lines(problems), want)
	}
}

func TestWarnings(t *testing.T) {
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(complete) }
	tests := []struct {
		name, text string
		env        map[string]string
		want       string
	}{
		{
			"no cluster", "gitea: {url: 'https://a', webhook: {manage: false}}\nrepositories: [{name: a/b}]\nbus: {embedded: {dir: d}}\n", secrets,
			"c.yaml:1: clusters: is missing: nothing is known of any cluster, so only approval rules can be met (name one, or set SIGNALBOX_KUBECONFIG)",
		},
		{
			"plain http", replace("https://example.org", "http://example.org", "https://signalbox", "http://signalbox"), secrets,
			"c.yaml:3: gitea.url: is not encrypted: whoever sees the traffic can take the token (use https)\n" +
				"c.yaml:5: gitea.webhook.url: is not encrypted: whoever sees the traffic can read what Gitea tells (use https)",
		},
		{"plain http on this machine", replace("https://example.org", "http://[::1]:3000", "https://signalbox.example.org", "http://signalbox.localhost"), secrets, ""},
		{
			"a receiver that Gitea cannot reach", replace("https://signalbox.example.org", "http://127.0.0.1:8080"), secrets,
			"c.yaml:5: gitea.webhook.url: is an address of Gitea's own machine, and Gitea is not on this one (write the address at which Gitea reaches signalbox)",
		},
		{
			"streams on one server", replace("    replicas: 3\n", ""), secrets,
			"c.yaml:18: bus.nats: names several servers, and new streams would be on one of them only (give replicas: 3)",
		},
		{
			"little patience", replace("clusterSilence: 2m", "clusterSilence: 20s"), secrets,
			"c.yaml:24: timing.clusterSilence: 20s is so short that one slow answer makes a cluster unknown (give 30s or more)",
		},
		{"a bot twice", replace("[renovate]", "[renovate, Renovate]"), secrets, `c.yaml:12: bots[1]: "Renovate" is given twice`},
		{
			"a short key", complete, with(config.EnvWebhookSecret, "short"),
			"environment: SIGNALBOX_WEBHOOK_SECRET: is shorter than 16 bytes and could be guessed (openssl rand -hex 32 makes a good one)",
		},
		{
			"the same key twice", complete, with(config.EnvWebhookSecretPrevious, secrets[config.EnvWebhookSecret]),
			"environment: SIGNALBOX_WEBHOOK_SECRET_PREVIOUS: is the same as SIGNALBOX_WEBHOOK_SECRET (remove it once every webhook has the new one)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings, problems := load(t, tt.text, tt.env, config.Run)
			if c == nil {
				t.Fatal(problems.Err())
			}
			if diff := cmp.Diff(tt.want, lines(warnings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
