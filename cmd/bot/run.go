package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/kube"
	"signalbox/internal/trace"
)

func newRunCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run signalbox until it is told to stop",
		Long: `Run signalbox until it is told to stop.

Settings come from a configuration file and the environment; secrets only from
the environment:

  SIGNALBOX_GITEA_TOKEN      token of signalbox's own account
  SIGNALBOX_WEBHOOK_SECRET   secret that Gitea signs its webhooks with

and, where chats are configured:

  SIGNALBOX_SLACK_BOT_TOKEN, SIGNALBOX_SLACK_APP_TOKEN or
  SIGNALBOX_SLACK_SIGNING_SECRET, SIGNALBOX_MATRIX_TOKEN,
  SIGNALBOX_MATRIX_PICKLE_KEY

and for its pages and API:

  SIGNALBOX_OAUTH_SECRET     client secret of its OAuth2 application in Gitea
  SIGNALBOX_API_TOKEN        with which programs read its API

Each can be given as the path of a file instead, in <NAME>_FILE.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd, path, config.Run)
			if err != nil {
				return err
			}
			var lc net.ListenConfig
			listener, err := lc.Listen(cmd.Context(), "tcp", c.Listen)
			if err != nil {
				return fmt.Errorf("listen for webhooks on %s: %w", c.Listen, err)
			}
			log := newLogger(cmd.ErrOrStderr(), c.Log)
			tracer, err := newTracer(cmd.Context(), c.Tracing, log)
			if err != nil {
				return err
			}
			defer closeTracer(tracer, log)
			a, err := newApp(cmd.Context(), appConfig{
				config: c, listener: listener, clusters: clusterConfigs(c), agents: agentsOf(c), bus: busConfig(c),
				log: log, tracer: tracer, makeAdapters: adaptersOf(c),
			})
			if err != nil {
				return err
			}
			return a.run(cmd.Context())
		},
	}
	configFlag(cmd, &path)
	return cmd
}

// newTracer makes what sends traces; nil where none are asked for.
func newTracer(ctx context.Context, c config.Tracing, log *slog.Logger) (*trace.Tracer, error) {
	if c.Endpoint == nil {
		return nil, nil
	}
	// The receiver that is away for a day is told of once a minute.
	told := rate.Sometimes{Interval: time.Minute}
	return trace.New(ctx, trace.Config{
		Endpoint: c.Endpoint, Ratio: c.SampleRatio, Version: versionText(), Replica: replica(),
	}, func(err error) {
		told.Do(func() { log.WarnContext(ctx, "traces not sent", "error", err) })
	})
}

// closeTracer sends the last spans. That they cannot be sent is no failure of signalbox.
func closeTracer(tracer *trace.Tracer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := tracer.Close(ctx); err != nil {
		log.WarnContext(ctx, "traces not sent", "error", err)
	}
}

// clusterConfigs puts the configured clusters that have no agent in the form of package
// kube.
func clusterConfigs(c *config.Config) []kube.Config {
	var out []kube.Config
	for _, cl := range c.Clusters {
		if !cl.Agent {
			out = append(out, kube.Config{Cluster: cl.Name, InCluster: cl.InCluster, Kubeconfig: cl.Kubeconfig, Context: cl.Context})
		}
	}
	return out
}

// busConfig puts the configured bus in the form of package bus.
func busConfig(c *config.Config) bus.Config {
	out := bus.Config{Version: versionText(), Debounce: c.Timing.Debounce, MaxWait: c.Timing.MaxWait}
	if e := c.Bus.Embedded; e != nil {
		out.Embedded = bus.Embedded{Dir: e.Dir, SyncInterval: e.SyncInterval}
	}
	if n := c.Bus.NATS; n != nil {
		out.External = bus.External{
			URLs: n.URLs, CredentialsFile: n.CredentialsFile, NKeyFile: n.NKeyFile,
			TLS: bus.TLS{CA: n.CAFile, Cert: n.CertFile, Key: n.KeyFile}, Replicas: n.Replicas,
		}
	}
	return out
}
