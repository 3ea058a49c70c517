package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
)

// Line is a connection on which requests are sent and answered at once, beside the
// streams: nothing of it is stored, and who is not there does not hear it.
type Line struct {
	nc  *nats.Conn
	log *slog.Logger
	// end closes what [Dial] opened; nil for the line of a bus.
	end func()
}

// Line returns the connection of the bus as a line.
func (b *Bus) Line() *Line { return &Line{nc: b.nc, log: b.log} }

// Dial connects to an external server for a line alone: it needs no JetStream and
// no right to it. Answers come to subjects below inbox, so that the user of the
// connection may be kept from all others; empty means where all answers come. The
// registerer may be nil.
//
// While the connection is away nothing is kept to be sent later, when it would be
// old: requests fail at once.
func Dial(cfg External, inbox string, log *slog.Logger, reg prometheus.Registerer) (*Line, error) {
	m := newMetrics()
	opts := append(commonOptions(log, m, func() {}), nats.ReconnectBufSize(-1))
	if inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(inbox))
	}
	nc, err := connectExternal(cfg, opts)
	if err != nil {
		return nil, err
	}
	m.connected.Set(1)
	unregister, err := m.registerConnection(reg)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &Line{nc: nc, log: log, end: func() { nc.Close(); unregister() }}, nil
}

// Close ends what [Dial] opened.
func (l *Line) Close() {
	if l.end != nil {
		l.end()
	}
}

// Connected reports whether the server is reached now.
func (l *Line) Connected() bool { return l.nc.IsConnected() }

// Move connects anew, to another server if there are several. A server that is cut off
// from the others answers pings for ever.
func (l *Line) Move() error { return l.nc.ForceReconnect() }

// Request sends data on a subject and returns the answer of one who serves it. It
// fails at once where nobody does.
func (l *Line) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	msg, err := l.nc.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("request on %s: nobody answers there", subject)
	case err != nil:
		return nil, fmt.Errorf("request on %s: %w", subject, err)
	}
	return msg.Data, nil
}

// Publish sends data to all who serve a subject now, without an answer.
func (l *Line) Publish(subject string, data []byte) error {
	if err := l.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("publish on %s: %w", subject, err)
	}
	return nil
}

// Bounds of what one Serve has in hand and waiting. What is beyond is dropped, and
// whoever sent it hears nothing and asks again.
const (
	lineWorkers = 8
	lineWaiting = 1024
)

// lineTime bounds one answer. Who asks waits a little longer, so that nothing is
// done after they gave up.
const lineTime = 10 * time.Second

// Serve answers what comes on a subject until ctx ends, several at once, and then
// returns nil. Of those who serve it with the same group, one gets each request; an
// empty group gets all. It may be called at any time; it goes on by itself after
// the connection was lost.
func (l *Line) Serve(ctx context.Context, subject, group string, answer func(ctx context.Context, subject string, data []byte) []byte) error {
	waiting := make(chan *nats.Msg, lineWaiting)
	sub, err := l.nc.ChanQueueSubscribe(subject, group, waiting)
	if err != nil {
		return fmt.Errorf("serve %s: %w", subject, err)
	}
	var workers sync.WaitGroup
	for range lineWorkers {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case msg := <-waiting:
					l.answer(ctx, msg, answer)
				}
			}
		})
	}
	workers.Wait()
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrBadSubscription) {
		l.log.WarnContext(ctx, "a line is still served, as the server sees it", "subject", subject, "error", err)
	}
	return nil
}

func (l *Line) answer(ctx context.Context, msg *nats.Msg, answer func(context.Context, string, []byte) []byte) {
	ctx, cancel := context.WithTimeout(ctx, lineTime)
	defer cancel()
	data := answer(ctx, msg.Subject, msg.Data)
	if msg.Reply == "" {
		return
	}
	if err := msg.Respond(data); err != nil {
		l.log.WarnContext(ctx, "an answer could not be sent", "subject", msg.Subject, "error", err)
	}
}
