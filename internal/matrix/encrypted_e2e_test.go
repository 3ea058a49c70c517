//go:build e2e && goolm

package matrix

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/secret"
)

// TestDendriteEncrypted runs the suite in rooms that are encrypted, with people who
// have keys of their own.
func TestDendriteEncrypted(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Backend { return newBackend(t, realSite(t), true) })
}

// keyHolder keeps what signalbox is sent directly, which is keys, until it is let go.
type keyHolder struct {
	pass http.Handler

	mu   sync.Mutex
	let  bool
	held []json.RawMessage
}

func (k *keyHolder) answer(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/sync") {
		return false
	}
	got := httptest.NewRecorder()
	k.pass.ServeHTTP(got, r)
	var body map[string]json.RawMessage
	var direct struct {
		Events []json.RawMessage `json:"events"`
	}
	if got.Code != http.StatusOK || json.Unmarshal(got.Body.Bytes(), &body) != nil {
		hangUp(w)
		return true
	}
	_ = json.Unmarshal(body["to_device"], &direct) // It may be absent.
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = append(k.held, direct.Events...)
	direct.Events = nil
	if k.let {
		direct.Events, k.held = k.held, nil
	}
	body["to_device"], _ = json.Marshal(direct)
	changed, _ := json.Marshal(body)
	refuse(w, http.StatusOK, string(changed))
	return true
}

// TestLateKey: a message whose key comes late is read when it has come, others are
// before it, and the stored position waits for it, also over a restart.
func TestLateKey(t *testing.T) {
	b := newBackend(t, realSite(t), true)
	room, err := b.Room(t.Context(), "deploy")
	if err != nil {
		t.Fatal(err)
	}
	in := b.start(t)
	here := conformance.Place{Room: room}
	say := func(who conformance.Person, text string) {
		t.Helper()
		if _, err := b.Mention(t.Context(), here, who, text); err != nil {
			t.Fatal(err)
		}
	}
	say(conformance.Bob, "first")
	in.until(t, "first")

	holder := &keyHolder{pass: b.site.gate.pass}
	b.site.gate.interfere(holder.answer)
	b.site.gate.server.CloseClientConnections()
	say(conformance.Alice, "late")
	say(conformance.Bob, "second")
	if diff := cmp.Diff([]string{"second"}, in.until(t, "second")); diff != "" {
		t.Errorf("what came without waiting (-want +got):\n%s", diff)
	}
	say(conformance.Bob, "third")
	in.until(t, "third")
	stored := b.store.last()

	if err := b.restart(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if now := b.store.last(); now != stored {
		t.Errorf("the position moved from %s to %s over a message that was not read", stored, now)
	}
	holder.mu.Lock()
	holder.let = true
	holder.mu.Unlock()
	b.site.gate.server.CloseClientConnections()
	in.until(t, "late")
	if err := poll(t.Context(), func() (bool, error) { return b.store.last() != stored, nil }); err != nil {
		t.Error(err)
	}
}

// TestKeyThatNeverComes: it is given up, and the position moves on.
func TestKeyThatNeverComes(t *testing.T) {
	b := newBackend(t, realSite(t), true)
	b.limits.patience = 100 * time.Millisecond
	room, err := b.Room(t.Context(), "deploy")
	if err != nil {
		t.Fatal(err)
	}
	in := b.start(t)
	say := func(who conformance.Person, text string) {
		t.Helper()
		if _, err := b.Mention(t.Context(), conformance.Place{Room: room}, who, text); err != nil {
			t.Fatal(err)
		}
	}
	unread := func() float64 { return testutil.ToFloat64(b.adapter.metrics.received.WithLabelValues(resultUnread)) }
	say(conformance.Bob, "first")
	in.until(t, "first")
	b.site.gate.interfere((&keyHolder{pass: b.site.gate.pass}).answer)
	b.site.gate.server.CloseClientConnections()
	say(conformance.Alice, "lost")
	if err := poll(t.Context(), func() (bool, error) { return unread() == 1, nil }); err != nil {
		t.Fatal(err)
	}
	say(conformance.Bob, "second")
	in.until(t, "second")
	if err := b.restart(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	say(conformance.Bob, "third")
	for _, text := range in.until(t, "third") {
		if text == "lost" {
			t.Error("what was given up was read")
		}
	}
	if n := unread(); n != 0 {
		t.Errorf("after a restart %v messages are given up again", n)
	}
}

// TestHomeserverComesBack: Dendrite is killed in the middle, and nothing is lost.
func TestHomeserverComesBack(t *testing.T) {
	b := newBackend(t, realSite(t), true)
	room, err := b.Room(t.Context(), "deploy")
	if err != nil {
		t.Fatal(err)
	}
	in := b.start(t)
	here := conformance.Place{Room: room}
	for _, text := range []string{"before", "after"} {
		if _, err := b.Mention(t.Context(), here, conformance.Alice, text); err != nil {
			t.Fatal(err)
		}
		in.until(t, text)
		if _, err := b.adapter.Post(t.Context(), room, "", "test/"+text, b.Body(text, "")); err != nil {
			t.Fatal(err)
		}
		if text == "after" {
			break
		}
		dendrite.Kill()
		if _, err := b.adapter.Post(t.Context(), room, "", "test/while", b.Body("while", "")); err == nil || errors.Is(err, chat.ErrGone) {
			t.Errorf("without a homeserver: %v", err)
		}
		if err := dendrite.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := b.Shown(t.Context(), here, conformance.Bob)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, s := range shown {
		texts = append(texts, s.Text)
	}
	if diff := cmp.Diff([]string{"before", "after"}, texts); diff != "" {
		t.Errorf("what Bob sees (-want +got):\n%s", diff)
	}
}

// TestFolderOfKeys: what cannot be right is said when the folder is opened.
func TestFolderOfKeys(t *testing.T) {
	account, err := dendrite.CreateAccount(t.Context(), "keeper")
	if err != nil {
		t.Fatal(err)
	}
	again, err := dendrite.Login(t.Context(), account, "")
	if err != nil {
		t.Fatal(err)
	}
	client := func(token, device string) *mautrix.Client {
		c, err := mautrix.NewClient(dendrite.URL(), id.UserID(account.ID), token)
		if err != nil {
			t.Fatal(err)
		}
		c.DeviceID = id.DeviceID(device)
		return c
	}
	open := func(c Encryption, client *mautrix.Client) (cipher, error) {
		return openCipher(t.Context(), c, client, newRooms(), slog.New(slog.DiscardHandler))
	}
	dir := filepath.Join(t.TempDir(), "keys")
	mine := client(account.Token, account.Device)
	keys, err := open(Encryption{Dir: dir}, mine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(Encryption{Dir: dir}, mine); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := keys.close(); err != nil {
		t.Fatal(err)
	}
	for want, try := range map[string]func() (cipher, error){
		"are those of device":     func() (cipher, error) { return open(Encryption{Dir: dir}, client(again.Token, again.Device)) },
		"another pickle key?":     func() (cipher, error) { return open(Encryption{Dir: dir, PickleKey: secret.New("wrong")}, mine) },
		"others were given other": func() (cipher, error) { return open(Encryption{Dir: t.TempDir()}, mine) },
		"belongs to no device":    func() (cipher, error) { return open(Encryption{Dir: dir}, client(account.Token, "")) },
	} {
		if keys, err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
			if err == nil {
				_ = keys.close()
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, filePickle)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the pickle key: %v, %v", info, err)
	}
	keys, err = open(Encryption{Dir: dir}, mine)
	if err != nil {
		t.Fatalf("after all of that it does not open any more: %v", err)
	}
	if err := keys.close(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, filePickle)); err != nil {
		t.Fatal(err)
	}
	if _, err := open(Encryption{Dir: dir}, mine); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without its pickle key: %v", err)
	}
}
