package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Kind is a kind of conversation.
type Kind string

// The kinds of conversations.
const (
	Public  Kind = "channel"
	Private Kind = "group"
	IM      Kind = "im"
)

// channel is a conversation.
type channel struct {
	id       string
	kind     Kind
	members  map[string]bool
	archived bool
	messages []*Message
}

// Message is a message, or what one person was whispered.
type Message struct {
	TS       string
	Thread   string
	User     string
	BotID    string
	Text     string
	Blocks   json.RawMessage
	Metadata *Metadata
	// Files are what it shows.
	Files []*File
	// To is the person who alone sees it, or empty.
	To     string
	Edited bool
}

// Metadata is what apps see of a message.
type Metadata struct {
	EventType    string         `json:"event_type"`
	EventPayload map[string]any `json:"event_payload"`
}

// historyScope is the scope for the messages of a conversation.
func (c *channel) historyScope() string {
	return map[Kind]string{Public: "channels:history", Private: "groups:history", IM: "im:history"}[c.kind]
}

// find returns a message that everybody sees.
func (c *channel) find(ts string) *Message {
	i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.TS == ts && m.To == "" })
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

// id makes an id with a prefix.
func (s *Server) id(prefix string) string {
	s.count++
	return fmt.Sprintf("%s%07d", prefix, s.count)
}

// ts makes the time of a message, which is also its id in its conversation.
func (s *Server) ts() string {
	s.lastTS = max(s.lastTS+1, time.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

// json is a message as the Web API shows it.
func (m *Message) json(c *channel, metadata bool) map[string]any {
	out := map[string]any{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS}
	if m.BotID != "" {
		out["bot_id"] = m.BotID
		out["app_id"] = AppID
	}
	if m.Thread != "" {
		out["thread_ts"] = m.Thread
	} else if slices.ContainsFunc(c.messages, func(r *Message) bool { return r.Thread == m.TS }) {
		out["thread_ts"] = m.TS
	}
	if len(m.Blocks) > 0 {
		out["blocks"] = m.Blocks
	}
	if len(m.Files) > 0 {
		var files []any
		for _, f := range m.Files {
			files = append(files, f.json())
		}
		out["files"], out["upload"] = files, true
	}
	if m.Metadata != nil && metadata {
		out["metadata"] = m.Metadata
	}
	if m.Edited {
		out["edited"] = map[string]any{"user": m.User, "ts": m.TS}
	}
	return out
}
