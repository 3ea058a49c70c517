package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// specVersion is the CloudEvents version of the envelope.
const specVersion = "1.0"

// Event is one thing that happened, in its envelope.
type Event struct {
	// ID names the cause, such as "gitea/<delivery>". Two events with one ID
	// are the same event; the bus keeps the first.
	ID string
	// Type says which payload Data holds.
	Type Type
	// Source is the part that saw it: "gitea", "slack", "matrix", "clock".
	Source string
	// Subject is the subject on the bus, made from the payload.
	Subject string
	// Time is when the source saw it, in UTC.
	Time time.Time
	// Data is the payload as JSON.
	Data json.RawMessage
}

// Payload is the typed content of an event. Its set is closed: see [Decode].
type Payload interface {
	// EventType names the type, such as "pull.changed".
	EventType() Type
	// BusSubject is the subject the event is published on. It is made of
	// numbers and fixed words only, because names may contain dots.
	BusSubject() string
}

// New puts a payload in an envelope. ID and source must not be empty.
func New(id, source string, at time.Time, p Payload) (Event, error) {
	if id == "" || source == "" {
		return Event{}, errors.New("event needs an id and a source")
	}
	data, err := json.Marshal(p)
	if err != nil {
		return Event{}, fmt.Errorf("encode %s: %w", p.EventType(), err)
	}
	return Event{
		ID:      id,
		Type:    p.EventType(),
		Source:  source,
		Subject: p.BusSubject(),
		Time:    at.UTC(),
		Data:    data,
	}, nil
}

// envelope is the CloudEvents JSON form.
type envelope struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Source      string          `json:"source"`
	Subject     string          `json:"subject"`
	Time        time.Time       `json:"time"`
	ContentType string          `json:"datacontenttype"`
	Data        json.RawMessage `json:"data"`
}

// typePrefix makes the types of this program unique, as CloudEvents asks.
const typePrefix = "signalbox."

// MarshalJSON writes the CloudEvents envelope.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(envelope{
		SpecVersion: specVersion,
		ID:          e.ID,
		Type:        typePrefix + string(e.Type),
		Source:      e.Source,
		Subject:     e.Subject,
		Time:        e.Time,
		ContentType: "application/json",
		Data:        e.Data,
	})
}

// UnmarshalJSON reads the CloudEvents envelope. It refuses another
// specification version, a type of another program, and a missing id.
func (e *Event) UnmarshalJSON(b []byte) error {
	var env envelope
	if err := json.Unmarshal(b, &env); err != nil {
		return fmt.Errorf("event envelope: %w", err)
	}
	if env.SpecVersion != specVersion {
		return fmt.Errorf("event envelope: specversion %q, want %q", env.SpecVersion, specVersion)
	}
	if env.ID == "" {
		return errors.New("event envelope: id is empty")
	}
	if len(env.Type) <= len(typePrefix) || env.Type[:len(typePrefix)] != typePrefix {
		return fmt.Errorf("event envelope: type %q does not start with %q", env.Type, typePrefix)
	}
	*e = Event{
		ID:      env.ID,
		Type:    Type(env.Type[len(typePrefix):]),
		Source:  env.Source,
		Subject: env.Subject,
		Time:    env.Time.UTC(),
		Data:    env.Data,
	}
	return nil
}
