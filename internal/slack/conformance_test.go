package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/secret"
	"signalbox/internal/slack"
	"signalbox/internal/slack/slacktest"
)

// TestConformance runs the suite of the chats on both ways to listen, with the
// scopes of the manifest. The app hears more than that subscribes: what people say
// in channels.
func TestConformance(t *testing.T) {
	m := manifest(t)
	options := slacktest.Options{
		Scopes: m.OAuthConfig.Scopes.Bot,
		Events: append([]string{"message.channels"}, m.Settings.EventSubscriptions.BotEvents...),
	}
	for name, http := range map[string]bool{"Socket Mode": false, "HTTP": true} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) conformance.Backend { return newWorkspace(t, options, http) })
		})
	}
}

// workspace is the stand-in with people, and the adapters on it.
type workspace struct {
	*slacktest.Server

	t      *testing.T
	http   bool
	people map[conformance.Person]string
}

func newWorkspace(t *testing.T, options slacktest.Options, http bool) *workspace {
	t.Helper()
	server, err := slacktest.New(options)
	must(t, err)
	t.Cleanup(func() {
		must(t, server.Close())
		for _, p := range server.Problems() {
			t.Error("Slack would not understand:", p)
		}
	})
	w := &workspace{Server: server, t: t, http: http, people: map[conformance.Person]string{}}
	for _, p := range []conformance.Person{conformance.Alice, conformance.Bob, conformance.Mallory} {
		w.people[p] = server.AddUser(string(p))
	}
	return w
}

// config is that of an adapter on a stand-in, which tries again after a moment.
func (w *workspace) config() slack.Config {
	c := slack.Config{BotToken: secret.New(slacktest.BotToken), APIURL: w.APIURL(), Recheck: 50 * time.Millisecond}
	if w.http {
		c.SigningSecret = secret.New(slacktest.SigningSecret)
	} else {
		c.AppToken = secret.New(slacktest.AppToken)
	}
	return c
}

// run runs an adapter until the test ends, and waits until it listens.
func (w *workspace) run(ctx context.Context, receiver chat.Receiver, log *slog.Logger) (*slack.Adapter, error) {
	a, err := slack.New(w.config(), receiver, log, nil)
	if err != nil {
		return nil, err
	}
	before := w.Connected()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(running) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the adapter ended with %v", err)
		}
	})
	if w.http {
		hooks := httptest.NewServer(a.Handler())
		w.t.Cleanup(hooks.Close)
		w.SetHooks(hooks.URL)
	}
	return a, until(ctx, func() bool { return w.Calls("auth.test") > 0 && (w.http || w.Connected() > before) })
}

func (w *workspace) Start(ctx context.Context, receiver chat.Receiver) (chat.Poster, error) {
	return w.run(ctx, receiver, nil)
}

func (w *workspace) User(who conformance.Person) chat.User {
	return chat.User{Platform: chat.Slack, ID: w.people[who]}
}

func (w *workspace) Room(context.Context, string) (chat.Room, error) {
	members := []string{slacktest.UserID}
	for _, id := range w.people {
		members = append(members, id)
	}
	return chat.Room{Platform: chat.Slack, ID: w.AddChannel(slacktest.Public, members...)}, nil
}

func (w *workspace) Direct(_ context.Context, who conformance.Person) (chat.Room, error) {
	return chat.Room{Platform: chat.Slack, ID: w.OpenIM(w.people[who])}, nil
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

const self = "<@" + slacktest.UserID + "> "

func (w *workspace) Say(_ context.Context, in conformance.Place, who conformance.Person, text string) (string, error) {
	return w.Server.Say(in.Room.ID, in.Thread, w.people[who], escape.Replace(text))
}

func (w *workspace) Mention(_ context.Context, in conformance.Place, who conformance.Person, text string) (string, error) {
	return w.Server.Say(in.Room.ID, in.Thread, w.people[who], self+escape.Replace(text))
}

func (w *workspace) Change(_ context.Context, in conformance.Place, id string, _ conformance.Person, text string) error {
	return w.Edit(in.Room.ID, id, self+escape.Replace(text))
}

func (w *workspace) Announce(_ context.Context, in conformance.Place, text string) (string, error) {
	// Some programs speak as a person, and Slackbot repeats what it was told.
	for _, m := range []slacktest.Message{{User: w.people[conformance.Alice], BotID: "B0OTHER"}, {User: "USLACKBOT"}} {
		m.Text = self + text
		if _, err := w.SayAs(in.Room.ID, m); err != nil {
			return "", err
		}
	}
	return w.SayAs(in.Room.ID, slacktest.Message{BotID: "B0OTHER", Text: self + text})
}

func (w *workspace) Press(_ context.Context, in conformance.Place, id string, who conformance.Person, button chat.Button) error {
	for _, m := range w.Messages(in.Room.ID, in.Thread, w.people[who]) {
		if m.TS != id {
			continue
		}
		var blocks []struct {
			Elements []struct {
				ActionID string `json:"action_id"`
				Value    string `json:"value"`
			} `json:"elements"`
		}
		if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
			return err
		}
		for _, b := range blocks {
			for _, e := range b.Elements {
				if e.ActionID == "signalbox:"+string(button) {
					w.Click(in.Room.ID, id, w.people[who], e.ActionID, e.Value)
					return nil
				}
			}
		}
	}
	return fmt.Errorf("no button %s on %s", button, id)
}

func (w *workspace) Body(text, value string) chat.Body {
	type object = map[string]any
	blocks := []object{{"type": "section", "text": object{"type": "mrkdwn", "text": escape.Replace(text)}}}
	if value != "" {
		var elements []object
		for _, b := range []chat.Button{chat.ButtonApprove, chat.ButtonHold, chat.ButtonDetails} {
			elements = append(elements, object{
				"type": "button", "action_id": "signalbox:" + string(b), "value": value,
				"text": object{"type": "plain_text", "text": string(b)},
			})
		}
		blocks = append(blocks, object{"type": "actions", "elements": elements})
	}
	raw, err := json.Marshal(blocks)
	must(w.t, err)
	return chat.Body{Text: escape.Replace(text), Blocks: string(raw)}
}

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

func (w *workspace) Shown(_ context.Context, in conformance.Place, who conformance.Person) ([]conformance.Shown, error) {
	var out []conformance.Shown
	for _, m := range w.Messages(in.Room.ID, in.Thread, w.people[who]) {
		if len(m.Files) > 0 {
			continue
		}
		text := m.Text
		if m.Blocks != nil {
			var blocks []struct {
				Text struct {
					Text string `json:"text"`
				} `json:"text"`
			}
			if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
				return nil, err
			}
			text = blocks[0].Text.Text
		}
		out = append(out, conformance.Shown{
			ID: m.TS, Text: unescape.Replace(text),
			// The notification is made of the text, the message of the blocks.
			Pings: strings.Contains(m.Text+text, "<!") || strings.Contains(m.Text+text, "<@"),
		})
	}
	return out, nil
}

func (w *workspace) Pictures(_ context.Context, in conformance.Place, who conformance.Person) ([]conformance.Picture, error) {
	var out []conformance.Picture
	for _, m := range w.Messages(in.Room.ID, in.Thread, w.people[who]) {
		for _, f := range m.Files {
			if m.Text != "" || !strings.HasSuffix(f.Name, ".png") || f.Title != "volumes.png" {
				return nil, fmt.Errorf("a picture is called %q, its file %q, and beside it stands %q", f.Title, f.Name, m.Text)
			}
			out = append(out, conformance.Picture{Alt: f.Alt, PNG: f.Content})
		}
	}
	return out, nil
}

func (w *workspace) Acknowledged(_ context.Context, _ conformance.Place, id string) (bool, error) {
	return w.Server.Acknowledged(id), nil
}

func (w *workspace) Redeliver(_ context.Context, _ conformance.Place, id string) error {
	w.Server.Redeliver(id)
	return nil
}

func (w *workspace) Kick(_ context.Context, room chat.Room) error {
	w.Server.Kick(room.ID)
	return nil
}

func (w *workspace) Revoke(context.Context) error {
	w.Server.Revoke(slacktest.BotToken, "token_revoked")
	w.Server.Revoke(slacktest.AppToken, "invalid_auth")
	w.Server.Cut()
	return nil
}

func (w *workspace) Renew(context.Context) error {
	w.Server.Renew(slacktest.BotToken)
	w.Server.Renew(slacktest.AppToken)
	return nil
}

func (w *workspace) Cut(context.Context) error {
	if w.http {
		return errors.ErrUnsupported
	}
	w.Server.Cut()
	return nil
}

func (w *workspace) Fail(_ context.Context, step conformance.Step, fault conformance.Fault, delay time.Duration) error {
	f := slacktest.Fault{Method: map[conformance.Step]string{
		conformance.Posting: "chat.postMessage", conformance.Uploading: slacktest.MethodUpload, conformance.Showing: "files.completeUploadExternal",
	}[step]}
	switch fault {
	case conformance.Limited:
		f.After = delay
	case conformance.Lost:
		f.Lose = true
	case conformance.Hanging:
		f.Hang = true
	}
	w.Server.Fail(f)
	return nil
}

// until waits until something is so.
func until(ctx context.Context, ok func() bool) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
