package slacktest

import (
	"fmt"
	"slices"
	"strings"
)

// AddUser adds a person and returns the id.
func (s *Server) AddUser(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id("U")
	s.users[id] = name
	return id
}

// AddChannel makes a channel with members and returns its id. The app is one of them
// if its [UserID] is among them.
func (s *Server) AddChannel(kind Kind, members ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addChannel(kind, members...).id
}

func (s *Server) addChannel(kind Kind, members ...string) *channel {
	prefix := "C"
	if kind == IM {
		prefix = "D"
	}
	c := &channel{id: s.id(prefix), kind: kind, members: map[string]bool{}}
	for _, m := range members {
		c.members[m] = true
	}
	s.channels[c.id] = c
	return c
}

// OpenIM returns the conversation of a person with the app.
func (s *Server) OpenIM(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openIM(user).id
}

func (s *Server) openIM(user string) *channel {
	for _, c := range s.channels {
		if c.kind == IM && c.members[user] && c.members[UserID] {
			return c
		}
	}
	return s.addChannel(IM, user, UserID)
}

// Say says something as a person, as Slack sends it: with escapes and tokens. It
// returns the time of the message.
func (s *Server) Say(channel, thread, user, text string) (ts string, err error) {
	return s.post(channel, &Message{Thread: thread, User: user, Text: text})
}

// SayAs says something as whoever the message names, such as another program.
func (s *Server) SayAs(channel string, m Message) (ts string, err error) {
	return s.post(channel, &m)
}

func (s *Server) post(id string, m *Message) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	if c == nil {
		return "", fmt.Errorf("slacktest: no channel %s", id)
	}
	s.add(c, m)
	return m.TS, nil
}

// add adds a message to a conversation and tells of it.
func (s *Server) add(c *channel, m *Message) {
	m.TS = s.ts()
	if m.Thread != "" && c.find(m.Thread) == nil {
		m.Thread = ""
	}
	c.messages = append(c.messages, m)
	s.tell(c, m, m.json(c, false))
}

// Edit changes what a person said.
func (s *Server) Edit(channel, ts, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil || c.find(ts) == nil {
		return fmt.Errorf("slacktest: no message %s in %s", ts, channel)
	}
	m := c.find(ts)
	m.Text, m.Edited = text, true
	s.tellEdited(c, m)
	return nil
}

// Delete deletes a message, and tells nobody.
func (s *Server) Delete(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		c.messages = slices.DeleteFunc(c.messages, func(m *Message) bool { return m.TS == ts })
	}
}

// Kick removes the app from a channel.
func (s *Server) Kick(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		delete(c.members, UserID)
	}
}

// Archive archives a channel.
func (s *Server) Archive(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		c.archived = true
	}
}

// Messages are the messages of the app that a person sees, the oldest first: those
// of a thread, or those outside of threads.
func (s *Server) Messages(channel, thread, user string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	c := s.channels[channel]
	if c == nil || !c.members[user] {
		return nil
	}
	for _, m := range c.messages {
		if m.User == UserID && m.Thread == thread && (m.To == "" || m.To == user) {
			out = append(out, *m)
		}
	}
	return out
}

// Command uses the slash command, and returns the id of its trigger.
func (s *Server) Command(channel, user, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	trigger := s.id("1.2.trigger")
	s.used["commands"] = true
	s.queue(&delivery{kind: "slash_commands", ref: trigger, once: true, payload: map[string]any{
		"team_id": TeamID, "channel_id": channel, "channel_name": "any", "user_id": user, "user_name": s.users[user],
		"command": "/signalbox", "text": text, "trigger_id": trigger, "api_app_id": AppID,
		"response_url": s.root + "/response/secret",
	}})
	return trigger
}

// Click presses a button of a message, and returns the id of the trigger.
func (s *Server) Click(channel, ts, user, action, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	trigger := s.id("1.2.trigger")
	s.queue(&delivery{kind: "interactive", ref: trigger, once: true, payload: map[string]any{
		"type": "block_actions", "trigger_id": trigger, "api_app_id": AppID,
		"team": map[string]any{"id": TeamID}, "user": map[string]any{"id": user}, "channel": map[string]any{"id": channel},
		"container": map[string]any{"type": "message", "message_ts": ts, "channel_id": channel},
		"actions":   []any{map[string]any{"type": "button", "action_id": action, "value": value, "action_ts": s.ts()}},
	}})
	return trigger
}

// mentioned says whether a text mentions the app.
func mentioned(text string) bool {
	return strings.Contains(text, "<@"+UserID+">") || strings.Contains(text, "<@"+UserID+"|")
}
