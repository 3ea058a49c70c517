package events

import (
	"errors"
	"time"
)

// Permanent marks an error that a repeat cannot mend: the message is put
// aside with the reason instead of being tried again. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err, or an error it wraps, was marked with
// [Permanent].
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// RetryAfter marks an error with the time that the other side asked to be
// left alone, as an HTTP Retry-After header does. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryError{err, d}
}

// Delay returns the time given to [RetryAfter], and whether there was one.
func Delay(err error) (time.Duration, bool) {
	var r *retryError
	if !errors.As(err, &r) {
		return 0, false
	}
	return r.after, true
}

type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }
