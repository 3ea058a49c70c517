package gitea

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts the requests of a client, each attempt for itself.
type metrics struct {
	requests *prometheus.CounterVec
	retries  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	budget   budget
}

// newMetrics makes the metrics and registers them; a nil registerer keeps them
// to themselves. Of a budget of zero calls nothing is told.
func newMetrics(registerer prometheus.Registerer, calls int) (*metrics, error) {
	m := &metrics{
		budget: budget{calls: calls},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_gitea_requests_total",
			Help: "Requests sent to Gitea, by method, route and HTTP code; code is \"error\" where no answer came.",
		}, []string{"method", "route", "code"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_gitea_retries_total",
			Help: "Requests that were sent to Gitea again, because there was no answer or one that can pass.",
		}, []string{"method", "route"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "signalbox_gitea_request_duration_seconds",
			Help:    "Time from sending a request to Gitea to the end of its answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
	}
	if registerer == nil {
		return m, nil
	}
	all := []prometheus.Collector{m.requests, m.retries, m.duration}
	if calls > 0 {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "signalbox_gitea_budget_calls",
			Help: "How many requests to Gitea in an hour are thought to be enough.",
		}, func() float64 { return float64(calls) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "signalbox_gitea_budget_left_calls",
			Help: "What is left of that for this process after the requests of the last hour; negative where there were more.",
		}, func() float64 { return float64(m.budget.left(time.Now())) }))
	}
	var errs []error
	for _, c := range all {
		errs = append(errs, registerer.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *metrics) observe(method, route, code string, took time.Duration) {
	m.budget.spend(time.Now())
	m.requests.WithLabelValues(method, route, code).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}
