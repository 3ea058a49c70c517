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
	// Picture, if it is set, is shown after the message, in its thread. Where it cannot
	// be shown, the message stands without it. Nothing that one person alone is to see
	// has one.
	Picture *chat.Picture `json:"picture,omitempty"`
	// Said is the message, once it was said and its picture is still to be shown.
	Said string `json:"said,omitempty"`
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

// Say keeps something to be said. The same cause in the same room is said once. A
// picture that is too large to be kept is logged and left out.
func (b *Outbox) Say(ctx context.Context, o Outgoing) error {
	if _, ok := b.Posters[o.Room.Platform]; !ok {
		return nil
	}
	if o.To.ID != "" && o.Picture != nil {
		return events.Permanent(fmt.Errorf("say %s to %s alone: it has a picture, which everybody in the room would see", o.Cause, o.To))
	}
	o.At, o.Said = b.Now().UTC(), ""
	_, err := b.Store.Put(ctx, outgoingKey(o), o, 0)
	if events.IsPermanent(err) && o.Picture != nil {
		b.noPicture(ctx, o, err)
		o.Picture = nil
		_, err = b.Store.Put(ctx, outgoingKey(o), o, 0)
	}
	if err != nil && !b.Conflict(err) {
		return fmt.Errorf("keep what to say in %s: %w", o.Room, err)
	}
	return nil
}

// outgoingKey begins with the platform, each of which is served by itself.
func outgoingKey(o Outgoing) string {
	return string(o.Room.Platform) + "." + hashed(o.Room.ID) + "." + hashed(o.Cause)
}

// hashed makes a part of a key of any text.
func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

// Handle says what is kept under a key, and forgets it. What has a picture takes two
// calls: the first says the message and writes that down, which is a change of the key
// and makes the second, which shows the picture. So the message is not said again for
// as long as the picture fails, and the picture is not shown by two at once.
func (b *Outbox) Handle(ctx context.Context, key string) error {
	o, revision, ok := b.Store.Get(key)
	if !ok {
		return nil
	}
	poster, ok := b.Posters[o.Room.Platform]
	switch {
	case !ok, b.Now().Sub(o.At) > stale:
		b.Log.WarnContext(ctx, "an answer in a chat was not given", "room", o.Room.String(), "cause", o.Cause)
	case o.Said != "":
		if err := b.show(ctx, poster, o); err != nil {
			return err
		}
	default:
		said, err := b.send(ctx, poster, o)
		if err != nil {
			return err
		}
		if o.Picture != nil && said != "" {
			o.Said = said
			if _, err := b.Store.Put(ctx, key, o, revision); err != nil {
				return fmt.Errorf("keep that it was said in %s: %w", o.Room, err)
			}
			return nil
		}
	}
	if err := b.Store.Delete(ctx, key); err != nil {
		return fmt.Errorf("forget what was said in %s: %w", o.Room, err)
	}
	return nil
}

// send says a message and returns its id: none where one person alone sees it, or
// where it can never be said.
func (b *Outbox) send(ctx context.Context, poster chat.Poster, o Outgoing) (said string, err error) {
	if o.To.ID != "" {
		err = poster.Whisper(ctx, o.Room, o.Thread, o.To, o.Cause, o.Body)
	} else {
		said, err = poster.Post(ctx, o.Room, o.Thread, o.Cause, o.Body)
	}
	if err == nil {
		return said, nil
	}
	if errors.Is(err, chat.ErrGone) || errors.Is(err, chat.ErrTooLong) {
		b.Log.ErrorContext(ctx, "an answer in a chat cannot be given", "room", o.Room.String(), "cause", o.Cause, "error", err)
		return "", nil
	}
	return "", chatError(err)
}

// show shows the picture of a message that was said.
func (b *Outbox) show(ctx context.Context, poster chat.Poster, o Outgoing) error {
	thread := o.Thread
	if thread == "" {
		thread = o.Said // There are no threads in threads.
	}
	err := poster.Attach(ctx, o.Room, thread, o.Cause, *o.Picture)
	for _, lasting := range []error{chat.ErrGone, chat.ErrTooLong, chat.ErrBadPicture, chat.ErrNoPictures} {
		if errors.Is(err, lasting) {
			b.noPicture(ctx, o, err)
			return nil
		}
	}
	return chatError(err)
}

func (b *Outbox) noPicture(ctx context.Context, o Outgoing, err error) {
	b.Log.ErrorContext(ctx, "a message in a chat is without its picture", "room", o.Room.String(), "cause", o.Cause, "error", err)
}

// chatError makes the bus wait as long as a platform asks for.
func chatError(err error) error {
	if retry, ok := errors.AsType[*chat.RetryError](err); ok {
		return events.RetryAfter(err, retry.After)
	}
	return err
}
