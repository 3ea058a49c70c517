package slacktest

import (
	"net/url"
	"slices"
	"strconv"
)

func (s *Server) open(in url.Values) answer {
	user := in.Get("users")
	if _, ok := s.users[user]; !ok {
		return failed("user_not_found")
	}
	return answer{"channel": map[string]any{"id": s.openIM(user).id}}
}

// readable returns a conversation whose messages the app may read, or why not.
func (s *Server) readable(id string) (*channel, answer) {
	c := s.channels[id]
	if c == nil || c.kind != Public && !c.members[UserID] {
		return nil, failed("channel_not_found")
	}
	if refused := s.need(c.historyScope()); refused != nil {
		return nil, refused
	}
	if !c.members[UserID] {
		return nil, failed("not_in_channel")
	}
	return c, nil
}

func (s *Server) history(in url.Values) answer {
	c, refused := s.readable(in.Get("channel"))
	if refused != nil {
		return refused
	}
	var found []*Message
	for _, m := range slices.Backward(c.messages) {
		if m.To == "" && m.Thread == "" && m.TS > in.Get("oldest") {
			found = append(found, m)
		}
	}
	return page(in, c, found)
}

func (s *Server) replies(in url.Values) answer {
	c, refused := s.readable(in.Get("channel"))
	if refused != nil {
		return refused
	}
	top := in.Get("ts")
	if c.find(top) == nil {
		return failed("thread_not_found")
	}
	// The message that the thread hangs on is there always.
	found := []*Message{c.find(top)}
	for _, m := range c.messages {
		if m.To == "" && m.Thread == top && m.TS > in.Get("oldest") {
			found = append(found, m)
		}
	}
	return page(in, c, found)
}

// page is a page of messages. The cursor is the number of those before it.
func page(in url.Values, c *channel, found []*Message) answer {
	limit, _ := strconv.Atoi(in.Get("limit"))
	from, _ := strconv.Atoi(in.Get("cursor"))
	if limit <= 0 || limit > 999 || from < 0 || from > len(found) {
		return failed("invalid_limit")
	}
	to := min(from+limit, len(found))
	messages := []any{}
	for _, m := range found[from:to] {
		messages = append(messages, m.json(c, in.Get("include_all_metadata") == "1"))
	}
	out := answer{"messages": messages, "has_more": to < len(found)}
	if to < len(found) {
		out["response_metadata"] = map[string]any{"next_cursor": strconv.Itoa(to)}
	}
	return out
}
