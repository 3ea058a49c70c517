package slacktest

import (
	"encoding/json"
	"net/url"
	"unicode/utf8"
)

// Limits of a message.
const (
	maxText    = 40000
	maxBlocks  = 50
	maxSection = 3000
)

// writable returns a conversation that the app may write to, or why not.
func (s *Server) writable(id string) (*channel, answer) {
	c := s.channels[id]
	switch {
	case c == nil, c.kind != Public && !c.members[UserID]:
		return nil, failed("channel_not_found")
	case c.archived:
		return nil, failed("is_archived")
	case !c.members[UserID]:
		return nil, failed("not_in_channel")
	}
	return c, nil
}

// content reads what a message says.
func content(in url.Values, m *Message) answer {
	if utf8.RuneCountInString(in.Get("text")) > maxText {
		return failed("msg_too_long")
	}
	if in.Get("unfurl_links") != "false" || in.Get("unfurl_media") != "false" {
		return failed("stand_in_wants_no_unfurling")
	}
	m.Text = in.Get("text")
	if raw := in.Get("blocks"); raw != "" {
		var blocks []struct {
			Type string `json:"type"`
			Text struct {
				Text string `json:"text"`
			} `json:"text"`
		}
		if json.Unmarshal([]byte(raw), &blocks) != nil {
			return failed("invalid_blocks_format")
		}
		if len(blocks) > maxBlocks {
			return failed("invalid_blocks")
		}
		for _, b := range blocks {
			if b.Type == "" || utf8.RuneCountInString(b.Text.Text) > maxSection {
				return failed("invalid_blocks")
			}
		}
		m.Blocks = json.RawMessage(raw)
		if len(blocks) == 0 {
			m.Blocks = nil
		}
	}
	if raw := in.Get("metadata"); raw != "" {
		m.Metadata = new(Metadata)
		if json.Unmarshal([]byte(raw), m.Metadata) != nil || m.Metadata.EventType == "" {
			return failed("invalid_metadata_format")
		}
	}
	if m.Text == "" && m.Blocks == nil {
		return failed("no_text")
	}
	return nil
}

func (s *Server) postMessage(in url.Values) answer {
	c, refused := s.writable(in.Get("channel"))
	if refused != nil {
		return refused
	}
	m := &Message{User: UserID, BotID: BotID, Thread: in.Get("thread_ts")}
	if refused := content(in, m); refused != nil {
		return refused
	}
	s.add(c, m)
	return answer{"channel": c.id, "ts": m.TS, "message": m.json(c, true)}
}

func (s *Server) postEphemeral(in url.Values) answer {
	c, refused := s.writable(in.Get("channel"))
	if refused != nil {
		return refused
	}
	user := in.Get("user")
	if !c.members[user] {
		return failed("user_not_in_channel")
	}
	m := &Message{User: UserID, BotID: BotID, Thread: in.Get("thread_ts"), To: user}
	if refused := content(in, m); refused != nil {
		return refused
	}
	m.TS = s.ts()
	c.messages = append(c.messages, m)
	return answer{"message_ts": m.TS}
}

func (s *Server) update(in url.Values) answer {
	c, refused := s.writable(in.Get("channel"))
	if refused != nil {
		return refused
	}
	m := c.find(in.Get("ts"))
	switch {
	case m == nil:
		return failed("message_not_found")
	case m.User != UserID:
		return failed("cant_update_message")
	}
	// What is not given stays.
	changed := *m
	if refused := content(in, &changed); refused != nil {
		return refused
	}
	*m = changed
	m.Edited = true
	return answer{"channel": c.id, "ts": m.TS, "text": m.Text}
}
