package chat

import (
	"context"
	"strings"
	"time"

	"signalbox/internal/pull"
)

// Platform is a chat platform.
type Platform string

// The platforms.
const (
	Slack  Platform = "slack"
	Matrix Platform = "matrix"
)

// Platforms are all platforms, in the order of documents.
func Platforms() []Platform { return []Platform{Slack, Matrix} }

// Room is a channel of Slack, a room of Matrix, or a direct conversation.
type Room struct {
	Platform Platform `json:"platform"`
	// ID is that of the platform, such as "C0123456" or "!abc:example.org".
	ID string `json:"id"`
}

// String returns "platform/id".
func (r Room) String() string { return string(r.Platform) + "/" + r.ID }

// User is an account of a platform.
type User struct {
	Platform Platform `json:"platform"`
	// ID is that of the platform, such as "U0123456" or "@alice:example.org".
	ID string `json:"id"`
}

// String returns "platform/id".
func (u User) String() string { return string(u.Platform) + "/" + u.ID }

// Message is what somebody said to signalbox: by a mention, in a direct
// conversation, with the prefix of a command, or by a slash command.
type Message struct {
	// ID names the message within its room; for a slash command, which is no
	// message, it names the call and nothing can be answered in its thread.
	ID   string `json:"id"`
	Room Room   `json:"room"`
	// Thread is the message that the thread hangs on, or empty.
	Thread string `json:"thread,omitempty"`
	User   User   `json:"user"`
	// Text is what was said as plain text in one line, without the mention or
	// prefix; the platform's escapes are undone. It is at most [MaxText] bytes.
	Text string `json:"text"`
	// Direct says that nobody else is there.
	Direct bool `json:"direct,omitempty"`
	// Slash says that it was a slash command.
	Slash bool `json:"slash,omitempty"`
	// Edited says that the message was changed after it was sent: it is never
	// obeyed.
	Edited bool `json:"edited,omitempty"`
	// Link leads to the message, or is empty.
	Link string `json:"link,omitempty"`
	// At is when the platform took it, in UTC.
	At time.Time `json:"at"`
}

// MaxText bounds the text of a [Message], in bytes. What is longer is no
// command; it is cut, and the handler answers that.
const MaxText = 4000

// Press is a button that somebody pressed on a card, or a reaction that stands
// for it.
type Press struct {
	Room    Room   `json:"room"`
	Message string `json:"message"`
	User    User   `json:"user"`
	Button  Button `json:"button"`
	// Ref and Head are what the card showed when it was pressed: the pull
	// request and the full commit. Both are zero where only the message tells, as
	// for a reaction.
	Ref  pull.Ref  `json:"ref,omitzero"`
	Head string    `json:"head,omitempty"`
	At   time.Time `json:"at"`
}

// Button is what a card offers.
type Button string

// The buttons of a card.
const (
	ButtonApprove Button = "approve"
	ButtonHold    Button = "hold"
	ButtonDetails Button = "details"
)

// Reactions are the buttons of a platform that has none: an emoji each.
func Reactions() map[string]Button {
	return map[string]Button{"👍": ButtonApprove, "✋": ButtonHold, "🔍": ButtonDetails}
}

// ButtonValue is what a button of a card carries: the pull request and the head
// that it is about.
func ButtonValue(ref pull.Ref, head string) string { return ref.String() + "@" + head }

// ParseButtonValue reads what [ButtonValue] writes. False means that it is
// something else.
func ParseButtonValue(s string) (ref pull.Ref, head string, ok bool) {
	name, head, ok := strings.Cut(s, "@")
	ref, known := pull.ParseRef(name)
	if !ok || !known || head == "" {
		return pull.Ref{}, "", false
	}
	return ref, head, true
}

// Body is something to say, rendered for one platform.
type Body struct {
	// Text is plain text in the markup of the platform: mrkdwn for Slack, where
	// it is what a notification shows, and plain text for Matrix.
	Text string `json:"text"`
	// Blocks is the JSON of Slack's blocks, or empty.
	Blocks string `json:"blocks,omitempty"`
	// HTML is that of Matrix, or empty.
	HTML string `json:"html,omitempty"`
}

// Poster says things on one platform. Errors are those of this package; all
// others pass.
type Poster interface {
	// Post says something new and returns the id of the message. The cause names
	// why it is said: saying the same cause again shows no second message and
	// returns the id of the first, as far as the platform can tell; see the
	// adapter. Thread is the message to answer to, or empty.
	Post(ctx context.Context, room Room, thread, cause string, body Body) (id string, err error)
	// Edit replaces what a message says.
	Edit(ctx context.Context, room Room, id, cause string, body Body) error
	// Whisper says something that only one person sees, if need be in another room.
	// Where that cannot be, it says that instead: what is whispered is secret.
	Whisper(ctx context.Context, room Room, thread string, to User, cause string, body Body) error
	// Attach shows a picture, in the thread of a message if one is named. The cause is
	// that of pictures alone: a message may have the same. As with Post, the same cause
	// again shows no second picture, as far as the platform can tell. A picture that
	// fails [Picture.Check] fails with that error.
	Attach(ctx context.Context, room Room, thread, cause string, p Picture) error
}

// Receiver takes what comes in. The cause names it for good, such as
// "slack/<event id>": the same cause may come again. When a method returns nil,
// the event is on the bus and the platform may be told that it arrived; after an
// error it must come again, unless the error is one of events.Permanent.
type Receiver interface {
	Said(ctx context.Context, cause string, m Message) error
	Pressed(ctx context.Context, cause string, p Press) error
}
