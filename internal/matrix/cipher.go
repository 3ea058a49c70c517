package matrix

import (
	"context"
	"errors"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// cipher reads and writes in encrypted rooms. It may be used by many goroutines.
type cipher interface {
	// sync takes the keys out of an answer of sync, and sends new ones of its own.
	sync(ctx context.Context, resp *mautrix.RespSync, since string)
	// member notes that the people of a room changed.
	member(ctx context.Context, e *event.Event)
	// decrypt fails with errNoKey where the key may still come.
	decrypt(ctx context.Context, e *event.Event) (*event.Event, error)
	// encrypt gives the key of the room to the people in it first, where they lack it.
	encrypt(ctx context.Context, room id.RoomID, content *event.MessageEventContent) (*event.EncryptedEventContent, error)
	close() error
}

var (
	errNoKey         = errors.New("the key of the message is not here")
	errCannotEncrypt = errors.New("this build of signalbox has no encryption: build it with \"-tags goolm\", or remove the folder for encryption from the configuration")
)
