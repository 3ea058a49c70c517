// Package conformance is one suite of tests for every adapter of a chat platform.
// It says what the rest of signalbox relies on.
//
// [Run] takes a function that makes a [Backend]: a platform, real or a stand-in,
// with nobody and nothing on it that another case knows. What a backend cannot do
// it answers with [errors.ErrUnsupported], and what needs it is skipped.
package conformance

import (
	"context"
	"time"

	"signalbox/internal/chat"
)

// Person is one of the people who use the platform. None of them is signalbox.
type Person string

// The people.
const (
	Alice   Person = "alice"
	Bob     Person = "bob"
	Mallory Person = "mallory"
)

// Shown is one message as a person sees it who looks at the room now.
type Shown struct {
	ID string
	// Text is what is to be read: without markup, with escapes undone.
	Text string
	// Pings says that it calls for the attention of people who are mentioned in it,
	// or of the whole room.
	Pings bool
}

// Picture is one picture as a person sees it.
type Picture struct {
	// Alt is what is told of it to whoever cannot see it.
	Alt string
	PNG []byte
}

// Step is something that an adapter asks of the platform.
type Step int

// The steps.
const (
	// Posting shows a message.
	Posting Step = iota
	// Uploading hands the content of a picture over.
	Uploading
	// Showing shows a picture that was uploaded.
	Showing
)

// Fault is something that goes wrong with a step.
type Fault int

// The faults.
const (
	// Limited: the next one is refused, with a delay to wait.
	Limited Fault = iota
	// Lost: the next one is carried out, and the adapter does not learn of it.
	Lost
	// Hanging: the next one is neither carried out nor answered.
	Hanging
)

// Backend is a platform, signalbox's account on it, and the people who use it. A
// method that changes something returns when people can see the change.
type Backend interface {
	// Start runs an adapter until the test ends, and returns when it listens.
	Start(ctx context.Context, receiver chat.Receiver) (chat.Poster, error)

	// User is the account of a person.
	User(who Person) chat.User
	// Room makes a room with everybody and signalbox in it.
	Room(ctx context.Context, name string) (chat.Room, error)
	// Direct opens the conversation of a person with signalbox.
	Direct(ctx context.Context, who Person) (chat.Room, error)

	// Say says a text in a room, in the thread of a message if one is named, and
	// returns the id of the message.
	Say(ctx context.Context, in Place, who Person, text string) (id string, err error)
	// Mention says a text with a mention of signalbox in front of it.
	Mention(ctx context.Context, in Place, who Person, text string) (id string, err error)
	// Change edits what somebody said into a mention of signalbox with a text.
	Change(ctx context.Context, in Place, id string, who Person, text string) error
	// Announce lets another program say a text with a mention of signalbox.
	Announce(ctx context.Context, in Place, text string) (id string, err error)
	// Press presses a button of a message of signalbox, or reacts with what stands
	// for the button.
	Press(ctx context.Context, in Place, id string, who Person, button chat.Button) error

	// Body is a text as the renderer of the platform writes it, escaped, with the
	// buttons of a card if they have a value, see [chat.ButtonValue].
	Body(text, value string) chat.Body
	// Shown is what signalbox said in a room or a thread, oldest first, as a person
	// sees it. Messages in threads are not seen in the room. Pictures are left out.
	Shown(ctx context.Context, in Place, who Person) ([]Shown, error)
	// Pictures are those that signalbox showed in a room or a thread, oldest first, as a
	// person sees them. It fails for one that does not look the same to every client.
	Pictures(ctx context.Context, in Place, who Person) ([]Picture, error)

	// Acknowledged says whether the platform was told that the message has arrived.
	Acknowledged(ctx context.Context, in Place, id string) (bool, error)
	// Redeliver delivers a message to the adapter again, as if its acknowledgement
	// had been lost.
	Redeliver(ctx context.Context, in Place, id string) error

	// Kick removes signalbox from a room.
	Kick(ctx context.Context, room chat.Room) error
	// Revoke makes signalbox's token invalid.
	Revoke(ctx context.Context) error
	// Renew makes the revoked token valid again, as installing again does.
	Renew(ctx context.Context) error
	// Cut cuts every connection of the adapter, which may connect again.
	Cut(ctx context.Context) error
	// Fail lets the next step of a kind go wrong. The delay is that of [Limited].
	Fail(ctx context.Context, step Step, fault Fault, delay time.Duration) error
}

// Place is a room, or a thread of it.
type Place struct {
	Room chat.Room
	// Thread is the id of the message that the thread hangs on, or empty.
	Thread string
}
