package slack

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/chat"
)

// metrics counts the calls to Slack, and what comes from it.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	received *prometheus.CounterVec
	up       *prometheus.GaugeVec
}

// newMetrics makes the metrics and registers them; a nil registerer keeps them to
// themselves.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_slack_requests_total",
			Help: "Calls of Slack's Web API, by method and code; code is that of Slack, \"ok\", an HTTP code, or \"error\" where no answer came.",
		}, []string{"method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "signalbox_slack_request_duration_seconds",
			Help:    "Time from calling Slack's Web API to the end of its answer.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_slack_received_total",
			Help: "What came from Slack, by kind and by what became of it.",
		}, []string{"kind", "result"}),
		// Every adapter of a chat has this one, told apart by the platform.
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name:        "signalbox_chat_up",
			Help:        "Whether signalbox can speak and listen on a chat platform; the reason says why not.",
			ConstLabels: prometheus.Labels{"platform": string(chat.Slack)},
		}, []string{"reason"}),
	}
	if registerer == nil {
		return m, nil
	}
	return m, errors.Join(registerer.Register(m.requests), registerer.Register(m.duration), registerer.Register(m.received), registerer.Register(m.up))
}

func (m *metrics) observe(method, code string, took time.Duration) {
	m.requests.WithLabelValues(method, code).Inc()
	m.duration.WithLabelValues(method).Observe(took.Seconds())
}
