//go:build e2e

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// storms of a run, and how much happens in each.
	storms, deeds = 2, 26
	// defaultTime is after which no run is begun, for "make e2e".
	defaultTime = 50 * time.Second
)

// TestChaos: whatever happens in whatever order, what is shown becomes true, and nothing
// that was decided is lost or counted where it may not.
func TestChaos(t *testing.T) {
	first, runs, limit := uint64(1), 1000, defaultTime
	switch text := os.Getenv("CHAOS_SEED"); text {
	case "":
	case "random":
		first = rand.Uint64N(1_000_000)
	default:
		first = must[uint64](t)(strconv.ParseUint(text, 10, 64))
	}
	if text := os.Getenv("CHAOS_RUNS"); text != "" {
		runs = must[int](t)(strconv.Atoi(text))
	}
	if text := os.Getenv("CHAOS_TIME"); text != "" {
		limit = must[time.Duration](t)(time.ParseDuration(text))
	}
	t.Logf("CHAOS_SEED=%d", first)
	start := time.Now()
	for i := range runs {
		if i > 0 && time.Since(start) > limit {
			t.Logf("%d runs in %s", i, time.Since(start).Round(time.Second))
			return
		}
		seed := first + uint64(i)
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) { run(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func run(t *testing.T, seed uint64) {
	s := newStage(t, seed)
	// Before the stage is taken down, so that it is told also where that fails.
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with CHAOS_SEED=%d CHAOS_RUNS=1; this was done:\n%s", seed, strings.Join(s.log, "\n"))
		}
	})
	for range storms {
		for range deeds {
			s.act()
			s.never()
			s.breathe()
		}
		s.settle()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d pull requests, %d entries in the ledger, %d webhooks lost, at the end:\n%s", len(s.pulls), len(s.known), s.relay.Lost(), strings.Join(s.log, "\n"))
}

// breathe lets some time pass, so that deeds meet the program at different moments of
// its work.
func (s *stage) breathe() {
	select {
	case <-s.t.Context().Done():
	case <-time.After(time.Duration(s.random.IntN(900)) * time.Millisecond):
	}
}
