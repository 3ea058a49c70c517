package slack_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/slack"
	"signalbox/internal/slack/slacktest"
)

// poster is an adapter that does not listen, and a channel with alice.
func poster(t *testing.T, options slacktest.Options) (*workspace, *slack.Adapter, chat.Room) {
	t.Helper()
	w := newWorkspace(t, options, false)
	a, err := slack.New(w.config(), newInbox(), nil, nil)
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	return w, a, room
}

// texts are what alice sees in a channel.
func (w *workspace) texts(room, thread string) []string {
	var out []string
	for _, m := range w.Messages(room, thread, w.people[conformance.Alice]) {
		out = append(out, m.Text)
	}
	return out
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		fault slacktest.Fault
		class error
		after time.Duration
		text  string
	}{
		{slacktest.Fault{Code: "channel_not_found"}, chat.ErrGone, 0, "/invite"},
		{slacktest.Fault{Code: "not_in_channel"}, chat.ErrGone, 0, "/invite"},
		{slacktest.Fault{Code: "is_archived"}, chat.ErrGone, 0, "archived"},
		{slacktest.Fault{Code: "restricted_action"}, chat.ErrGone, 0, "administrator"},
		{slacktest.Fault{Code: "invalid_auth"}, chat.ErrRevoked, 0, "invalid_auth"},
		{slacktest.Fault{Code: "account_inactive"}, chat.ErrRevoked, 0, "account_inactive"},
		{slacktest.Fault{Code: "token_revoked"}, chat.ErrRevoked, 0, "token_revoked"},
		{slacktest.Fault{Code: "msg_too_long"}, chat.ErrTooLong, 0, "msg_too_long"},
		{slacktest.Fault{Code: "invalid_blocks"}, chat.ErrTooLong, 0, "invalid_blocks"},
		{slacktest.Fault{Code: "ratelimited"}, nil, 30 * time.Second, "limits the rate"},
		{slacktest.Fault{After: 11 * time.Second}, nil, 11 * time.Second, "limits the rate"},
		{slacktest.Fault{Status: http.StatusTooManyRequests}, nil, 30 * time.Second, "limits the rate"},
		{slacktest.Fault{Status: http.StatusBadGateway}, nil, 0, "HTTP 502"},
		{slacktest.Fault{Status: http.StatusFound}, nil, 0, "HTTP 302"},
		{slacktest.Fault{Code: "internal_error"}, nil, 0, `"internal_error"`},
		{slacktest.Fault{Code: "missing_scope"}, nil, 0, "the app lacks the scope"},
		{slacktest.Fault{Garble: true}, nil, 0, "not understood"},
		{slacktest.Fault{Lose: true}, nil, 0, "EOF"},
		{slacktest.Fault{Code: "oh <!channel> " + slacktest.BotToken}, nil, 0, "not shown"},
	} {
		t.Run(fmt.Sprintf("%+v", tc.fault), func(t *testing.T) {
			w, a, room := poster(t, slacktest.Options{})
			tc.fault.Method = "chat.postMessage"
			w.Server.Fail(tc.fault)
			_, err := a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("error = %v, want %q in it", err, tc.text)
			}
			for _, class := range []error{chat.ErrGone, chat.ErrRevoked, chat.ErrTooLong} {
				if errors.Is(err, class) != (class == tc.class) { //nolint:errorlint // It is compared with itself.
					t.Errorf("%v is %v: %t", err, class, errors.Is(err, class))
				}
			}
			limit, limited := errors.AsType[*chat.RetryError](err)
			if limited != (tc.after > 0) || limited && limit.After != tc.after {
				t.Errorf("error = %v, want a delay of %s", err, tc.after)
			}
			for _, secret := range []string{slacktest.BotToken, w.APIURL()} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error tells %s: %v", secret, err)
				}
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	config := w.config()
	config.Timeout = 50 * time.Millisecond
	a, err := slack.New(config, newInbox(), nil, nil)
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	w.Server.Fail(slacktest.Fault{Method: "auth.test", Hang: true})
	if _, err := a.Post(t.Context(), room, "", "test/cause", w.Body("ready", "")); err == nil || strings.Contains(err.Error(), w.APIURL()) {
		t.Errorf("error = %v, want one that does not tell the address", err)
	}
}

// TestPostOfAnotherReplica: what another process has said for a cause is found.
func TestPostOfAnotherReplica(t *testing.T) {
	w, a, room := poster(t, slacktest.Options{})
	b, err := slack.New(w.config(), newInbox(), nil, nil)
	must(t, err)
	top, err := w.Server.Say(room.ID, "", w.people[conformance.Alice], "shall we?")
	must(t, err)
	for _, thread := range []string{"", top} {
		first, err := a.Post(t.Context(), room, thread, "test/cause"+thread, w.Body("ready", ""))
		must(t, err)
		// It is beyond the first page.
		for range 250 {
			_, err := w.Server.Say(room.ID, thread, w.people[conformance.Bob], "talk")
			must(t, err)
		}
		second, err := b.Post(t.Context(), room, thread, "test/cause"+thread, w.Body("ready", ""))
		must(t, err)
		if diff := cmp.Diff([]string{"ready"}, w.texts(room.ID, thread)); first != second || diff != "" {
			t.Errorf("posted as %s and %s (-want +got):\n%s", first, second, diff)
		}
	}
	// An edited message is still the one.
	first, err := a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
	must(t, err)
	must(t, a.Edit(t.Context(), room, first, "test/other", w.Body("merged", "")))
	c, err := slack.New(w.config(), newInbox(), nil, nil)
	must(t, err)
	again, err := c.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
	must(t, err)
	if again != first {
		t.Errorf("after an edit it is posted again as %s", again)
	}
}

// TestPostBesideForgery: what another app writes into its metadata keeps nothing from
// being said.
func TestPostBesideForgery(t *testing.T) {
	w, a, room := poster(t, slacktest.Options{})
	forged, err := w.SayAs(room.ID, slacktest.Message{
		User: w.people[conformance.Mallory], BotID: "B0OTHER", Text: "merged",
		Metadata: &slacktest.Metadata{EventType: "signalbox", EventPayload: map[string]any{"cause": "test/cause"}},
	})
	must(t, err)
	id, err := a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
	must(t, err)
	if id == forged {
		t.Error("the message of another app was taken for signalbox's own")
	}
}

// TestPostCannotLook: without the right to read, or where messages are not
// understood, it is posted nevertheless.
func TestPostCannotLook(t *testing.T) {
	t.Run("no right", func(t *testing.T) {
		w, a, room := poster(t, slacktest.Options{Scopes: []string{"chat:write"}})
		_, err := a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
		must(t, err)
		_, err = a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
		must(t, err)
		if diff := cmp.Diff([]string{"ready"}, w.texts(room.ID, "")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("not understood", func(t *testing.T) {
		w, a, room := poster(t, slacktest.Options{})
		w.Server.Fail(slacktest.Fault{Method: "conversations.history", Garble: true})
		_, err := a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
		must(t, err)
	})
	t.Run("not now", func(t *testing.T) {
		w, a, room := poster(t, slacktest.Options{})
		w.Server.Fail(slacktest.Fault{Method: "conversations.history", After: time.Second})
		_, err := a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
		if _, ok := errors.AsType[*chat.RetryError](err); !ok || len(w.texts(room.ID, "")) > 0 {
			t.Errorf("error = %v and %q is shown, want to wait", err, w.texts(room.ID, ""))
		}
	})
}

func TestPostToLostThread(t *testing.T) {
	w, a, room := poster(t, slacktest.Options{})
	top, err := w.Server.Say(room.ID, "", w.people[conformance.Alice], "shall we?")
	must(t, err)
	w.Delete(room.ID, top)
	if _, err := a.Post(t.Context(), room, top, "test/cause", w.Body("ready", "")); !errors.Is(err, chat.ErrGone) {
		t.Errorf("error = %v, want ErrGone", err)
	}
	if got := w.texts(room.ID, ""); len(got) > 0 {
		t.Errorf("it stands outside of the thread: %q", got)
	}
}

func TestPostInvalid(t *testing.T) {
	w, a, room := poster(t, slacktest.Options{})
	for _, tc := range []struct {
		name string
		room chat.Room
		body chat.Body
	}{
		{"room of another platform", chat.Room{Platform: chat.Matrix, ID: "!a:example.org"}, w.Body("ready", "")},
		{"no room", chat.Room{Platform: chat.Slack}, w.Body("ready", "")},
		{"blocks that are no JSON", room, chat.Body{Text: "ready", Blocks: "{"}},
		{"blocks that are no list", room, chat.Body{Text: "ready", Blocks: `{"type":"section"}`}},
		{"blocks that are no blocks", room, chat.Body{Text: "ready", Blocks: `[7]`}},
		{"too many blocks", room, chat.Body{Text: "ready", Blocks: "[" + strings.Repeat(`{"type":"divider"},`, 50) + `{"type":"divider"}]`}},
		{"too long", room, chat.Body{Text: strings.Repeat("é", 40001)}},
		{"nothing to say", room, chat.Body{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := a.Post(t.Context(), tc.room, "", "test/"+tc.name, tc.body)
			if err == nil || tc.room == room && !errors.Is(err, chat.ErrTooLong) {
				t.Errorf("error = %v", err)
			}
		})
	}
	if _, err := a.Post(t.Context(), room, "", "test/long", chat.Body{Text: strings.Repeat("é", 40000)}); err != nil {
		t.Errorf("a text that is just short enough: %v", err)
	}
}

// TestBlocks: blocks arrive as they are, also those that no SDK knows, and an edit
// without blocks shows none.
func TestBlocks(t *testing.T) {
	w, a, room := poster(t, slacktest.Options{})
	const blocks = `[{"type":"section","text":{"type":"mrkdwn","text":"*ready*","new":1}},{"type":"signal","light":"green"}]`
	id, err := a.Post(t.Context(), room, "", "test/cause", chat.Body{Text: "ready", Blocks: blocks})
	must(t, err)
	m := w.Messages(room.ID, "", w.people[conformance.Alice])[0]
	if diff := cmp.Diff(blocks, string(m.Blocks)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := &slacktest.Metadata{EventType: "signalbox", EventPayload: map[string]any{"cause": "test/cause"}}
	if diff := cmp.Diff(want, m.Metadata); diff != "" {
		t.Errorf("the metadata (-want +got):\n%s", diff)
	}
	must(t, a.Edit(t.Context(), room, id, "test/edit", chat.Body{Text: "merged"}))
	if m := w.Messages(room.ID, "", w.people[conformance.Alice])[0]; m.Text != "merged" || m.Blocks != nil {
		t.Errorf("after the edit it shows %q and %s", m.Text, m.Blocks)
	}
}

func TestEdit(t *testing.T) {
	w, a, room := poster(t, slacktest.Options{})
	other, err := w.Server.Say(room.ID, "", w.people[conformance.Alice], "mine")
	must(t, err)
	for name, id := range map[string]string{"of somebody else": other, "that is not there": "1.000001"} {
		if err := a.Edit(t.Context(), room, id, "test/cause", w.Body("x", "")); !errors.Is(err, chat.ErrGone) {
			t.Errorf("edit of a message %s: %v, want ErrGone", name, err)
		}
	}
}

func TestWhisper(t *testing.T) {
	alice := func(w *workspace) string { return w.people[conformance.Alice] }
	for _, tc := range []struct {
		name string
		// room makes the room; in says where it is to be seen.
		room func(w *workspace) string
		in   func(w *workspace, room string) string
	}{
		{
			"in a channel",
			func(w *workspace) string { return w.AddChannel(slacktest.Public, alice(w), slacktest.UserID) },
			func(_ *workspace, room string) string { return room },
		},
		{
			"the person is not in the channel",
			func(w *workspace) string { return w.AddChannel(slacktest.Public, slacktest.UserID) },
			func(w *workspace, _ string) string { return w.OpenIM(alice(w)) },
		},
		{
			"signalbox is not in the channel",
			func(w *workspace) string { return w.AddChannel(slacktest.Private, alice(w)) },
			func(w *workspace, _ string) string { return w.OpenIM(alice(w)) },
		},
		{
			"their own conversation",
			func(w *workspace) string { return w.OpenIM(alice(w)) },
			func(_ *workspace, room string) string { return room },
		},
		{
			"a conversation between people",
			func(w *workspace) string { return w.AddChannel(slacktest.IM, alice(w), w.people[conformance.Bob]) },
			func(w *workspace, _ string) string { return w.OpenIM(alice(w)) },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, a, _ := poster(t, slacktest.Options{})
			id := tc.room(w)
			room := chat.Room{Platform: chat.Slack, ID: id}
			for range 2 {
				must(t, a.Whisper(t.Context(), room, "", w.User(conformance.Alice), "test/cause", w.Body("psst", "")))
			}
			if diff := cmp.Diff([]string{"psst"}, w.texts(tc.in(w, id), "")); diff != "" {
				t.Errorf("alice sees (-want +got):\n%s", diff)
			}
			if got := w.Messages(id, "", w.people[conformance.Bob]); len(got) > 0 {
				t.Errorf("bob sees %+v", got)
			}
		})
	}
	w, a, room := poster(t, slacktest.Options{})
	if err := a.Whisper(t.Context(), room, "", chat.User{Platform: chat.Matrix, ID: "@a:example.org"}, "test/cause", w.Body("psst", "")); err == nil {
		t.Error("somebody of another platform was whispered to")
	}
	if err := a.Whisper(t.Context(), chat.Room{Platform: chat.Slack, ID: "C0NOWHERE"}, "", chat.User{Platform: chat.Slack, ID: "U0NOBODY"}, "test/cause", w.Body("psst", "")); !errors.Is(err, chat.ErrGone) {
		t.Errorf("whisper to nobody: %v, want ErrGone", err)
	}
}

// TestWhisperToAGuest: Slack knows people of other workspaces by the id alone.
func TestWhisperToAGuest(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	a, err := w.run(t.Context(), newInbox(), nil)
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	guest := chat.User{Platform: chat.Slack, ID: "T1/" + w.User(conformance.Alice).ID}
	must(t, a.Whisper(t.Context(), room, "", guest, "test/cause", w.Body("psst", "")))
	shown, err := w.Shown(t.Context(), conformance.Place{Room: room}, conformance.Alice)
	must(t, err)
	if len(shown) != 1 || shown[0].Text != "psst" {
		t.Errorf("the guest sees %v", shown)
	}
}
