package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"signalbox/internal/config"
	"signalbox/internal/trace"
)

// newLogger makes the logger that a configuration asks for. Automatic is text
// on a terminal, else JSON.
func newLogger(w io.Writer, c config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	text := c.Format == config.LogText || (c.Format == config.LogAuto && isTerminal(w))
	if text {
		return slog.New(trace.Logs(slog.NewTextHandler(w, options)))
	}
	return slog.New(trace.Logs(slog.NewJSONHandler(w, options)))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
