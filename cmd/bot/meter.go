package main

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/policy"
	"signalbox/internal/work"
)

// meter counts evaluations; it implements [handlers.Meter].
type meter struct {
	evaluations *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
}

func newMeter(registry prometheus.Registerer) (*meter, error) {
	m := &meter{
		evaluations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_evaluations_total",
			Help: "Evaluations of pull requests, by what was read, by the verdict and by whether it changed.",
		}, []string{"kind", "state", "changed"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "signalbox_evaluation_seconds",
			Help:    "How long an evaluation took, calls to Gitea included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 3, 10),
		}, []string{"kind"}),
	}
	for _, c := range []prometheus.Collector{m.evaluations, m.seconds} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Evaluated implements [handlers.Meter].
func (m *meter) Evaluated(kind work.Kind, state policy.GateState, changed bool, took time.Duration) {
	m.evaluations.WithLabelValues(string(kind), string(state), strconv.FormatBool(changed)).Inc()
	m.seconds.WithLabelValues(string(kind)).Observe(took.Seconds())
}
