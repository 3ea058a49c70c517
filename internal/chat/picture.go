package chat

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"regexp"
	"unicode/utf8"
)

// Limits of a [Picture].
const (
	// MaxPicture bounds the PNG, in bytes.
	MaxPicture = 1 << 20
	// MaxAlt bounds the alternative text, in characters. Slack takes no more.
	MaxAlt = 1000
)

// Picture is a picture to show, such as a chart.
type Picture struct {
	// Name is that of the file, such as "volumes.png": letters, digits, ".", "_" and
	// "-", at most 84 of them, with ".png" at the end. Platforms show it.
	Name string `json:"name"`
	// Alt says as plain text what is to be seen, for whoever cannot see it. It is
	// needed, and has at most [MaxAlt] characters.
	Alt string `json:"alt"`
	// PNG is the file, of at most [MaxPicture] bytes.
	PNG []byte `json:"png"`
	// Width and Height are those of the file, in pixels.
	Width  int `json:"width"`
	Height int `json:"height"`
}

var pictureName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,79}\.png$`)

// Check fails for what no platform could show: with [ErrTooLong] for what is too
// large, and with [ErrBadPicture] for all else.
func (p Picture) Check() error {
	if len(p.PNG) > MaxPicture {
		return fmt.Errorf("picture %.100q: %w: %d bytes of at most %d", p.Name, ErrTooLong, len(p.PNG), MaxPicture)
	}
	if n := utf8.RuneCountInString(p.Alt); n > MaxAlt {
		return fmt.Errorf("picture %.100q: %w: an alternative text of %d characters, of at most %d", p.Name, ErrTooLong, n, MaxAlt)
	}
	return p.wrong()
}

// wrong says what is wrong with a picture of a size that is right.
func (p Picture) wrong() error {
	bad := func(err error) error { return fmt.Errorf("picture %.100q: %w: %w", p.Name, ErrBadPicture, err) }
	switch {
	case !pictureName.MatchString(p.Name):
		return bad(errors.New(`its name is not one such as "volumes.png"`))
	case p.Alt == "" || !utf8.ValidString(p.Alt):
		return bad(errors.New("it has no alternative text in UTF-8"))
	}
	size, err := png.DecodeConfig(bytes.NewReader(p.PNG))
	if err != nil {
		return bad(fmt.Errorf("it is not a PNG: %w", err))
	}
	if size.Width != p.Width || size.Height != p.Height {
		return bad(fmt.Errorf("it has %d x %d pixels, and not %d x %d", size.Width, size.Height, p.Width, p.Height))
	}
	return nil
}
