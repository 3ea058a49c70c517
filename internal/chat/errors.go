package chat

import (
	"errors"
	"fmt"
	"time"
)

// Errors of a [Poster].
var (
	// ErrGone: the room, the thread or the message is not there, or signalbox is
	// not in it any more. Trying again is in vain.
	ErrGone = errors.New("the conversation is gone, or signalbox was removed from it")
	// ErrRevoked: the platform does not accept signalbox's token any more.
	ErrRevoked = errors.New("the platform refuses the token")
	// ErrTooLong: the platform does not take that much. Trying again is in vain.
	ErrTooLong = errors.New("the message is too long for the platform")
	// ErrBadPicture: a picture is not what it is said to be. Trying again is in vain.
	ErrBadPicture = errors.New("the picture cannot be shown")
	// ErrNoPictures: the platform takes messages of signalbox, but no pictures, until
	// somebody changes that. What a picture goes with can be said without it.
	ErrNoPictures = errors.New("the platform takes no pictures from signalbox")
)

// RetryError says when the platform wants to be asked again.
type RetryError struct {
	After time.Duration
	Err   error
}

// Error implements error.
func (e *RetryError) Error() string {
	return fmt.Sprintf("%v (again after %s)", e.Err, e.After)
}

// Unwrap returns Err.
func (e *RetryError) Unwrap() error { return e.Err }
