package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/digest"
	"signalbox/internal/render"
)

// AlertRule says who is told when something breaks, and when it recovers.
type AlertRule struct {
	Name  string
	About About
	digest.Rule
	Rooms []chat.Room
}

// AlertState is what was told by a rule.
type AlertState struct {
	digest.State `json:"state"`
	// Seq counts what was told. Unsaid is what is being told as that, until it is in the
	// outbox.
	Seq    uint64        `json:"seq,omitempty"`
	Unsaid *digest.Batch `json:"unsaid,omitempty"`
}

// AlertStates is where states are kept, by the name of the rule.
type AlertStates interface {
	Get(key string) (s AlertState, revision uint64, ok bool)
	Put(ctx context.Context, key string, s AlertState, revision uint64) (uint64, error)
	Sync(ctx context.Context) error
}

// Alerts tells in chats when something breaks and when it recovers. Every replica
// looks; who writes the state first is who tells.
type Alerts struct {
	Rules   []AlertRule
	Outlook *Outlook
	States  AlertStates
	Outbox  *Outbox
	// Page returns where to read more, or "".
	Page     string
	Conflict func(error) bool
	Now      func() time.Time
	Log      *slog.Logger
}

const (
	// lookSoon gathers what breaks at the same time.
	lookSoon = 2 * time.Second
	// lookAtLeast is how often is looked without a change: some findings come by time
	// alone.
	lookAtLeast = 30 * time.Second
)

// Run looks until the context ends: a moment after each change, when something is
// due, and every half minute.
func (h *Alerts) Run(ctx context.Context, changed <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			// What follows within a moment belongs to it.
			timer.Reset(lookSoon)
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
		case <-timer.C:
		}
		next := lookAtLeast
		for i := range h.Rules {
			due, err := h.Look(ctx, &h.Rules[i])
			if err != nil && ctx.Err() == nil {
				h.Log.ErrorContext(ctx, "alerts not looked at", "alert", h.Rules[i].Name, "error", err)
			}
			if wait := due.Sub(h.Now()); !due.IsZero() && wait < next {
				next = max(wait, time.Second)
			}
		}
		timer.Reset(next)
	}
}

// Look tells what is to be told by a rule now, and returns when time alone will bring
// more; zero for not.
//
// What is told is kept with the state before it is said: whoever ends in between, or
// is second, says it with the same cause, and a chat shows it once. The state is read
// before the facts, so whoever writes it has seen at least what the one before saw.
func (h *Alerts) Look(ctx context.Context, rule *AlertRule) (due time.Time, err error) {
	if err := h.States.Sync(ctx); err != nil {
		return time.Time{}, err
	}
	state, revision, _ := h.States.Get(rule.Name)
	found, err := h.Outlook.Look(ctx, rule.About, time.Time{})
	if err != nil {
		return time.Time{}, err
	}
	if state.Unsaid != nil {
		if err := h.say(ctx, rule, &state); err != nil {
			return time.Time{}, err
		}
	}
	next := state
	var batch *digest.Batch
	next.State, batch, due = state.Next(found, rule.Rule, h.Now().UTC())
	if next.Unsaid = batch; batch != nil {
		next.Seq++
	}
	if reflect.DeepEqual(next, state) {
		return due, nil
	}
	if err := h.fits(&next); err != nil {
		return time.Time{}, err
	}
	revision, err = h.States.Put(ctx, rule.Name, next, revision)
	if err != nil {
		if h.Conflict(err) {
			return h.Now().Add(lookSoon), nil // Another replica did this; look at what it left.
		}
		return time.Time{}, fmt.Errorf("keep the state of alert %s: %w", rule.Name, err)
	}
	if batch == nil {
		return due, nil
	}
	h.Log.InfoContext(ctx, "alert", "alert", rule.Name, "broke", len(batch.Broke)+batch.MoreBroke, "recovered", len(batch.Recovered)+batch.MoreRecovered, "number", next.Seq)
	if err := h.say(ctx, rule, &next); err != nil {
		return time.Time{}, err
	}
	next.Unsaid = nil
	// Whoever was faster has said it too, under the same number.
	if _, err := h.States.Put(ctx, rule.Name, next, revision); err != nil && !h.Conflict(err) {
		return time.Time{}, fmt.Errorf("keep the state of alert %s: %w", rule.Name, err)
	}
	return due, nil
}

// maxAlertState bounds a state, in bytes: less than what the bus takes as one message.
const maxAlertState = 900 << 10

// fits refuses a state that the bus would not take, with words that tell why nothing
// is told.
func (h *Alerts) fits(s *AlertState) error {
	text, err := json.Marshal(s)
	if err == nil && len(text) > maxAlertState {
		err = fmt.Errorf("so much is broken that it cannot be kept (%d bytes); let the alert be about fewer clusters or sections", len(text))
	}
	return err
}

func (h *Alerts) say(ctx context.Context, rule *AlertRule, s *AlertState) error {
	for _, room := range rule.Rooms {
		err := h.Outbox.Say(ctx, Outgoing{
			Room: room, Cause: fmt.Sprintf("alert/%s/%d", rule.Name, s.Seq),
			Body: render.ChatBody(room.Platform, render.Alert(*s.Unsaid, "UTC", h.Page)),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
