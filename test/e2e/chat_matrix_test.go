//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// matrixRoom is a room on a real homeserver, with alice and bob in it.
type matrixRoom struct {
	t          *testing.T
	id         id.RoomID
	bot        id.UserID
	alice, bob *mautrix.Client
}

func newMatrixRoom(t *testing.T) (*matrixRoom, realserver.MatrixAccount, *realserver.Dendrite) {
	t.Helper()
	ctx := t.Context()
	server, err := realserver.StartDendrite(ctx, realserver.DendriteOptions{Options: realserver.Options{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	account := func(name string) realserver.MatrixAccount {
		t.Helper()
		a, err := server.CreateAccount(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	client := func(a realserver.MatrixAccount) *mautrix.Client {
		t.Helper()
		c, err := mautrix.NewClient(server.URL(), id.UserID(a.ID), a.Token)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	bot := account("signalbox")
	r := &matrixRoom{t: t, alice: client(account("alice")), bob: client(account("bob")), bot: id.UserID(bot.ID)}
	made, err := r.alice.CreateRoom(ctx, &mautrix.ReqCreateRoom{Name: "ops", Preset: "private_chat", Invite: []id.UserID{r.bob.UserID, r.bot}})
	if err != nil {
		t.Fatal(err)
	}
	r.id = made.RoomID
	if _, err := r.bob.JoinRoomByID(ctx, r.id); err != nil {
		t.Fatal(err)
	}
	return r, bot, server
}

// said is one message of signalbox as it reads now.
type said struct {
	id, thread id.EventID
	text       string
}

// hears returns what signalbox said in the room, the oldest first, with its edits
// applied.
func (r *matrixRoom) hears() ([]said, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	page, err := r.alice.Messages(ctx, r.id, "", "", mautrix.DirectionBackward, nil, 200)
	if err != nil {
		return nil, err
	}
	edits := map[id.EventID]string{}
	var all []said
	for _, e := range page.Chunk {
		if e.Sender != r.bot || e.Type != event.EventMessage || e.Content.ParseRaw(e.Type) != nil {
			continue
		}
		c := e.Content.AsMessage()
		if c.RelatesTo != nil && c.RelatesTo.GetReplaceID() != "" {
			// Backwards, so the first is the last.
			if _, known := edits[c.RelatesTo.GetReplaceID()]; !known && c.NewContent != nil {
				edits[c.RelatesTo.GetReplaceID()] = c.NewContent.Body
			}
			continue
		}
		s := said{id: e.ID, text: c.Body}
		if c.RelatesTo != nil {
			s.thread = c.RelatesTo.GetThreadParent()
		}
		all = append([]said{s}, all...)
	}
	for i := range all {
		if text, ok := edits[all[i].id]; ok {
			all[i].text = text
		}
	}
	return all, nil
}

// sees waits for one message in a thread, or outside of all, that says all of some
// texts.
func (r *matrixRoom) sees(thread id.EventID, texts ...string) said {
	r.t.Helper()
	var found said
	eventually(r.t, patience, fmt.Sprintf("signalbox says %q", texts), func() error {
		all, err := r.hears()
		if err != nil {
			return err
		}
	next:
		for _, s := range all {
			if s.thread != thread {
				continue
			}
			for _, text := range texts {
				if !strings.Contains(s.text, text) {
					continue next
				}
			}
			found = s
			return nil
		}
		return fmt.Errorf("it says %+v", all)
	})
	return found
}

func (r *matrixRoom) say(by *mautrix.Client, thread id.EventID, text string) {
	r.t.Helper()
	c := &event.MessageEventContent{MsgType: event.MsgText, Body: text}
	if thread != "" {
		c.RelatesTo = (&event.RelatesTo{}).SetThread(thread, thread)
	}
	if _, err := by.SendMessageEvent(r.t.Context(), r.id, event.EventMessage, c); err != nil {
		r.t.Fatal(err)
	}
}

// TestMatrixStory drives a pull request from Matrix, on a real homeserver.
func TestMatrixStory(t *testing.T) {
	withoutFlux(t)
	room, account, _ := newMatrixRoom(t)
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: chatPolicy(name + "-k")})
	tier := newTier(t, name+"-k", "tier")
	tier.failing(st.tip(t), `no matches for kind "StorageProfile"`)
	st.bot = newBot(t, st.repo, settings{extra: fmt.Sprintf(`chat:
  matrix: {homeserver: %q, rooms: [%q]}
  people:
    - {gitea: %s, matrix: %q}
  subscriptions:
    - {matrix: %q, repository: %s}
`, strings.TrimSuffix(room.alice.HomeserverURL.String(), "/"), room.id, st.repo.Alice.Name, room.alice.UserID, room.id, st.repo)})
	st.bot.env = append(st.bot.env, "SIGNALBOX_MATRIX_TOKEN="+account.Token)
	st.bot.start()

	pr := st.open(t, "a", write("apps/a.yaml", "a: 1\n"))
	pr.shows(patience, "pending", "pending")
	card := room.sees("", "Take a into main", "no matches for kind")
	tier.ready(st.tip(t))
	if now := room.sees("", "Waiting for 1 approval rule"); now.id != card.id {
		t.Errorf("the card was not edited in place: %s, %s", card.id, now.id)
	}

	// bob is not known, and only reads.
	room.say(room.bob, card.id, "!signalbox hold the disk is full")
	room.sees(card.id, "Nobody knows whose")
	readCard(t)
	if _, err := room.alice.SendReaction(t.Context(), room.id, card.id, "👍"); err != nil {
		t.Fatal(err)
	}
	pr.shows(patience, "success", "success", "Approved by alice")
	room.sees(card.id, "is clear to merge")
	pr.replies("alice said")
	st.bot.kill()
	st.bot.start()
	room.say(room.alice, card.id, "!signalbox merge")
	eventually(t, patience, "it is merged", func() error {
		if !pr.pull().HasMerged {
			return fmt.Errorf("it is %s", pr.pull().State)
		}
		return nil
	})
	room.sees("", "Merged")
}
