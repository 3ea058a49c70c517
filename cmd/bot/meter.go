package main

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/work"
)

// meter counts evaluations and decisions; it implements [handlers.Meter].
type meter struct {
	evaluations *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	changes     *prometheus.CounterVec
	decisions   *prometheus.CounterVec
}

func newMeter(registry prometheus.Registerer) (*meter, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_" + name, Help: help}, labels)
	}
	m := &meter{
		evaluations: counter("evaluations_total",
			"Evaluations of pull requests, by what was read, by the verdict and by whether it changed.", "kind", "state", "changed"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "signalbox_evaluation_seconds",
			Help:    "How long an evaluation took, calls to Gitea included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 3, 10),
		}, []string{"kind"}),
		changes: counter("verdict_changes_total",
			"Verdicts that came to another state, by the states before and after; none is before the first.", "from", "to"),
		decisions: counter("decisions_total",
			"Entries of the ledger, by kind. Every replica counts all of them, those of before its start too.", "kind"),
	}
	for _, c := range []prometheus.Collector{m.evaluations, m.seconds, m.changes, m.decisions} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	// A kind that never came is 0: what is absent cannot be watched.
	for _, k := range decision.Kinds() {
		m.decisions.WithLabelValues(string(k))
	}
	return m, nil
}

// noState is the label of a pull request that had no verdict yet.
const noState = "none"

// Evaluated implements [handlers.Meter].
func (m *meter) Evaluated(kind work.Kind, was, state policy.GateState, changed bool, took time.Duration) {
	m.evaluations.WithLabelValues(string(kind), string(state), strconv.FormatBool(changed)).Inc()
	m.seconds.WithLabelValues(string(kind)).Observe(took.Seconds())
	if was == state {
		return
	}
	from := string(was)
	if was == "" {
		from = noState
	}
	m.changes.WithLabelValues(from, string(state)).Inc()
}

// decided counts an entry of the ledger.
func (m *meter) decided(e decision.Entry) { m.decisions.WithLabelValues(string(e.Kind)).Inc() }
