package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat/conformance"
)

// person is somebody with a client of their own, which looks when it is asked to.
type person struct {
	client *mautrix.Client
	rooms  *mautrix.MemoryStateStore
	keys   cipher // Nil without encryption.
	since  string
}

func newPerson(t *testing.T, url string, a account, encrypted bool) *person {
	t.Helper()
	client, err := mautrix.NewClient(url, id.UserID(a.user), a.token)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{client: client, rooms: newRooms()}
	if !encrypted {
		return p
	}
	me, err := client.Whoami(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client.DeviceID = me.DeviceID
	if p.keys, err = openCipher(t.Context(), Encryption{Dir: t.TempDir()}, client, p.rooms, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.keys.close() })
	return p
}

// catchUp takes in the keys that came, and who is in a room.
func (p *person) catchUp(ctx context.Context, room id.RoomID) error {
	resp, err := p.client.FullSyncRequest(ctx, mautrix.ReqSync{Since: p.since})
	if err != nil {
		return err
	}
	p.keys.sync(ctx, resp, p.since)
	p.since = resp.NextBatch
	state, err := p.client.StateAsArray(ctx, room)
	if err != nil {
		return err
	}
	for _, e := range state {
		e.RoomID = room
		if err := e.Content.ParseRaw(e.Type); err == nil {
			mautrix.UpdateStateStore(ctx, p.rooms, e)
		}
	}
	return nil
}

// say sends a message into a room or a thread, encrypted if this person can.
func (p *person) say(ctx context.Context, in conformance.Place, c *event.MessageEventContent) (string, error) {
	room := id.RoomID(in.Room.ID)
	inThread(c, in.Thread)
	var content any = c
	kind := event.EventMessage
	if p.keys != nil {
		if err := p.catchUp(ctx, room); err != nil {
			return "", err
		}
		sealed, err := p.keys.encrypt(ctx, room, c)
		if err != nil {
			return "", err
		}
		content, kind = sealed, event.EventEncrypted
	}
	sent, err := p.client.SendMessageEvent(ctx, room, kind, content)
	if err != nil {
		return "", err
	}
	return sent.EventID.String(), nil
}

// marker is a kind of event that shows how far a room can be seen.
var marker = event.Type{Type: "org.example.marker", Class: event.MessageEventType}

// history returns the events of a room, oldest first. A homeserver shows what it took
// a moment later, so something is put into the room that is waited for.
func (p *person) history(ctx context.Context, room id.RoomID) ([]*event.Event, error) {
	end, err := p.client.SendMessageEvent(ctx, room, marker, map[string]any{})
	if err != nil {
		return nil, err
	}
	var events []*event.Event
	err = poll(ctx, func() (bool, error) {
		got, err := p.client.Messages(ctx, room, "", "", mautrix.DirectionBackward, nil, 1000)
		if err != nil {
			return false, err
		}
		events = got.Chunk
		return slices.ContainsFunc(events, func(e *event.Event) bool { return e.ID == end.EventID }), nil
	})
	slices.Reverse(events)
	return events, err
}

// open downloads a picture and decrypts it, if that is what it takes.
func (p *person) open(ctx context.Context, c *event.MessageEventContent) ([]byte, error) {
	at := c.URL
	if c.File != nil {
		at = c.File.URL
	}
	mxc, err := at.Parse()
	if err != nil {
		return nil, err
	}
	// Homeservers that came before it do not know the other address.
	url := p.client.BuildURL(mautrix.MediaURLPath{"v3", "download", mxc.Homeserver, mxc.FileID})
	file, err := p.client.MakeRequest(ctx, http.MethodGet, url, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", at, err)
	}
	if c.File == nil {
		return file, nil
	}
	if _, err := png.DecodeConfig(bytes.NewReader(file)); err == nil {
		return nil, errors.New("the homeserver has the picture as it is")
	}
	return file, c.File.DecryptInPlace(file)
}

// look returns all events of a room, oldest first, decrypted if this person can. A
// key that is still on its way is waited for.
func (p *person) look(ctx context.Context, room id.RoomID) ([]*event.Event, error) {
	all, err := p.history(ctx, room)
	if err != nil {
		return nil, err
	}
	var events []*event.Event
	for _, e := range all {
		if e.Type.Type == marker.Type {
			continue
		}
		e.RoomID, e.Type.Class = room, event.MessageEventType
		if e.StateKey != nil || e.Content.ParseRaw(e.Type) != nil {
			continue
		}
		if e.Type != event.EventEncrypted || p.keys == nil || e.Sender == p.client.UserID {
			events = append(events, e)
			continue
		}
		err := poll(ctx, func() (bool, error) {
			opened, err := p.keys.decrypt(ctx, e)
			if errors.Is(err, errNoKey) {
				return false, p.catchUp(ctx, room)
			}
			events = append(events, opened)
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}
