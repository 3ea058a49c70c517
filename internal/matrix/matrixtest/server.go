package matrixtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// domain stands behind the colon of every id.
const domain = "example.org"

// maxEvent and maxFile are how much a homeserver takes, in bytes.
const (
	maxEvent = 65536
	maxFile  = 4 << 20
)

// Server is a homeserver in memory. It implements [http.Handler].
type Server struct {
	mu      sync.Mutex
	users   map[string]string // By token.
	rooms   map[string]*room
	aliases map[string]string // Ids of rooms by alias.
	stream  []*Event
	sent    map[string]string // Ids of events by token and transaction.
	files   []File
	limit   int
	changed chan struct{} // Closed when the stream grows.
}

// Event is an event of a room as the API shows it.
type Event struct {
	ID       string         `json:"event_id"`
	Type     string         `json:"type"`
	Room     string         `json:"room_id"`
	Sender   string         `json:"sender"`
	StateKey *string        `json:"state_key,omitempty"`
	Content  map[string]any `json:"content"`
	// At is in milliseconds since 1970.
	At       int64          `json:"origin_server_ts"`
	Unsigned map[string]any `json:"unsigned,omitempty"`

	position int // In the stream, from 1.
}

// File is a file that somebody uploaded.
type File struct {
	// ID is its "mxc://" address.
	ID, Name, Type, Sender string
	Content                []byte
}

// Files are what was uploaded, the oldest first.
func (s *Server) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files)
}

// room is a room with its present state.
type room struct {
	id    string
	state map[string]*Event // By type and key.
}

// member returns the event of somebody's membership, or nil.
func (r *room) member(user string) *Event { return r.state["m.room.member "+user] }

// is reports whether somebody has a membership.
func (r *room) is(user, membership string) bool {
	m := r.member(user)
	return m != nil && m.Content["membership"] == membership
}

// New makes a server without users and rooms.
func New() *Server {
	return &Server{
		users: map[string]string{}, rooms: map[string]*room{}, aliases: map[string]string{},
		sent: map[string]string{}, limit: 100, changed: make(chan struct{}),
	}
}

// Domain returns the name of the server, as it stands in ids.
func (s *Server) Domain() string { return domain }

// User makes an account with a name in small letters and returns its id and a token.
func (s *Server) User(name string) (user, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, token = "@"+name+":"+domain, "token-of-"+name
	s.users[token] = user
	return user, token
}

// Limit sets how many events of a room one answer of sync has.
func (s *Server) Limit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = n
}

// Before reports whether an event lies before a position.
func (s *Server) Before(event, at string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := number(at)
	for _, e := range s.stream {
		if e.ID == event {
			return err == nil && e.position <= n
		}
	}
	return false
}

// Put puts an event into a room as it is: without a look at who may send what. What
// is zero of id and time is filled in. It returns the id.
func (s *Server) Put(e Event) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(&e)
}

// add adds an event to the stream and to the state of its room.
func (s *Server) add(e *Event) string {
	e.position = len(s.stream) + 1
	if e.ID == "" {
		e.ID = fmt.Sprintf("$event%d", e.position)
	}
	if e.At == 0 {
		e.At = time.Now().UnixMilli()
	}
	if e.StateKey != nil {
		r := s.rooms[e.Room]
		key := e.Type + " " + *e.StateKey
		if before := r.state[key]; before != nil {
			e.Unsigned = map[string]any{"prev_content": before.Content}
		}
		r.state[key] = e
	}
	s.stream = append(s.stream, e)
	close(s.changed)
	s.changed = make(chan struct{})
	return e.ID
}

// setMember changes somebody's membership.
func (s *Server) setMember(r *room, sender, user, membership string) {
	s.add(&Event{
		Type: "m.room.member", Room: r.id, Sender: sender, StateKey: &user,
		Content: map[string]any{"membership": membership, "displayname": strings.TrimPrefix(strings.SplitN(user, ":", 2)[0], "@")},
	})
}

func position(n int) string { return "s" + strconv.Itoa(n) }

func number(position string) (int, error) {
	if position == "" {
		return 0, nil
	}
	return strconv.Atoi(strings.TrimPrefix(position, "s"))
}

// refusal is an answer that says no.
type refusal struct {
	status int
	code   string
}

func (r refusal) write(w http.ResponseWriter) {
	answer(w, r.status, map[string]any{"errcode": r.code, "error": "the stand-in says no"})
}

// answer writes JSON; nobody is left to hear that it could not be.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
