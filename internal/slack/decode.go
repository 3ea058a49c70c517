package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"signalbox/internal/chat"
)

// errMalformed: it is not what Slack sends, and is not better the next time.
var errMalformed = errors.New("not understood")

// ignored: it is of no interest, for a reason if that is worth a line in the log.
type ignored struct{ why string }

func (i ignored) Error() string { return "ignored: " + i.why }

// callback is the part of an event that is alike for all.
// See https://docs.slack.dev/apis/events-api/#event-type-structure.
type callback struct {
	Type           string          `json:"type"`
	Challenge      string          `json:"challenge"`
	TeamID         string          `json:"team_id"`
	EventID        string          `json:"event_id"`
	Event          json.RawMessage `json:"event"`
	Authorizations []struct {
		EnterpriseID string `json:"enterprise_id"`
		TeamID       string `json:"team_id"`
	} `json:"authorizations"`
}

// said is an app_mention or a message.
type said struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	User        string          `json:"user"`
	BotID       string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	Edited      json.RawMessage `json:"edited"`
	// UserTeam and SourceTeam are the workspace of the person, in a channel that is
	// shared with another; else they may be missing.
	UserTeam   string `json:"user_team"`
	SourceTeam string `json:"source_team"`
}

// slackbot is the user who says what people told it to repeat.
const slackbot = "USLACKBOT"

// mine says whether an event was sent to this installation.
func (c callback) mine(me identity) bool {
	for _, of := range c.Authorizations {
		if me.at(of.TeamID, of.EnterpriseID) {
			return true
		}
	}
	return len(c.Authorizations) == 0 && me.at(c.TeamID, "")
}

// at says whether a workspace, or the organization it belongs to, is the one that
// signalbox is installed in.
func (me identity) at(team, enterprise string) bool {
	return team != "" && team == me.team || enterprise != "" && enterprise == me.enterprise
}

// person is who a user is. Somebody of another workspace, with whom a channel is shared,
// is nobody that the configuration names by the id alone. So is somebody of another
// workspace of the same organization: an event does not tell whose it is.
func (me identity) person(user string, teams ...string) chat.User {
	for _, team := range teams {
		if team != "" && !me.at(team, team) {
			user = team + "/" + user
			break
		}
	}
	return chat.User{Platform: chat.Slack, ID: user}
}

// member is what Slack calls a person, of whatever workspace.
func member(u chat.User) string { return u.ID[strings.LastIndexByte(u.ID, '/')+1:] }

// decodeSaid decodes the event_callback of a message to signalbox. Errors are
// ignored and errMalformed.
func decodeSaid(c callback, me identity, now time.Time) (chat.Message, error) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(c.Event, &kind); err != nil {
		return chat.Message{}, fmt.Errorf("%w: the event: %w", errMalformed, err)
	}
	if kind.Type != "app_mention" && kind.Type != "message" {
		return chat.Message{}, ignored{}
	}
	var s said
	if err := json.Unmarshal(c.Event, &s); err != nil {
		return chat.Message{}, fmt.Errorf("%w: the event %s: %w", errMalformed, kind.Type, err)
	}
	direct := s.ChannelType == "im" || strings.HasPrefix(s.Channel, "D")
	switch {
	case direct != (s.Type == "message"),
		s.Subtype != "" && s.Subtype != "file_share",
		s.BotID != "", s.User == "", s.User == me.user, s.User == slackbot,
		!c.mine(me):
		return chat.Message{}, ignored{}
	}
	edited := len(s.Edited) > 0 && string(s.Edited) != "null"
	at, ok := parseTS(s.TS, now)
	if !ok || s.Channel == "" || c.EventID == "" {
		return chat.Message{}, fmt.Errorf("%w: the event %s lacks its id, its channel or its time", errMalformed, s.Type)
	}
	m := chat.Message{
		ID: s.TS, Room: chat.Room{Platform: chat.Slack, ID: s.Channel},
		User: me.person(s.User, s.UserTeam, s.SourceTeam),
		Text: clean(s.Text, me.user), Direct: direct, Edited: edited, At: at,
	}
	if s.ThreadTS != s.TS {
		m.Thread = s.ThreadTS
	}
	m.Link = me.link(m)
	return m, nil
}

// link returns the permanent link to a message.
func (me identity) link(m chat.Message) string {
	if me.url == "" {
		return ""
	}
	link := strings.TrimSuffix(me.url, "/") + "/archives/" + url.PathEscape(m.Room.ID) + "/p" + strings.Replace(m.ID, ".", "", 1)
	if m.Thread != "" {
		link += "?" + url.Values{"thread_ts": {m.Thread}, "cid": {m.Room.ID}}.Encode()
	}
	return link
}

// decodeCommand decodes a slash command. The name of the command does not count:
// it is what the manifest of the app says.
func decodeCommand(c slackapi.SlashCommand, me identity, now time.Time) (chat.Message, error) {
	switch {
	case c.ChannelID == "" || c.UserID == "" || c.TriggerID == "":
		return chat.Message{}, fmt.Errorf("%w: the slash command lacks its channel, its user or its trigger", errMalformed)
	case !me.at(c.TeamID, c.EnterpriseID):
		return chat.Message{}, ignored{"the slash command is of another workspace"}
	}
	return chat.Message{
		ID: c.TriggerID, Room: chat.Room{Platform: chat.Slack, ID: c.ChannelID},
		User: chat.User{Platform: chat.Slack, ID: c.UserID},
		Text: clean(c.Text, me.user), Slash: true, At: now.UTC(),
	}, nil
}

// interaction is a button that was pressed.
// See https://docs.slack.dev/reference/interaction-payloads/block_actions-payload.
type interaction struct {
	Type       string  `json:"type"`
	TriggerID  string  `json:"trigger_id"`
	Team       *holder `json:"team"`
	Enterprise *holder `json:"enterprise"`
	User       presser `json:"user"`
	Channel    holder  `json:"channel"`
	Container  struct {
		MessageTS string `json:"message_ts"`
	} `json:"container"`
	Actions []action `json:"actions"`
}

type holder struct {
	ID string `json:"id"`
}

// presser is who pressed a button, with their workspace.
type presser struct {
	ID     string `json:"id"`
	TeamID string `json:"team_id"`
}

type action struct {
	ActionID string `json:"action_id"`
	Value    string `json:"value"`
	ActionTS string `json:"action_ts"`
}

// actionPrefix may be before the name of a button in its action_id. Slack delivers
// what is on messages of the same app alone, and what a button is about is its value.
const actionPrefix = "signalbox:"

// buttons are the buttons that may be pressed.
var buttons = map[chat.Button]bool{chat.ButtonApprove: true, chat.ButtonHold: true, chat.ButtonDetails: true}

// decodePress decodes a button that was pressed; the cause comes from trigger. An
// interaction has one action.
func decodePress(payload []byte, me identity, now time.Time) (p chat.Press, trigger string, err error) {
	var in interaction
	if err := json.Unmarshal(payload, &in); err != nil {
		return p, "", fmt.Errorf("%w: the interaction: %w", errMalformed, err)
	}
	if in.Type != "block_actions" || len(in.Actions) == 0 {
		return p, "", ignored{}
	}
	pressed := in.Actions[0]
	button := chat.Button(strings.TrimPrefix(pressed.ActionID, actionPrefix))
	switch {
	case !buttons[button]:
		return p, "", ignored{"it is no button of signalbox"}
	case !me.at(in.Team.id(), in.Enterprise.id()):
		return p, "", ignored{"the button is of another workspace"}
	case in.TriggerID == "" || in.User.ID == "" || in.Channel.ID == "" || in.Container.MessageTS == "":
		return p, "", fmt.Errorf("%w: the interaction lacks its trigger, its user, its channel or its message", errMalformed)
	}
	ref, head, ok := chat.ParseButtonValue(pressed.Value)
	if !ok {
		return p, "", ignored{"the value of the button names no pull request"}
	}
	at, ok := parseTS(pressed.ActionTS, now)
	if !ok {
		at = now.UTC()
	}
	return chat.Press{
		Room: chat.Room{Platform: chat.Slack, ID: in.Channel.ID}, Message: in.Container.MessageTS,
		User: me.person(in.User.ID, in.User.TeamID), Button: button, Ref: ref, Head: head, At: at,
	}, in.TriggerID, nil
}

func (h *holder) id() string {
	if h == nil {
		return ""
	}
	return h.ID
}

// parseTS reads a time of Slack, such as "1355517523.000005". It is in UTC, and never
// later than now: nothing may count for longer because clocks differ.
func parseTS(ts string, now time.Time) (time.Time, bool) {
	whole, part, _ := strings.Cut(ts, ".")
	seconds, err := strconv.ParseUint(whole, 10, 64)
	if err != nil || seconds == 0 || seconds > math.MaxInt32*2 || len(part) > 6 {
		return time.Time{}, false
	}
	micros, err := strconv.ParseUint((part + "000000")[:6], 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	at := time.Unix(int64(seconds), int64(micros)*1000).UTC()
	if at.After(now) {
		at = now.UTC()
	}
	return at, true
}
