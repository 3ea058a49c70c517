package recording

import (
	"encoding/json"
	"time"

	"signalbox/internal/events"
	"signalbox/internal/pull"
)

// Kind is what a line is about.
type Kind string

// The kinds of lines.
const (
	// Event is one thing that happened; its value is the event in the form of
	// CloudEvents.
	Event Kind = "event"
	// Fact is what became true of one thing, Pull the record of a pull request,
	// Decision an entry of the ledger.
	Fact     Kind = "fact"
	Pull     Kind = "pull"
	Decision Kind = "decision"
	// Work is a pull request that is to be looked at again.
	Work Kind = "work"
	// Dead is what could not be handled; its value is a [Letter].
	Dead Kind = "dead"
	// Now ends what was there when the recording began.
	Now Kind = "now"
)

// Kinds are those that can be asked for.
func Kinds() []Kind { return []Kind{Event, Fact, Pull, Decision, Work, Dead} }

// Line is one thing as it was stored.
type Line struct {
	Kind Kind `json:"kind"`
	// Seq is its place among those of its kind, and At when it was stored.
	Seq uint64    `json:"seq,omitempty"`
	At  time.Time `json:"at"`
	// Key is the subject of an event, of work or of a dead letter, and the key of
	// anything else.
	Key string `json:"key,omitempty"`
	// Event is the id of the event that led to it, where that is known, and Trace
	// the span, where it was traced.
	Event string `json:"event,omitempty"`
	Trace string `json:"trace,omitempty"`
	// Deleted says that there is no value any more.
	Deleted bool            `json:"deleted,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// Letter is what could not be handled, and why.
type Letter struct {
	// Stream and Subject are where it was, Consumer is who could not handle it.
	Stream   string `json:"stream"`
	Subject  string `json:"subject"`
	Consumer string `json:"consumer"`
	Reason   string `json:"reason"`
	// Deliveries is how often it was tried.
	Deliveries int `json:"deliveries"`
}

// Header begins a recording. It has what a verdict rests on beside what is on the bus.
type Header struct {
	// Version is that of the form, which is [Version].
	Version int `json:"recording"`
	// Program is the version of signalbox that wrote it, and At when it began.
	Program string    `json:"program"`
	At      time.Time `json:"at"`
	// Clusters are the names of the configured clusters, Bots the logins that never
	// count, and Self the account of signalbox, zero where it is not known.
	Clusters []string    `json:"clusters,omitempty"`
	Bots     []string    `json:"bots,omitempty"`
	Self     pull.Person `json:"self,omitzero"`
	// Policy is the text of the operator's rules, or empty.
	Policy string `json:"policy,omitempty"`
}

// Version is the version of the form.
const Version = 1

// WithoutSpeech returns the value of an event without what somebody said in a chat:
// it may be a one-time code, and it is nobody else's business. What is not the event
// of a chat stays as it is.
func WithoutSpeech(value json.RawMessage) (json.RawMessage, error) {
	var e events.Event
	if err := json.Unmarshal(value, &e); err != nil {
		return nil, err
	}
	if e.Type != events.TypeChatSaid {
		return value, nil
	}
	var p events.ChatSaid
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return nil, err
	}
	p.Text = ""
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	e.Data = data
	return json.Marshal(e)
}

// Unreadable is the value of a line whose own cannot be read.
func Unreadable(why error) json.RawMessage {
	value, err := json.Marshal(map[string]string{"unreadable": why.Error()})
	if err != nil {
		return json.RawMessage(`{"unreadable":""}`)
	}
	return value
}
