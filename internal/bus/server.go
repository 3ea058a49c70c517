package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
)

// embeddedServer is the NATS server inside this process, and the lock on its
// directory.
type embeddedServer struct {
	srv  *server.Server
	lock *flock.Flock
}

// lockDir makes the directory of an embedded bus if it is missing, and locks it.
func lockDir(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the bus: %w", err)
	}
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the directory of the bus %s: %w", dir, err)
	}
	if !locked {
		return nil, fmt.Errorf("the directory of the bus %s is in use by another process; stop it, or give this one a directory of its own", dir)
	}
	return lock, nil
}

// startEmbedded locks the directory and starts a server in it that does not
// listen on the network. Two servers on one directory would both start and
// destroy what it holds, so the lock comes first.
func startEmbedded(cfg Config, log *slog.Logger) (*embeddedServer, error) {
	dir := cfg.Embedded.Dir
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(&server.Options{
		ServerName:             "signalbox",
		DontListen:             true,
		NoSigs:                 true,
		JetStream:              true,
		StoreDir:               dir,
		SyncAlways:             cfg.Embedded.SyncInterval == 0,
		SyncInterval:           cfg.Embedded.SyncInterval,
		MaxPayload:             maxPayload,
		JetStreamMaxMemory:     64 << 20,
		JetStreamMaxStore:      cfg.EventsMaxBytes + storeReserve,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configure the embedded NATS server: %w", err), lock.Close())
	}
	e := &embeddedServer{srv: srv, lock: lock}
	l := &serverLog{log: log.With("part", "nats-server")}
	srv.SetLoggerV2(l, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(30*time.Second) || !srv.JetStreamEnabled() {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil, errors.Join(fmt.Errorf("the embedded NATS server in %s did not start; its reason is in the log above", dir), lock.Close())
	}
	return e, nil
}

// storeReserve is the room that the streams without a fixed reservation may
// take. It is a limit of the server, not an allocation.
const storeReserve = 64 << 30

// stop ends the server and frees the directory. When ctx ends first the
// directory stays locked, because the server may still write to it.
func (e *embeddedServer) stop(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	}()
	select {
	case <-done:
		return e.lock.Close()
	case <-ctx.Done():
		return fmt.Errorf("stop the embedded NATS server: %w", context.Cause(ctx))
	}
}

// serverLog passes what matters of the server's log on.
type serverLog struct{ log *slog.Logger }

func (l *serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l *serverLog) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l *serverLog) Debugf(string, ...any)           {}
func (l *serverLog) Tracef(string, ...any)           {}

func (l *serverLog) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "embedded NATS server", "says", fmt.Sprintf(format, v...))
}
