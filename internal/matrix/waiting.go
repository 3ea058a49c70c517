package matrix

import (
	"context"
	"errors"
	"slices"
	"time"

	"maunium.net/go/mautrix/event"
)

// maxWaiting bounds how many events wait for their keys.
const maxWaiting = 500

// waiting is an event that cannot be decrypted yet.
type waiting struct {
	event *event.Event
	until time.Time
}

// sealed takes in an encrypted event, or keeps it until its key has come.
func (a *Adapter) sealed(ctx context.Context, e *event.Event) error {
	keys := a.keys()
	if keys == nil {
		if !a.unread[e.RoomID] {
			a.unread[e.RoomID] = true
			a.log.ErrorContext(ctx, "signalbox cannot read in an encrypted room; configure its encryption, or use a room without", "room", e.RoomID.String())
		}
		a.metrics.received.WithLabelValues(resultUnread).Inc()
		return nil
	}
	plain, err := keys.decrypt(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errNoKey) {
		a.wait(e)
		return nil
	}
	return a.opened(ctx, e, plain, err)
}

// opened takes in what an encrypted event says, or logs why that is not known.
func (a *Adapter) opened(ctx context.Context, e, plain *event.Event, err error) error {
	if err != nil {
		a.metrics.received.WithLabelValues(resultUnread).Inc()
		a.log.WarnContext(ctx, "a message cannot be decrypted; it was left out", "room", e.RoomID.String(), "event", e.ID.String(), "sender", e.Sender.String(), "error", a.reason(err))
		return nil
	}
	switch plain.Type {
	case event.EventMessage:
		return a.said(ctx, plain)
	case event.EventReaction:
		return a.pressed(ctx, plain)
	}
	return nil
}

// wait keeps an event for later.
func (a *Adapter) wait(e *event.Event) {
	if slices.ContainsFunc(a.waiting, func(w waiting) bool { return w.event.ID == e.ID }) {
		return
	}
	if len(a.waiting) == maxWaiting {
		a.waiting[0].until = time.Time{} // It goes with the next look.
	}
	a.waiting = append(a.waiting, waiting{event: e, until: time.Now().Add(a.limits.patience)})
}

// decryptWaiting looks again at the events that wait for their keys. It fails only
// when ctx ends.
func (a *Adapter) decryptWaiting(ctx context.Context) error {
	keys := a.keys()
	if keys == nil || len(a.waiting) == 0 {
		return nil
	}
	left := a.waiting[:0:0]
	for _, w := range a.waiting {
		plain, err := keys.decrypt(ctx, w.event)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errNoKey) && time.Now().Before(w.until) {
			left = append(left, w)
			continue
		}
		if err := a.opened(ctx, w.event, plain, err); err != nil {
			return err
		}
	}
	a.waiting = left
	return nil
}
