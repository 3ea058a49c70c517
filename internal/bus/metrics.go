package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

// Results of handling a message, as the label "result" has them.
const (
	resultOK        = "ok"
	resultRetry     = "retry"
	resultDead      = "dead"
	resultCancelled = "cancelled"
	resultCollapsed = "collapsed"
)

type metrics struct {
	events      *prometheus.CounterVec
	published   *prometheus.CounterVec
	handled     *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	deadLetters *prometheus.CounterVec
	panics      *prometheus.CounterVec
	recreated   *prometheus.CounterVec
	reconnects  prometheus.Counter
	connected   prometheus.Gauge
	lag         *lagCollector
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_bus_" + name, Help: help}, labels)
	}
	return &metrics{
		events:      counter("events_total", "Events that were published, by type and result (ok, duplicate, error).", "type", "result"),
		published:   counter("published_total", "Messages published, by stream and result (ok, duplicate, conflict, error).", "stream", "result"),
		handled:     counter("handled_total", "Messages handled, by consumer and result (ok, retry, dead, cancelled, collapsed).", "consumer", "result"),
		deadLetters: counter("dead_letters_total", "Messages put aside because they could not be handled.", "consumer"),
		panics:      counter("panics_total", "Panics recovered from handlers.", "consumer"),
		recreated:   counter("consumer_restarts_total", "Consumers that went missing or silent and were set up again.", "consumer"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "signalbox_bus_handler_seconds", Help: "Time a handler took for one message.",
			Buckets: []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"consumer"}),
		reconnects: prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_bus_reconnects_total", Help: "Times the connection to NATS was made again."}),
		connected:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "signalbox_bus_connected", Help: "1 while connected to NATS."}),
		lag:        newLagCollector(),
	}
}

// register adds all metrics to a registerer, which may be nil, and returns how
// to take them away again.
func (m *metrics) register(r prometheus.Registerer) (unregister func(), err error) {
	return registerAll(r, m.events, m.published, m.handled, m.duration, m.deadLetters, m.panics, m.recreated, m.reconnects, m.connected, m.lag)
}

// registerConnection is register for those of a connection without streams.
func (m *metrics) registerConnection(r prometheus.Registerer) (unregister func(), err error) {
	return registerAll(r, m.reconnects, m.connected)
}

func registerAll(r prometheus.Registerer, all ...prometheus.Collector) (unregister func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	var done []prometheus.Collector
	unregister = func() {
		for _, c := range done {
			r.Unregister(c)
		}
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			unregister()
			return nil, fmt.Errorf("register the metrics of the bus: %w", err)
		}
		done = append(done, c)
	}
	return unregister, nil
}

// lagCollector asks the server at each scrape how far the consumers are
// behind, so that a consumer that is stuck shows too.
type lagCollector struct {
	pending, unacked, oldest, dead *prometheus.Desc

	mu        sync.Mutex
	consumers map[string]lagSource
	// letters counts the dead letters that are kept; nil before the bus is open.
	letters func(context.Context) (int, error)
}

// lagSource is one consumer, and the label that it counts under.
type lagSource struct {
	label string
	info  func(context.Context) (*jetstream.ConsumerInfo, error)
	// oldest returns when the first message from a sequence on was stored that is
	// for the consumer, or false if there is none.
	oldest func(ctx context.Context, from uint64) (at time.Time, ok bool)
}

func newLagCollector() *lagCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("signalbox_bus_consumer_"+name, help, []string{"consumer"}, nil)
	}
	return &lagCollector{
		pending:   desc("pending", "Messages that wait for the consumer."),
		unacked:   desc("unacked", "Messages that are in hand or wait for another try."),
		oldest:    desc("oldest_seconds", "Age of the oldest message that the consumer is not done with; 0 if there is none."),
		dead:      prometheus.NewDesc("signalbox_bus_dead_letters_kept", "Dead letters that are kept now.", nil, nil),
		consumers: map[string]lagSource{},
	}
}

func (c *lagCollector) add(name string, s lagSource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.consumers[name] = s
}

func (c *lagCollector) count(letters func(context.Context) (int, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.letters = letters
}

// Describe implements [prometheus.Collector].
func (c *lagCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.pending
	ch <- c.unacked
	ch <- c.oldest
	ch <- c.dead
}

// Collect implements [prometheus.Collector]. A consumer that does not answer
// in time is left out.
func (c *lagCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.mu.Lock()
	sources := make([]lagSource, 0, len(c.consumers))
	for _, s := range c.consumers {
		sources = append(sources, s)
	}
	letters := c.letters
	c.mu.Unlock()
	if letters != nil {
		if n, err := letters(ctx); err == nil {
			ch <- prometheus.MustNewConstMetric(c.dead, prometheus.GaugeValue, float64(n))
		}
	}
	type sum struct{ pending, unacked, oldest float64 }
	sums := map[string]sum{}
	for _, s := range sources {
		info, err := s.info(ctx)
		if err != nil {
			continue
		}
		v := sums[s.label]
		v.pending += float64(info.NumPending)
		v.unacked += float64(info.NumAckPending)
		if info.NumPending > 0 || info.NumAckPending > 0 {
			if at, ok := s.oldest(ctx, info.AckFloor.Stream+1); ok {
				v.oldest = max(v.oldest, time.Since(at).Seconds())
			}
		}
		sums[s.label] = v
	}
	for label, v := range sums {
		ch <- prometheus.MustNewConstMetric(c.pending, prometheus.GaugeValue, v.pending, label)
		ch <- prometheus.MustNewConstMetric(c.unacked, prometheus.GaugeValue, v.unacked, label)
		ch <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, v.oldest, label)
	}
}
