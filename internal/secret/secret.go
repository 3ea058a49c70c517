// Package secret holds values that must never be shown: tokens, passwords,
// signing keys. A [Value] prints, logs and encodes as "[redacted]"; only
// [Value.Reveal] gives the text, so a search for that name finds every use.
package secret

import (
	"errors"
	"log/slog"
)

const redacted = "[redacted]"

// Value is a secret text. The zero value is the empty secret, which is printed
// as nothing, so that a missing secret can be told from one that is set.
type Value struct{ text string }

// New makes a secret of a text.
func New(text string) Value { return Value{text} }

// Reveal returns the text. Use it only where the text leaves for the party
// that it is shared with.
func (v Value) Reveal() string { return v.text }

// Empty reports whether there is no secret.
func (v Value) Empty() bool { return v.text == "" }

// String implements [fmt.Stringer] without telling the text.
func (v Value) String() string {
	if v.text == "" {
		return ""
	}
	return redacted
}

// GoString implements [fmt.GoStringer] without telling the text.
func (v Value) GoString() string { return "secret.Value(" + v.String() + ")" }

// LogValue implements [slog.LogValuer] without telling the text.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalText implements [encoding.TextMarshaler] without telling the text.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText refuses: a secret comes from the environment or from a file of
// its own, never from a document that is shown or committed.
func (v *Value) UnmarshalText([]byte) error {
	return errors.New("a secret cannot stand here; give it in the environment or in a file of its own")
}
