package slacktest

import (
	"maps"
	"slices"
	"time"
)

// subscribed says whether an event is sent at all, and notes the scope it needs.
func (s *Server) subscribed(event, scope string) bool {
	if !slices.Contains(s.options.Events, event) || !s.granted(scope) {
		return false
	}
	s.used[scope] = true
	return true
}

// tell sends the events of a new message.
func (s *Server) tell(c *channel, m *Message, event map[string]any) {
	if !c.members[UserID] {
		return
	}
	event["channel"], event["event_ts"] = c.id, m.TS
	name := map[Kind]string{Public: "message.channels", Private: "message.groups", IM: "message.im"}[c.kind]
	if s.subscribed(name, c.historyScope()) {
		typed := maps.Clone(event)
		typed["channel_type"] = string(c.kind)
		if len(m.Files) > 0 {
			typed["subtype"] = "file_share"
		}
		s.event(m.TS, typed)
	}
	if c.kind != IM && mentioned(m.Text) && m.User != UserID && s.subscribed("app_mention", "app_mentions:read") {
		mention := maps.Clone(event)
		mention["type"] = "app_mention"
		s.event(m.TS, mention)
	}
}

// tellEdited sends the events of a message that was changed.
func (s *Server) tellEdited(c *channel, m *Message) {
	if !c.members[UserID] {
		return
	}
	changed := m.json(c, false)
	name := map[Kind]string{Public: "message.channels", Private: "message.groups", IM: "message.im"}[c.kind]
	if s.subscribed(name, c.historyScope()) {
		s.event("", map[string]any{
			"type": "message", "subtype": "message_changed", "channel": c.id, "channel_type": string(c.kind),
			"ts": s.ts(), "message": changed, "hidden": true,
		})
	}
	if c.kind != IM && mentioned(m.Text) && s.subscribed("app_mention", "app_mentions:read") {
		changed["type"], changed["channel"] = "app_mention", c.id
		s.event("", changed)
	}
}

// Event sends an event to the app as it is, and returns its id.
func (s *Server) Event(event map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.event("", event)
}

// event puts an event into its frame and queues it. The reference is the message
// that it is about.
func (s *Server) event(ref string, event map[string]any) string {
	id := s.id("Ev")
	s.queue(&delivery{kind: "events_api", ref: ref, payload: map[string]any{
		"token": "deprecated", "team_id": TeamID, "api_app_id": AppID, "type": "event_callback",
		"event_id": id, "event_time": time.Now().Unix(), "event": event,
		"authorizations": []any{map[string]any{"team_id": TeamID, "user_id": UserID, "is_bot": true, "enterprise_id": nil}},
	}})
	return id
}
