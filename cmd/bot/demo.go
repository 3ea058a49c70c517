package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"signalbox/internal/config"
	"signalbox/internal/demo"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/kube"
	"signalbox/internal/schedule"
	"signalbox/internal/secret"
)

// Timing of the demo where it differs from what a configuration gives.
const (
	// demoPause is the time to read between two steps.
	demoPause = 4 * time.Second
	// demoSilence is how long a cluster may be silent, demoProbe how often it is
	// asked for a sign of life: nobody waits a minute at a prompt.
	demoSilence = 3 * time.Second
	demoProbe   = time.Second
	// demoReconcile is so long that nothing is found by a reconcile but what the
	// demo says: all else is told by webhooks and the cluster.
	demoReconcile = 24 * time.Hour
	// demoPoll is the time between two looks at whether a cluster was heard from.
	demoPoll = 20 * time.Millisecond
)

func newDemoCommand() *cobra.Command {
	var noPrompt, fast bool
	var logPath string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show signalbox at work, without any account, cluster or network",
		Long: `Show signalbox at work, without any account, cluster or network.

A story is played in the terminal, in less than a minute: signalbox as it runs
in production, with stand-ins for Gitea and the cluster. Then a prompt takes
commands to try things. Without a terminal there is no prompt.

The exit code is 0 if every step of the story came true.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			out := cmd.OutOrStdout()
			o := demo.Options{Out: out, Width: screenWidth(out), Color: showsColor(out), Pause: demoPause}
			if in, ok := cmd.InOrStdin().(*os.File); ok && !noPrompt && term.IsTerminal(int(in.Fd())) {
				o.In = in
			}
			if fast {
				o.Pause = 0
			}
			log := &tailLog{}
			if logPath != "" {
				f, err := os.Create(logPath)
				if err != nil {
					return fmt.Errorf("log of the demo: %w", err)
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				log.to = f
			}
			// A reader that goes away, such as a pager, must not keep the folder
			// from being removed: the write fails instead.
			signal.Ignore(syscall.SIGPIPE)
			err = runDemo(cmd.Context(), "", o, log)
			switch {
			case errors.Is(err, syscall.EPIPE):
				return nil
			case err != nil && !errors.Is(err, demo.ErrOutput):
				cmd.PrintErr(log.tail())
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&noPrompt, "no-prompt", false, "end after the story")
	cmd.Flags().BoolVar(&fast, "fast", false, "make no pauses between the steps")
	cmd.Flags().StringVar(&logPath, "log", "", "path of a file for the log of signalbox")
	return cmd
}

// runDemo runs signalbox on the stand-ins and plays the demo on them. Its data
// is in a folder below parent, or below that of the system if parent is empty.
// Nothing of it is left when it returns.
func runDemo(ctx context.Context, parent string, o demo.Options, log io.Writer) (err error) {
	dir, err := os.MkdirTemp(parent, "signalbox-demo-")
	if err != nil {
		return fmt.Errorf("folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	world, err := demo.NewWorld(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	a, err := newDemoApp(ctx, world, dir, log)
	if err != nil {
		return err
	}
	o.Silence = demoSilence
	o.Ready = a.knowsClusters
	o.Reconcile = a.reconcileNow
	return playBeside(ctx, a, func(ctx context.Context) error { return demo.Play(ctx, world, o) })
}

// playBeside plays while signalbox runs; whichever ends first ends the other.
// That the context ended is no error.
func playBeside(ctx context.Context, a *app, play func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		defer cancel()
		stopped <- a.run(ctx)
	}()
	played := play(ctx)
	cancel()
	if errors.Is(played, context.Canceled) {
		played = nil
	}
	return errors.Join(played, <-stopped)
}

// newDemoApp wires signalbox to the stand-ins as a configuration would wire it
// to the real ones.
func newDemoApp(ctx context.Context, world *demo.World, dir string, log io.Writer) (*app, error) {
	giteaURL, err := url.Parse(world.Gitea.URL())
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the webhooks of the demo: %w", err)
	}
	address := listener.Addr().String()
	c := &config.Config{
		Gitea: config.Gitea{
			URL: giteaURL, Token: world.BotToken, Timeout: 15 * time.Second,
			Webhook: config.Webhook{
				URL: &url.URL{Scheme: "http", Host: address, Path: "/"}, Manage: true, Secret: secret.New(rand.Text()),
			},
		},
		Repositories: []config.Repository{{Owner: demo.Owner, Name: demo.Name}},
		Clusters:     []config.Cluster{{Name: demo.Cluster}},
		Bus:          config.Bus{Embedded: &config.Embedded{Dir: dir}},
		Listen:       address,
		Timing:       config.Timing{Reconcile: demoReconcile, ClusterSilence: demoSilence},
		Log:          config.Log{Format: config.LogText},
	}
	a, err := newApp(ctx, appConfig{
		config: c, listener: listener, bus: busConfig(c), log: newLogger(log, c.Log),
		clusters: []kube.Config{{
			Cluster: demo.Cluster, Client: world.Cluster.Client(), Probe: world.Cluster.Probe,
			Limits: kube.Limits{ProbeEvery: demoProbe},
		}},
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return a, nil
}

// knowsClusters waits until every cluster was heard from and all that is
// watched on it is known.
func (a *app) knowsClusters(ctx context.Context) error {
	for _, w := range a.watchers {
		select {
		case <-w.Settled():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ticker := time.NewTicker(demoPoll)
	defer ticker.Stop()
	for _, name := range a.clusterNames() {
		for {
			f, ok := a.bus.Facts().Lookup(fact.HeartbeatKey(name))
			if ok && f.Heartbeat != nil && !f.Heartbeat.Silent {
				break
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// reconcileNow makes the tick of the reconciler come now.
func (a *app) reconcileNow(ctx context.Context) error {
	now := time.Now()
	tick := events.Tick{Name: handlers.ReconcileTick, At: now}
	e, err := events.New(tick.ID(), schedule.Source, now, tick)
	if err != nil {
		return err
	}
	return a.bus.Publish(ctx, e)
}
