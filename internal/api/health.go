package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"signalbox/internal/overview"
)

// Bounds of a look at the health.
const (
	healthTime     = 5 * time.Second
	maxDeadLetters = 100
)

func (s *server) registerHealth(api huma.API) {
	register(api, huma.Operation{
		OperationID: "get-health", Path: "/health", Tags: []string{tagHealth},
		Summary:     "Show how signalbox itself stands",
		Description: "Its parts, what waits to be handled, and what could not be handled. The answer is 200 also when a part fails: look at the states.",
	}, s.health)
}

// HealthReport is how the parts of signalbox stand.
type HealthReport struct {
	Version     string      `json:"version" example:"0.5.0"`
	Started     time.Time   `json:"started,omitzero"`
	Parts       []Part      `json:"parts"`
	Lag         []Lag       `json:"lag" doc:"What waits to be handled, by consumer."`
	DeadLetters DeadLetters `json:"deadLetters"`
}

// Part is a part of signalbox, or something that it depends on.
type Part struct {
	Name   string    `json:"name" example:"cluster prod"`
	State  string    `json:"state" enum:"ok,failing,unknown" doc:"unknown is what cannot be known now; take it for failing."`
	Detail string    `json:"detail,omitempty" doc:"One line."`
	Since  time.Time `json:"since,omitzero" doc:"When it came into this state; missing if that is not known."`
}

// Lag is what one consumer has before it.
type Lag struct {
	Consumer string `json:"consumer" example:"events"`
	Waiting  int    `json:"waiting" minimum:"0" doc:"Messages that were not handed out yet."`
	InHand   int    `json:"inHand" minimum:"0" doc:"Messages that were, and are not done."`
	Again    int    `json:"again" minimum:"0" doc:"How many of those were tried before."`
}

// DeadLetters are the messages that could not be handled.
type DeadLetters struct {
	Total   *int         `json:"total,omitempty" minimum:"0" doc:"How many there are; missing if they cannot be read now."`
	Problem string       `json:"problem,omitempty" doc:"Why they cannot be read now."`
	Newest  []DeadLetter `json:"newest" maxItems:"100" doc:"The newest, at most 100 of them."`
}

// DeadLetter is a message that could not be handled.
type DeadLetter struct {
	ID         uint64    `json:"id" example:"4"`
	At         time.Time `json:"at"`
	Stream     string    `json:"stream" example:"EVENTS"`
	Subject    string    `json:"subject"`
	Consumer   string    `json:"consumer" example:"events" doc:"Who could not handle it."`
	Reason     string    `json:"reason"`
	Deliveries int       `json:"deliveries" minimum:"0" doc:"How often it was tried."`
}

func (s *server) health(ctx context.Context, _ *nothing) (HealthReport, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	h := s.Health.Health(ctx)
	out := HealthReport{
		Version: s.Version, Started: utc(h.Started), Parts: list(h.Parts, newPart),
		Lag: list(h.Lag, func(l overview.Lag) Lag {
			return Lag{Consumer: clip(l.Consumer), Waiting: l.Waiting, InHand: l.InHand, Again: l.Again}
		}),
	}
	newest, total, err := s.Health.DeadLetters(ctx, maxDeadLetters)
	if err != nil {
		s.Log.WarnContext(ctx, "the dead letters cannot be read for the API", "error", err)
		out.DeadLetters = DeadLetters{Problem: "They cannot be read now; the log of signalbox says why.", Newest: []DeadLetter{}}
		return out, nil
	}
	out.DeadLetters = DeadLetters{Total: &total, Newest: list(newest[:min(maxDeadLetters, len(newest))], func(d overview.DeadLetter) DeadLetter {
		return DeadLetter{
			ID: d.ID, At: utc(d.At), Stream: clip(d.Stream), Subject: clip(d.Subject), Consumer: clip(d.Consumer),
			Reason: clip(d.Reason), Deliveries: d.Deliveries,
		}
	})}
	return out, nil
}

// newPart tells of a part. A state that this version does not know is unknown.
func newPart(p overview.Part) Part {
	return Part{Name: clip(p.Name), State: oneOf(p.State, overview.Unknown, overview.OK, overview.Failing), Detail: clip(p.Detail), Since: utc(p.Since)}
}
