package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/fact"
)

// Line sends and answers requests.
type Line interface {
	// Request returns the answer of one who serves a subject.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	// Publish sends to all who serve a subject, without an answer.
	Publish(subject string, data []byte) error
	// Serve answers what comes on a subject until ctx ends. Of those who serve with the
	// same group one gets each; an empty group gets all.
	Serve(ctx context.Context, subject, group string, answer func(ctx context.Context, subject string, data []byte) []byte) error
}

// Subjects of the two ends.
const (
	hubRoot   = "signalbox.v1.hub."
	agentRoot = "signalbox.v1.agent."
)

// What an agent asks of its hub.
const (
	verbBeat   = "beat"
	verbList   = "list"
	verbPut    = "put"
	verbDelete = "delete"
	verbWishes = "wishes"
)

// What a hub asks of an agent: to await facts, and, for all agents of the cluster, to
// ask for the wishes again.
const (
	verbAwait   = "await"
	verbChanged = "changed"
)

func hubSubject(cluster, verb string) string   { return hubRoot + cluster + "." + verb }
func agentSubject(cluster, verb string) string { return agentRoot + cluster + "." + verb }

// parseSubject returns the cluster and the verb of a subject on which a hub is asked.
func parseSubject(subject string) (cluster, verb string) {
	cluster, verb, _ = strings.Cut(strings.TrimPrefix(subject, hubRoot), ".")
	return cluster, verb
}

// Inbox is below which subject answers to the agent of a cluster come.
func Inbox(cluster string) string { return "_INBOX.agent." + cluster }

// beat says that the agent hears from its cluster.
type beat struct {
	// Agent is the name of the process, and At the time by its clock.
	Agent string    `json:"agent"`
	At    time.Time `json:"at"`
}

// beatAnswer tells what an agent may have to act upon.
type beatAnswer struct {
	// Store is when the store of facts was made; see [Remote.Run].
	Store time.Time `json:"store"`
	// Wishes is another text whenever the wishes are others.
	Wishes string `json:"wishes"`
}

// list asks for the facts that are held of the cluster, in the order of their keys.
type list struct {
	// After is the last key of the page before; empty for the first.
	After string `json:"after,omitempty"`
}

type listAnswer struct {
	Store time.Time `json:"store"`
	Facts []held    `json:"facts"`
	// More says that there is another page, after the key Last.
	More bool   `json:"more,omitempty"`
	Last string `json:"last,omitempty"`
}

// held is a fact and its revision.
type held struct {
	Fact     fact.Fact `json:"fact"`
	Revision uint64    `json:"revision"`
}

// put asks to hold a fact, if what is held has a revision: zero for none.
type put struct {
	Fact     fact.Fact `json:"fact"`
	Revision uint64    `json:"revision"`
}

// putAnswer has the revision of what is held now. If that is something else, Conflict is
// set, and Held is the fact: nil where none is held that can be read.
type putAnswer struct {
	Revision uint64     `json:"revision"`
	Conflict bool       `json:"conflict,omitempty"`
	Held     *fact.Fact `json:"held,omitempty"`
}

// remove asks to hold a fact no more, if it has a revision. The answer is as for put.
type remove struct {
	Key      fact.Key `json:"key"`
	Revision uint64   `json:"revision"`
}

type wishesAnswer struct {
	Wishes []fact.Wish `json:"wishes"`
	// Mark is what [beatAnswer] says of them.
	Mark string `json:"mark"`
}

// await asks whether facts are of the present life of the agent, and to wait for that.
type await struct {
	Keys []fact.Key `json:"keys"`
	// Within is how long, in nanoseconds.
	Within time.Duration `json:"within"`
}

type awaitAnswer struct {
	Settled bool `json:"settled"`
}

// answer is what comes back: an error in words, or what was asked for.
type answer struct {
	Error string          `json:"error,omitempty"`
	Of    json.RawMessage `json:"of,omitempty"`
}

// encode makes an answer of what a request came to.
func encode(of any, err error) []byte {
	var a answer
	if err == nil {
		a.Of, err = json.Marshal(of)
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	data, err := json.Marshal(a)
	if err != nil {
		return nil // An answer of text and JSON can be encoded.
	}
	return data
}

// request sends a request and decodes what comes back.
func request[T any](ctx context.Context, line Line, subject string, of any) (T, error) {
	var out T
	data, err := json.Marshal(of)
	if err != nil {
		return out, fmt.Errorf("encode a request on %s: %w", subject, err)
	}
	if data, err = line.Request(ctx, subject, data); err != nil {
		return out, err
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return out, fmt.Errorf("answer to %s: %w", subject, err)
	}
	if a.Error != "" {
		return out, errors.New(a.Error)
	}
	if err := json.Unmarshal(a.Of, &out); err != nil {
		return out, fmt.Errorf("answer to %s: %w", subject, err)
	}
	return out, nil
}
