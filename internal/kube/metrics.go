package kube

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/fact"
)

// metrics are the metrics of one watcher, all labelled with its cluster.
type metrics struct {
	events        *prometheus.CounterVec
	written       *prometheus.CounterVec
	writeFailures prometheus.Counter
	failures      *prometheus.CounterVec
	watch         *prometheus.GaugeVec
	probeFailures prometheus.Counter
	evaluations   prometheus.Counter
	wishes, held  prometheus.Collector
}

// newMetrics registers the metrics. A nil registerer registers nothing.
func newMetrics(cluster string, r prometheus.Registerer, wishes *wishes) (*metrics, error) {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_kube_events_total",
			Help: "Changes of objects that the API server told of.",
		}, []string{"kind", "change"}),
		written: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_kube_facts_written_total",
			Help: "Facts that were written because they changed.",
		}, []string{"kind"}),
		writeFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "signalbox_kube_fact_write_failures_total",
			Help: "Facts that could not be written and are tried again.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_kube_request_failures_total",
			Help: "Lists and watches that failed.",
		}, []string{"kind", "verb"}),
		watch: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "signalbox_kube_watch_state",
			Help: "1 for the present state of the watch on a kind, 0 for the others.",
		}, []string{"kind", "state"}),
		probeFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "signalbox_kube_probe_failures_total",
			Help: "Probes of the API server that failed.",
		}),
		evaluations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "signalbox_kube_evaluations_total",
			Help: "Tests of objects that were evaluated for what is wished.",
		}),
		wishes: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "signalbox_kube_wishes",
			Help: "Facts that are collected because somebody wishes for them.",
		}, func() float64 { return float64(wishes.size()) }),
		held: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "signalbox_kube_wished_objects",
			Help: "Objects that are kept in memory for what is wished.",
		}, func() float64 { return float64(wishes.held()) }),
	}
	if r == nil {
		return m, nil
	}
	r = prometheus.WrapRegistererWith(prometheus.Labels{"cluster": cluster}, r)
	for _, c := range []prometheus.Collector{m.events, m.written, m.writeFailures, m.failures, m.watch, m.probeFailures, m.evaluations, m.wishes, m.held} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of cluster %s: %w", cluster, err)
		}
	}
	return m, nil
}

// state sets the state of the watch on a kind.
func (m *metrics) state(kind string, now fact.WatchState) {
	for _, s := range []fact.WatchState{fact.WatchSynced, fact.WatchSyncing, fact.WatchNotInstalled, fact.WatchFailing} {
		v := 0.0
		if s == now {
			v = 1
		}
		m.watch.WithLabelValues(kind, string(s)).Set(v)
	}
}
