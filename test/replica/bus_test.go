//go:build e2e

package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// bus connects to NATS as signalbox does, past the proxies of the replicas.
func (st *stage) bus() (jetstream.JetStream, func()) {
	st.t.Helper()
	key, err := nats.NkeyOptionFromSeed(st.nats.Seed())
	st.must(err)
	var urls []string
	for _, n := range st.nats.Nodes() {
		urls = append(urls, "nats://"+n.Addr())
	}
	nc, err := nats.Connect(strings.Join(urls, ","), key, nats.Name("test"), nats.MaxReconnects(-1))
	st.must(err)
	js, err := jetstream.New(nc)
	st.must(err)
	return js, nc.Close
}

// idle waits until nothing is left to do: no event, no fact and no work that is due, and nothing in hand. It
// fails when something was put aside.
func (st *stage) idle() {
	st.t.Helper()
	js, done := st.bus()
	defer done()
	st.eventually(patience, "signalbox comes to rest", func() error {
		st.must(st.forge.Settle(st.t.Context()))
		ctx, cancel := context.WithTimeout(st.t.Context(), 5*time.Second)
		defer cancel()
		for _, stream := range []string{"EVENTS", "WORK", "KV_facts"} {
			if err := handled(ctx, js, stream); err != nil {
				return err
			}
		}
		return nil
	})
	dead, err := js.Stream(st.t.Context(), "DEAD")
	st.must(err)
	if n := dead.CachedInfo().State.Msgs; n > 0 {
		st.t.Errorf("%d messages were put aside", n)
	}
}

// kept returns how many messages a stream holds.
func (st *stage) kept(stream string) int {
	st.t.Helper()
	js, done := st.bus()
	defer done()
	s, err := js.Stream(st.t.Context(), stream)
	st.must(err)
	return int(s.CachedInfo().State.Msgs)
}

// handled is nil when the consumers of a stream have nothing before them.
func handled(ctx context.Context, js jetstream.JetStream, stream string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	consumers := s.ListConsumers(ctx)
	var errs []error
	for info := range consumers.Info() {
		if info.Config.Durable != "" && info.NumPending+uint64(info.NumAckPending) > 0 {
			errs = append(errs, fmt.Errorf("consumer %s of %s: %d wait, %d are in hand", info.Name, stream, info.NumPending, info.NumAckPending))
		}
	}
	return errors.Join(append(errs, consumers.Err())...)
}

// events returns how often each event is on the bus, by its id.
func (st *stage) events() map[string]int {
	st.t.Helper()
	js, done := st.bus()
	defer done()
	ctx, cancel := context.WithTimeout(st.t.Context(), patience)
	defer cancel()
	s, err := js.Stream(ctx, "EVENTS")
	st.must(err)
	out := map[string]int{}
	last := s.CachedInfo().State.LastSeq
	if last == 0 {
		return out
	}
	cons, err := js.OrderedConsumer(ctx, "EVENTS", jetstream.OrderedConsumerConfig{HeadersOnly: true})
	st.must(err)
	it, err := cons.Messages()
	st.must(err)
	defer it.Stop()
	for {
		msg, err := it.Next(jetstream.NextContext(ctx))
		st.must(err)
		out[msg.Headers().Get(jetstream.MsgIDHeader)]++
		md, err := msg.Metadata()
		st.must(err)
		if md.Sequence.Stream >= last {
			return out
		}
	}
}
