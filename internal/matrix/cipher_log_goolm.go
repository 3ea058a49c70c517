//go:build goolm

package matrix

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/rs/zerolog"
)

// zlog makes a logger for the library of the keys, which has one of another kind.
// What is less than a warning is for its developers.
func zlog(log *slog.Logger) zerolog.Logger {
	return zerolog.New(bridge{log}).Level(zerolog.WarnLevel)
}

type bridge struct{ log *slog.Logger }

// Write implements [io.Writer] with one record of JSON.
func (b bridge) Write(record []byte) (int, error) {
	// Not what it sent or received, which a failed request logs as well.
	var r struct {
		Level   string `json:"level"`
		Message string `json:"message"`
		Error   string `json:"error"`
		Room    string `json:"room_id"`
		Session string `json:"session_id"`
		Sender  string `json:"sender"`
	}
	if err := json.Unmarshal(record, &r); err != nil {
		return len(record), nil //nolint:nilerr // A record that is not understood is not worth an error.
	}
	level := slog.LevelWarn
	if r.Level == zerolog.LevelErrorValue {
		level = slog.LevelError
	}
	b.log.Log(context.Background(), level, "encryption of matrix", "what", cut(oneLine(r.Message), maxReason),
		"error", cut(oneLine(r.Error), maxReason), "room", r.Room, "session", r.Session, "sender", r.Sender)
	return len(record), nil
}
