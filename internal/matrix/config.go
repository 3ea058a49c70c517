package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
	"signalbox/internal/secret"
)

// DefaultPrefix is what a message to signalbox begins with, unless configured.
const DefaultPrefix = "!signalbox"

// Config is the account of signalbox and what it may do with it.
type Config struct {
	// Homeserver is the URL for clients, such as "https://matrix.example.org".
	Homeserver string
	// UserID and DeviceID say whose token it is meant to be. Where they are given,
	// another token is not used; empty means that the homeserver tells.
	UserID   string
	DeviceID string
	// Token is the access token of one login that nothing else uses.
	Token secret.Value
	// Rooms are ids ("!abc:example.org") and aliases ("#ops:example.org") of the
	// rooms that signalbox joins when it is invited.
	Rooms []string
	// Allowed says of an invitation to any other room whether it is followed, beside
	// those to a talk of two by somebody who is in a room with signalbox. Nil follows
	// none.
	Allowed func(ctx context.Context, room chat.Room, inviter chat.User) bool
	// Prefix is what a message to signalbox begins with. Empty means [DefaultPrefix].
	Prefix string
	// Encryption is for encrypted rooms. The zero value can neither read nor write
	// in them.
	Encryption Encryption
}

// Encryption is where the keys for encrypted rooms are. They belong to one login:
// the folder and the token go together, and no two processes may share them.
type Encryption struct {
	// Dir is a folder of signalbox's own that outlives a restart. Empty turns
	// encryption off.
	Dir string
	// PickleKey encrypts the private keys in the folder. Without one, a key is made
	// and kept in the folder too.
	PickleKey secret.Value
}

// check returns the configuration with its defaults, or all that is wrong with it.
func (c Config) check() (Config, error) {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	u, err := url.Parse(c.Homeserver)
	switch {
	case err != nil:
		// The error of url.Parse shows what was parsed, perhaps with a password.
		bad("the homeserver is no URL; write it like https://matrix.example.org")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		bad("the homeserver needs a scheme and a host, like https://matrix.example.org")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		bad("the homeserver is a URL without user, query and fragment, like https://matrix.example.org")
	}
	if c.Token.Empty() {
		bad("there is no access token; log signalbox's account in once and give the token that this yields")
	}
	if c.UserID != "" {
		if _, _, err := id.UserID(c.UserID).ParseAndValidateRelaxed(); err != nil {
			bad("%q is no id of a user; write it like @signalbox:example.org", c.UserID)
		}
	}
	for _, room := range c.Rooms {
		if !strings.HasPrefix(room, "!") && (!strings.HasPrefix(room, "#") || !strings.Contains(room, ":")) {
			bad("%q is neither the id of a room, like !abc:example.org, nor an alias, like #ops:example.org", room)
		}
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' }) {
		bad("the prefix %q contains a space; it is one word", c.Prefix)
	}
	if c.Encryption.Dir != "" && !canEncrypt {
		problems = append(problems, errCannotEncrypt)
	}
	c.Rooms = slices.Clone(c.Rooms)
	if err := errors.Join(problems...); err != nil {
		return c, fmt.Errorf("configuration of matrix: %w", err)
	}
	return c, nil
}
