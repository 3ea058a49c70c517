// Package bustest gives tests a bus of their own.
package bustest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"signalbox/internal/bus"
)

// New opens an embedded bus in a temporary directory and closes it when the
// test ends. Writes are not forced to disk, and work waits 20ms for more of its
// kind, 200ms at most. What the bus logs goes to the log of the test.
func New(t testing.TB) *bus.Bus {
	t.Helper()
	return Open(t, bus.Config{})
}

// Open is New with a configuration, in which the directory, the syncing and
// the debounce times have the defaults of New where they are zero.
func Open(t testing.TB, cfg bus.Config) *bus.Bus {
	t.Helper()
	if cfg.Embedded.Dir == "" {
		cfg.Embedded.Dir = t.TempDir()
	}
	if cfg.Embedded.SyncInterval == 0 {
		cfg.Embedded.SyncInterval = time.Minute
	}
	if cfg.Debounce == 0 {
		cfg.Debounce = 20 * time.Millisecond
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = 200 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	b, err := bus.Open(ctx, cfg, Logger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Logger returns a logger that writes warnings and errors to the log of the
// test.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
