package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/events"
)

// Outgoing is something to say in a chat.
type Outgoing struct {
	Room   chat.Room `json:"room"`
	Thread string    `json:"thread,omitempty"`
	// To is who alone is to see it, if that is set.
	To chat.User `json:"to,omitzero"`
	// Cause names why it is said: it is said once.
	Cause string    `json:"cause"`
	Body  chat.Body `json:"body"`
	// At is when it was to be said.
	At time.Time `json:"at"`
}

// OutgoingStore keeps what is to be said until it is.
type OutgoingStore interface {
	Get(key string) (o Outgoing, revision uint64, ok bool)
	Put(ctx context.Context, key string, o Outgoing, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
}

// Outbox says things in chats. What is to be said is kept first, so that nothing
// waits for a chat that is slow or down, and nothing is lost by a restart.
type Outbox struct {
	Store   OutgoingStore
	Posters map[chat.Platform]chat.Poster
	// Conflict reports that a key was there already.
	Conflict func(error) bool
	Now      func() time.Time
	Log      *slog.Logger
}

// stale is how old an answer may be that is still worth saying: whoever asked
// has long gone on.
const stale = 24 * time.Hour

// Say keeps something to be said. The same cause in the same room is said once.
func (b *Outbox) Say(ctx context.Context, o Outgoing) error {
	if _, ok := b.Posters[o.Room.Platform]; !ok {
		return nil
	}
	o.At = b.Now().UTC()
	if _, err := b.Store.Put(ctx, outgoingKey(o), o, 0); err != nil && !b.Conflict(err) {
		return fmt.Errorf("keep what to say in %s: %w", o.Room, err)
	}
	return nil
}

// outgoingKey begins with the platform, each of which is served by itself.
func outgoingKey(o Outgoing) string {
	return string(o.Room.Platform) + "." + digest(o.Room.ID) + "." + digest(o.Cause)
}

// digest makes a part of a key of any text.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

// Handle says what is kept under a key, and forgets it.
func (b *Outbox) Handle(ctx context.Context, key string) error {
	o, _, ok := b.Store.Get(key)
	if !ok {
		return nil
	}
	poster, ok := b.Posters[o.Room.Platform]
	switch {
	case !ok, b.Now().Sub(o.At) > stale:
		b.Log.WarnContext(ctx, "an answer in a chat was not given", "room", o.Room.String(), "cause", o.Cause)
	default:
		if err := b.send(ctx, poster, o); err != nil {
			return err
		}
	}
	if err := b.Store.Delete(ctx, key); err != nil {
		return fmt.Errorf("forget what was said in %s: %w", o.Room, err)
	}
	return nil
}

func (b *Outbox) send(ctx context.Context, poster chat.Poster, o Outgoing) error {
	var err error
	if o.To.ID != "" {
		err = poster.Whisper(ctx, o.Room, o.Thread, o.To, o.Cause, o.Body)
	} else {
		_, err = poster.Post(ctx, o.Room, o.Thread, o.Cause, o.Body)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, chat.ErrGone) || errors.Is(err, chat.ErrTooLong) {
		b.Log.ErrorContext(ctx, "an answer in a chat cannot be given", "room", o.Room.String(), "cause", o.Cause, "error", err)
		return nil
	}
	return chatError(err)
}

// chatError makes the bus wait as long as a platform asks for.
func chatError(err error) error {
	if retry, ok := errors.AsType[*chat.RetryError](err); ok {
		return events.RetryAfter(err, retry.After)
	}
	return err
}
