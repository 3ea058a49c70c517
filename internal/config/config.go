package config

import (
	"log/slog"
	"net/url"
	"time"

	"signalbox/internal/policy"
	"signalbox/internal/secret"
)

// ReceiverPath is where the receiver of webhooks stands below the address of
// signalbox.
const ReceiverPath = "hooks/gitea"

// Config is a valid configuration with its defaults. It is never changed after
// [Load], and may be logged: it shows no secret.
type Config struct {
	Gitea        Gitea
	Repositories []Repository
	Clusters     []Cluster
	// Bots are logins whose reviews never count. The account of signalbox
	// belongs to them too; its login is not known here.
	Bots []string
	Chat Chat
	// Digests, Alerts and Watch say what is told of how things stand.
	Digests []Digest
	Alerts  []Alert
	Watch   Watch
	Web     Web
	// Policy holds the operator's rules; nil if there are none. PolicyText is the same
	// as YAML, without comments.
	Policy     *policy.Policy
	PolicyText string
	Bus        Bus
	// Listen is the address of the HTTP server.
	Listen  string
	Timing  Timing
	Log     Log
	Tracing Tracing
}

// Tracing says where traces go.
type Tracing struct {
	// Endpoint is what spans are sent to; nil if nothing is traced.
	Endpoint *url.URL
	// SampleRatio is the share of what happens that is traced, from 0 to 1.
	SampleRatio float64
}

// Gitea is the forge.
type Gitea struct {
	// URL ends with a slash and has neither user nor query.
	URL     *url.URL
	Token   secret.Value
	Timeout time.Duration
	// Budget is how many calls an hour are thought to be enough.
	Budget  int
	Webhook Webhook
}

// Webhook is the way from Gitea to signalbox.
type Webhook struct {
	// URL is the address of signalbox as Gitea reaches it, with a slash at its
	// end; nil if it is not known.
	URL *url.URL
	// Manage says that signalbox registers the webhook itself; URL is then set.
	Manage bool
	Secret secret.Value
	// PreviousSecret is accepted too unless it is empty.
	PreviousSecret secret.Value
}

// Receiver returns the address that webhooks are sent to, or "" if it is not
// known.
func (w Webhook) Receiver() string {
	if w.URL == nil {
		return ""
	}
	return w.URL.JoinPath(ReceiverPath).String()
}

// Repository is a repository that signalbox looks at.
type Repository struct {
	Owner, Name string
	// Observe says that nothing is posted.
	Observe bool
}

// String returns "owner/name".
func (r Repository) String() string { return r.Owner + "/" + r.Name }

// Cluster is a cluster that policies ask about. One of InCluster, Agent and Kubeconfig is
// set, and with the last perhaps Context.
type Cluster struct {
	Name                string
	Kubeconfig, Context string
	InCluster           bool
	// Agent says that an agent tells of it.
	Agent bool
}

// Bus is where events, facts and decisions are kept. Exactly one is set, unless
// the configuration is only for [Check] or [Validate].
type Bus struct {
	Embedded *Embedded
	NATS     *NATS
}

// Embedded is the bus within this process.
type Embedded struct {
	Dir string
	// SyncInterval is how often what was written is forced to disk; zero is
	// before each acknowledgement.
	SyncInterval time.Duration
}

// NATS is an external bus. Its URLs hold no user or password. Paths are empty
// for what is not used.
type NATS struct {
	URLs                      []string
	CredentialsFile           string
	NKeyFile                  string
	CAFile, CertFile, KeyFile string
	// Replicas is 1, 3 or 5, or 0 to leave existing streams as they are.
	Replicas int
}

// Timing says how patient signalbox is.
type Timing struct {
	// Debounce and MaxWait bound how long work waits for more of its kind.
	Debounce, MaxWait time.Duration
	// Reconcile is the time between two searches for what was missed.
	Reconcile time.Duration
	// ClusterSilence is after how long without a heartbeat a cluster is unknown.
	ClusterSilence time.Duration
}

// Log says what is logged and how.
type Log struct {
	Level  slog.Level
	Format LogFormat
}

// LogFormat is the form of log lines.
type LogFormat string

// The forms of log lines. [LogAuto] is text on a terminal, else JSON.
const (
	LogAuto LogFormat = "auto"
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// LogValue implements [slog.LogValuer] with what helps to see which
// configuration is in force.
func (c Config) LogValue() slog.Value {
	repositories := make([]string, len(c.Repositories))
	for i, r := range c.Repositories {
		repositories[i] = r.String()
		if r.Observe {
			repositories[i] += " (observed)"
		}
	}
	clusters := make([]string, len(c.Clusters))
	for i, cl := range c.Clusters {
		clusters[i] = cl.Name
	}
	attrs := []slog.Attr{
		slog.Any("repositories", repositories),
		slog.Any("clusters", clusters),
		slog.Bool("policy", c.Policy != nil),
		slog.Bool("slack", c.Chat.Slack != nil),
		slog.Bool("matrix", c.Chat.Matrix != nil),
		slog.Int("digests", len(c.Digests)),
		slog.Int("alerts", len(c.Alerts)),
		slog.Bool("pages", c.Web.URL != nil),
		slog.Bool("api", !c.Web.APIToken.Empty()),
		slog.String("listen", c.Listen),
		slog.Group("timing",
			"debounce", c.Timing.Debounce, "maxWait", c.Timing.MaxWait,
			"reconcile", c.Timing.Reconcile, "clusterSilence", c.Timing.ClusterSilence),
	}
	if c.Gitea.URL != nil {
		attrs = append(attrs, slog.String("gitea", c.Gitea.URL.String()))
	}
	if c.Tracing.Endpoint != nil {
		attrs = append(attrs, slog.String("tracing", c.Tracing.Endpoint.String()))
	}
	if receiver := c.Gitea.Webhook.Receiver(); receiver != "" {
		attrs = append(attrs, slog.String("receiver", receiver), slog.Bool("manageWebhook", c.Gitea.Webhook.Manage))
	}
	switch {
	case c.Bus.Embedded != nil:
		attrs = append(attrs, slog.String("bus", "embedded"), slog.String("dir", c.Bus.Embedded.Dir))
	case c.Bus.NATS != nil:
		attrs = append(attrs, slog.String("bus", "nats"), slog.Any("servers", c.Bus.NATS.URLs))
	}
	return slog.GroupValue(attrs...)
}
