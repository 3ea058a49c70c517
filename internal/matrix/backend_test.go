package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/secret"
)

// memory is a store of positions that remembers all of them.
type memory struct {
	mu     sync.Mutex
	saved  []string
	broken error // What every call fails with, unless nil.
}

func (m *memory) Load(context.Context, string, string) (string, error) { return m.last(), m.failure() }

func (m *memory) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}

func (m *memory) breakDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}

func (m *memory) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.saved) == 0 {
		return ""
	}
	return m.saved[len(m.saved)-1]
}

func (m *memory) Save(_ context.Context, _, _, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil {
		m.saved = append(m.saved, token)
	}
	return m.broken
}

// rewind makes the first position the last.
func (m *memory) rewind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = m.saved[:1]
}

// account is one login on a homeserver.
type account struct{ user, token string }

// site is a homeserver, with a gate in front of it for signalbox.
type site struct {
	url     string // For people.
	gate    *gate
	account func(name string) (account, error)
	// before reports whether an event lies before a position, if the site can tell.
	before func(event, position string) bool
}

// backend is a homeserver with people and signalbox on it.
type backend struct {
	t         *testing.T
	site      site
	encrypted bool

	bot    account
	plain  *mautrix.Client // Signalbox's own, beside the adapter.
	people map[conformance.Person]*person
	direct map[conformance.Person]chat.Room

	config   Config
	limits   limits
	store    *memory
	receiver chat.Receiver
	adapter  *Adapter
	stop     func()
}

// newBackend makes accounts on a homeserver.
func newBackend(t *testing.T, s site, encrypted bool) *backend {
	t.Helper()
	b := &backend{
		t: t, site: s, encrypted: encrypted, limits: quick, store: &memory{},
		people: map[conformance.Person]*person{}, direct: map[conformance.Person]chat.Room{},
	}
	var err error
	if b.bot, err = s.account("signalbox"); err != nil {
		t.Fatal(err)
	}
	if b.plain, err = mautrix.NewClient(s.url, id.UserID(b.bot.user), b.bot.token); err != nil {
		t.Fatal(err)
	}
	b.config = Config{
		Homeserver: s.gate.server.URL, Token: secret.New(b.bot.token), UserID: b.bot.user,
		Allowed: func(context.Context, chat.Room, chat.User) bool { return true },
	}
	if encrypted {
		b.config.Encryption.Dir = filepath.Join(t.TempDir(), "keys")
	}
	for _, who := range []conformance.Person{conformance.Alice, conformance.Bob, conformance.Mallory} {
		a, err := s.account(string(who))
		if err != nil {
			t.Fatal(err)
		}
		b.people[who] = newPerson(t, s.url, a, encrypted)
	}
	return b
}

// quick are limits for tests.
var quick = limits{
	poll: 2 * time.Second, request: 10 * time.Second, recheck: 50 * time.Millisecond, retry: 20 * time.Millisecond, patience: time.Minute, absent: time.Minute,
}

func (b *backend) Start(ctx context.Context, receiver chat.Receiver) (chat.Poster, error) {
	b.receiver = receiver
	a, err := New(b.config, b.store, receiver, slog.New(slog.NewTextHandler(b.t.Output(), nil)), nil)
	if err != nil {
		return nil, err
	}
	a.limits = b.limits
	running, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(running) }()
	b.adapter = a
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("the adapter ended with %v", err)
		}
	})
	b.t.Cleanup(b.stop)
	return a, poll(ctx, func() (bool, error) { return testutil.ToFloat64(a.metrics.up.WithLabelValues("")) == 1, nil })
}

// restart ends the adapter, lets something happen, and starts one again.
func (b *backend) restart(ctx context.Context, meanwhile func()) error {
	b.stop()
	meanwhile()
	_, err := b.Start(ctx, b.receiver)
	return err
}

func (b *backend) User(who conformance.Person) chat.User {
	return chatUser(b.people[who].client.UserID)
}

// request is a room that somebody makes.
func (b *backend) request(name string, invite ...id.UserID) *mautrix.ReqCreateRoom {
	r := &mautrix.ReqCreateRoom{Name: name, Preset: "private_chat", Invite: invite}
	if b.encrypted {
		r.InitialState = []*event.Event{{
			Type: event.StateEncryption, Content: event.Content{Parsed: &event.EncryptionEventContent{Algorithm: id.AlgorithmMegolmV1}},
		}}
	}
	return r
}

func (b *backend) Room(ctx context.Context, name string) (chat.Room, error) {
	guests := []*mautrix.Client{b.plain, b.people[conformance.Bob].client, b.people[conformance.Mallory].client}
	var invite []id.UserID
	for _, g := range guests {
		invite = append(invite, g.UserID)
	}
	made, err := b.people[conformance.Alice].client.CreateRoom(ctx, b.request(name, invite...))
	if err != nil {
		return chat.Room{}, err
	}
	for _, g := range guests {
		if _, err := g.JoinRoomByID(ctx, made.RoomID); err != nil {
			return chat.Room{}, err
		}
	}
	return chatRoom(made.RoomID), nil
}

func (b *backend) Direct(ctx context.Context, who conformance.Person) (chat.Room, error) {
	if room, ok := b.direct[who]; ok {
		return room, nil
	}
	r := b.request("", b.plain.UserID)
	r.IsDirect = true
	client := b.people[who].client
	made, err := client.CreateRoom(ctx, r)
	if err != nil {
		return chat.Room{}, err
	}
	b.direct[who] = chatRoom(made.RoomID)
	return b.direct[who], poll(ctx, func() (bool, error) {
		members, err := client.JoinedMembers(ctx, made.RoomID)
		if err != nil {
			return false, err
		}
		return len(members.Joined) == 2, nil
	})
}

// poll asks again and again until something is so.
func poll(ctx context.Context, ok func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// speaker is who says something for somebody: in a direct room there is one person.
func (b *backend) speaker(in conformance.Place, who conformance.Person) *person {
	for person, room := range b.direct {
		if room == in.Room {
			who = person
		}
	}
	return b.people[who]
}

func (b *backend) Say(ctx context.Context, in conformance.Place, who conformance.Person, text string) (string, error) {
	return b.speaker(in, who).say(ctx, in, &event.MessageEventContent{MsgType: event.MsgText, Body: text})
}

// mention is a text with a mention as clients write it.
func (b *backend) mention(text string) *event.MessageEventContent {
	c := &event.MessageEventContent{
		MsgType: event.MsgText, Body: "signalbox: " + text, Mentions: &event.Mentions{UserIDs: []id.UserID{b.plain.UserID}},
	}
	if len(text) < 10000 { // A long one does not fit twice.
		c.Format = event.FormatHTML
		c.FormattedBody = fmt.Sprintf(`<a href="https://matrix.to/#/%s">signalbox</a>: %s`, b.bot.user, html.EscapeString(text))
	}
	return c
}

func (b *backend) Mention(ctx context.Context, in conformance.Place, who conformance.Person, text string) (string, error) {
	return b.speaker(in, who).say(ctx, in, b.mention(text))
}

func (b *backend) Change(ctx context.Context, in conformance.Place, message string, who conformance.Person, text string) error {
	c := b.mention("* " + text)
	c.NewContent = b.mention(text)
	c.RelatesTo = (&event.RelatesTo{}).SetReplace(id.EventID(message))
	_, err := b.people[who].say(ctx, conformance.Place{Room: in.Room}, c)
	return err
}

func (b *backend) Announce(ctx context.Context, in conformance.Place, text string) (string, error) {
	c := b.mention(text)
	c.MsgType = event.MsgNotice
	return b.people[conformance.Mallory].say(ctx, in, c)
}

func (b *backend) Press(ctx context.Context, in conformance.Place, message string, who conformance.Person, button chat.Button) error {
	for emoji, means := range chat.Reactions() {
		if means == button {
			_, err := b.people[who].client.SendReaction(ctx, id.RoomID(in.Room.ID), id.EventID(message), emoji)
			return err
		}
	}
	return fmt.Errorf("no reaction stands for %s", button)
}

func (b *backend) Body(text, _ string) chat.Body {
	return chat.Body{Text: text, HTML: "<p>" + html.EscapeString(text) + "</p>"}
}

func (b *backend) Shown(ctx context.Context, in conformance.Place, who conformance.Person) ([]conformance.Shown, error) {
	events, err := b.people[who].look(ctx, id.RoomID(in.Room.ID))
	if err != nil {
		return nil, err
	}
	var shown []conformance.Shown
	for _, e := range events {
		c := e.Content.AsMessage()
		if e.Sender != b.plain.UserID || e.Type != event.EventMessage {
			continue
		}
		if c.MsgType == event.MsgImage {
			continue
		}
		if c.MsgType != event.MsgNotice || e.Mautrix.WasEncrypted != b.encrypted {
			return nil, fmt.Errorf("a message is of type %s, and encrypted: %t; want a notice, and %t", c.MsgType, e.Mautrix.WasEncrypted, b.encrypted)
		}
		if first := c.RelatesTo.GetReplaceID(); first != "" {
			i := slices.IndexFunc(shown, func(s conformance.Shown) bool { return s.ID == first.String() })
			if i >= 0 {
				shown[i] = see(first, c.NewContent)
			}
			continue
		}
		if c.RelatesTo.GetThreadParent().String() == in.Thread {
			shown = append(shown, see(e.ID, c))
		}
	}
	return shown, nil
}

func (b *backend) Pictures(ctx context.Context, in conformance.Place, who conformance.Person) ([]conformance.Picture, error) {
	events, err := b.people[who].look(ctx, id.RoomID(in.Room.ID))
	if err != nil {
		return nil, err
	}
	var pictures []conformance.Picture
	for _, e := range events {
		c := e.Content.AsMessage()
		if e.Sender != b.plain.UserID || e.Type != event.EventMessage || c.MsgType != event.MsgImage || c.RelatesTo.GetThreadParent().String() != in.Thread {
			continue
		}
		file, err := b.people[who].open(ctx, c)
		if err != nil {
			return nil, err
		}
		size, err := png.DecodeConfig(bytes.NewReader(file))
		if err != nil {
			return nil, err
		}
		want := event.FileInfo{MimeType: "image/png", Width: size.Width, Height: size.Height, Size: len(file), Extra: map[string]any{}}
		if diff := cmp.Diff(&want, c.Info); diff != "" || c.FileName != "volumes.png" {
			return nil, fmt.Errorf("the picture %q (-want +got):\n%s", c.FileName, diff)
		}
		if encrypted := c.File != nil; e.Mautrix.WasEncrypted != b.encrypted || encrypted != b.encrypted {
			return nil, fmt.Errorf("a message and its file are encrypted: %t, %t; want %t", e.Mautrix.WasEncrypted, encrypted, b.encrypted)
		}
		if c.Mentions == nil || c.Mentions.Room || len(c.Mentions.UserIDs) > 0 {
			return nil, errors.New("a picture calls for attention")
		}
		pictures = append(pictures, conformance.Picture{Alt: c.Body, PNG: file})
	}
	return pictures, nil
}

// see is what a client shows of a message: its HTML, which must say what the plain
// text says.
func see(message id.EventID, c *event.MessageEventContent) conformance.Shown {
	text := html.UnescapeString(strings.TrimSuffix(strings.TrimPrefix(c.FormattedBody, "<p>"), "</p>"))
	if text != c.Body {
		text = fmt.Sprintf("HTML %q, plain %q", text, c.Body)
	}
	return conformance.Shown{ID: message.String(), Text: text, Pings: c.Mentions == nil || c.Mentions.Room || len(c.Mentions.UserIDs) > 0}
}

func (b *backend) Acknowledged(_ context.Context, _ conformance.Place, message string) (bool, error) {
	if b.site.before == nil {
		return false, errors.ErrUnsupported
	}
	return b.site.before(message, b.store.last()), nil
}

func (b *backend) Redeliver(ctx context.Context, _ conformance.Place, _ string) error {
	return b.restart(ctx, b.store.rewind)
}

func (b *backend) Kick(ctx context.Context, room chat.Room) error {
	_, err := b.people[conformance.Alice].client.KickUser(ctx, id.RoomID(room.ID), &mautrix.ReqKickUser{UserID: b.plain.UserID})
	return err
}

func (b *backend) Revoke(context.Context) error {
	b.site.gate.interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.Header.Get("Authorization"), b.bot.token) {
			return false
		}
		refuse(w, http.StatusUnauthorized, `{"errcode":"M_UNKNOWN_TOKEN","error":"Unknown token"}`)
		return true
	})
	return nil
}

func (b *backend) Renew(context.Context) error {
	b.site.gate.interfere(nil)
	return nil
}

func (b *backend) Cut(context.Context) error {
	b.site.gate.server.CloseClientConnections()
	return nil
}

func (b *backend) Fail(_ context.Context, step conformance.Step, fault conformance.Fault, delay time.Duration) error {
	// A picture is shown by a message like any other.
	method, path := http.MethodPut, "/send/m.room."
	if step == conformance.Uploading {
		method, path = http.MethodPost, "/_matrix/media/v3/upload"
	}
	var once sync.Once
	b.site.gate.interfere(func(w http.ResponseWriter, r *http.Request) bool {
		done := false
		if r.Method == method && strings.Contains(r.URL.Path, path) && strings.HasSuffix(r.Header.Get("Authorization"), b.bot.token) {
			once.Do(func() {
				done = true
				switch fault {
				case conformance.Limited:
					refuse(w, http.StatusTooManyRequests, fmt.Sprintf(`{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":%d}`, delay.Milliseconds()))
				case conformance.Lost:
					b.site.gate.pass.ServeHTTP(httptest.NewRecorder(), r)
					hangUp(w)
				case conformance.Hanging:
					// Only then it is noticed that nobody waits any more.
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
				}
			})
		}
		return done
	})
	return nil
}
