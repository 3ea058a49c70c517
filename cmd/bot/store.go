package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"syscall"

	"signalbox/internal/bus"
)

// keptBuckets are the buckets that a backup holds beside the ledger, in the order in
// which they are read while signalbox goes on. What leads to something else comes
// before it: at worst that is then done again, which everybody who does it can tell.
// Why the others are not kept is in docs/backup.md.
func keptBuckets() []bus.Kept {
	return []bus.Kept{
		{Name: bucketMatrix},
		{Name: bucketSubscriptions},
		{Name: bucketSchedules},
		{Name: bucketSamples, MaxAge: samplesKept},
		{Name: bucketReports, MaxAge: reportsKept},
		{Name: bucketAlerts},
		{Name: bucketRequests, MaxAge: requestsKept},
		{Name: bucketOutbox, MaxAge: outboxKept},
		{Name: bucketCards},
		{Name: bucketPulls},
	}
}

// storeQuestion is something that is asked of a running signalbox or, where none
// runs, read from its store.
type storeQuestion struct {
	// command is for messages.
	command string
	ask     func(*adminClient) error
	read    func(*bus.Reader) error
}

// put asks the signalbox that runs on an embedded bus. An embedded bus that nobody
// uses is opened, and an external one is read directly.
func (q storeQuestion) put(ctx context.Context, c bus.Config) (err error) {
	if dir := c.Embedded.Dir; dir != "" {
		err := q.ask(newAdminClient(dir))
		if err == nil || !noSocket(err) {
			return err
		}
		inUse, lockErr := bus.InUse(dir)
		if lockErr != nil {
			return fmt.Errorf("%w; run %s as the user that signalbox runs as", lockErr, q.command)
		}
		if inUse {
			return fmt.Errorf("a process uses %s and does not answer on %s (%w); run %s as the user that signalbox runs as, and see the log of signalbox for why it has no socket",
				dir, adminPath(dir), err, q.command)
		}
	}
	reader, err := bus.OpenReader(ctx, c, slog.New(slog.DiscardHandler))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: signalbox has not run with this folder yet, or it runs on another machine", err)
	}
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err = errors.Join(err, reader.Close(end))
	}()
	return q.read(reader)
}

// noSocket reports whether nobody listens on a socket.
func noSocket(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrPermission)
}
