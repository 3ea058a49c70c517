package events_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/events"
)

var (
	at   = time.Date(2026, 9, 6, 22, 14, 19, 0, time.UTC)
	repo = events.Repo{ID: 7, Owner: "ops", Name: "home.gitops"}
	bob  = events.Person{ID: 3, Login: "bob"}
)

func TestRoundTrip(t *testing.T) {
	tests := []struct {
		payload events.Payload
		subject string
	}{
		{events.PullChanged{Repo: repo, Number: 12, Action: "opened", Head: "abc", Sender: bob}, "event.gitea.pull.7.12"},
		{events.BranchPushed{Repo: repo, Branch: "main", Before: "a", After: "b", Sender: bob}, "event.gitea.push.7"},
		{events.CommentChanged{Repo: repo, Number: 12, CommentID: 5, Action: events.CommentCreated, Author: bob, Sender: bob}, "event.gitea.comment.7.12"},
		{events.StatusPosted{Repo: repo, SHA: "abc", Context: "ci", State: "success"}, "event.gitea.status.7"},
		{events.WorkflowChanged{Repo: repo, Run: 9, Workflow: "renovate.yaml", Commit: "abc", Status: "queued", Sender: bob}, "event.gitea.workflow.7"},
		{events.Tick{Name: "reconcile", At: at}, "event.clock.reconcile"},
	}
	for _, tt := range tests {
		t.Run(string(tt.payload.EventType()), func(t *testing.T) {
			e, err := events.New("gitea/1", "gitea", at, tt.payload)
			if err != nil {
				t.Fatal(err)
			}
			if e.Subject != tt.subject {
				t.Errorf("subject = %q, want %q", e.Subject, tt.subject)
			}
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var back events.Event
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, back); diff != "" {
				t.Errorf("envelope changed on the way (-sent +received):\n%s", diff)
			}
			p, err := events.Decode(back)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.payload, p); diff != "" {
				t.Errorf("payload changed on the way (-sent +received):\n%s", diff)
			}
		})
	}
}

func TestEnvelopeRefuses(t *testing.T) {
	tests := map[string]string{
		"not JSON":        `{`,
		"another version": `{"specversion":"0.3","id":"1","type":"signalbox.clock.tick"}`,
		"no id":           `{"specversion":"1.0","type":"signalbox.clock.tick"}`,
		"another program": `{"specversion":"1.0","id":"1","type":"com.example.x"}`,
		"empty type":      `{"specversion":"1.0","id":"1","type":"signalbox."}`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			var e events.Event
			if err := json.Unmarshal([]byte(in), &e); err == nil {
				t.Errorf("accepted %s as %+v", in, e)
			}
		})
	}
}

func TestDecodeErrorsArePermanent(t *testing.T) {
	for _, e := range []events.Event{
		{ID: "1", Type: "no.such"},
		{ID: "1", Type: events.TypeTick, Data: json.RawMessage(`{"name":1}`)},
	} {
		_, err := events.Decode(e)
		if !events.IsPermanent(err) {
			t.Errorf("Decode(%s) = %v, want a permanent error", e.Type, err)
		}
	}
}

func TestNewNeedsIdentity(t *testing.T) {
	if _, err := events.New("", "gitea", at, events.Tick{}); err == nil {
		t.Error("an event without an id was made")
	}
}

func TestErrorMarks(t *testing.T) {
	cause := errors.New("cause")
	wrapped := fmt.Errorf("outer: %w", events.Permanent(cause))
	if !events.IsPermanent(wrapped) || !errors.Is(wrapped, cause) {
		t.Error("a wrapped permanent error lost its mark or its cause")
	}
	if events.IsPermanent(cause) || events.Permanent(nil) != nil || events.RetryAfter(nil, time.Second) != nil {
		t.Error("an unmarked or nil error was marked")
	}
	d, ok := events.Delay(fmt.Errorf("outer: %w", events.RetryAfter(cause, time.Minute)))
	if !ok || d != time.Minute {
		t.Errorf("Delay = %v, %v; want 1m0s, true", d, ok)
	}
}

func TestTickIDIsTheSameEverywhere(t *testing.T) {
	other := at.In(time.FixedZone("x", 3600))
	a, b := events.Tick{Name: "reconcile", At: at}.ID(), events.Tick{Name: "reconcile", At: other}.ID()
	if a != b || !strings.HasSuffix(a, "2026-09-06T22:14:19Z") {
		t.Errorf("ids %q and %q of one moment differ or lack the time", a, b)
	}
}

func FuzzDecode(f *testing.F) {
	e, _ := events.New("gitea/1", "gitea", at, events.PullChanged{Repo: repo, Number: 1})
	b, _ := json.Marshal(e)
	f.Add(b)
	f.Add([]byte(`{"specversion":"1.0","id":"1","type":"signalbox.clock.tick","data":null}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var e events.Event
		if json.Unmarshal(in, &e) != nil {
			return
		}
		p, err := events.Decode(e)
		if (p == nil) == (err == nil) {
			t.Errorf("Decode gave payload %v and error %v", p, err)
		}
	})
}
