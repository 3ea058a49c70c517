package main

import (
	"iter"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/bus"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
)

// gauges tell at each scrape how things stand. They are read from memory.
type gauges struct {
	records interface {
		All() iter.Seq2[string, handlers.Record]
	}
	beats interface {
		Last(cluster string) (time.Time, bool)
	}
	clusters []string
	// limit is how long a cluster may be silent, and started since when this process
	// listens.
	limit   time.Duration
	started time.Time

	pulls, silence, silent *prometheus.Desc
}

func newGauges(g gauges) *gauges {
	g.pulls = prometheus.NewDesc("signalbox_pulls", "Open pull requests, by the state of their verdict; none is before the first.", []string{"state"}, nil)
	g.silence = prometheus.NewDesc("signalbox_cluster_silence_seconds",
		"Time since any replica last heard from a cluster; since the start of this process if none ever did.", []string{"cluster"}, nil)
	g.silent = prometheus.NewDesc("signalbox_cluster_silent",
		"1 while a cluster is silent for longer than timing.clusterSilence, so that what is known of it counts as unknown.", []string{"cluster"}, nil)
	return &g
}

func (a *app) registerGauges(records *bus.Bucket[handlers.Record]) error {
	return a.registry.Register(newGauges(gauges{
		records: records, beats: a.bus.Beats(), clusters: clusterNames(a.clusters),
		limit: a.config.Timing.ClusterSilence, started: a.started,
	}))
}

// Describe implements [prometheus.Collector].
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.pulls
	ch <- g.silence
	ch <- g.silent
}

// Collect implements [prometheus.Collector].
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	counts := map[string]int{noState: 0}
	for _, s := range []policy.GateState{policy.Clear, policy.Waiting, policy.Blocked, policy.Undecided} {
		counts[string(s)] = 0
	}
	for _, r := range g.records.All() {
		state := noState
		if !r.EvaluatedAt.IsZero() {
			state = string(r.Verdict.State())
		}
		counts[state]++
	}
	for state, n := range counts {
		gauge(g.pulls, float64(n), state)
	}
	for _, cluster := range g.clusters {
		heard, ok := g.beats.Last(cluster)
		silent := 1.0
		if !ok {
			heard = g.started
		} else if time.Since(heard) <= g.limit {
			silent = 0
		}
		gauge(g.silence, max(time.Since(heard).Seconds(), 0), cluster)
		gauge(g.silent, silent, cluster)
	}
}

// registerBuild tells which program runs.
func registerBuild(registry prometheus.Registerer) error {
	return registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "signalbox_build_info",
		Help:        "1, with the version of signalbox and that of Go.",
		ConstLabels: prometheus.Labels{"version": versionText(), "go_version": runtime.Version()},
	}, func() float64 { return 1 }))
}
