package handlers

import (
	"context"
	"time"

	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// Queue takes work. Items of one pull request are never done at the same time.
type Queue interface {
	// Soon asks for work after a short wait for more of the same.
	Soon(ctx context.Context, item work.Item) error
	// Schedule asks for work at a time; it replaces an item of the same kind.
	Schedule(ctx context.Context, item work.Item, at time.Time) error
	// CancelWake takes the timed work of a pull request back.
	CancelWake(ctx context.Context, ref pull.Ref) error
}
