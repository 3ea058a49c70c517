package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// answers is nil when a leader of the streams answers. It asks anew and not the
// stream of Open, which lets one ask at a time, so that many would wait for
// longer than they may.
func (b *Bus) answers(ctx context.Context) error {
	s, err := b.js.Stream(ctx, streamEvents)
	if err != nil {
		return fmt.Errorf("stream %s: %w", streamEvents, err)
	}
	return led(s.CachedInfo())
}

// led is nil when a stream has a leader. A server that is cut off from the others
// tells about a stream without one too.
func led(info *jetstream.StreamInfo) error {
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return fmt.Errorf("stream %s has no leader", info.Config.Name)
	}
	return nil
}

// guard watches the connection of a bus until it closes; see [Line.Guard].
func (b *Bus) guard() error {
	if len(b.cfg.External.URLs) < 2 {
		return nil
	}
	leave, err := b.enter(&b.following)
	if err != nil {
		return err
	}
	ctx, cancel := until(context.Background(), b.abort)
	go func() {
		defer leave()
		defer cancel()
		b.Line().Guard(ctx, b.cfg.timing.moveAfter, b.answers)
	}()
	return nil
}

// Guard watches the connection to one of several servers until ctx ends. A server
// that is cut off from the others answers pings for ever and can do nothing, and
// one behind a network that drops everything is missed late: so when nothing was
// answered for as long as patience, another server is tried. Answers asks, and
// returns why there was no answer.
func (l *Line) Guard(ctx context.Context, patience time.Duration, answers func(context.Context) error) {
	ticker := time.NewTicker(patience / 5)
	defer ticker.Stop()
	heard := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !l.nc.IsConnected() {
			heard = time.Now() // It looks for a server by itself.
			continue
		}
		ask, cancel := context.WithTimeout(ctx, patience/5)
		err := answers(ask)
		cancel()
		switch {
		case err == nil:
			heard = time.Now()
		case ctx.Err() == nil && time.Since(heard) >= patience:
			l.log.WarnContext(ctx, "nothing is answered by way of this NATS server; another one is tried", "server", l.nc.ConnectedUrlRedacted(), "error", err)
			if err := l.Move(); err != nil {
				l.log.ErrorContext(ctx, "no other NATS server could be tried", "error", err)
			}
			heard = time.Now()
		}
	}
}
