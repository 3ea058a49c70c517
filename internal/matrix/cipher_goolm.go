//go:build goolm

package matrix

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"go.mau.fi/util/dbutil"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
	_ "modernc.org/sqlite" // The database of the keys, without C.
)

// canEncrypt says whether this build can work in encrypted rooms.
const canEncrypt = true

// Files in the folder for encryption.
const (
	fileKeys   = "keys.db"
	filePickle = "pickle.key"
	fileLock   = "lock"
)

// megolm is the encryption of Matrix rooms with the keys in a folder.
type megolm struct {
	machine *crypto.OlmMachine
	rooms   *mautrix.MemoryStateStore
	db      *dbutil.Database
	lock    *flock.Flock
	log     *slog.Logger
}

// openCipher opens the keys in the folder, or makes them there for a new login.
func openCipher(ctx context.Context, c Encryption, client *mautrix.Client, rooms *mautrix.MemoryStateStore, log *slog.Logger) (_ cipher, err error) {
	if client.DeviceID == "" {
		return nil, errors.New("the token belongs to no device, which encryption needs; log in to get one that does")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for keys: %w", err)
	}
	m := &megolm{rooms: rooms, log: log, lock: flock.New(filepath.Join(c.Dir, fileLock))}
	held, err := m.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the folder for keys: %w", err)
	}
	if !held {
		return nil, fmt.Errorf("another process uses the keys in %s; only one may", c.Dir)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	pickle, err := pickleKey(c)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.Dir, fileKeys)
	raw, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if m.db, err = dbutil.NewWithDB(raw, "sqlite3"); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), raw.Close())
	}
	store := crypto.NewSQLCryptoStore(m.db, dbutil.NoopLogger, "", client.DeviceID, pickle)
	if err := store.DB.Upgrade(ctx); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", path, err)
	}
	stored, err := store.FindDeviceID(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if stored != "" && stored != client.DeviceID {
		return nil, fmt.Errorf("the keys in %s are those of device %s, but the token is that of device %s; keys and token are of one login: give the old token, or an empty folder", c.Dir, stored, client.DeviceID)
	}
	logger := zlog(log)
	m.machine = crypto.NewOlmMachine(client, &logger, store, rooms)
	if err := m.machine.Load(ctx); err != nil {
		return nil, fmt.Errorf("read the account in %s (another pickle key?): %w", path, err)
	}
	if err := m.publish(ctx, client); err != nil {
		return nil, err
	}
	return m, m.forgetSessions(ctx)
}

// pickleKey returns the key of the configuration, or that in the folder, which it
// makes if there is none.
func pickleKey(c Encryption) ([]byte, error) {
	if !c.PickleKey.Empty() {
		return []byte(c.PickleKey.Reveal()), nil
	}
	path := filepath.Join(c.Dir, filePickle)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Stat(filepath.Join(c.Dir, fileKeys)); err == nil {
			return nil, fmt.Errorf("%s is missing, without which the keys beside it cannot be read; put it back, or start with an empty folder and a new login", path)
		}
		b := make([]byte, 32)
		_, _ = rand.Read(b) // Never fails.
		text = []byte(hex.EncodeToString(b) + "\n")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, fmt.Errorf("keep a new pickle key: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("read the pickle key: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return []byte(key), nil
}

// publish makes sure that the homeserver shows others the keys that are here.
func (m *megolm) publish(ctx context.Context, client *mautrix.Client) error {
	resp, err := client.QueryKeys(ctx, &mautrix.ReqQueryKeys{DeviceKeys: map[id.UserID]mautrix.DeviceIDList{client.UserID: {client.DeviceID}}})
	if err != nil {
		return fmt.Errorf("ask for signalbox's own keys: %w", err)
	}
	account := m.machine.GetAccount()
	shown := resp.DeviceKeys[client.UserID][client.DeviceID].Keys.GetEd25519(client.DeviceID)
	switch {
	case shown == "" && account.Shared:
		return errors.New("the homeserver has lost the keys of this login; log in again, and start with an empty folder for keys")
	case shown == "":
		if err := m.machine.ShareKeys(ctx, -1); err != nil {
			return fmt.Errorf("publish keys: %w", err)
		}
	case shown != m.machine.OwnIdentity().SigningKey:
		return errors.New("others were given other keys for this login than those in the folder; log in again, and start with an empty folder for keys")
	case !account.Shared:
		// They were published, and the end came before that was written down.
		account.Shared = true
		if err := m.machine.CryptoStore.PutAccount(ctx, account); err != nil {
			return fmt.Errorf("note that keys were published: %w", err)
		}
	}
	return nil
}

// forgetSessions begins new keys for what is said from now on: what is here may have
// been given to people who left since, and not to those who came.
func (m *megolm) forgetSessions(ctx context.Context) error {
	for room := range m.rooms.Members {
		if err := m.machine.CryptoStore.RemoveOutboundGroupSession(ctx, room); err != nil {
			return fmt.Errorf("begin a new key for %s: %w", room, err)
		}
	}
	return nil
}

func (m *megolm) sync(ctx context.Context, resp *mautrix.RespSync, since string) {
	m.machine.ProcessSyncResponse(ctx, resp, since)
}

func (m *megolm) member(ctx context.Context, e *event.Event) { m.machine.HandleMemberEvent(ctx, e) }

func (m *megolm) decrypt(ctx context.Context, e *event.Event) (*event.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	plain, err := m.machine.DecryptMegolmEvent(ctx, e)
	switch {
	case errors.Is(err, crypto.ErrNoSessionFound):
		return nil, errNoKey
	case err != nil:
		return nil, err
	// The key must be that of a device of whom the homeserver says it is: else it
	// could put another's words into somebody's mouth. Whose devices are whose is
	// what the homeserver says.
	case plain.Mautrix.TrustState == id.TrustStateUnknownDevice:
		return nil, fmt.Errorf("%w: the device that it was sent from is not known", errNoKey)
	case plain.Mautrix.TrustSource == nil || plain.Mautrix.TrustSource.UserID != e.Sender || plain.Mautrix.TrustState < id.TrustStateUnset || plain.Mautrix.ForwardedKeys:
		return nil, errors.New("its key is not one of a device of the sender")
	}
	return plain, nil
}

func (m *megolm) encrypt(ctx context.Context, room id.RoomID, content *event.MessageEventContent) (*event.EncryptedEventContent, error) {
	sealed, err := m.machine.EncryptMegolmEvent(ctx, room, event.EventMessage, content)
	if !crypto.IsShareError(err) {
		return sealed, err
	}
	people, err := m.rooms.GetRoomJoinedOrInvitedMembers(ctx, room)
	if err != nil {
		return nil, err
	}
	if err := m.machine.ShareGroupSession(ctx, room, people); err != nil {
		return nil, fmt.Errorf("give the key to the people in the room: %w", err)
	}
	return m.machine.EncryptMegolmEvent(ctx, room, event.EventMessage, content)
}

func (m *megolm) close() error {
	if m.machine != nil {
		m.machine.Destroy()
	}
	var err error
	if m.db != nil {
		err = m.db.Close()
	}
	return errors.Join(err, m.lock.Unlock())
}
