package matrix

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
	"signalbox/internal/events"
)

// takeEvent takes in one event of a room. It fails only when ctx ends.
func (a *Adapter) takeEvent(ctx context.Context, room id.RoomID, e *event.Event, floor time.Time) (err error) {
	if e == nil || e.ID == "" {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			a.log.ErrorContext(ctx, "a panic over an event, which is left out", "room", room.String(), "event", e.ID.String(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = ctx.Err()
		}
	}()
	e.RoomID = room
	if e.StateKey != nil {
		a.noteState(ctx, room, e)
		return nil
	}
	if e.Sender == a.self.user {
		a.own.Add(e.ID, true)
		return nil
	}
	e.Type.Class = event.MessageEventType
	if e.Content.Parsed == nil {
		if err := e.Content.ParseRaw(e.Type); err != nil {
			return nil // What is no event of its type concerns nobody.
		}
	}
	switch {
	case e.Type != event.EventMessage && e.Type != event.EventReaction && e.Type != event.EventEncrypted:
		return nil
	case !floor.IsZero() && time.UnixMilli(e.Timestamp).Before(floor):
		a.metrics.received.WithLabelValues(resultOld).Inc()
		return nil
	case e.Type == event.EventEncrypted:
		return a.sealed(ctx, e)
	case e.Type == event.EventReaction:
		return a.pressed(ctx, e)
	case a.isEncrypted(ctx, room):
		// In such a room people trust that only what was encrypted was said by them.
		a.metrics.received.WithLabelValues(resultPlain).Inc()
		a.log.WarnContext(ctx, "a message that is not encrypted was left out in an encrypted room", "room", room.String(), "event", e.ID.String(), "sender", e.Sender.String())
		return nil
	}
	return a.said(ctx, e)
}

// isEncrypted reports whether a room is encrypted, as far as it is known.
func (a *Adapter) isEncrypted(ctx context.Context, room id.RoomID) bool {
	// It fails for no room.
	settings, _ := a.rooms.GetEncryptionEvent(ctx, room)
	return settings != nil
}

// said hands on a message that is addressed to signalbox.
func (a *Adapter) said(ctx context.Context, e *event.Event) error {
	content := e.Content.AsMessage()
	if first := content.RelatesTo.GetReplaceID(); first != "" {
		return a.changed(ctx, e, content.NewContent, first)
	}
	m, ok := a.read(ctx, e, content)
	if !ok {
		return nil
	}
	return a.hand(ctx, e, resultSaid, func(ctx context.Context, cause string) error { return a.receiver.Said(ctx, cause, m) })
}

// read makes a message of an event, if it is addressed to signalbox.
func (a *Adapter) read(ctx context.Context, e *event.Event, content *event.MessageEventContent) (chat.Message, bool) {
	// Notices are what programs say.
	if content == nil || content.MsgType != event.MsgText {
		return chat.Message{}, false
	}
	// It fails for no room.
	people, _ := a.rooms.GetRoomJoinedOrInvitedMembers(ctx, e.RoomID)
	direct := len(people) == 2
	text, addressed := a.self.read(content)
	if !addressed && !direct {
		return chat.Message{}, false
	}
	return chat.Message{
		ID: e.ID.String(), Room: chatRoom(e.RoomID), Thread: content.RelatesTo.GetThreadParent().String(),
		User: chatUser(e.Sender), Text: text, Direct: direct,
		Link: e.RoomID.EventURI(e.ID, a.self.user.Homeserver()).MatrixToURL(),
		At:   when(e),
	}, true
}

// changed hands on that a message was edited, if what it said first was addressed to
// signalbox. Whatever it says now, it is not obeyed.
func (a *Adapter) changed(ctx context.Context, e *event.Event, now *event.MessageEventContent, first id.EventID) error {
	if now == nil {
		return nil
	}
	original, err := once(ctx, a, "read the message that was edited", message{e.RoomID, first}, a.fetch)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || original.Sender != e.Sender || original.Type != event.EventMessage {
		a.log.DebugContext(ctx, "an edit was left out", "room", e.RoomID.String(), "event", e.ID.String(), "error", err)
		return nil
	}
	m, ok := a.read(ctx, original, original.Content.AsMessage())
	if !ok {
		return nil
	}
	m.Text, _ = a.self.read(now)
	m.Edited = true
	return a.hand(ctx, e, resultSaid, func(ctx context.Context, cause string) error { return a.receiver.Said(ctx, cause, m) })
}

// fetch reads one event, decrypted.
func (a *Adapter) fetch(ctx context.Context, room id.RoomID, wanted id.EventID) (*event.Event, error) {
	e, err := a.client.GetEvent(ctx, room, wanted)
	if err != nil {
		return nil, err
	}
	if e == nil || e.ID != wanted {
		return nil, errors.New("the homeserver answered with another event")
	}
	e.RoomID, e.Type.Class = room, event.MessageEventType
	if err := e.Content.ParseRaw(e.Type); err != nil {
		return nil, err
	}
	if keys := a.keys(); keys != nil && e.Type == event.EventEncrypted {
		return keys.decrypt(ctx, e)
	}
	return e, nil
}

// pressed hands on a reaction that stands for a button, if it is to a message of
// signalbox.
func (a *Adapter) pressed(ctx context.Context, e *event.Event) error {
	related := e.Content.AsReaction().RelatesTo
	button, ok := reaction(related.GetAnnotationKey())
	if !ok || related.GetAnnotationID() == "" {
		return nil
	}
	own, err := a.isOwn(ctx, e.RoomID, related.EventID)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.log.WarnContext(ctx, "a reaction was left out, because the message cannot be read", "room", e.RoomID.String(), "event", e.ID.String(), "error", err)
		return nil
	}
	if !own {
		return nil
	}
	p := chat.Press{
		Room: chatRoom(e.RoomID), Message: related.EventID.String(), User: chatUser(e.Sender), Button: button,
		At: when(e),
	}
	return a.hand(ctx, e, resultPressed, func(ctx context.Context, cause string) error { return a.receiver.Pressed(ctx, cause, p) })
}

// isOwn reports whether signalbox sent a message.
func (a *Adapter) isOwn(ctx context.Context, room id.RoomID, sent id.EventID) (bool, error) {
	if own, ok := a.own.Get(sent); ok {
		return own, nil
	}
	e, err := once(ctx, a, "read the message of a reaction", message{room, sent}, func(ctx context.Context, room id.RoomID, wanted id.EventID) (*event.Event, error) {
		return a.client.GetEvent(ctx, room, wanted)
	})
	if errors.Is(err, chat.ErrGone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	own := e != nil && e.ID == sent && e.Sender == a.self.user
	a.own.Add(sent, own)
	return own, nil
}

// message is a message as somebody in a room names it. Another may name one that is
// not there.
type message struct {
	room id.RoomID
	id   id.EventID
}

// absence is why a message could not be read, and until when that is believed.
type absence struct {
	why   error
	until time.Time
}

// once asks once for a message that somebody refers to, and not again for a while if
// it cannot be had: everything else waits meanwhile, and anybody can refer to messages
// that are not there.
func once(ctx context.Context, a *Adapter, doing string, m message, read func(context.Context, id.RoomID, id.EventID) (*event.Event, error)) (*event.Event, error) {
	if absent, ok := a.absent.Get(m); ok && time.Now().Before(absent.until) {
		return nil, absent.why
	}
	e, err := ask(ctx, a, doing, func(ctx context.Context) (*event.Event, error) { return read(ctx, m.room, m.id) })
	if err != nil && ctx.Err() == nil {
		a.absent.Add(m, absence{why: err, until: time.Now().Add(a.limits.absent)})
	}
	return e, err
}

// earliest is before everything that was ever said on Matrix.
var earliest = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// when is when an event happened, as far as that is believed: its time is whatever
// the sender's homeserver wrote. It is never later than now, for nothing may count
// for longer because of it, and a year of more than four digits is no JSON. One that
// cannot be says nothing, and then the event is as new as it looks from here.
func when(e *event.Event) time.Time {
	now := time.Now().UTC()
	at := time.UnixMilli(e.Timestamp).UTC()
	if at.Before(earliest) || at.After(now) {
		return now
	}
	return at
}

// hand hands an event on until the receiver has taken it, or ctx ends. Nothing else
// is taken in meanwhile: the receiver is the bus, without which nothing is decided.
// What can never be taken is left out, or it would stop all that comes behind it.
func (a *Adapter) hand(ctx context.Context, e *event.Event, result string, give func(ctx context.Context, cause string) error) error {
	wait := a.limits.retry
	for {
		err := give(ctx, string(chat.Matrix)+"/"+e.ID.String())
		if err == nil {
			a.metrics.received.WithLabelValues(result).Inc()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if events.IsPermanent(err) {
			a.metrics.received.WithLabelValues(resultFailed).Inc()
			a.log.ErrorContext(ctx, "an event can never be taken; it was left out", "room", e.RoomID.String(), "event", e.ID.String(), "sender", e.Sender.String(), "error", err)
			return nil
		}
		a.log.WarnContext(ctx, "an event was not taken; it is handed on again", "room", e.RoomID.String(), "event", e.ID.String(), "error", err)
		pause(ctx, wait)
		wait = min(2*wait, 15*time.Second)
	}
}
