package matrix

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/matrix/matrixtest"
	"signalbox/internal/secret"
)

// inbox is a receiver that hands on what it takes.
type inbox struct {
	said    chan chat.Message
	pressed chan chat.Press
}

func newInbox() *inbox {
	return &inbox{said: make(chan chat.Message, 1000), pressed: make(chan chat.Press, 1000)}
}

func (i *inbox) Said(_ context.Context, _ string, m chat.Message) error {
	i.said <- m
	return nil
}

func (i *inbox) Pressed(_ context.Context, _ string, p chat.Press) error {
	i.pressed <- p
	return nil
}

// until returns the texts up to one.
func (i *inbox) until(t *testing.T, last string) []string {
	t.Helper()
	var texts []string
	for {
		select {
		case m := <-i.said:
			if texts = append(texts, m.Text); m.Text == last {
				return texts
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%q did not come, only %q", last, texts)
		}
	}
}

// world is the stand-in with a room of everybody, before signalbox starts.
func world(t *testing.T) (*matrixtest.Server, *backend, chat.Room) {
	t.Helper()
	server, s := standIn(t)
	b := newBackend(t, s, false)
	room, err := b.Room(t.Context(), "deploy")
	if err != nil {
		t.Fatal(err)
	}
	return server, b, room
}

func (b *backend) start(t *testing.T) *inbox {
	t.Helper()
	i := newInbox()
	if _, err := b.Start(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	return i
}

// put lets Alice have said something some time ago.
func (b *backend) put(server *matrixtest.Server, room chat.Room, text string, ago time.Duration) string {
	return server.Put(matrixtest.Event{
		Type: "m.room.message", Room: room.ID, Sender: b.User(conformance.Alice).ID, At: time.Now().Add(-ago).UnixMilli(),
		Content: map[string]any{"msgtype": "m.text", "body": "!signalbox " + text},
	})
}

func TestWhatIsOldAtTheFirstStart(t *testing.T) {
	server, b, room := world(t)
	b.put(server, room, "too old", 20*time.Minute)
	b.put(server, room, "recent", 5*time.Minute)
	if diff := cmp.Diff([]string{"recent"}, b.start(t).until(t, "recent")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatWasMissedIsNeverTooOld(t *testing.T) {
	server, b, room := world(t)
	b.start(t)
	b.stop()
	server.Limit(2) // The others must be asked for.
	want := []string{"one", "two", "three", "four", "five", "six", "seven"}
	for _, text := range want {
		b.put(server, room, text, 3*time.Hour)
	}
	if diff := cmp.Diff(want, b.start(t).until(t, "seven")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatWasSaidBeforeSignalboxCame(t *testing.T) {
	server, b, _ := world(t)
	in := b.start(t)
	alice := b.people[conformance.Alice].client
	made, err := alice.CreateRoom(t.Context(), b.request("history"))
	if err != nil {
		t.Fatal(err)
	}
	room := chatRoom(made.RoomID)
	b.put(server, room, "long before", time.Hour)
	b.put(server, room, "just before", time.Minute)
	server.Put(matrixtest.Event{
		Type: "m.room.member", Room: room.ID, Sender: alice.UserID.String(), StateKey: &b.bot.user, Content: map[string]any{"membership": "invite"},
	})
	if diff := cmp.Diff([]string{"just before"}, in.until(t, "just before")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInvitations(t *testing.T) {
	invitations(t, func(t *testing.T) *backend {
		_, b, _ := world(t)
		return b
	})
}

// invitations invites signalbox, which follows where it may.
func invitations(t *testing.T, world func(*testing.T) *backend) {
	for _, tc := range []struct {
		name  string
		joins bool
		// other says that the alias is that of another room.
		other bool
		// who invites, and whether to a talk of two.
		who    conformance.Person
		direct bool
		config func(c *Config, alias, room string)
	}{
		{"by id", true, false, conformance.Alice, false, func(c *Config, _, room string) { c.Rooms = []string{room} }},
		{"by alias", true, false, conformance.Alice, false, func(c *Config, alias, _ string) { c.Rooms = []string{"#gone" + alias[1:], alias} }},
		{"alias of another room", false, true, conformance.Alice, false, func(c *Config, alias, _ string) { c.Rooms = []string{alias} }},
		{"by who invites", true, false, conformance.Alice, false, func(c *Config, _, room string) {
			c.Allowed = func(_ context.Context, r chat.Room, inviter chat.User) bool {
				return r == chat.Room{Platform: chat.Matrix, ID: room} && strings.HasPrefix(inviter.ID, "@alice")
			}
		}},
		{"to a talk of two", true, false, conformance.Alice, true, func(*Config, string, string) {}},
		{"to a talk of two, by a stranger", false, false, conformance.Mallory, true, func(*Config, string, string) {}},
		{"nobody asked for it", false, false, conformance.Alice, false, func(*Config, string, string) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, b := t.Context(), world(t)
			client := b.people[tc.who].client
			if tc.direct {
				if _, err := b.Room(ctx, "common"); err != nil {
					t.Fatal(err)
				}
			}
			if tc.who == conformance.Mallory {
				leaveAll(t, client)
			}
			elsewhere, err := client.CreateRoom(ctx, b.request("elsewhere"))
			if err != nil {
				t.Fatal(err)
			}
			request := b.request("new", b.plain.UserID)
			request.IsDirect = tc.direct
			made, err := client.CreateRoom(ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			named := made.RoomID
			if tc.other {
				named = elsewhere.RoomID
			}
			alias := "#ops-" + client.UserID.String()[1:]
			if _, err := client.CreateAlias(ctx, id.RoomAlias(alias), named); err != nil {
				t.Fatal(err)
			}
			b.config.Allowed = nil
			tc.config(&b.config, alias, made.RoomID.String())
			b.start(t)
			want := event.MembershipLeave
			if tc.joins {
				want = event.MembershipJoin
			}
			err = poll(ctx, func() (bool, error) {
				state, err := client.StateAsArray(ctx, made.RoomID)
				if err != nil {
					return false, err
				}
				for _, e := range state {
					if e.Type.Type == "m.room.member" && e.GetStateKey() == b.bot.user && membership(e) != event.MembershipInvite {
						if got := membership(e); got != want {
							t.Errorf("signalbox answered with %s, want %s", got, want)
						}
						return true, nil
					}
				}
				return false, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// leaveAll makes somebody a stranger.
func leaveAll(t *testing.T, client *mautrix.Client) {
	t.Helper()
	joined, err := client.JoinedRooms(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range joined.JoinedRooms {
		if _, err := client.LeaveRoom(t.Context(), room); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEditOfACommand(t *testing.T) {
	_, b, room := world(t)
	in := b.start(t)
	here := conformance.Place{Room: room}
	first, err := b.Mention(t.Context(), here, conformance.Alice, "status 12")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Change(t.Context(), here, first, conformance.Alice, "approve 12"); err != nil {
		t.Fatal(err)
	}
	// Nobody changes what another said.
	if err := b.Change(t.Context(), here, first, conformance.Mallory, "override 12"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Mention(t.Context(), here, conformance.Bob, "end"); err != nil {
		t.Fatal(err)
	}
	var got []chat.Message
	for len(got) == 0 || got[len(got)-1].Text != "end" {
		m := <-in.said
		m.At, m.Link, m.Room = time.Time{}, "", chat.Room{}
		got = append(got, m)
	}
	alice := b.User(conformance.Alice)
	want := []chat.Message{
		{ID: first, User: alice, Text: "status 12"}, {ID: first, User: alice, Text: "approve 12", Edited: true}, got[len(got)-1],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReactionToWhatWasSentBefore(t *testing.T) {
	_, b, room := world(t)
	in := b.start(t)
	own, err := b.adapter.Post(t.Context(), room, "", "test/card", b.Body("a card", ""))
	if err != nil {
		t.Fatal(err)
	}
	others, err := b.Say(t.Context(), conformance.Place{Room: room}, conformance.Alice, "a card")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.restart(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{others, "$nowhere", own} {
		if err := b.Press(t.Context(), conformance.Place{Room: room}, message, conformance.Bob, chat.ButtonHold); err != nil {
			t.Fatal(err)
		}
	}
	got := <-in.pressed
	got.At = time.Time{}
	want := chat.Press{Room: room, Message: own, User: b.User(conformance.Bob), Button: chat.ButtonHold}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEncryptedRoomWithoutEncryption(t *testing.T) {
	server, b, room := world(t)
	key := ""
	server.Put(matrixtest.Event{
		Type: "m.room.encryption", Room: room.ID, Sender: b.User(conformance.Alice).ID, StateKey: &key, Content: map[string]any{"algorithm": "m.megolm.v2.new"},
	})
	in := b.start(t)
	_, err := b.adapter.Post(t.Context(), room, "", "test/secret", b.Body("between us", ""))
	if !errors.Is(err, chat.ErrGone) || !strings.Contains(err.Error(), "is encrypted") {
		t.Errorf("post: %v, want ErrGone", err)
	}
	b.put(server, room, "in the open", 0)
	direct, err := b.Direct(t.Context(), conformance.Alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Say(t.Context(), conformance.Place{Room: direct}, conformance.Alice, "end"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"end"}, in.until(t, "end")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusedToken(t *testing.T) {
	_, b, room := world(t)
	registry, log := prometheus.NewRegistry(), &conformance.Journal{}
	a, err := New(b.config, b.store, newInbox(), slog.New(slog.NewTextHandler(log, nil)), registry)
	if err != nil {
		t.Fatal(err)
	}
	a.limits = quick
	up := func(reason string) bool {
		want := map[string]string{"": `{platform="matrix",reason=""} 1`}[reason]
		if reason != "" {
			want = `{platform="matrix",reason="` + reason + `"} 0`
		}
		return testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP signalbox_chat_up Whether signalbox can speak and listen on a chat platform; the reason says why not.
# TYPE signalbox_chat_up gauge
signalbox_chat_up`+want+"\n"), "signalbox_chat_up") == nil
	}
	if !up(reasonStarting) {
		t.Error("before the start it is not \"starting\"")
	}
	if _, err := a.Post(t.Context(), room, "", "test/early", b.Body("hello", "")); !isRetry(err) {
		t.Errorf("before the start: %v, want a RetryError", err)
	}

	requests := make(chan struct{}, 100)
	b.site.gate.interfere(func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, http.StatusUnauthorized, `{"errcode":"M_UNKNOWN_TOKEN","error":"no `+b.bot.token+`"}`)
		requests <- struct{}{}
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for range 4 {
		<-requests
	}
	if !up(reasonRevoked) {
		t.Error("the metric does not say that the token is refused")
	}
	if _, err := a.Post(t.Context(), room, "", "test/early", b.Body("hello", "")); !errors.Is(err, chat.ErrRevoked) {
		t.Errorf("with a refused token: %v, want ErrRevoked", err)
	}
	b.site.gate.interfere(nil)
	if err := poll(t.Context(), func() (bool, error) { return up(""), nil }); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors were logged, want one:\n%s", n, log)
	}
	if strings.Contains(log.String(), b.bot.token) {
		t.Errorf("the token was logged:\n%s", log)
	}
}

func isRetry(err error) bool {
	_, ok := errors.AsType[*chat.RetryError](err)
	return ok
}

func TestBrokenNews(t *testing.T) {
	_, b, room := world(t)
	in := b.start(t)
	answers := []string{
		"", "{", `null`, `[]`, `{}`, `{"next_batch":7}`, `{"next_batch":"s1","rooms":{"join":{"!a:b":null}}}`,
		`{"next_batch":"s1","rooms":{"join":{"!a:b":{"timeline":{"events":[null,{},{"event_id":"$x","type":"m.room.message"},{"event_id":"$y","type":"m.room.message","content":{"msgtype":7}}]},"state":{"events":[null,{"state_key":"","type":"m.room.encryption","content":[]}]}}}}}`,
		`{"next_batch":"s1","rooms":{"invite":{"!a:b":null,"!b:b":{"invite_state":{"events":[null]}}},"leave":{"!a:b":null}}}`,
		`{"next_batch":"s1","rooms":{"join":{"!a:b":{"timeline":{"limited":true,"prev_batch":"x","events":[{"event_id":"$z","sender":"@a:b","type":"m.reaction","content":{"m.relates_to":{"rel_type":"m.annotation","event_id":"$q","key":"👍"}}}]}}}}}`,
	}
	done := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	b.site.gate.interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/sync") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 {
			once.Do(func() { close(done) })
			return false
		}
		refuse(w, http.StatusOK, answers[0])
		answers = answers[1:]
		return true
	})
	b.site.gate.server.CloseClientConnections()
	<-done
	if _, err := b.Mention(t.Context(), conformance.Place{Room: room}, conformance.Alice, "still there?"); err != nil {
		t.Fatal(err)
	}
	in.until(t, "still there?")
}

func TestPostFailures(t *testing.T) {
	_, b, room := world(t)
	b.start(t)
	var status int
	var header, body string
	b.site.gate.interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		refuse(w, status, body)
		return true
	})
	retry := func(after time.Duration) func(error) bool {
		return func(err error) bool {
			r, ok := errors.AsType[*chat.RetryError](err)
			return ok && r.After == after
		}
	}
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	other := func(err error) bool {
		return !errors.Is(err, chat.ErrGone) && !errors.Is(err, chat.ErrRevoked) && !errors.Is(err, chat.ErrTooLong) && !isRetry(err)
	}
	for _, tc := range []struct {
		name         string
		status       int
		header, body string
		want         func(error) bool
	}{
		{"unknown token", 401, "", `{"errcode":"M_UNKNOWN_TOKEN","error":"gone: {T}"}`, is(chat.ErrRevoked)},
		{"missing token", 401, "", `{"errcode":"M_MISSING_TOKEN"}`, is(chat.ErrRevoked)},
		{"deactivated", 403, "", `{"errcode":"M_USER_DEACTIVATED"}`, is(chat.ErrRevoked)},
		{"forbidden", 403, "", `{"errcode":"M_FORBIDDEN","error":"{T}"}`, is(chat.ErrGone)},
		{"not found", 404, "", `{"errcode":"M_NOT_FOUND"}`, is(chat.ErrGone)},
		{"too large", 413, "", `{"errcode":"M_TOO_LARGE"}`, is(chat.ErrTooLong)},
		{"too large for a proxy", 413, "", `<html>no</html>`, is(chat.ErrTooLong)},
		{"limited", 429, "", `{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":2500}`, retry(2500 * time.Millisecond)},
		{"limited by a header", 429, "7", `{"errcode":"M_LIMIT_EXCEEDED"}`, retry(7 * time.Second)},
		{"limited without a time", 429, "", `{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":-1}`, retry(time.Second)},
		{"limited for ever", 429, "", `{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":1e300}`, retry(time.Hour)},
		{"broken", 500, "", `<html>{T}</html>`, other},
		{"a page instead of JSON", 200, "", `<html>{T}` + strings.Repeat("x", 10000) + `</html>`, other},
		{"no id", 200, "", `{}`, other},
		{"null", 200, "", `null`, other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, header, body = tc.status, tc.header, strings.ReplaceAll(tc.body, "{T}", b.bot.token)
			_, err := b.adapter.Post(t.Context(), room, "", "test/"+tc.name, b.Body("hello", ""))
			if err == nil || !tc.want(err) {
				t.Fatalf("got %v", err)
			}
			if text := err.Error(); strings.Contains(text, b.bot.token) || len(text) > 600 || !strings.Contains(text, room.ID) {
				t.Errorf("the error says %q", text)
			}
		})
	}
}

func TestStoreThatIsAway(t *testing.T) {
	_, b, room := world(t)
	in := b.start(t)
	say := func(text string) {
		t.Helper()
		if _, err := b.Mention(t.Context(), conformance.Place{Room: room}, conformance.Alice, text); err != nil {
			t.Fatal(err)
		}
		in.until(t, text)
	}
	say("one")
	b.store.breakDown(errors.New("no bus"))
	before := b.store.last()
	say("two")
	b.store.breakDown(nil)
	say("three")
	if err := poll(t.Context(), func() (bool, error) { return b.store.last() != before, nil }); err != nil {
		t.Error(err)
	}
	b.store.breakDown(errors.New("no bus"))
	a, err := New(b.config, b.store, in, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Without its position it would take what is old for new.
	if err := a.connect(t.Context()); err == nil || a.isReady() {
		t.Errorf("it connects without knowing its position: %v", err)
	}
}

func TestTokenOfAnother(t *testing.T) {
	_, b, _ := world(t)
	for want, config := range map[string]Config{
		"but @other:example.org is configured": {Homeserver: b.config.Homeserver, Token: b.config.Token, UserID: "@other:example.org"},
		`but "OTHER" is configured`:            {Homeserver: b.config.Homeserver, Token: b.config.Token, DeviceID: "OTHER"},
	} {
		a, err := New(config, b.store, newInbox(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.connect(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestConfigurationProblems(t *testing.T) {
	good := Config{Homeserver: "https://matrix.example.org", Token: secret.New("t")}
	for want, change := range map[string]func(*Config){
		"":                           func(*Config) {},
		"no URL":                     func(c *Config) { c.Homeserver = "https://user:hunter2@[" },
		"needs a scheme and a host":  func(c *Config) { c.Homeserver = "matrix.example.org" },
		"without user, query":        func(c *Config) { c.Homeserver = "https://user:hunter2@matrix.example.org" },
		"there is no access token":   func(c *Config) { c.Token = secret.Value{} },
		`"signalbox" is no id`:       func(c *Config) { c.UserID = "signalbox" },
		`"ops" is neither the id`:    func(c *Config) { c.Rooms = []string{"!abc:example.org", "#a:b", "ops"} },
		`the prefix "! x" contains`:  func(c *Config) { c.Prefix = "! x" },
		"a store or a receiver is m": nil,
	} {
		c, store := good, SyncStore(&memory{})
		if change != nil {
			change(&c)
		} else {
			store = nil
		}
		_, err := New(c, store, newInbox(), nil, nil)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is in %v", err)
		}
	}
	c := good
	c.Encryption.Dir = t.TempDir()
	if _, err := New(c, &memory{}, newInbox(), nil, nil); errors.Is(err, errCannotEncrypt) == canEncrypt {
		t.Errorf("encryption in a build that has it (%t): %v", canEncrypt, err)
	}
}
