package matrix

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
)

// An event has at most 64 KiB, with all that the homeserver adds; encryption makes a
// third more of it: https://spec.matrix.org/latest/client-server-api/#size-limits.
const (
	maxContent = 60_000
	maxSealed  = 46_000
)

// maxFallback bounds what an edit shows in clients that do not know edits, in bytes.
const maxFallback = 2000

// Post implements [chat.Poster]. The same cause is shown once for as long as this
// process, or the homeserver for this login, remembers it.
func (a *Adapter) Post(ctx context.Context, room chat.Room, thread, cause string, body chat.Body) (string, error) {
	content := notice(body)
	inThread(content, thread)
	sent, err := a.send(ctx, id.RoomID(room.ID), content, transaction("post", room.ID, cause))
	return sent.String(), err
}

// Edit implements [chat.Poster]. Clients show the new text in the place of the old.
// Matrix does not tell whether the message is there, or was sent by somebody else.
func (a *Adapter) Edit(ctx context.Context, room chat.Room, message, cause string, body chat.Body) error {
	content := notice(chat.Body{Text: "* " + cut(body.Text, maxFallback)})
	content.NewContent = notice(body)
	content.RelatesTo = (&event.RelatesTo{}).SetReplace(id.EventID(message))
	_, err := a.send(ctx, id.RoomID(room.ID), content, transaction("edit", room.ID, message, cause, body.Text, body.HTML))
	return err
}

// notHere is what is said in the place of what one person alone may see.
const notHere = "What only you may see is not said here, where others read it. Ask again in a room of our own: one with you and me and nobody else."

// Whisper implements [chat.Poster]. What only one person sees there is in Matrix only
// what is said in a room of two: this room or, if it has others in it, another that
// both are in. No room is made for it, into which people would have to be asked first:
// where there is none, everybody in the room sees why there is no answer.
func (a *Adapter) Whisper(ctx context.Context, room chat.Room, thread string, to chat.User, cause string, body chat.Body) error {
	here, person := id.RoomID(room.ID), id.UserID(to.ID)
	if _, err := a.speak(); err != nil {
		return fmt.Errorf("whisper to %s: %w", person, err)
	}
	rooms, err := a.alone(ctx, here, person)
	if err != nil {
		return err
	}
	content := func(body chat.Body, in id.RoomID) *event.MessageEventContent {
		c := notice(body)
		c.Mentions.UserIDs = []id.UserID{person}
		if in == here {
			inThread(c, thread)
		}
		return c
	}
	for _, r := range rooms {
		// In a room that is gone, or encrypted where that cannot be read, nothing is said.
		if _, err := a.send(ctx, r, content(body, r), transaction("whisper", r.String(), to.ID, cause)); !errors.Is(err, chat.ErrGone) {
			return err
		}
	}
	_, err = a.send(ctx, here, content(chat.Body{Text: notHere}, here), transaction("not here", room.ID, to.ID, cause))
	return err
}

// alone returns the rooms that signalbox and one person are in, and nobody else is in
// or invited to: this one first, if it is one. The homeserver is asked, as what is
// known may be older than whoever came in last.
func (a *Adapter) alone(ctx context.Context, here id.RoomID, person id.UserID) ([]id.RoomID, error) {
	rooms, err := a.joined(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rooms, func(x, y id.RoomID) int {
		switch {
		case x == y:
			return 0
		case x == here:
			return -1
		case y == here:
			return 1
		}
		return strings.Compare(x.String(), y.String())
	})
	var alone []id.RoomID
	for _, r := range rooms {
		if known, _ := a.rooms.HasFetchedMembers(ctx, r); known && !a.isAlone(ctx, r, person) {
			continue // Of many rooms this is nearly each.
		}
		if err := a.readRoom(ctx, r); err != nil && !permanent(err) {
			return nil, err
		} else if err == nil && a.isAlone(ctx, r, person) {
			alone = append(alone, r)
		}
	}
	return alone, nil
}

// isAlone reports whether nobody but signalbox and one person is in a room, as far as
// it is known.
func (a *Adapter) isAlone(ctx context.Context, room id.RoomID, person id.UserID) bool {
	// It fails for no room.
	people, _ := a.rooms.GetRoomJoinedOrInvitedMembers(ctx, room)
	return len(people) == 2 && a.rooms.IsInRoom(ctx, room, person)
}

// notice makes the content of a message. It mentions nobody, whatever its text looks
// like.
func notice(body chat.Body) *event.MessageEventContent {
	c := &event.MessageEventContent{MsgType: event.MsgNotice, Body: body.Text, Mentions: &event.Mentions{}}
	if body.HTML != "" {
		c.Format, c.FormattedBody = event.FormatHTML, body.HTML
	}
	return c
}

// inThread puts a message into a thread; clients without threads show an answer.
func inThread(c *event.MessageEventContent, thread string) {
	if thread != "" {
		c.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(thread), id.EventID(thread))
	}
}

// send sends a message once for each transaction.
func (a *Adapter) send(ctx context.Context, room id.RoomID, content *event.MessageEventContent, transaction string) (id.EventID, error) {
	if done, ok := a.posted.Get(sent{room, transaction}); ok {
		return done, nil
	}
	d, err := a.enter(ctx, room)
	if err != nil {
		return "", err
	}
	return a.say(ctx, d, content, transaction)
}

// door is how something is said in a room.
type door struct {
	room      id.RoomID
	encrypted bool
	keys      cipher // Nil where nothing is encrypted.
}

// enter finds out how something is said in a room.
func (a *Adapter) enter(ctx context.Context, room id.RoomID) (door, error) {
	keys, err := a.speak()
	if err != nil {
		return door{}, fmt.Errorf("send to %s: %w", room, err)
	}
	if known, _ := a.rooms.HasFetchedMembers(ctx, room); !known {
		if err := a.readRoom(ctx, room); err != nil {
			return door{}, err
		}
	}
	d := door{room: room, encrypted: a.isEncrypted(ctx, room), keys: keys}
	if d.encrypted && keys == nil {
		return door{}, fmt.Errorf("send to %s: the room is encrypted, which signalbox is not configured for: %w", room, chat.ErrGone)
	}
	return d, nil
}

// say sends a message through a door, which is not encrypted yet.
func (a *Adapter) say(ctx context.Context, d door, content *event.MessageEventContent, transaction string) (id.EventID, error) {
	room, doing := d.room, "send to "+d.room.String()
	if err := checkSize(content, d.encrypted); err != nil {
		return "", fmt.Errorf("%s: %w", doing, err)
	}
	var payload any = content
	kind := event.EventMessage
	if d.encrypted {
		sealed, err := ask(ctx, a, doing, func(ctx context.Context) (*event.EncryptedEventContent, error) {
			return d.keys.encrypt(ctx, room, content)
		})
		if err != nil {
			return "", err
		}
		payload, kind = sealed, event.EventEncrypted
	}
	resp, err := ask(ctx, a, doing, func(ctx context.Context) (*mautrix.RespSendEvent, error) {
		return a.client.SendMessageEvent(ctx, room, kind, payload, mautrix.ReqSendEvent{TransactionID: transaction})
	})
	if err != nil {
		return "", err
	}
	if resp == nil || resp.EventID == "" {
		return "", &requestError{text: doing + ": the homeserver's answer names no event"}
	}
	a.posted.Add(sent{room, transaction}, resp.EventID)
	a.own.Add(resp.EventID, true)
	return resp.EventID, nil
}

// checkSize fails for what the homeserver would refuse.
func checkSize(content *event.MessageEventContent, encrypted bool) error {
	limit := maxContent
	if encrypted {
		limit = maxSealed
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // As the homeserver counts.
	if err := encoder.Encode(content); err != nil {
		return err
	}
	if text.Len() > limit {
		return fmt.Errorf("%w (%d bytes of at most %d)", chat.ErrTooLong, text.Len(), limit)
	}
	return nil
}

// speak returns what encrypts, or why nothing can be said yet: before it is known
// which rooms are encrypted, what belongs into one could be said in the open.
func (a *Adapter) speak() (cipher, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ready:
		return a.cipher, nil
	case a.refused:
		return nil, chat.ErrRevoked
	}
	return nil, &chat.RetryError{After: 5 * time.Second, Err: errNotConnected}
}

// transaction makes the id of a transaction of what decides that it is the same.
func transaction(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s ", len(p), p)
	}
	return "signalbox-" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}
