package gitea

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts the requests of a client, each attempt for itself.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// newMetrics makes the metrics and registers them; a nil registerer keeps them
// to themselves.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_gitea_requests_total",
			Help: "Requests sent to Gitea, by method, route and HTTP code; code is \"error\" where no answer came.",
		}, []string{"method", "route", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "signalbox_gitea_request_duration_seconds",
			Help:    "Time from sending a request to Gitea to the end of its answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
	}
	if registerer == nil {
		return m, nil
	}
	return m, errors.Join(registerer.Register(m.requests), registerer.Register(m.duration))
}

func (m *metrics) observe(method, route, code string, took time.Duration) {
	m.requests.WithLabelValues(method, route, code).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}
