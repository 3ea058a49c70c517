package matrix

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/chat"
)

// metrics counts the requests to the homeserver, and what comes from it.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	received *prometheus.CounterVec
	up       *prometheus.GaugeVec
}

// What became of an event.
const (
	resultSaid     = "said"
	resultPressed  = "pressed"
	resultOld      = "old"
	resultPlain    = "plain in an encrypted room"
	resultUnread   = "undecryptable"
	resultRejected = "rejected"
	resultFailed   = "failed"
)

// newMetrics makes the metrics and registers them; a nil registerer keeps them to
// themselves.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_matrix_requests_total",
			Help: "Requests sent to the homeserver, by method, route and HTTP code; code is \"error\" where no answer came.",
		}, []string{"method", "route", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "signalbox_matrix_request_duration_seconds",
			Help:    "Time from sending a request to the homeserver to the head of its answer; sync waits for news.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_matrix_received_total",
			Help: "Events of rooms that could concern signalbox, by what became of them.",
		}, []string{"result"}),
		// Every adapter of a chat has this one, told apart by the platform.
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name:        "signalbox_chat_up",
			Help:        "Whether signalbox can speak and listen on a chat platform; the reason says why not.",
			ConstLabels: prometheus.Labels{"platform": string(chat.Matrix)},
		}, []string{"reason"}),
	}
	m.setUp(reasonStarting)
	if registerer == nil {
		return m, nil
	}
	return m, errors.Join(registerer.Register(m.requests), registerer.Register(m.duration), registerer.Register(m.received), registerer.Register(m.up))
}

// setUp shows why signalbox cannot speak and listen; an empty reason says that it can.
func (m *metrics) setUp(reason string) {
	value := 0.0
	if reason == "" {
		value = 1
	}
	m.up.Reset()
	m.up.WithLabelValues(reason).Set(value)
}

// transport counts requests.
type transport struct {
	base    http.RoundTripper
	metrics *metrics
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	started, where, code := time.Now(), route(req.URL.Path), "error"
	if req.Method == http.MethodPut {
		// What is put twice has the same transaction: when the homeserver has closed the
		// connection meanwhile, it is sent again on another. The header itself is not.
		req = req.Clone(req.Context())
		req.Header["Idempotency-Key"] = []string{}
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	t.metrics.requests.WithLabelValues(req.Method, where, code).Inc()
	t.metrics.duration.WithLabelValues(req.Method, where).Observe(time.Since(started).Seconds())
	return resp, err
}

// route names a request without the ids in its path: the first part behind the
// version, or what is done with a room or a file.
func route(path string) string {
	if strings.HasSuffix(path, "/_matrix/media/v3/upload") {
		return "media/upload"
	}
	_, rest, found := strings.Cut(path, "/_matrix/client/")
	parts := strings.Split(rest, "/")
	switch {
	case !found || len(parts) < 2:
		return "other"
	case parts[1] == "rooms" && len(parts) > 3:
		return "rooms/" + parts[3]
	}
	return parts[1]
}
