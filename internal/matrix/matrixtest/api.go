package matrixtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

var (
	forbidden = refusal{status: http.StatusForbidden, code: "M_FORBIDDEN"}
	notFound  = refusal{status: http.StatusNotFound, code: "M_NOT_FOUND"}
	badJSON   = refusal{status: http.StatusBadRequest, code: "M_BAD_JSON"}
	tooLarge  = refusal{status: http.StatusRequestEntityTooLarge, code: "M_TOO_LARGE"}

	unknownToken = refusal{status: http.StatusUnauthorized, code: "M_UNKNOWN_TOKEN"}
)

// call is a request of somebody.
type call struct {
	*http.Request
	user, token string
	path        []string // Behind the version of the API.
	body        map[string]any
}

// text returns a field of the body.
func (c call) text(name string) string {
	v, _ := c.body[name].(string)
	return v
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		return
	}
	c := call{Request: r, token: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}
	if _, media, ok := strings.Cut(r.URL.Path, "/_matrix/media/v3/"); ok {
		c.path = strings.Split(media, "/")
		s.serveFile(w, c, content)
		return
	}
	_, rest, _ := strings.Cut(r.URL.Path, "/_matrix/client/v3/")
	c.path = strings.Split(rest, "/")
	if len(content) > 0 && json.Unmarshal(content, &c.body) != nil {
		badJSON.write(w)
		return
	}
	s.mu.Lock()
	c.user = s.users[c.token]
	if c.user == "" {
		s.mu.Unlock()
		unknownToken.write(w)
		return
	}
	if c.path[0] == "sync" {
		s.mu.Unlock()
		s.sync(w, c)
		return
	}
	defer s.mu.Unlock()
	body, no := s.ask(c, len(content))
	if no != nil {
		no.write(w)
		return
	}
	answer(w, http.StatusOK, body)
}

// serveFile takes a file, or gives one out.
func (s *Server) serveFile(w http.ResponseWriter, c call, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.user = s.users[c.token]
	switch {
	case c.user == "":
		unknownToken.write(w)
	case c.path[0] == "upload" && c.Method == http.MethodPost && len(content) > maxFile:
		tooLarge.write(w)
	case c.path[0] == "upload" && c.Method == http.MethodPost:
		f := File{
			ID: fmt.Sprintf("mxc://%s/file%d", domain, len(s.files)+1), Name: c.URL.Query().Get("filename"),
			Type: c.Header.Get("Content-Type"), Sender: c.user, Content: content,
		}
		s.files = append(s.files, f)
		answer(w, http.StatusOK, map[string]any{"content_uri": f.ID})
	case c.path[0] == "download" && len(c.path) == 3:
		for _, f := range s.files {
			if f.ID == "mxc://"+c.path[1]+"/"+c.path[2] {
				w.Header().Set("Content-Type", f.Type)
				_, _ = w.Write(f.Content)
				return
			}
		}
		notFound.write(w)
	default:
		notFound.write(w)
	}
}

// ask answers everything but sync.
func (s *Server) ask(c call, size int) (any, *refusal) {
	switch c.path[0] {
	case "account":
		return map[string]any{"user_id": c.user, "device_id": "DEVICE"}, nil
	case "profile":
		return map[string]any{"displayname": strings.TrimPrefix(strings.SplitN(c.path[1], ":", 2)[0], "@")}, nil
	case "joined_rooms":
		joined := []string{}
		for _, id := range slices.Sorted(maps.Keys(s.rooms)) {
			if s.rooms[id].is(c.user, "join") {
				joined = append(joined, id)
			}
		}
		return map[string]any{"joined_rooms": joined}, nil
	case "createRoom":
		return s.create(c), nil
	case "directory":
		if c.Method == http.MethodPut {
			s.aliases[c.path[2]] = c.text("room_id")
			return map[string]any{}, nil
		}
		id, ok := s.aliases[c.path[2]]
		if !ok {
			return nil, &notFound
		}
		return map[string]any{"room_id": id, "servers": []string{domain}}, nil
	case "join":
		return s.join(c)
	case "rooms":
		if len(c.path) == 3 && c.path[2] == "join" {
			return s.join(c)
		}
		if r := s.rooms[c.path[1]]; r != nil && len(c.path) > 2 {
			return s.inRoom(c, r, size)
		}
		return nil, &forbidden
	}
	return nil, &refusal{status: http.StatusNotFound, code: "M_UNRECOGNIZED"}
}

// join follows an invitation; there is no other way in.
func (s *Server) join(c call) (any, *refusal) {
	r := s.rooms[c.path[1]]
	if r == nil || !r.is(c.user, "invite") {
		return nil, &forbidden
	}
	s.setMember(r, c.user, c.user, "join")
	return map[string]any{"room_id": r.id}, nil
}

// create makes a room of its creator and the invited.
func (s *Server) create(c call) any {
	r := &room{id: fmt.Sprintf("!room%d:%s", len(s.rooms)+1, domain), state: map[string]*Event{}}
	s.rooms[r.id] = r
	key := ""
	s.add(&Event{Type: "m.room.create", Room: r.id, Sender: c.user, StateKey: &key, Content: map[string]any{"creator": c.user}})
	s.setMember(r, c.user, c.user, "join")
	initial, _ := c.body["initial_state"].([]any)
	for _, i := range initial {
		state, _ := i.(map[string]any)
		kind, _ := state["type"].(string)
		content, _ := state["content"].(map[string]any)
		s.add(&Event{Type: kind, Room: r.id, Sender: c.user, StateKey: &key, Content: content})
	}
	invited, _ := c.body["invite"].([]any)
	for _, who := range invited {
		if user, ok := who.(string); ok {
			s.setMember(r, c.user, user, "invite")
			if c.body["is_direct"] == true {
				r.state["m.room.member "+user].Content["is_direct"] = true
			}
		}
	}
	return map[string]any{"room_id": r.id}
}

// inRoom does something in a room.
func (s *Server) inRoom(c call, r *room, size int) (any, *refusal) {
	nothing := map[string]any{}
	if c.path[2] == "leave" {
		if !r.is(c.user, "join") && !r.is(c.user, "invite") {
			return nil, &forbidden
		}
		s.setMember(r, c.user, c.user, "leave")
		return nothing, nil
	}
	if !r.is(c.user, "join") {
		return nil, &forbidden
	}
	switch c.path[2] {
	case "state":
		return slices.SortedFunc(maps.Values(r.state), func(a, b *Event) int { return a.position - b.position }), nil
	case "joined_members":
		joined := map[string]any{}
		for _, e := range r.state {
			if e.Type == "m.room.member" && e.Content["membership"] == "join" {
				joined[*e.StateKey] = map[string]any{}
			}
		}
		return map[string]any{"joined": joined}, nil
	case "invite":
		s.setMember(r, c.user, c.text("user_id"), "invite")
		return nothing, nil
	case "kick":
		s.setMember(r, c.user, c.text("user_id"), "leave")
		return nothing, nil
	case "event":
		for _, e := range s.stream {
			if e.Room == r.id && e.ID == c.path[3] {
				return e, nil
			}
		}
		return nil, &notFound
	case "messages":
		return s.messages(c, r), nil
	case "send":
		return s.send(c, r, size)
	}
	return nil, &notFound
}

// send sends a message, once for each transaction.
func (s *Server) send(c call, r *room, size int) (any, *refusal) {
	if size > maxEvent {
		return nil, &tooLarge
	}
	transaction := c.token + " " + c.URL.Path
	if _, ok := s.sent[transaction]; !ok {
		s.sent[transaction] = s.add(&Event{Type: c.path[3], Room: r.id, Sender: c.user, Content: c.body})
	}
	return map[string]any{"event_id": s.sent[transaction]}, nil
}
