package slack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/secret"
	"signalbox/internal/slack"
	"signalbox/internal/slack/slacktest"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
	mention  = `{"type":"event_callback","team_id":"` + slacktest.TeamID + `","event_id":"Ev9","event":{"type":"app_mention",` +
		`"user":"U0ALICE","text":"<@` + slacktest.UserID + `> hold 12","ts":"1355517523.000005","channel":"C0DEPLOY"}}`
	command = "team_id=" + slacktest.TeamID + "&channel_id=C0DEPLOY&user_id=U0ALICE&command=%2Fsignalbox&text=hold+12+%26amp%3B&trigger_id=1.2.x"
)

var button = url.Values{"payload": {`{"type":"block_actions","trigger_id":"1.2.y","team":{"id":"` + slacktest.TeamID + `"},"user":{"id":"U0ALICE"},` +
	`"channel":{"id":"C0DEPLOY"},"container":{"message_ts":"1.5"},"actions":[{"action_id":"signalbox:hold","value":"7.12@c0ffee","action_ts":"2.5"}]}`}}.Encode()

// send sends a request to a handler as Slack does, and changes it before.
func send(t *testing.T, handler http.Handler, path, kind, body string, change func(*http.Request)) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	slacktest.Sign(r.Header, []byte(body), time.Now())
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

func TestHandler(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, true)
	got := newInbox()
	a, err := w.run(t.Context(), got, nil)
	must(t, err)
	// Until then, nothing is taken.
	must(t, until(t.Context(), func() bool {
		return send(t, a.Handler(), slack.PathCommand, formType, strings.Replace(command, "user_id=U0ALICE", "user_id=", 1), nil).StatusCode == http.StatusBadRequest
	}))
	at := func(d time.Duration, body string) func(*http.Request) {
		return func(r *http.Request) { slacktest.Sign(r.Header, []byte(body), time.Now().Add(d)) }
	}
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	message := chat.Message{
		ID: "1355517523.000005", Room: chat.Room{Platform: chat.Slack, ID: "C0DEPLOY"},
		User: chat.User{Platform: chat.Slack, ID: "U0ALICE"}, Text: "hold 12",
	}
	slash := message
	slash.ID, slash.Text, slash.Slash = "1.2.x", "hold 12 &", true
	for _, tc := range []struct {
		name, path, kind, body string
		change                 func(*http.Request)
		refusal                error
		code                   int
		answer                 string
		want                   *delivered
	}{
		{name: "event", path: slack.PathEvents, body: mention, code: 200, want: &delivered{Cause: "slack/Ev9", Message: message}},
		{name: "event that comes again", path: slack.PathEvents, body: mention, change: set("X-Slack-Retry-Num", "2"), code: 200, want: &delivered{Cause: "slack/Ev9", Message: message}},
		{name: "event that is not taken", path: slack.PathEvents, body: mention, refusal: errors.New("the bus is away"), code: 503, answer: "Service Unavailable\n"},
		{name: "event that is taken too slowly", path: slack.PathEvents, body: mention, refusal: context.Canceled, code: 503, answer: "Service Unavailable\n"},
		{name: "event of no interest", path: slack.PathEvents, body: strings.Replace(mention, "app_mention", "team_join", 1), code: 200},
		{name: "command", path: slack.PathCommand, kind: formType, body: command, code: 200, want: &delivered{Cause: "slack/1.2.x", Message: slash}},
		{name: "command that is not taken", path: slack.PathCommand, kind: formType, body: command, refusal: errors.New("the bus is away"), code: 503, answer: "Service Unavailable\n"},
		{name: "command of another workspace", path: slack.PathCommand, kind: formType, body: strings.Replace(command, slacktest.TeamID, "T0OTHER", 1), code: 200},
		{name: "look whether it is there", path: slack.PathCommand, kind: formType, body: "ssl_check=1", code: 200},
		{name: "button", path: slack.PathInteractive, kind: formType, body: button, code: 200, want: &delivered{Cause: "slack/1.2.y", Press: chat.Press{
			Room: message.Room, Message: "1.5", User: message.User, Button: chat.ButtonHold,
		}}},
		{name: "registration", path: slack.PathEvents, body: `{"type":"url_verification","challenge":"<b>3eZbrw</b>"}`, code: 200, answer: "<b>3eZbrw</b>"},

		{name: "registration without a signature", path: slack.PathEvents, body: `{"type":"url_verification","challenge":"x"}`, change: set("X-Slack-Signature", ""), code: 401, answer: "Unauthorized\n"},
		{name: "wrong signature", path: slack.PathEvents, body: mention, change: set("X-Slack-Signature", "v0="+strings.Repeat("00", 32)), code: 401, answer: "Unauthorized\n"},
		{name: "signature of another version", path: slack.PathEvents, body: mention, change: func(r *http.Request) {
			r.Header.Set("X-Slack-Signature", "v1"+strings.TrimPrefix(r.Header.Get("X-Slack-Signature"), "v0"))
		}, code: 401, answer: "Unauthorized\n"},
		{name: "signature of another body", path: slack.PathEvents, body: mention, change: at(0, mention+" "), code: 401, answer: "Unauthorized\n"},
		{name: "signature of another time", path: slack.PathEvents, body: mention, change: func(r *http.Request) {
			r.Header.Set("X-Slack-Request-Timestamp", "1355517523")
		}, code: 401, answer: "Unauthorized\n"},
		{name: "too old", path: slack.PathEvents, body: mention, change: at(-6*time.Minute, mention), code: 401, answer: "Unauthorized\n"},
		{name: "of the future", path: slack.PathEvents, body: mention, change: at(6*time.Minute, mention), code: 401, answer: "Unauthorized\n"},
		{name: "almost too old", path: slack.PathEvents, body: mention, change: at(-4*time.Minute, mention), code: 200, want: &delivered{Cause: "slack/Ev9", Message: message}},
		{name: "too long", path: slack.PathEvents, body: strings.Repeat(" ", 1<<20) + mention, code: 413, answer: "Request Entity Too Large\n"},
		{name: "no JSON", path: slack.PathEvents, body: "{", code: 400, answer: "Bad Request\n"},
		{name: "no form", path: slack.PathInteractive, kind: formType, body: "payload=%zz", code: 400, answer: "Bad Request\n"},
		{name: "command that lacks its user", path: slack.PathCommand, kind: formType, body: "text=x", code: 400, answer: "Bad Request\n"},
		{name: "a GET", path: slack.PathEvents, body: mention, change: func(r *http.Request) { r.Method = http.MethodGet }, code: 405, answer: "Method Not Allowed\n"},
		{name: "another path", path: "/hooks/slack/other", body: mention, code: 404, answer: "404 page not found\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = jsonType
			}
			if tc.refusal != nil {
				got.refusal <- tc.refusal
			}
			resp := send(t, a.Handler(), tc.path, tc.kind, tc.body, tc.change)
			answer, err := io.ReadAll(resp.Body)
			must(t, err)
			if resp.StatusCode != tc.code || string(answer) != tc.answer {
				t.Errorf("answered %d %q, want %d %q", resp.StatusCode, answer, tc.code, tc.answer)
			}
			var taken *delivered
			select {
			case d := <-got.said:
				taken = &d
			default:
			}
			if diff := cmp.Diff(tc.want, taken, cmpopts.IgnoreFields(chat.Message{}, "At", "Link"), cmpopts.IgnoreFields(chat.Press{}, "At", "Ref", "Head")); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandlerWithoutIdentity(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, true)
	a, err := slack.New(w.config(), newInbox(), nil, nil)
	must(t, err)
	for path, body := range map[string]string{slack.PathEvents: mention, slack.PathCommand: command, slack.PathInteractive: button} {
		kind := formType
		if path == slack.PathEvents {
			kind = jsonType
		}
		if resp := send(t, a.Handler(), path, kind, body, nil); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s is answered %d before it is known who signalbox is, want 503", path, resp.StatusCode)
		}
	}
}

func TestHandlerWithoutSecret(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	a, err := slack.New(w.config(), newInbox(), nil, nil)
	must(t, err)
	if resp := send(t, a.Handler(), slack.PathEvents, jsonType, mention, nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a signing secret it is answered %d, want 401", resp.StatusCode)
	}
}

func TestNew(t *testing.T) {
	bot, app, signing := secret.New("xoxb-1"), secret.New("xapp-1"), secret.New("s")
	for _, tc := range []struct {
		name   string
		config slack.Config
		want   []string
	}{
		{"Socket Mode", slack.Config{BotToken: bot, AppToken: app}, nil},
		{"HTTP", slack.Config{BotToken: bot, SigningSecret: signing}, nil},
		{"both", slack.Config{BotToken: bot, AppToken: app, SigningSecret: signing}, nil},
		{"nothing", slack.Config{}, []string{"the bot token is missing", "an app-level token for Socket Mode, or a signing secret for HTTP"}},
		{"tokens exchanged", slack.Config{BotToken: app, AppToken: bot}, []string{`does not begin with "xoxb-"`, `does not begin with "xapp-"`}},
		{"no way in", slack.Config{BotToken: bot}, []string{"an app-level token for Socket Mode, or a signing secret for HTTP"}},
		{"no URL", slack.Config{BotToken: bot, AppToken: app, APIURL: "https://slack.com/api"}, []string{"with a slash at its end"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := slack.New(tc.config, newInbox(), nil, nil)
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("error = %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error = %v, want %q in it", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "-1") {
				t.Errorf("the error tells a token: %v", err)
			}
		})
	}
	if _, err := slack.New(slack.Config{BotToken: bot, AppToken: app}, nil, nil, nil); err == nil {
		t.Error("without a receiver there is no error")
	}
}

var _ conformance.Backend = (*workspace)(nil)

// FuzzSigned: nothing is taken but what is signed with the secret.
func FuzzSigned(f *testing.F) {
	now := time.Now()
	right := http.Header{}
	slacktest.Sign(right, []byte(command), now)
	signature, at := right.Get("X-Slack-Signature"), right.Get("X-Slack-Request-Timestamp")
	f.Add(slack.PathCommand, signature, at, []byte(command))
	f.Add(slack.PathEvents, signature[:len(signature)-2], at, []byte(mention))
	f.Add(slack.PathInteractive, "v0=", "0", []byte(button))
	f.Add(slack.PathEvents, "", "", []byte(`{"type":"url_verification","challenge":"x"}`))
	a, err := slack.New(slack.Config{BotToken: secret.New("xoxb-1"), SigningSecret: secret.New("s")}, newInbox(), nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	handler := a.Handler()
	f.Fuzz(func(t *testing.T, path, signature, at string, body []byte) {
		if path != slack.PathCommand && path != slack.PathEvents && path != slack.PathInteractive {
			return
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
		r.Header = http.Header{"Content-Type": {formType}, "X-Slack-Signature": {signature}, "X-Slack-Request-Timestamp": {at}}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		// Nobody has the secret "s" here, and what slacktest signs has another.
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s signed %q at %q: %d", path, signature, at, w.Code)
		}
	})
}
