package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// link is a connection of Socket Mode. Its writer is guarded by the server's lock.
type link struct{ ws *websocket.Conn }

const (
	// maxAck is what Slack takes of an acknowledgement, in bytes.
	maxAck    = 20 << 10
	pingEvery = 5 * time.Second
	writeTime = 5 * time.Second
)

func (l *link) write(frame any) {
	_ = l.ws.SetWriteDeadline(time.Now().Add(writeTime))
	// Whether it arrived is seen by the acknowledgement alone.
	_ = l.ws.WriteJSON(frame)
}

// serveLink takes a connection of Socket Mode.
func (s *Server) serveLink(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	known := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !known {
		http.Error(w, "no such ticket", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	l := &link{ws}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		_ = ws.Close()
		return
	}
	l.write(map[string]any{
		"type": "hello", "num_connections": len(s.links) + 1,
		"connection_info": map[string]any{"app_id": AppID}, "debug_info": map[string]any{"host": "stand-in"},
	})
	s.links = append(s.links, l)
	s.stir()
	done := make(chan struct{})
	s.parts.Go(func() { s.ping(l, done) })
	s.parts.Go(func() { defer close(done); s.read(l) })
}

// ping keeps a connection alive.
func (s *Server) ping(l *link, done <-chan struct{}) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		// WriteControl may be called at any time.
		_ = l.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime))
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// read reads acknowledgements until the connection ends.
func (s *Server) read(l *link) {
	for {
		_, data, err := l.ws.ReadMessage()
		if err != nil {
			break
		}
		s.ack(data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = l.ws.Close()
	s.links = slices.DeleteFunc(s.links, func(other *link) bool { return other == l })
	for _, d := range s.deliveries {
		// A retry does not wait where the connection is known to be gone.
		if d.link == l && !d.acked {
			d.sent = time.Time{}
		}
	}
	s.stir()
}

// ack takes an acknowledgement.
func (s *Server) ack(data []byte) {
	var in struct {
		EnvelopeID string `json:"envelope_id"`
	}
	err := json.Unmarshal(data, &in)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, sent := s.envelopes[in.EnvelopeID]
	switch {
	case err != nil || !sent:
		s.problems = append(s.problems, "acknowledged something that was not sent: "+string(data[:min(len(data), 200)]))
	case len(data) > maxAck:
		s.problems = append(s.problems, "an acknowledgement longer than Slack takes")
	default:
		e.acked = e.acked || e.delivery.round == e.round
	}
}

// Cut cuts every connection of Socket Mode.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		_ = l.ws.NetConn().Close()
	}
}

// Refresh asks the app to connect anew, as Slack does every few hours.
func (s *Server) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		l.write(map[string]any{"type": "disconnect", "reason": "refresh_requested", "debug_info": map[string]any{"host": "stand-in"}})
	}
}

// Connected is the number of connections of Socket Mode.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links)
}

// socketURL is where a new connection goes to.
func (s *Server) socketURL() string {
	ticket := s.id("ticket")
	s.tickets[ticket] = true
	return strings.Replace(s.root, "http", "ws", 1) + "/link?ticket=" + ticket
}
