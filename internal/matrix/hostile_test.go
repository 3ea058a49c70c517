package matrix

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"maunium.net/go/mautrix/event"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/events"
	"signalbox/internal/matrix/matrixtest"
)

func TestTimeOfAnEvent(t *testing.T) {
	now := time.Now().UTC()
	past := now.Add(-time.Hour).Truncate(time.Millisecond)
	for name, tc := range map[string]struct {
		ms   int64
		want time.Time // Zero means now.
	}{
		"an hour ago":        {ms: past.UnixMilli(), want: past},
		"tomorrow":           {ms: now.Add(24 * time.Hour).UnixMilli()},
		"the end of JSON":    {ms: 9007199254740991},
		"the end of time":    {ms: 1<<63 - 1},
		"before there was":   {ms: -1},
		"the beginning":      {ms: -1 << 63},
		"no time":            {ms: 0},
		"in seconds, not ms": {ms: past.Unix()},
	} {
		got := when(&event.Event{Timestamp: tc.ms})
		if tc.want.IsZero() && (got.Before(now) || got.After(time.Now())) || !tc.want.IsZero() && !got.Equal(tc.want) || got.Location() != time.UTC {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// envelopes is a receiver that makes events of what it takes, as the bus needs them.
type envelopes struct{ *inbox }

func (i envelopes) Said(ctx context.Context, cause string, m chat.Message) error {
	e, err := events.New(cause, "matrix", m.At, events.ChatSaid{Message: m})
	if err == nil {
		_, err = e.MarshalJSON()
	}
	if err != nil {
		return err
	}
	return i.inbox.Said(ctx, cause, m)
}

// TestImpossibleTime: no homeserver stops signalbox with the time of an event.
func TestImpossibleTime(t *testing.T) {
	server, b, room := world(t)
	in := newInbox()
	if _, err := b.Start(t.Context(), envelopes{in}); err != nil {
		t.Fatal(err)
	}
	b.put(server, room, "hello", 0)
	in.until(t, "hello") // Now nothing is too old.
	for text, ms := range map[string]int64{"far": 9007199254740991, "long ago": -9007199254740991} {
		server.Put(matrixtest.Event{
			Type: "m.room.message", Room: room.ID, Sender: b.User(conformance.Mallory).ID, At: ms,
			Content: map[string]any{"msgtype": "m.text", "body": "!signalbox " + text},
		})
		in.until(t, text)
	}
}

// refuser refuses one text for ever.
type refuser struct {
	*inbox
	text string
}

func (r refuser) Said(ctx context.Context, cause string, m chat.Message) error {
	if m.Text == r.text {
		return events.Permanent(errors.New("it cannot be written"))
	}
	return r.inbox.Said(ctx, cause, m)
}

func TestWhatCanNeverBeTaken(t *testing.T) {
	server, b, room := world(t)
	in := newInbox()
	if _, err := b.Start(t.Context(), refuser{in, "impossible"}); err != nil {
		t.Fatal(err)
	}
	b.put(server, room, "impossible", 0)
	b.put(server, room, "next", 0)
	if diff := cmp.Diff([]string{"next"}, in.until(t, "next")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMessagesThatCannotBeRead: what refers to one delays the others by one request.
func TestMessagesThatCannotBeRead(t *testing.T) {
	server, b, room := world(t)
	in := b.start(t)
	var requests atomic.Int64
	b.site.gate.interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/event/") {
			return false
		}
		requests.Add(1)
		refuse(w, http.StatusBadGateway, "{}")
		return true
	})
	mallory := b.User(conformance.Mallory).ID
	for range 3 {
		server.Put(matrixtest.Event{Type: "m.reaction", Room: room.ID, Sender: mallory, Content: map[string]any{
			"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": "$reacted", "key": "👍"},
		}})
		server.Put(matrixtest.Event{Type: "m.room.message", Room: room.ID, Sender: mallory, Content: map[string]any{
			"msgtype": "m.text", "body": "* x", "m.new_content": map[string]any{"msgtype": "m.text", "body": "x"},
			"m.relates_to": map[string]any{"rel_type": "m.replace", "event_id": "$edited"},
		}})
	}
	b.put(server, room, "next", 0)
	in.until(t, "next")
	if n := requests.Load(); n != 2 {
		t.Errorf("there were %d requests for two messages", n)
	}
}
