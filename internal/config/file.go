package config

import (
	"fmt"
	"time"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/policy"
	"signalbox/internal/yamlfile"
)

// File is the configuration of signalbox as people write it. Secrets are not in
// it: they come from the environment (SIGNALBOX_GITEA_TOKEN,
// SIGNALBOX_WEBHOOK_SECRET).
type File struct {
	// Gitea is the forge that signalbox reads and posts to.
	Gitea GiteaFile `yaml:"gitea" json:"gitea,omitzero"`
	// Repositories are the only ones that signalbox looks at; at least one.
	// SIGNALBOX_REPOSITORIES in the environment replaces the list.
	Repositories []RepositoryFile `yaml:"repositories" json:"repositories,omitempty"`
	// Clusters are those that policies ask about. Without any, only approval
	// rules can be met. SIGNALBOX_KUBECONFIG in the environment replaces the
	// list.
	Clusters []ClusterFile `yaml:"clusters" json:"clusters,omitempty"`
	// Bots are accounts, by login in any letter case, whose reviews never
	// count. The account of signalbox is always one of them.
	Bots []string `yaml:"bots" json:"bots,omitempty"`
	// Chat is where people talk to signalbox beside Gitea.
	Chat ChatFile `yaml:"chat" json:"chat,omitzero"`
	// Digests say how things stand, by the clock.
	Digests []DigestFile `yaml:"digests" json:"digests,omitempty"`
	// Alerts tell between digests when something breaks, and when it recovers.
	Alerts []AlertFile `yaml:"alerts" json:"alerts,omitempty"`
	// Watch is what digests and alerts look at beside Flux, pull requests and signalbox
	// itself.
	Watch WatchFile `yaml:"watch" json:"watch,omitzero"`
	// Web is the pages of signalbox; there are none if it is not given.
	Web *WebFile `yaml:"web" json:"web,omitempty"`
	// Policy holds rules for every repository, in the form of the file
	// .gitea/signalbox.yaml. No repository can weaken them.
	Policy *policy.File `yaml:"policy" json:"policy,omitempty"`
	// Bus is where events, facts and decisions are kept: exactly one of
	// embedded and nats.
	Bus BusFile `yaml:"bus" json:"bus,omitzero"`
	// HTTP is the server of signalbox.
	HTTP HTTPFile `yaml:"http" json:"http,omitzero"`
	// Timing says how patient signalbox is. The defaults suit most.
	Timing TimingFile `yaml:"timing" json:"timing,omitzero"`
	// Log says what is logged and how.
	Log LogFile `yaml:"log" json:"log,omitzero"`
	// Tracing says where traces go; nothing is traced if it is not given.
	Tracing *TracingFile `yaml:"tracing" json:"tracing,omitempty"`
}

// GiteaFile describes the forge.
type GiteaFile struct {
	// URL is the address of Gitea as a person opens it, with the sub-path if it
	// has one, such as https://example.org/git/. Required, here or in
	// SIGNALBOX_GITEA_URL.
	URL string `yaml:"url" json:"url,omitempty" jsonschema:"format=uri,example=https://gitea.example.org/"`
	// Timeout bounds each request to Gitea; 15s by default, 1s to 2m.
	Timeout *yamlfile.Duration `yaml:"timeout" json:"timeout,omitempty"`
	// Budget is how many calls an hour you think enough; 5000 by default. Nothing is
	// held back: the metrics tell what is left of it.
	Budget *int `yaml:"budget" json:"budget,omitempty" jsonschema:"minimum=1,default=5000"`
	// Webhook is how Gitea tells signalbox what happens.
	Webhook WebhookFile `yaml:"webhook" json:"webhook,omitzero"`
}

// WebhookFile describes the way from Gitea to signalbox.
type WebhookFile struct {
	// URL is the address of signalbox as Gitea reaches it; the receiver is
	// hooks/gitea below it. Required where manage is true, here or in
	// SIGNALBOX_WEBHOOK_URL.
	URL string `yaml:"url" json:"url,omitempty" jsonschema:"format=uri,example=https://signalbox.example.org/"`
	// Manage lets signalbox register the webhook in each repository and repair
	// it; true by default. It needs an account that administers the
	// repositories.
	Manage *bool `yaml:"manage" json:"manage,omitempty" jsonschema:"default=true"`
}

// RepositoryFile is a repository that signalbox looks at.
type RepositoryFile struct {
	// Name is "owner/name".
	Name string `yaml:"name" json:"name" jsonschema:"required,example=ops/home-gitops"`
	// Observe evaluates and logs, and posts nothing; false by default.
	Observe bool `yaml:"observe" json:"observe,omitempty" jsonschema:"default=false"`
}

// ClusterFile is a Kubernetes cluster that policies ask about.
type ClusterFile struct {
	// Name is what policies call the cluster: lower-case letters, digits and
	// hyphens.
	Name string `yaml:"name" json:"name" jsonschema:"required,example=prod"`
	// Kubeconfig is the path of a kubeconfig. One of this, inCluster and agent.
	Kubeconfig string `yaml:"kubeconfig" json:"kubeconfig,omitempty"`
	// Context is the context of the kubeconfig; its current one by default.
	Context string `yaml:"context" json:"context,omitempty"`
	// InCluster uses the service account of the pod that signalbox runs in;
	// false by default.
	InCluster bool `yaml:"inCluster" json:"inCluster,omitempty" jsonschema:"default=false"`
	// Agent says that an agent within the cluster tells what it sees, by bus.nats, so
	// that signalbox needs no way to it; false by default.
	Agent bool `yaml:"agent" json:"agent,omitempty" jsonschema:"default=false"`
}

// BusFile is where events, facts and decisions are kept.
type BusFile struct {
	// Embedded runs the bus within signalbox, for a single replica.
	Embedded *EmbeddedFile `yaml:"embedded" json:"embedded,omitempty" jsonschema:"oneof_required=embedded"`
	// NATS uses a NATS server or cluster with JetStream, for any number of
	// replicas.
	NATS *NATSFile `yaml:"nats" json:"nats,omitempty" jsonschema:"oneof_required=nats"`
}

// EmbeddedFile describes the bus within signalbox.
type EmbeddedFile struct {
	// Dir is the folder of its data, which must outlive the process. It is
	// made if it is missing. Required, here or in SIGNALBOX_DATA_DIR.
	Dir string `yaml:"dir" json:"dir,omitempty" jsonschema:"example=/var/lib/signalbox"`
	// Sync says when what was written is forced to disk: "always" (the default)
	// before anything is acknowledged, or an interval such as 1s (10ms to 10m),
	// which is faster and may lose that much in a power cut.
	Sync *Sync `yaml:"sync" json:"sync,omitempty"`
}

// NATSFile describes an external bus.
type NATSFile struct {
	// URLs are the servers of one cluster, such as nats://nats.example.org:4222,
	// without user or password.
	URLs []string `yaml:"urls" json:"urls" jsonschema:"required,minItems=1"`
	// Credentials is the path of a NATS credentials file. At most one of
	// credentials and nkey.
	Credentials string `yaml:"credentials" json:"credentials,omitempty"`
	// NKey is the path of a file with an nkey seed.
	NKey string `yaml:"nkey" json:"nkey,omitempty"`
	// TLS is needed where the system does not trust the servers or they ask for
	// a certificate.
	TLS TLSFile `yaml:"tls" json:"tls,omitzero"`
	// Replicas is how many servers hold each stream: 1, 3 or 5. If not given,
	// new streams have one and existing ones stay as they are.
	Replicas *int `yaml:"replicas" json:"replicas,omitempty" jsonschema:"enum=1,enum=3,enum=5"`
}

// TLSFile names PEM files.
type TLSFile struct {
	// CA is the path of the certificates to trust.
	CA string `yaml:"ca" json:"ca,omitempty"`
	// Cert is the path of signalbox's own certificate; it goes with key.
	Cert string `yaml:"cert" json:"cert,omitempty"`
	// Key is the path of the key of that certificate.
	Key string `yaml:"key" json:"key,omitempty"`
}

// HTTPFile describes the server of signalbox.
type HTTPFile struct {
	// Listen is the address for webhooks, health and metrics; ":8080" by
	// default. SIGNALBOX_LISTEN in the environment wins.
	Listen string `yaml:"listen" json:"listen,omitempty" jsonschema:"default=:8080"`
}

// TimingFile says how patient signalbox is.
type TimingFile struct {
	// Debounce is how long signalbox waits for more to happen to a pull request
	// before it decides; 300ms by default, 10ms to 10s.
	Debounce *yamlfile.Duration `yaml:"debounce" json:"debounce,omitempty"`
	// MaxWait is how long it waits in total while things keep happening; 2s by
	// default, at least debounce and at most 1m.
	MaxWait *yamlfile.Duration `yaml:"maxWait" json:"maxWait,omitempty"`
	// Reconcile is how often it looks for what no webhook told; 5m by default,
	// 1s to 24h.
	Reconcile *yamlfile.Duration `yaml:"reconcile" json:"reconcile,omitempty"`
	// ClusterSilence is how long a cluster may be silent before what is known
	// of it counts as unknown; 1m by default, 1s to 1h. A cluster is heard from
	// every 10s, so less than 30s makes it unknown at the first slow answer.
	ClusterSilence *yamlfile.Duration `yaml:"clusterSilence" json:"clusterSilence,omitempty"`
}

// LogFile says what is logged and how.
type LogFile struct {
	// Level is the least that is logged: debug, info (the default), warn or
	// error.
	Level string `yaml:"level" json:"level,omitempty" jsonschema:"enum=debug,enum=info,enum=warn,enum=error,default=info"`
	// Format is text, json, or auto (the default): text on a terminal, else
	// json.
	Format string `yaml:"format" json:"format,omitempty" jsonschema:"enum=auto,enum=text,enum=json,default=auto"`
}

// TracingFile says where traces go.
type TracingFile struct {
	// Endpoint is a receiver of OTLP over HTTP, such as http://localhost:4318/;
	// traces are sent to v1/traces below it. What else it needs, such as a token,
	// comes from OTEL_EXPORTER_OTLP_HEADERS in the environment.
	Endpoint string `yaml:"endpoint" json:"endpoint" jsonschema:"required,format=uri,example=http://localhost:4318/"`
	// SampleRatio is the share of what happens that is traced, from 0 to 1; 1 by
	// default.
	SampleRatio *float64 `yaml:"sampleRatio" json:"sampleRatio,omitempty" jsonschema:"minimum=0,maximum=1,default=1"`
}

// Sync is "always", which is zero, or an interval.
type Sync time.Duration

// syncAlways is how a person writes the zero [Sync].
const syncAlways = "always"

// UnmarshalYAML implements [yaml.Unmarshaler].
func (s *Sync) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Value == syncAlways {
		*s = 0
		return nil
	}
	v, err := time.ParseDuration(node.Value)
	if err != nil || node.Kind != yaml.ScalarNode {
		return fmt.Errorf("must be %q or an interval such as 1s", syncAlways)
	}
	if v < minSync || v > maxSync {
		return fmt.Errorf("%s is not from %s to %s; write %q to lose nothing", node.Value, short(minSync), short(maxSync), syncAlways)
	}
	*s = Sync(v)
	return nil
}

// JSONSchema describes the written form.
func (Sync) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", Const: syncAlways},
		yamlfile.Duration(0).JSONSchema(),
	}}
}
