package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

// Bus is a connection to the streams of signalbox. Its methods may be called
// at the same time from several goroutines.
type Bus struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	nc      *nats.Conn
	js      jetstream.JetStream
	streams map[string]jetstream.Stream // not changed after Open
	server  *embeddedServer             // nil when external
	work    *Work
	facts   *Facts
	beats   *Beats
	dead    *Dead

	unregister func()
	// closing is closed first: nothing new is taken in hand. abort is closed
	// when what is in hand has had its time: handlers and views end.
	closing, abort chan struct{}
	closeOnce      sync.Once
	closeErr       error

	mu     sync.Mutex
	closed bool
	// consumers and following count what Close waits for: consumers, which end
	// at closing, and the views that their handlers read, which end at abort.
	consumers, following sync.WaitGroup
	// reconnect is closed, and replaced, when the connection was made again.
	reconnect chan struct{}
	// views are the buckets that are open, by name.
	views map[string]interface{ healthy() error }
}

// Open starts or connects to the bus and makes its streams and buckets. It
// returns when facts and beats are loaded. The registerer may be nil.
func Open(ctx context.Context, cfg Config, log *slog.Logger, reg prometheus.Registerer) (_ *Bus, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("bus configuration: %w", err)
	}
	b := &Bus{
		cfg:        cfg,
		log:        log,
		metrics:    newMetrics(),
		streams:    map[string]jetstream.Stream{},
		unregister: func() {},
		closing:    make(chan struct{}),
		abort:      make(chan struct{}),
		reconnect:  make(chan struct{}),
		views:      map[string]interface{ healthy() error }{},
	}
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			err = errors.Join(err, b.Close(ctx))
		}
	}()
	if err := b.connect(); err != nil {
		return nil, err
	}
	if b.unregister, err = b.metrics.register(reg); err != nil {
		b.unregister = func() {}
		return nil, err
	}
	err = whileStarting(ctx, func() error {
		if err := b.checkServer(ctx); err != nil {
			return err
		}
		return b.checkStore(ctx)
	})
	if err != nil {
		return nil, err
	}
	for _, s := range streams(cfg) {
		if b.streams[s.Name], err = b.ensureStream(ctx, s); err != nil {
			return nil, err
		}
	}
	b.work = newWork(b)
	b.dead = &Dead{b: b}
	b.metrics.lag.count(b.dead.Count)
	if b.facts, err = openFacts(ctx, b); err != nil {
		return nil, err
	}
	if b.beats, err = openBeats(ctx, b); err != nil {
		return nil, err
	}
	if err := b.guard(); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Bus) connect() (err error) {
	opts := commonOptions(b.log, b.metrics, b.announceReconnect)
	if b.cfg.embedded() {
		if b.server, err = startEmbedded(b.cfg, b.log); err != nil {
			return err
		}
		b.nc, err = nats.Connect("", append(opts, nats.InProcessServer(b.server.srv))...)
		if err != nil {
			return fmt.Errorf("connect to the embedded NATS server: %w", err)
		}
	} else if b.nc, err = connectExternal(b.cfg.External, opts); err != nil {
		return err
	}
	b.metrics.connected.Set(1)
	b.js, err = jetstream.New(b.nc)
	return err
}

// checkServer refuses a server that lacks what the bus needs.
func (b *Bus) checkServer(ctx context.Context) error {
	info, err := b.js.AccountInfo(ctx)
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("the NATS server %s runs without JetStream; start it with JetStream enabled", b.nc.ConnectedUrlRedacted())
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("JetStream is not enabled for this account on the NATS server %s; enable it for the account", b.nc.ConnectedUrlRedacted())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("the NATS server %s does not answer about JetStream (%w); may its user publish to $JS.API.> and subscribe to _INBOX.>?",
			b.nc.ConnectedUrlRedacted(), err)
	case err != nil:
		return fmt.Errorf("ask the NATS server about JetStream: %w", err)
	case info.API.Level < apiLevel:
		return fmt.Errorf("the NATS server %s is version %s, which cannot schedule messages; signalbox needs nats-server 2.12 or newer",
			b.nc.ConnectedUrlRedacted(), b.nc.ConnectedServerVersion())
	}
	if limit := b.nc.MaxPayload(); limit < maxPayload {
		b.log.WarnContext(ctx, "the NATS server takes smaller messages than signalbox may have; raise its max_payload",
			"maxPayload", limit, "wanted", maxPayload)
	}
	return nil
}

// payloadLimit is the size of the largest message in bytes that may be
// published.
func (b *Bus) payloadLimit() int {
	return int(b.nc.MaxPayload()) - headroom
}

// Facts returns the store of facts.
func (b *Bus) Facts() *Facts { return b.facts }

// Beats returns the heartbeats of clusters.
func (b *Bus) Beats() *Beats { return b.beats }

// Work returns the queue of pull requests that must be looked at.
func (b *Bus) Work() *Work { return b.work }

// Dead returns what could not be handled.
func (b *Bus) Dead() *Dead { return b.dead }

// Health says whether the bus can be used now. The error says what is wrong. A
// server that does not answer within two seconds counts as gone.
func (b *Bus) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	b.mu.Lock()
	closed, views := b.closed, make([]interface{ healthy() error }, 0, len(b.views))
	for _, v := range b.views {
		views = append(views, v)
	}
	b.mu.Unlock()
	if closed {
		return errClosed
	}
	if !b.nc.IsConnected() {
		return errors.New("not connected to NATS")
	}
	if err := b.answers(ctx); err != nil {
		return err
	}
	for _, v := range views {
		if err := v.healthy(); err != nil {
			return err
		}
	}
	return nil
}

var errClosed = errors.New("the bus is closed")

// Close takes nothing new in hand, waits for the handlers that run, and
// closes the connection and the embedded server. When ctx ends first, the
// contexts of the handlers are cancelled; what they had in hand is delivered
// again after the next start. Close may be called more than once.
func (b *Bus) Close(ctx context.Context) error {
	b.closeOnce.Do(func() { b.closeErr = b.close(ctx) })
	return b.closeErr
}

func (b *Bus) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	close(b.closing)
	if b.work != nil {
		b.work.debounce.stop()
	}
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		b.consumers.Wait()
	}()
	var errs []error
	select {
	case <-idle:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("close the bus: handlers were still running: %w", context.Cause(ctx)))
	}
	close(b.abort)
	if len(errs) > 0 {
		// A handler that obeys its context ends now.
		select {
		case <-idle:
		case <-time.After(time.Second):
		}
	}
	b.following.Wait()
	if b.nc != nil {
		// Acknowledgements are sent without waiting. One that does not get out
		// costs a second delivery.
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if err := b.nc.FlushWithContext(flush); err != nil {
			b.log.WarnContext(flush, "the last acknowledgements may not have been sent", "error", err)
		}
		cancel()
		b.nc.Close()
	}
	b.unregister()
	if b.server != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		errs = append(errs, b.server.stop(stop))
	}
	return errors.Join(errs...)
}

// enter adds the caller to what Close waits for, until it calls leave. It
// fails after Close.
func (b *Bus) enter(group *sync.WaitGroup) (leave func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	group.Add(1)
	return group.Done, nil
}

// until returns a context that ends with ctx, or when a channel is closed. It
// shows no deadline: the library would shorten its requests to it.
func until(ctx context.Context, ch <-chan struct{}) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ch:
			cancel(errClosed)
		case <-ctx.Done():
			cancel(context.Cause(ctx))
		case <-joined.Done():
		}
	}()
	return joined, func() {
		cancel(context.Canceled)
		<-done
	}
}

// reconnected returns a channel that is closed at the next reconnect: what was
// asked of the server before may be lost then.
func (b *Bus) reconnected() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reconnect
}

func (b *Bus) announceReconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.reconnect)
	b.reconnect = make(chan struct{})
}

// connectedAgain waits while there is no connection.
func (b *Bus) connectedAgain(ctx context.Context) {
	again := b.reconnected() // before the check, so that none is missed
	if b.nc.IsConnected() {
		return
	}
	select {
	case <-again:
	case <-ctx.Done():
	}
}

// addView enters an open bucket. It fails when there is one of that name.
func (b *Bus) addView(name string, v interface{ healthy() error }) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, open := b.views[name]; open {
		return false
	}
	b.views[name] = v
	return true
}
