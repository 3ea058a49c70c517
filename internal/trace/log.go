package trace

import (
	"context"
	"log/slog"

	otel "go.opentelemetry.io/otel/trace"
)

// Keys of the log.
const (
	logEvent = "event"
	logTrace = "traceId"
)

// Logs returns a handler that adds to each line what its context tells: the id of the
// event that led to it, and the id of its trace where there is one. A line that names
// an event itself keeps that.
func Logs(h slog.Handler) slog.Handler { return logs{h} }

type logs struct{ slog.Handler }

// Handle implements [slog.Handler].
func (l logs) Handle(ctx context.Context, r slog.Record) error {
	event, span := Event(ctx), otel.SpanContextFromContext(ctx)
	if event == "" && !span.IsValid() {
		return l.Handler.Handle(ctx, r)
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == logEvent {
			event = ""
		}
		return event != ""
	})
	r = r.Clone()
	if event != "" {
		r.AddAttrs(slog.String(logEvent, event))
	}
	if span.IsValid() {
		r.AddAttrs(slog.String(logTrace, span.TraceID().String()))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler { return logs{l.Handler.WithAttrs(attrs)} }

// WithGroup implements [slog.Handler].
func (l logs) WithGroup(name string) slog.Handler { return logs{l.Handler.WithGroup(name)} }
