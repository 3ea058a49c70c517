package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	slackapi "github.com/slack-go/slack"

	"signalbox/internal/chat"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

var self = identity{user: "U0SELF", bot: "B0SELF", team: "T0", enterprise: "E0", url: "https://example.slack.com/"}

// event is an event_callback with an inner event.
func event(inner string) string {
	return `{"type":"event_callback","team_id":"T0","event_id":"Ev1","event":` + inner +
		`,"authorizations":[{"team_id":"T0","enterprise_id":null,"user_id":"U0SELF","is_bot":true}]}`
}

const spoken = `"user":"U0ALICE","text":"<@U0SELF> hold 12","ts":"1355517523.000005","channel":"C0DEPLOY"`

func TestDecodeSaid(t *testing.T) {
	want := chat.Message{
		ID: "1355517523.000005", Room: chat.Room{Platform: chat.Slack, ID: "C0DEPLOY"},
		User: chat.User{Platform: chat.Slack, ID: "U0ALICE"}, Text: "hold 12",
		Link: "https://example.slack.com/archives/C0DEPLOY/p1355517523000005",
		At:   time.Date(2012, 12, 14, 20, 38, 43, 5000, time.UTC),
	}
	threaded, edited, direct, foreign := want, want, want, want
	foreign.User.ID = "T1/U0ALICE"
	threaded.Thread = "1355517000.000001"
	threaded.Link += "?cid=C0DEPLOY&thread_ts=1355517000.000001"
	edited.Edited = true
	direct.Direct, direct.Room.ID = true, "D0ALICE"
	direct.Link = "https://example.slack.com/archives/D0ALICE/p1355517523000005"
	inDirect := strings.Replace(spoken, "C0DEPLOY", "D0ALICE", 1)
	for _, tc := range []struct {
		name, in string
		want     chat.Message
		err      error
	}{
		{"mention", event(`{"type":"app_mention",` + spoken + `}`), want, nil},
		{"mention with a file", event(`{"type":"app_mention","subtype":"file_share",` + spoken + `}`), want, nil},
		{"mention that begins a thread", event(`{"type":"app_mention","thread_ts":"1355517523.000005",` + spoken + `}`), want, nil},
		{"mention in a thread", event(`{"type":"app_mention","thread_ts":"1355517000.000001",` + spoken + `}`), threaded, nil},
		{"edited into a mention", event(`{"type":"app_mention","edited":{"user":"U0ALICE","ts":"1"},` + spoken + `}`), edited, nil},
		{"not edited", event(`{"type":"app_mention","edited":null,` + spoken + `}`), want, nil},
		{"of one's own in a shared channel", event(`{"type":"app_mention","user_team":"T0","source_team":"T0",` + spoken + `}`), want, nil},
		{"of one's own organization in a shared channel", event(`{"type":"app_mention","user_team":"E0",` + spoken + `}`), want, nil},
		{"of a guest in a shared channel", event(`{"type":"app_mention","user_team":"T1","source_team":"T1",` + spoken + `}`), foreign, nil},
		{"of a guest, by the source", event(`{"type":"app_mention","user_team":"T0","source_team":"T1",` + spoken + `}`), foreign, nil},
		{"direct", event(`{"type":"message","channel_type":"im",` + inDirect + `}`), direct, nil},
		{"direct, told by the id", event(`{"type":"message",` + inDirect + `}`), direct, nil},
		{"of the organization", strings.Replace(event(`{"type":"app_mention",`+spoken+`}`), `"team_id":"T0","enterprise_id":null`, `"team_id":null,"enterprise_id":"E0"`, 1), want, nil},

		{"the same as a message", event(`{"type":"message","channel_type":"channel",` + spoken + `}`), chat.Message{}, ignored{}},
		{"the same in a direct conversation", event(`{"type":"app_mention",` + inDirect + `}`), chat.Message{}, ignored{}},
		{"of a bot", event(`{"type":"app_mention","bot_id":"B1",` + spoken + `}`), chat.Message{}, ignored{}},
		{"of a bot, by its subtype", event(`{"type":"app_mention","subtype":"bot_message",` + spoken + `}`), chat.Message{}, ignored{}},
		{"of signalbox", event(`{"type":"message","channel_type":"im",` + strings.Replace(inDirect, "U0ALICE", "U0SELF", 1) + `}`), chat.Message{}, ignored{}},
		{"of Slackbot", event(`{"type":"app_mention",` + strings.Replace(spoken, "U0ALICE", "USLACKBOT", 1) + `}`), chat.Message{}, ignored{}},
		{"of nobody", event(`{"type":"app_mention",` + strings.Replace(spoken, "U0ALICE", "", 1) + `}`), chat.Message{}, ignored{}},
		{"changed", event(`{"type":"message","subtype":"message_changed","channel_type":"im","message":{},` + inDirect + `}`), chat.Message{}, ignored{}},
		{"deleted", event(`{"type":"message","subtype":"message_deleted","channel_type":"im",` + inDirect + `}`), chat.Message{}, ignored{}},
		{"joined", event(`{"type":"message","subtype":"channel_join","channel_type":"im",` + inDirect + `}`), chat.Message{}, ignored{}},
		{"another event, whose channel is no text", event(`{"type":"channel_created","channel":{"id":"C1"}}`), chat.Message{}, ignored{}},
		{"of another workspace", strings.ReplaceAll(event(`{"type":"app_mention",`+spoken+`}`), `"T0"`, `"T1"`), chat.Message{}, ignored{}},
		{"of another workspace, without authorizations", `{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":{"type":"app_mention",` + spoken + `}}`, chat.Message{}, ignored{}},

		{"no time", event(`{"type":"app_mention",` + strings.Replace(spoken, "1355517523.000005", "soon", 1) + `}`), chat.Message{}, errMalformed},
		{"no channel", event(`{"type":"app_mention",` + strings.Replace(spoken, "C0DEPLOY", "", 1) + `}`), chat.Message{}, errMalformed},
		{"no id", strings.Replace(event(`{"type":"app_mention",`+spoken+`}`), `"Ev1"`, `""`, 1), chat.Message{}, errMalformed},
		{"text that is none", event(`{"type":"app_mention","text":7}`), chat.Message{}, errMalformed},
		{"no event", event(`7`), chat.Message{}, errMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c callback
			if err := json.Unmarshal([]byte(tc.in), &c); err != nil {
				t.Fatal(err)
			}
			got, err := decodeSaid(c, self, time.Now())
			if !errors.Is(err, tc.err) {
				t.Fatalf("error = %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodePress(t *testing.T) {
	const good = `{"type":"block_actions","trigger_id":"1.2.x","team":{"id":"T0"},"enterprise":null,"user":{"id":"U0BOB","name":"bob"},` +
		`"channel":{"id":"C0DEPLOY"},"container":{"type":"message","message_ts":"1355517523.000005"},` +
		`"actions":[{"action_id":"signalbox:approve","value":"7.12@c0ffee","action_ts":"1355517600.000000"}]}`
	want := chat.Press{
		Room: chat.Room{Platform: chat.Slack, ID: "C0DEPLOY"}, Message: "1355517523.000005",
		User: chat.User{Platform: chat.Slack, ID: "U0BOB"}, Button: chat.ButtonApprove,
		Ref: pull.Ref{RepoID: 7, Number: 12}, Head: "c0ffee", At: time.Date(2012, 12, 14, 20, 40, 0, 0, time.UTC),
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	details, timeless, foreign := want, want, want
	foreign.User.ID = "T1/U0BOB"
	details.Button, timeless.At = chat.ButtonDetails, now
	for _, tc := range []struct {
		name, old, new string
		want           chat.Press
		err            error
		skipped        bool
	}{
		{name: "approve", want: want},
		{name: "details, without the prefix", old: "signalbox:approve", new: "details", want: details},
		{name: "by one's own in a shared channel", old: `"name":"bob"`, new: `"team_id":"T0"`, want: want},
		{name: "by a guest in a shared channel", old: `"name":"bob"`, new: `"team_id":"T1"`, want: foreign},
		{name: "no time", old: "1355517600.000000", want: timeless},
		{name: "of the organization", old: `{"id":"T0"},"enterprise":null`, new: `null,"enterprise":{"id":"E0"}`, want: want},
		{name: "another interaction", old: "block_actions", new: "view_submission", skipped: true},
		{name: "another button", old: "signalbox:approve", new: "signalbox:merge", skipped: true},
		{name: "of another app", old: "signalbox:approve", new: "other:approve", skipped: true},
		{name: "of another workspace", old: `"T0"`, new: `"T1"`, skipped: true},
		{name: "an old value", old: "7.12@c0ffee", new: "12", skipped: true},
		{name: "no actions", old: `"actions":[`, new: `"others":[`, skipped: true},
		{name: "no trigger", old: "1.2.x", err: errMalformed},
		{name: "no person", old: "U0BOB", err: errMalformed},
		{name: "no message", old: "1355517523.000005", err: errMalformed},
		{name: "no JSON", old: "{", err: errMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := good
			if tc.old != "" {
				in = strings.Replace(good, tc.old, tc.new, 1)
			}
			got, trigger, err := decodePress([]byte(in), self, now)
			if _, skipped := errors.AsType[ignored](err); skipped != tc.skipped || !skipped && !errors.Is(err, tc.err) {
				t.Fatalf("error = %v, want %v, ignored: %t", err, tc.err, tc.skipped)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err == nil && trigger != "1.2.x" {
				t.Errorf("the trigger is %q", trigger)
			}
		})
	}
}

func TestParseTS(t *testing.T) {
	now := time.Unix(1355517600, 0).In(time.FixedZone("", 3600))
	for in, want := range map[string]time.Time{
		"1355517523.000005": time.Unix(1355517523, 5000).UTC(),
		"1355517523.5":      time.Unix(1355517523, 5e8).UTC(),
		"1355517523":        time.Unix(1355517523, 0).UTC(),
		"1355517600.000001": now.UTC(), "1355517601": now.UTC(), "4294967294": now.UTC(),
		"": {}, "0": {}, "-1.0": {}, "1.x": {}, "1.0000001": {}, "99999999999999": {}, "1e3": {}, "1.-5": {},
	} {
		if got, ok := parseTS(in, now); !got.Equal(want) || got.Location() != time.UTC || ok != !want.IsZero() {
			t.Errorf("parseTS(%q) = %s, %t; want %s", in, got, ok, want)
		}
	}
}

// judge is a receiver that fails a test when it is given what must not leave the
// adapter.
type judge struct{ t *testing.T }

func (j judge) Said(_ context.Context, cause string, m chat.Message) error {
	if cause == "slack/" || m.ID == "" || m.Room.ID == "" || m.User.ID == "" || !m.Slash && m.User.ID == self.user || m.At.IsZero() ||
		m.Room.Platform != chat.Slack || m.User.Platform != chat.Slack ||
		len(m.Text) > chat.MaxText || !utf8.ValidString(m.Text) || strings.ContainsAny(m.Text, "\n\r\x00") {
		j.t.Errorf("%s: %+v", cause, m)
	}
	if _, err := url.Parse(m.Link); err != nil {
		j.t.Errorf("the link: %v", err)
	}
	return nil
}

func (j judge) Pressed(_ context.Context, cause string, p chat.Press) error {
	if cause == "slack/" || p.Message == "" || p.Room.ID == "" || p.User.ID == "" || p.At.IsZero() || p.Ref == (pull.Ref{}) || p.Head == "" || !buttons[p.Button] {
		j.t.Errorf("%s: %+v", cause, p)
	}
	return nil
}

// adapter is one that knows who it is, without a server.
func adapter(t *testing.T) *Adapter {
	t.Helper()
	a, err := New(Config{BotToken: secret.New("xoxb-1"), SigningSecret: secret.New("s")}, judge{t}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.identity = &self
	return a
}

func FuzzEvent(f *testing.F) {
	f.Add([]byte(event(`{"type":"app_mention","thread_ts":"1.5",` + spoken + `}`)))
	f.Add([]byte(event(`{"type":"message","channel_type":"im","edited":{},` + spoken + `}`)))
	f.Add([]byte(`{"type":"app_rate_limited"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := adapter(t).takeEvent(t.Context(), data); err != nil && !errors.Is(err, errMalformed) {
			t.Errorf("error = %v", err)
		}
	})
}

func FuzzInteraction(f *testing.F) {
	f.Add([]byte(`{"type":"block_actions","trigger_id":"1","team":{"id":"T0"},"user":{"id":"U"},"channel":{"id":"C"},"container":{"message_ts":"1"},"actions":[{"action_id":"signalbox:hold","value":"7.12@c0ffee","action_ts":"1.0"}]}`))
	f.Add([]byte(`{"type":"view_submission"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := adapter(t).takePress(t.Context(), data); err != nil && !errors.Is(err, errMalformed) {
			t.Errorf("error = %v", err)
		}
	})
}

func FuzzCommand(f *testing.F) {
	f.Add("T0", "C0", "U0BOB", "<@U0SELF> hold 12", "1.2.x")
	f.Add("", "", "", "\xff\n", "")
	f.Fuzz(func(t *testing.T, team, channel, user, text, trigger string) {
		err := adapter(t).takeCommand(t.Context(), slackapi.SlashCommand{TeamID: team, ChannelID: channel, UserID: user, Text: text, TriggerID: trigger})
		if err != nil && !errors.Is(err, errMalformed) {
			t.Errorf("error = %v", err)
		}
	})
}
