package pull

import "errors"

// What a reader of pull requests can answer instead of a value, to be asked
// with [errors.Is].
var (
	// ErrNotFound means that there is no such thing, or that it may not be
	// seen, which a forge does not tell apart.
	ErrNotFound = errors.New("not found")
	// ErrForbidden means that a right is missing.
	ErrForbidden = errors.New("forbidden")
	// ErrUnknownCommit means that the repository has no such commit.
	ErrUnknownCommit = errors.New("unknown commit")
	// ErrIncomplete means that a list could not be read to its end, or kept
	// changing while it was read.
	ErrIncomplete = errors.New("list incomplete")
)
