package kube

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/fact"
)

// blockingSink holds writes and removals back while it is asked to.
type blockingSink struct {
	*fakeSink
	gate chan struct{}
}

func (s blockingSink) wait(ctx context.Context) error {
	select {
	case <-s.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s blockingSink) Put(ctx context.Context, f fact.Fact) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	return s.fakeSink.Put(ctx, f)
}

func (s blockingSink) PutAfterList(ctx context.Context, f fact.Fact) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	return s.fakeSink.PutAfterList(ctx, f)
}

func (s blockingSink) Delete(ctx context.Context, k fact.Key) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.fakeSink.Delete(ctx, k)
}

// While the bus is slow, nobody takes an answer of an earlier life for one of now.
func TestAwaitWaitsForTheSink(t *testing.T) {
	for _, changed := range []bool{false, true} {
		t.Run(fmt.Sprint("changed ", changed), func(t *testing.T) {
			c, s := longhorn(t), newFakeSink()
			synctest.Test(t, func(t *testing.T) {
				key := objectsKey(volumes)
				_, stop := start(t, "prod", c, s, wish(volumes)...)
				pass(time.Minute)
				stop()
				if changed {
					apply(t, c, volume("a", "faulted"))
				}
				slow := blockingSink{s, make(chan struct{})}
				w, err := New(configOf("prod", c), slow, slog.New(slog.DiscardHandler), nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); _ = w.Run(ctx) }()
				defer func() { cancel(); <-ended }()
				pass(time.Minute)
				await := func() <-chan struct{} {
					done := make(chan struct{})
					go func() { defer close(done); w.Await(ctx, []fact.Key{key}) }()
					return done
				}
				isDone := func(done <-chan struct{}) bool {
					select {
					case <-done:
						return true
					default:
						return false
					}
				}
				w.Wish(wish(volumes))
				done := await()
				pass(10 * time.Second)
				if isDone(done) {
					t.Error("Await returned before anything was acknowledged")
				}
				// Who waits for what is dropped and wished again waits for that.
				w.Wish(nil)
				dropped := await()
				pass(10 * time.Second)
				w.Wish(wish(volumes))
				pass(10 * time.Second)
				if isDone(done) || isDone(dropped) {
					t.Error("Await returned before anything was acknowledged of what is wished again")
				}
				close(slow.gate)
				pass(2 * time.Minute)
				if !isDone(done) || !isDone(dropped) {
					t.Error("Await did not return")
				}
				if n := s.answer(volumes).Failing.Count; n != 1+map[bool]int{true: 1}[changed] {
					t.Errorf("%d fail", n)
				}
				w.Wish(nil)
				<-await()
				if f, ok := s.Lookup(key); ok {
					t.Errorf("Await returned before the fact was removed: %+v", f)
				}
			})
		})
	}
}
