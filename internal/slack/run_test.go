package slack_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/slack"
	"signalbox/internal/slack/slacktest"
)

// gauge returns the only series of signalbox_chat_up.
func gauge(t *testing.T, registry *prometheus.Registry) (reason string, value float64) {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() != "signalbox_chat_up" {
			continue
		}
		if len(f.GetMetric()) != 1 {
			// It is being changed.
			return "changing", 0
		}
		m := f.GetMetric()[0]
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["platform"] != "slack" {
			t.Errorf("the platform is %q", labels["platform"])
		}
		return labels["reason"], m.GetGauge().GetValue()
	}
	t.Fatal("signalbox_chat_up is not there")
	return "", 0
}

// TestRefusedToken: it is logged once and shown, and nothing ends. When the token is
// accepted again, so is what people say.
func TestRefusedToken(t *testing.T) {
	for name, token := range map[string]string{"bot token": slacktest.BotToken, "app-level token": slacktest.AppToken} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, slacktest.Options{}, false)
			w.Server.Revoke(token, "account_inactive")
			log, registry, got := new(conformance.Journal), prometheus.NewRegistry(), newInbox()
			a, err := slack.New(w.config(), got, slog.New(slog.NewTextHandler(log, nil)), registry)
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- a.Run(ctx) }()
			is := func(reason string, value float64) func() bool {
				return func() bool { r, v := gauge(t, registry); return r == reason && v == value }
			}
			must(t, until(t.Context(), is("account_inactive", 0)))
			calls := map[string]string{slacktest.BotToken: "auth.test", slacktest.AppToken: "apps.connections.open"}[token]
			seen := w.Calls(calls)
			must(t, until(t.Context(), func() bool { return w.Calls(calls) > seen+2 }))
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "slack refuses the "+name) {
				t.Errorf("logged %d times:\n%s", n, log)
			}

			w.Server.Renew(token)
			must(t, until(t.Context(), is("", 1)))
			room, err := w.Room(t.Context(), "deploy")
			must(t, err)
			_, err = w.Server.Say(room.ID, "", w.people[conformance.Alice], self+"status")
			must(t, err)
			got.next(t)
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the adapter ended with %v", err)
			}
			for _, secret := range []string{slacktest.BotToken, slacktest.AppToken, "ticket"} {
				if strings.Contains(log.String(), secret) {
					t.Errorf("the log tells %s:\n%s", secret, log)
				}
			}
		})
	}
}

// TestUnreachable: it is logged once, and tried again soon.
func TestUnreachable(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	for range 3 {
		w.Server.Fail(slacktest.Fault{Method: "apps.connections.open", Status: 503})
	}
	log := new(conformance.Journal)
	_, err := w.run(t.Context(), newInbox(), slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	must(t, until(t.Context(), func() bool { return strings.Contains(log.String(), "slack is connected") }))
	if n := strings.Count(log.String(), "slack is not connected"); n != 1 || !strings.Contains(log.String(), "HTTP 503") {
		t.Errorf("logged %d times:\n%s", n, log)
	}
}

// TestEnvelopes: what is of no interest is acknowledged too, also what the SDK does
// not know, and what could not be taken is not.
func TestEnvelopes(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{Events: []string{"app_mention", "message.im", "message.channels"}}, false)
	got := newInbox()
	_, err := w.run(t.Context(), got, nil)
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	alice := w.people[conformance.Alice]

	talk, err := w.Server.Say(room.ID, "", alice, "good morning")
	must(t, err)
	w.Event(map[string]any{"type": "something_new_of_slack", "channel": map[string]any{"id": room.ID}})
	w.Event(map[string]any{"type": "app_mention", "text": 7})
	// Nothing of it is delivered again before this one is.
	trigger := w.Command(room.ID, alice, "status &lt;all&gt;")
	d := got.next(t)
	want := chat.Message{ID: trigger, Room: room, User: w.User(conformance.Alice), Text: "status <all>", Slash: true, At: d.Message.At}
	if diff := cmp.Diff(delivered{Cause: "slack/" + trigger, Message: want}, d); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
	for _, ref := range []string{talk, trigger, ""} {
		must(t, until(t.Context(), func() bool { return w.Server.Acknowledged(ref) }))
	}

	got.refusal <- errors.New("the bus is away")
	refused := w.Command(room.ID, alice, "hold 12")
	w.Click(room.ID, talk, alice, "signalbox:approve", "stale")
	fine := w.Command(room.ID, alice, "hold 13")
	if d := got.next(t); d.Message.ID != fine {
		t.Errorf("got %+v, want %s", d, fine)
	}
	must(t, until(t.Context(), func() bool { return w.Server.Acknowledged(fine) }))
	if w.Server.Acknowledged(refused) {
		t.Error("a command was acknowledged that was not taken")
	}
}

// TestSlowReceiver: what is not taken in time comes again.
func TestSlowReceiver(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	got := newInbox()
	_, err := w.run(t.Context(), got, nil)
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	got.refusal <- context.Canceled
	started := time.Now()
	ts, err := w.Server.Say(room.ID, "", w.people[conformance.Alice], self+"hold 12")
	must(t, err)
	if d := got.next(t); d.Message.ID != ts || time.Since(started) < 2*time.Second || time.Since(started) > 10*time.Second {
		t.Errorf("got %+v after %s, want %s after the receiver was given up", d, time.Since(started), ts)
	}
}

// TestRefresh: Slack asks for a new connection every few hours.
func TestRefresh(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	got, log := newInbox(), new(conformance.Journal)
	_, err := w.run(t.Context(), got, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	for range 3 {
		connections := w.Calls("apps.connections.open")
		w.Refresh()
		ts, err := w.Server.Say(room.ID, "", w.people[conformance.Alice], self+"status")
		must(t, err)
		// What came before may come again on the new connection.
		for got.next(t).Message.ID != ts {
			continue
		}
		must(t, until(t.Context(), func() bool { return w.Calls("apps.connections.open") > connections && w.Connected() == 1 }))
	}
	if strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("that was logged:\n%s", log)
	}
}

// TestMetrics: a call and what came are counted under words that are bounded.
func TestMetrics(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	registry := prometheus.NewRegistry()
	a, err := slack.New(w.config(), newInbox(), nil, registry)
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	for _, f := range []slacktest.Fault{{Code: "not_in_channel"}, {Code: "a_new_code"}, {Status: 502}, {After: time.Second}, {}} {
		f.Method = "chat.postMessage"
		w.Server.Fail(f)
		_, _ = a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
	}
	families, err := registry.Gather()
	must(t, err)
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "signalbox_slack_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			got[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"auth.test ok": 1, "conversations.history ok": 5, "chat.postMessage ok": 1,
		"chat.postMessage not_in_channel": 1, "chat.postMessage other": 1, "chat.postMessage 502": 1, "chat.postMessage 429": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the calls (-want +got):\n%s", diff)
	}
}

// panicky panics over one text.
type panicky struct {
	*inbox
	text string
}

func (p panicky) Said(ctx context.Context, cause string, m chat.Message) error {
	if m.Text == p.text {
		panic("over " + m.Text)
	}
	return p.inbox.Said(ctx, cause, m)
}

// TestPanic: one over a message ends nothing, not even the connection.
func TestPanic(t *testing.T) {
	w := newWorkspace(t, slacktest.Options{}, false)
	got, log := newInbox(), new(conformance.Journal)
	_, err := w.run(t.Context(), panicky{got, "boom"}, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	room, err := w.Room(t.Context(), "deploy")
	must(t, err)
	w.Command(room.ID, w.people[conformance.Alice], "boom")
	fine := w.Command(room.ID, w.people[conformance.Alice], "status")
	if d := got.next(t); d.Message.ID != fine {
		t.Errorf("got %+v, want %s", d, fine)
	}
	if n := w.Calls("apps.connections.open"); n != 1 || !strings.Contains(log.String(), "over boom") || !strings.Contains(log.String(), "run_test.go") {
		t.Errorf("after %d connections that was logged:\n%s", n, log)
	}
}
