package handlers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/events"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// Card is the message of a room that shows one pull request.
type Card struct {
	Room chat.Room `json:"room"`
	Ref  pull.Ref  `json:"ref"`
	// Message is its id on the platform, or empty while it is not known whether it
	// was posted.
	Message string `json:"message"`
	// Post tells this card from former ones of the same pull request in the room,
	// which were ended or lost. A platform shows nothing for a cause that it knows.
	Post string `json:"post,omitempty"`
	// Sum identifies what it says, or is empty while that is not certain.
	Sum string `json:"sum"`
	// Head is the commit that it shows, Since when it certainly does. Since is zero
	// while it may show another.
	Head  string    `json:"head"`
	Since time.Time `json:"since,omitzero"`
	Repo  pull.Repo `json:"repo"`
	// Told are the answers in its thread that were given for this head.
	Told []string `json:"told,omitempty"`
}

// Glance is the least time in which somebody can have read a card that changed.
const Glance = 5 * time.Second

// read reports whether somebody who spoke at a time can have read which commit the
// card shows. The time is that of the platform and Since of this machine, taken
// after the platform had answered: both that and the least time err towards
// asking again, and make up for clocks that differ by less than that time. A clock
// of the platform that is further ahead is not made up for.
func (c *Card) read(at time.Time, least time.Duration) bool {
	return !c.Since.IsZero() && !at.Before(c.Since.Add(least))
}

// CardStore keeps cards.
type CardStore interface {
	Get(key string) (c Card, revision uint64, ok bool)
	Put(ctx context.Context, key string, c Card, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	Sync(ctx context.Context) error
}

func cardKey(room chat.Room, ref pull.Ref) string {
	return string(room.Platform) + "." + hashed(room.ID) + "." + ref.String()
}

// CardIndex finds cards by what they show, and what is shown by the message. It
// follows the cards through [CardIndex.Change].
type CardIndex struct {
	mu        sync.RWMutex
	byRef     map[pull.Ref]map[chat.Room]Card
	byMessage map[shownAt]Card
}

type shownAt struct {
	room    chat.Room
	message string
}

// NewCardIndex makes an empty index.
func NewCardIndex() *CardIndex {
	return &CardIndex{byRef: map[pull.Ref]map[chat.Room]Card{}, byMessage: map[shownAt]Card{}}
}

// Change follows one change of a card; nil means that there was or is none.
func (x *CardIndex) Change(_ string, before, after *Card) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if before != nil {
		delete(x.byRef[before.Ref], before.Room)
		if before.Message != "" {
			delete(x.byMessage, shownAt{before.Room, before.Message})
		}
		if len(x.byRef[before.Ref]) == 0 {
			delete(x.byRef, before.Ref)
		}
	}
	if after != nil {
		if x.byRef[after.Ref] == nil {
			x.byRef[after.Ref] = map[chat.Room]Card{}
		}
		x.byRef[after.Ref][after.Room] = *after
		if after.Message != "" {
			x.byMessage[shownAt{after.Room, after.Message}] = *after
		}
	}
}

// At returns the card that is a message, or whose thread hangs on it.
func (x *CardIndex) At(room chat.Room, message string) (Card, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c, ok := x.byMessage[shownAt{room, message}]
	return c, ok
}

// In returns the card of a pull request in a room, if one was posted there.
func (x *CardIndex) In(room chat.Room, ref pull.Ref) (Card, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c, ok := x.byRef[ref][room]
	return c, ok && c.Message != ""
}

// rooms returns the rooms of a platform with a card of a pull request.
func (x *CardIndex) rooms(platform chat.Platform, ref pull.Ref) []chat.Room {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var rooms []chat.Room
	for room := range x.byRef[ref] {
		if room.Platform == platform {
			rooms = append(rooms, room)
		}
	}
	return rooms
}

// Cards keeps the cards of one platform true. It follows the records of pull
// requests: whatever a card has missed while the platform was down, it shows the
// latest state when that is back, and no more.
type Cards struct {
	Platform      chat.Platform
	Poster        chat.Poster
	Records       Records
	Subscriptions *Subscriptions
	Store         CardStore
	// Conflict reports that a card was written by somebody else meanwhile.
	Conflict func(error) bool
	Index    *CardIndex
	Forge    PullReader
	Now      func() time.Time
	Log      *slog.Logger
}

// Handle makes the cards of a pull request true; key is that of its record.
func (h *Cards) Handle(ctx context.Context, key string) error {
	ref, err := parseRef(key)
	if err != nil {
		return events.Permanent(err)
	}
	if err := h.Store.Sync(ctx); err != nil {
		return fmt.Errorf("cards of %s: %w", key, err)
	}
	record, _, ok := h.Records.Get(key)
	shown := h.Index.rooms(h.Platform, ref)
	if !ok {
		return h.each(ctx, shown, func(ctx context.Context, room chat.Room) error { return h.end(ctx, room, ref) })
	}
	if record.EvaluatedAt.IsZero() {
		return nil
	}
	wanted := h.Subscriptions.rooms(h.Platform, &record)
	for _, room := range shown {
		if !slices.Contains(wanted, room) {
			wanted = append(wanted, room)
		}
	}
	return h.each(ctx, wanted, func(ctx context.Context, room chat.Room) error { return h.show(ctx, room, &record) })
}

func parseRef(key string) (pull.Ref, error) {
	repo, number, ok := strings.Cut(key, ".")
	id, errID := strconv.ParseInt(repo, 10, 64)
	n, errN := strconv.ParseInt(number, 10, 64)
	if !ok || errID != nil || errN != nil {
		return pull.Ref{}, fmt.Errorf("%q is not the key of a pull request", key)
	}
	return pull.Ref{RepoID: id, Number: n}, nil
}

// each goes on to the next room after one that failed.
func (h *Cards) each(ctx context.Context, rooms []chat.Room, do func(context.Context, chat.Room) error) error {
	var errs []error
	for _, room := range rooms {
		if err := do(ctx, room); err != nil {
			errs = append(errs, fmt.Errorf("card in %s: %w", room, chatError(err)))
		}
	}
	return errors.Join(errs...)
}

// show posts or edits the card of an open pull request in a room. Before the
// platform is asked, it is written down that what the card shows is not certain:
// whoever ends in between has it shown again.
func (h *Cards) show(ctx context.Context, room chat.Room, r *Record) error {
	p := r.Inputs.Snapshot.Pull
	body := render.ChatBody(h.Platform, render.Card(render.CardOf{Pull: p, Verdict: &r.Verdict, State: pull.Open}))
	key := cardKey(room, p.Ref())
	card, revision, known := h.Store.Get(key)
	fresh := Card{Room: room, Ref: p.Ref(), Message: card.Message, Post: card.Post, Head: p.Head.SHA, Repo: p.Repo}
	if card.Head == fresh.Head {
		fresh.Since, fresh.Told = card.Since, card.Told
	}
	sum := bodySum(body)
	if known && card.Sum == sum && !fresh.Since.IsZero() {
		fresh.Sum = sum
		return h.news(ctx, key, fresh, revision, &r.Verdict)
	}
	if fresh.Message == "" && fresh.Post == "" {
		fresh.Post = rand.Text()
	}
	revision, err := h.Store.Put(ctx, key, fresh, revision)
	if err != nil {
		return fmt.Errorf("keep the card: %w", err)
	}
	if fresh.Message == "" {
		fresh.Message, err = h.Poster.Post(ctx, room, "", "card/"+room.String()+"/"+p.Ref().String()+"/"+fresh.Post, body)
	}
	if err == nil && known {
		// Also what was just posted: it may have been answered with a message from
		// before, that says something else.
		err = h.Poster.Edit(ctx, room, fresh.Message, editCause(sum, revision), body)
	}
	if errors.Is(err, chat.ErrGone) || errors.Is(err, chat.ErrTooLong) {
		return h.lost(ctx, key, room, err)
	}
	if err != nil {
		return err
	}
	fresh.Sum = sum
	if fresh.Since.IsZero() {
		fresh.Since = h.Now().UTC()
	}
	revision, err = h.Store.Put(ctx, key, fresh, revision)
	if h.Conflict(err) {
		err = errors.Join(err, h.doubt(ctx, key, fresh))
	}
	if err != nil {
		return fmt.Errorf("keep the card: %w", err)
	}
	// The card before the answer in its thread, which has a cause of its own.
	return h.news(ctx, key, fresh, revision, &r.Verdict)
}

// editCause names one edit. To say again what a card has said before is another.
func editCause(sum string, revision uint64) string {
	return fmt.Sprintf("card/%s/%d", sum, revision)
}

// doubt writes down that what a message shows is not certain, because it was
// edited while somebody else did the same: which came last, only the platform
// knows.
func (h *Cards) doubt(ctx context.Context, key string, edited Card) error {
	for {
		card, revision, ok := h.Store.Get(key)
		switch {
		case !ok:
			card = edited // It was ended, and is to be ended again.
		case card.Message != "" && card.Message != edited.Message:
			return nil
		}
		card.Message, card.Sum, card.Since = edited.Message, "", time.Time{}
		_, err := h.Store.Put(ctx, key, card, revision)
		if !h.Conflict(err) {
			return err
		}
	}
}

// Names of what is told in the thread of a card.
const (
	newsOverridden = "overridden"
	newsClear      = string(policy.Clear)
	newsBlocked    = string(policy.Blocked)
	newsMerged     = string(pull.Merged)
)

func newsTalk(news string, v *policy.Verdict) render.Talk {
	switch news {
	case newsOverridden:
		return render.WasOverridden(v.Overrides[0])
	case newsBlocked:
		return render.BecameBlocked(v)
	default:
		return render.BecameClear(v)
	}
}

// news tells in the thread what became of a pull request, once for each head. It
// is kept as told after it was: told again, the same cause shows nothing new.
func (h *Cards) news(ctx context.Context, key string, c Card, revision uint64, v *policy.Verdict) error {
	state := v.State()
	news := ""
	switch {
	case len(v.Overrides) > 0 && state == policy.Clear:
		news = newsOverridden
	case state == policy.Clear:
		news = newsClear
	case state == policy.Blocked:
		news = newsBlocked
	}
	if news == "" || slices.Contains(c.Told, news) {
		return nil
	}
	if err := h.tell(ctx, c, news, newsTalk(news, v)); err != nil {
		return err
	}
	c.Told = append(slices.Clone(c.Told), news)
	if _, err := h.Store.Put(ctx, key, c, revision); err != nil {
		return fmt.Errorf("keep what was told: %w", err)
	}
	return nil
}

func (h *Cards) tell(ctx context.Context, c Card, news string, talk render.Talk) error {
	cause := fmt.Sprintf("news/%s/%s/%s/%s", c.Room, c.Ref, c.Head, news)
	_, err := h.Poster.Post(ctx, c.Room, c.Message, cause, render.ChatBody(h.Platform, talk))
	if errors.Is(err, chat.ErrGone) || errors.Is(err, chat.ErrTooLong) {
		h.Log.WarnContext(ctx, "news of a pull request could not be told", "room", c.Room.String(), "pull", c.Repo.Numbered(c.Ref.Number), "error", err)
		return nil
	}
	return err
}

// end shows what became of a pull request that is not open any more.
func (h *Cards) end(ctx context.Context, room chat.Room, ref pull.Ref) error {
	key := cardKey(room, ref)
	card, revision, ok := h.Store.Get(key)
	if !ok {
		return nil
	}
	p, err := h.Forge.Pull(ctx, card.Repo, ref.Number)
	switch {
	case errors.Is(err, pull.ErrNotFound):
		p = pull.Pull{Repo: card.Repo, Number: ref.Number, State: pull.Closed}
	case err != nil:
		return err
	case p.State == pull.Open:
		return nil // It is open again, and evaluated soon.
	}
	if card.Message == "" {
		return h.forget(ctx, key) // As far as is known, it was never posted.
	}
	card.Sum, card.Since = "", time.Time{}
	if revision, err = h.Store.Put(ctx, key, card, revision); err != nil {
		return fmt.Errorf("keep the card: %w", err)
	}
	body := render.ChatBody(h.Platform, render.Card(render.CardOf{Pull: p, State: p.State}))
	err = h.Poster.Edit(ctx, room, card.Message, editCause(bodySum(body), revision), body)
	if err == nil && p.State == pull.Merged {
		err = h.tell(ctx, card, newsMerged, render.WasMerged(p))
	}
	if err != nil && !errors.Is(err, chat.ErrGone) && !errors.Is(err, chat.ErrTooLong) {
		return err
	}
	return h.forget(ctx, key)
}

// lost handles a room or message that is gone: the card is forgotten, so that it
// is shown anew when signalbox is invited again and the pull request changes.
func (h *Cards) lost(ctx context.Context, key string, room chat.Room, why error) error {
	h.Log.WarnContext(ctx, "a card cannot be shown", "room", room.String(), "error", why)
	return h.forget(ctx, key)
}

func (h *Cards) forget(ctx context.Context, key string) error {
	if err := h.Store.Delete(ctx, key); err != nil {
		return fmt.Errorf("forget the card: %w", err)
	}
	return nil
}

func bodySum(b chat.Body) string {
	sum := sha256.Sum256([]byte(b.Text + "\x00" + b.Blocks + "\x00" + b.HTML))
	return hex.EncodeToString(sum[:12])
}
