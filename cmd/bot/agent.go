package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"signalbox/internal/agent"
	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/kube"
)

func newAgentCommand() *cobra.Command {
	var path, cluster string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Watch a cluster for a signalbox elsewhere",
		Long: `Watch a cluster for a signalbox elsewhere, which needs no way to the cluster then.

The agent reads the objects of the cluster, and tells signalbox what it sees by
the NATS that signalbox uses (bus.nats). It needs no secret but the credentials
or nkey for that, whose user may speak about this one cluster alone, and says
nothing to Gitea or to anybody. In the configuration of signalbox the cluster has
agent: true.

Of its own configuration it reads clusters, bus.nats, http and log.`,
		Example: `  bot agent --cluster prod --config agent.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd, path, config.Agent)
			if err != nil {
				return err
			}
			watched, err := watchedCluster(c, cluster)
			if err != nil {
				return err
			}
			var lc net.ListenConfig
			listener, err := lc.Listen(cmd.Context(), "tcp", c.Listen)
			if err != nil {
				return fmt.Errorf("listen for health and metrics on %s: %w", c.Listen, err)
			}
			o := outpost{cluster: watched, nats: busConfig(c).External, listener: listener, log: newLogger(cmd.ErrOrStderr(), c.Log)}
			return o.run(cmd.Context())
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().StringVar(&cluster, "cluster", "", "which `cluster` of the configuration to watch, if it has several")
	return cmd
}

// watchedCluster finds the cluster that an agent watches.
func watchedCluster(c *config.Config, name string) (kube.Config, error) {
	all := clusterConfigs(c)
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	names := strings.Join(clusterNames(all), ", ")
	if name == "" {
		return kube.Config{}, fmt.Errorf("the configuration has several clusters (%s); say which with --cluster", names)
	}
	for _, k := range all {
		if k.Cluster == name {
			return k, nil
		}
	}
	return kube.Config{}, fmt.Errorf("--cluster %q is not in the configuration, which has %s", name, names)
}

// outpost is an agent, wired together.
type outpost struct {
	cluster  kube.Config
	nats     bus.External
	listener net.Listener
	log      *slog.Logger
}

// run watches until ctx ends.
func (o outpost) run(ctx context.Context) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	line, err := bus.Dial(o.nats, agent.Inbox(o.cluster.Cluster), o.log, registry)
	if err != nil {
		return errors.Join(err, o.listener.Close())
	}
	defer line.Close()
	remote := agent.NewRemote(line, o.cluster.Cluster, replica(), o.log)
	watcher, err := kube.New(o.cluster, remote, o.log, registry)
	if err != nil {
		return errors.Join(err, o.listener.Close())
	}
	o.log.InfoContext(ctx, "agent starts", "version", versionText(), "cluster", o.cluster.Cluster, "address", o.listener.Addr().String())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return serveHTTP(ctx, o.listener, &http.Server{Handler: o.routes(registry, line, remote)})
	})
	if len(o.nats.URLs) > 1 {
		group.Go(func() error {
			line.Guard(ctx, hubSilence, remote.Reach)
			return nil
		})
	}
	group.Go(func() error {
		if !remote.Load(ctx, watcher) {
			return nil
		}
		group.Go(func() error { return watcher.Run(ctx) })
		return remote.Run(ctx, watcher)
	})
	err = group.Wait()
	o.log.InfoContext(ctx, "agent stops")
	return err
}

// hubSilence is how long the hub may be unheard before an agent is not ready: three
// heartbeats.
const hubSilence = 30 * time.Second

func (o outpost) routes(registry *prometheus.Registry, line *bus.Line, remote *agent.Remote) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		heard := remote.Heard()
		switch {
		case !line.Connected():
			say(w, http.StatusServiceUnavailable, "not connected to NATS")
		case heard.IsZero():
			say(w, http.StatusServiceUnavailable, "signalbox has not answered a heartbeat of this cluster yet")
		case time.Since(heard) > hubSilence:
			say(w, http.StatusServiceUnavailable, "signalbox last answered a heartbeat of this cluster at "+heard.UTC().Format(time.RFC3339))
		default:
			say(w, http.StatusOK, "ok")
		}
	})
	return timed(mux)
}
