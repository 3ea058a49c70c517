package matrix

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
)

// SyncStore keeps the position in a homeserver's stream of events over restarts. It is
// one of the homeserver and the account: to any other it means nothing, or something
// else.
type SyncStore interface {
	// Load returns what was saved last for an account on a homeserver, or nothing.
	Load(ctx context.Context, homeserver, account string) (string, error)
	Save(ctx context.Context, homeserver, account, token string) error
}

// limits are times and sizes; tests have smaller ones.
type limits struct {
	poll    time.Duration // How long the homeserver waits for news.
	request time.Duration // Bounds one thing asked of the homeserver.
	recheck time.Duration // Between two tries while the token is refused.
	retry   time.Duration // Before the first try again; it grows to a minute.
	// patience is how long an event waits for the keys that decrypt it.
	patience time.Duration
	// absent is how long a message that cannot be read is not asked for again.
	absent time.Duration
}

// stale is how old what is said may be at the start, where no position is stored,
// or before signalbox came into a room.
const stale = 10 * time.Minute

// remembered is how many messages are known without asking.
const remembered = 4096

// maxAnswer bounds an answer of the homeserver, in bytes: the first sync of many
// rooms is large.
const maxAnswer = 64 << 20

// Adapter is signalbox on Matrix. Make it with [New] and run it with [Adapter.Run].
// As a [chat.Poster] it may be used by many goroutines.
type Adapter struct {
	config   Config
	store    SyncStore
	receiver chat.Receiver
	log      *slog.Logger
	metrics  *metrics
	limits   limits
	client   *mautrix.Client
	rooms    *mautrix.MemoryStateStore

	// own tells of messages whether signalbox sent them; posted has the id of what
	// was sent by its transaction; absent are messages that cannot be read.
	own    *lru.Cache[id.EventID, bool]
	posted *lru.Cache[sent, id.EventID]
	absent *lru.Cache[message, absence]

	// What follows belongs to the goroutine of Run, but for what is read under mu.
	mu      sync.Mutex
	self    self
	cipher  cipher // Nil without encryption.
	ready   bool   // Who signalbox is and which rooms are encrypted is known.
	refused bool   // The token was refused when it was last tried.
	trouble string // Why nothing can be said or heard now, or empty.

	started time.Time
	loaded  bool   // Whether since was read from the store.
	since   string // The position up to which everything was taken in or waits.
	saved   string
	waiting []waiting
	unread  map[id.RoomID]bool // Rooms of which it was logged that they cannot be read.
	synced  bool               // Whether the homeserver told any news yet.
	logged  string             // Why it is not connected, as it was logged last.
}

var _ chat.Poster = (*Adapter)(nil)

type sent struct {
	room        id.RoomID
	transaction string
}

// New makes an adapter, without asking the homeserver anything. A nil logger
// discards, a nil registerer keeps the metrics private.
func New(config Config, store SyncStore, receiver chat.Receiver, logger *slog.Logger, registerer prometheus.Registerer) (*Adapter, error) {
	config, err := config.check()
	if err != nil {
		return nil, err
	}
	if store == nil || receiver == nil {
		return nil, errors.New("matrix: a store or a receiver is missing")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(registerer)
	if err != nil {
		return nil, fmt.Errorf("matrix: %w", err)
	}
	a := &Adapter{
		config: config, store: store, receiver: receiver, log: logger, metrics: m,
		rooms:  newRooms(),
		unread: map[id.RoomID]bool{}, logged: reasonStarting, trouble: reasonStarting,
		limits: limits{
			poll: 30 * time.Second, request: 20 * time.Second, recheck: 3 * time.Minute, retry: time.Second, patience: 5 * time.Minute,
			absent: time.Minute,
		},
	}
	// They fail for a size below one.
	a.own, _ = lru.New[id.EventID, bool](remembered)
	a.posted, _ = lru.New[sent, id.EventID](remembered)
	a.absent, _ = lru.New[message, absence](remembered)
	a.client, err = mautrix.NewClient(config.Homeserver, id.UserID(config.UserID), config.Token.Reveal())
	if err != nil {
		return nil, fmt.Errorf("matrix: the homeserver's URL is not understood: %s", a.reason(err))
	}
	a.client.ResponseSizeLimit = maxAnswer
	// Each request has a deadline of its own; this is for those of the keys.
	a.client.Client = &http.Client{Transport: transport{base: http.DefaultTransport, metrics: m}, CheckRedirect: stay, Timeout: 3 * time.Minute}
	return a, nil
}

// newRooms makes what remembers the members and the encryption of rooms.
func newRooms() *mautrix.MemoryStateStore {
	return &mautrix.MemoryStateStore{
		Registrations: map[id.UserID]bool{}, Members: map[id.RoomID]map[id.UserID]*event.MemberEventContent{},
		MembersFetched: map[id.RoomID]bool{}, PowerLevels: map[id.RoomID]*event.PowerLevelsEventContent{},
		Encryption: map[id.RoomID]*event.EncryptionEventContent{}, Create: map[id.RoomID]*event.Event{},
		JoinRules: map[id.RoomID]*event.JoinRulesEventContent{}, HistoryVisibility: map[id.RoomID]*event.HistoryVisibilityEventContent{},
	}
}

// Run takes in what happens until ctx ends, and returns nil then. Whatever else goes
// wrong is logged, shown in the metric signalbox_chat_up, and tried again: after a
// delay that grows to a minute, or every few minutes while the token is refused.
func (a *Adapter) Run(ctx context.Context) error {
	a.started = time.Now()
	delay := backoff.NewExponentialBackOff()
	delay.InitialInterval, delay.MaxInterval = a.limits.retry, time.Minute
	defer a.disconnect()
	for ctx.Err() == nil {
		err := a.turn(ctx)
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			delay.Reset()
			a.up()
			continue
		}
		wait := delay.NextBackOff()
		var again *chat.RetryError
		switch {
		case errors.Is(err, chat.ErrRevoked):
			wait = a.limits.recheck
		case errors.As(err, &again):
			wait = max(wait, again.After)
		}
		a.down(err)
		pause(ctx, wait)
	}
	return nil
}

// turn connects, or takes in what happened since the last turn.
func (a *Adapter) turn(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			a.log.ErrorContext(ctx, "a panic while talking to the homeserver", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = errors.New("a panic")
		}
	}()
	if !a.isReady() {
		return a.connect(ctx)
	}
	return a.sync(ctx)
}

// connect learns who signalbox is and what its rooms are like.
func (a *Adapter) connect(ctx context.Context) error {
	me, err := ask(ctx, a, "ask who signalbox is", func(ctx context.Context) (*mautrix.RespWhoami, error) { return a.client.Whoami(ctx) })
	if err != nil {
		return err
	}
	if want := id.UserID(a.config.UserID); want != "" && me.UserID != want {
		return fmt.Errorf("the token is that of %s, but %s is configured; give the token of the right account", me.UserID, want)
	}
	if want := id.DeviceID(a.config.DeviceID); want != "" && me.DeviceID != want {
		return fmt.Errorf("the token is that of device %q, but %q is configured; give the token of that login, or configure the new device", me.DeviceID, want)
	}
	a.client.UserID, a.client.DeviceID = me.UserID, me.DeviceID
	if !a.loaded {
		since, err := a.store.Load(ctx, a.config.Homeserver, me.UserID.String())
		if err != nil {
			return fmt.Errorf("load the position: %w", err)
		}
		a.since, a.saved, a.loaded = since, since, true
	}
	// Nobody needs a name: where there is none, the id is what it is called by.
	name, err := ask(ctx, a, "ask for signalbox's name", func(ctx context.Context) (*mautrix.RespUserDisplayName, error) {
		return a.client.GetDisplayName(ctx, me.UserID)
	})
	if err != nil && !permanent(err) {
		return err
	}
	who := self{user: me.UserID, prefix: a.config.Prefix}
	if name != nil {
		who.name = name.DisplayName
	}
	if err := a.readRooms(ctx); err != nil {
		return err
	}
	var keys cipher
	if a.config.Encryption.Dir != "" {
		if keys, err = openCipher(ctx, a.config.Encryption, a.client, a.rooms, a.log); err != nil {
			return fmt.Errorf("prepare encryption: %w", err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.self, a.cipher, a.ready = who, keys, true
	return nil
}

// disconnect forgets what connect has learnt.
func (a *Adapter) disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cipher != nil {
		if err := a.cipher.close(); err != nil {
			a.log.Warn("the store of keys was not closed", "error", err)
		}
	}
	a.cipher, a.ready = nil, false
}

func (a *Adapter) isReady() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ready
}

// keys returns what encrypts, or nil.
func (a *Adapter) keys() cipher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cipher
}

// joined returns the rooms that signalbox is in, as the homeserver says now.
func (a *Adapter) joined(ctx context.Context) ([]id.RoomID, error) {
	joined, err := ask(ctx, a, "list the rooms", func(ctx context.Context) (*mautrix.RespJoinedRooms, error) { return a.client.JoinedRooms(ctx) })
	if err != nil {
		return nil, err
	}
	return joined.JoinedRooms, nil
}

// readRooms reads which rooms there are and who is in them.
func (a *Adapter) readRooms(ctx context.Context) error {
	rooms, err := a.joined(ctx)
	if err != nil {
		return err
	}
	for _, room := range rooms {
		if err := a.readRoom(ctx, room); err != nil && !permanent(err) {
			return err
		}
	}
	return nil
}

func (a *Adapter) readRoom(ctx context.Context, room id.RoomID) error {
	state, err := ask(ctx, a, "read room "+room.String(), func(ctx context.Context) ([]*event.Event, error) { return a.client.StateAsArray(ctx, room) })
	if err != nil {
		return err
	}
	for _, e := range state {
		a.noteState(ctx, room, e)
	}
	return a.rooms.MarkMembersFetched(ctx, room)
}

// ask asks the homeserver something, within the time of a request.
func ask[T any](ctx context.Context, a *Adapter, doing string, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, a.limits.request)
	defer cancel()
	v, err := f(ctx)
	return v, a.failure(doing, err)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
