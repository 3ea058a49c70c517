// Package overview holds how signalbox itself stands, for the pages and the API.
package overview

import "time"

// Health is how the parts of signalbox stand.
type Health struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Parts   []Part    `json:"parts"`
	// Lag is what waits to be handled, by consumer.
	Lag []Lag `json:"lag"`
	// DeadLetters is how many messages could not be handled.
	DeadLetters int `json:"deadLetters"`
}

// State is how a part stands.
type State string

// The states of a part.
const (
	OK      State = "ok"
	Failing State = "failing"
	Unknown State = "unknown"
)

// Part is a part of signalbox, or something that it depends on: the bus, Gitea, a
// cluster, a chat.
type Part struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Detail is one line, or empty.
	Detail string `json:"detail,omitempty"`
	// Since is when it came into this state; zero if that is not known.
	Since time.Time `json:"since,omitzero"`
}

// Lag is what one consumer has before it.
type Lag struct {
	Consumer string `json:"consumer"`
	// Waiting was not handed out yet; InHand was, and is not done.
	Waiting int `json:"waiting"`
	InHand  int `json:"inHand"`
	// Again is how many of those were tried before.
	Again int `json:"again"`
}

// DeadLetter is a message that could not be handled.
type DeadLetter struct {
	ID uint64    `json:"id"`
	At time.Time `json:"at"`
	// Stream and Subject are where it was; Consumer is who could not handle it.
	Stream     string `json:"stream"`
	Subject    string `json:"subject"`
	Consumer   string `json:"consumer"`
	Reason     string `json:"reason"`
	Deliveries int    `json:"deliveries"`
}
