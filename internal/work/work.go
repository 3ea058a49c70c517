// Package work names what is to be done with a pull request: the evaluation of
// it, and why. The bus carries it, the handlers do it.
package work

import "signalbox/internal/pull"

// Kind says how much an evaluation reads. Each kind of one pull request waits
// by itself: a newer item replaces an older one of the same kind only.
type Kind string

// The kinds of work.
const (
	// Full reads the pull request afresh from the forge.
	Full Kind = "full"
	// Fact starts from the last snapshot, because only facts changed.
	Fact Kind = "fact"
	// Wake starts from the last snapshot at a time that the last verdict named.
	Wake Kind = "wake"
	// Retry repeats work that failed; it reads everything afresh.
	Retry Kind = "retry"
)

// Item is one piece of work.
type Item struct {
	Ref  pull.Ref `json:"ref"`
	Kind Kind     `json:"kind"`
	// Reason is for the log, such as the type of an event.
	Reason string `json:"reason,omitempty"`
	// Attempt counts the failures before, from 0.
	Attempt int `json:"attempt,omitempty"`
}
