package matrix

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
)

// last returns what signalbox said last in a room, as somebody sees it.
func (b *backend) last(t *testing.T, room chat.Room, who conformance.Person) *event.MessageEventContent {
	t.Helper()
	events, err := b.people[who].look(t.Context(), id.RoomID(room.ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(events) {
		if e.Sender == b.plain.UserID {
			return e.Content.AsMessage()
		}
	}
	return &event.MessageEventContent{}
}

func (b *backend) whisper(t *testing.T, room chat.Room, to conformance.Person, text string) {
	t.Helper()
	if err := b.adapter.Whisper(t.Context(), room, "", b.User(to), "test/"+text, b.Body(text, "")); err != nil {
		t.Fatal(err)
	}
}

func TestWhisperWhereOthersAre(t *testing.T) {
	_, b, room := world(t)
	b.start(t)
	// Bob has a room with signalbox, and Alice has none.
	own, err := b.Direct(t.Context(), conformance.Bob)
	if err != nil {
		t.Fatal(err)
	}
	b.whisper(t, room, conformance.Alice, "secret")
	got := b.last(t, room, conformance.Mallory)
	if diff := cmp.Diff(&event.Mentions{UserIDs: []id.UserID{id.UserID(b.User(conformance.Alice).ID)}}, got.Mentions); got.Body != notHere || diff != "" {
		t.Errorf("in the room it says %q to (-want +got):\n%s", got.Body, diff)
	}
	if got := b.last(t, own, conformance.Bob).Body; got != "" {
		t.Errorf("in the room of another it says %q", got)
	}
	b.whisper(t, room, conformance.Bob, "for Bob")
	if got := b.last(t, own, conformance.Bob).Body; got != "for Bob" {
		t.Errorf("in Bob's room it says %q", got)
	}
	if got := b.last(t, room, conformance.Mallory).Body; got != notHere {
		t.Errorf("in the room of all it says %q", got)
	}
}

// TestWhisperAfterOneMore: a room of two is one no more when somebody is invited, also
// if that was not heard yet.
func TestWhisperAfterOneMore(t *testing.T) {
	_, b, _ := world(t)
	in := b.start(t)
	own, err := b.Direct(t.Context(), conformance.Alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Say(t.Context(), conformance.Place{Room: own}, conformance.Alice, "hello"); err != nil {
		t.Fatal(err)
	}
	in.until(t, "hello")
	b.whisper(t, own, conformance.Alice, "between us")
	if got := b.last(t, own, conformance.Alice).Body; got != "between us" {
		t.Errorf("in the room of two it says %q", got)
	}
	b.site.gate.interfere(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/sync") {
			return false
		}
		<-r.Context().Done()
		return true
	})
	b.site.gate.server.CloseClientConnections()
	bob := b.people[conformance.Bob].client.UserID
	if _, err := b.people[conformance.Alice].client.InviteUser(t.Context(), id.RoomID(own.ID), &mautrix.ReqInviteUser{UserID: bob}); err != nil {
		t.Fatal(err)
	}
	b.whisper(t, own, conformance.Alice, "not for Bob")
	if got := b.last(t, own, conformance.Alice).Body; got != notHere {
		t.Errorf("in a room of three it says %q", got)
	}
}
