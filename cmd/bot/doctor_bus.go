package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"signalbox/internal/bus"
	"signalbox/internal/doctor"
)

// lookBus looks at the bus, and learns whether signalbox runs and how to see
// its pushes. The returned function ends what it needs for that.
func (e *examiner) lookBus(ctx context.Context) (findings []doctor.Finding, done func()) {
	e.pushes = nil
	if dir := e.bus.Embedded.Dir; dir != "" {
		return e.lookDirectory(ctx, dir).Judge(versionText()), func() {}
	}
	return e.lookNATS(ctx)
}

// lookDirectory looks at the folder of an embedded bus without opening it.
func (e *examiner) lookDirectory(ctx context.Context, dir string) doctor.Directory {
	d := doctor.Directory{Path: dir, Free: -1}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Absent = true
		d.Parent = existing(dir)
		d.Writable = writable(d.Parent)
		return d
	case err != nil:
		d.Fault = err.Error()
		return d
	}
	d.IsFolder, d.Mode, d.Writable, d.Free = info.IsDir(), info.Mode(), writable(dir), freeSpace(dir)
	client := newAdminClient(dir)
	told, err := client.about(ctx)
	if err == nil {
		running := &doctor.Running{Version: told.Version, Started: told.Started, Unhealthy: told.Unhealthy}
		letters, err := client.dead(ctx)
		running.Dead = deadLetters(letters, err)
		d.Running, d.InUse, e.pushes = running, true, client.lastPush
		return d
	}
	d.RunningFault = err.Error()
	if d.InUse, err = bus.InUse(dir); err != nil {
		d.InUseFault = err.Error()
	}
	return d
}

// existing returns the nearest folder above a path that exists.
func existing(path string) string {
	for {
		parent := filepath.Dir(path)
		if _, err := os.Stat(parent); err == nil || parent == path {
			return parent
		}
		path = parent
	}
}

func deadLetters(told adminDead, err error) doctor.Dead {
	if err != nil {
		return doctor.Dead{Fault: err.Error()}
	}
	return doctor.Dead{Total: told.Total, NewestAt: told.At, NewestReason: told.Reason}
}

// lookNATS looks at an external bus.
func (e *examiner) lookNATS(ctx context.Context) ([]doctor.Finding, func()) {
	n := doctor.NATS{Servers: strings.Join(e.bus.External.URLs, ", "), Wanted: e.bus.External.Replicas}
	reader, err := bus.OpenReader(ctx, e.bus, slog.New(slog.DiscardHandler))
	if err != nil {
		n.Fault = err.Error()
		return n.Judge(), func() {}
	}
	// Closing a connection that was only read from cannot lose anything.
	done := func() { _ = reader.Close(context.WithoutCancel(ctx)) }
	streams, missing, err := reader.Streams(ctx)
	if err != nil {
		n.Fault = err.Error()
		return n.Judge(), done
	}
	n.Missing = missing
	for _, s := range streams {
		n.Streams = append(n.Streams, doctor.Stream{Name: s.Name, Clustered: s.Clustered, Replicas: s.Replicas, Current: s.Current, Leader: s.Leader})
	}
	if n.Running, err = reader.Listening(ctx, consumerEvents); err != nil {
		n.RunningFault = err.Error()
	}
	letters, err := readDead(ctx, reader)
	n.Dead = deadLetters(letters, err)
	if n.Running {
		e.pushes = func(ctx context.Context, repoID int64) (uint64, error) { return lastPush(ctx, reader, repoID) }
	}
	return n.Judge(), done
}
