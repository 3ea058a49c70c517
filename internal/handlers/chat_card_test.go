package handlers_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

var errConflict = errors.New("conflict")

// kept is a bucket in memory.
type kept[T any] struct {
	values    map[string]T
	revisions map[string]uint64
	n         uint64
	changed   func(key string, before, after *T)
	// before, if set, is called before each write; after an error nothing is
	// written.
	before func(v T) error
}

func (k *kept[T]) Get(key string) (v T, revision uint64, ok bool) {
	v, ok = k.values[key]
	return v, k.revisions[key], ok
}

func (k *kept[T]) Put(_ context.Context, key string, v T, revision uint64) (uint64, error) {
	if k.before != nil {
		if err := k.before(v); err != nil {
			return 0, err
		}
	}
	if k.revisions[key] != revision {
		return 0, errConflict
	}
	if k.values == nil {
		k.values, k.revisions = map[string]T{}, map[string]uint64{}
	}
	old, was := k.values[key]
	k.n++
	k.values[key], k.revisions[key] = v, k.n
	if k.changed != nil {
		before := &old
		if !was {
			before = nil
		}
		k.changed(key, before, &v)
	}
	return k.n, nil
}

func (k *kept[T]) Delete(_ context.Context, key string) error {
	if old, ok := k.values[key]; ok && k.changed != nil {
		k.changed(key, &old, nil)
	}
	delete(k.values, key)
	delete(k.revisions, key)
	return nil
}

func (k *kept[T]) All() iter.Seq2[string, T] { return maps.All(k.values) }

func (*kept[T]) Sync(context.Context) error { return nil }

// wall is a room in memory that remembers causes, also of edits.
type wall struct {
	posts map[string]string // the message by its cause
	shows map[string]string // the text by its message
	edits map[string]bool
	calls []string
	// before, if set, is called before something is said.
	before func(what, cause string) error
}

func (w *wall) Post(_ context.Context, _ chat.Room, _, cause string, body chat.Body) (string, error) {
	if err := w.call("post", cause); err != nil {
		return "", err
	}
	if id, ok := w.posts[cause]; ok {
		return id, nil
	}
	id := "m" + string(rune('1'+len(w.posts)))
	w.posts[cause], w.shows[id] = id, body.Text+body.Blocks
	return id, nil
}

func (w *wall) Edit(_ context.Context, _ chat.Room, id, cause string, body chat.Body) error {
	if err := w.call("edit", cause); err != nil {
		return err
	}
	if _, ok := w.shows[id]; !ok {
		return chat.ErrGone
	}
	if !w.edits[cause] {
		w.edits[cause] = true
		w.shows[id] = body.Text + body.Blocks
	}
	return nil
}

func (w *wall) Whisper(context.Context, chat.Room, string, chat.User, string, chat.Body) error {
	return nil
}

func (w *wall) Attach(context.Context, chat.Room, string, string, chat.Picture) error {
	return w.call("attach", "")
}

func (w *wall) call(what, cause string) error {
	w.calls = append(w.calls, what)
	if w.before != nil {
		return w.before(what, cause)
	}
	return nil
}

// forgePulls answers with one pull request.
type forgePulls struct{ p pull.Pull }

func (f *forgePulls) Pull(context.Context, pull.Repo, int64) (pull.Pull, error) { return f.p, nil }

// hall is a room with the card of one pull request.
type hall struct {
	t       *testing.T
	wall    *wall
	cards   *kept[handlers.Card]
	records *kept[handlers.Record]
	forge   *forgePulls
	now     time.Time
	// state is that of both gates.
	state policy.GateState
	*handlers.Cards
}

var (
	hallRoom = chat.Room{Platform: chat.Slack, ID: "C1"}
	hallRepo = pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
)

func newHall(t *testing.T) *hall {
	t.Helper()
	index := handlers.NewCardIndex()
	h := &hall{
		t: t, wall: &wall{posts: map[string]string{}, shows: map[string]string{}, edits: map[string]bool{}},
		cards: &kept[handlers.Card]{changed: index.Change}, records: &kept[handlers.Record]{},
		forge: &forgePulls{}, now: time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC), state: policy.Waiting,
	}
	h.Cards = &handlers.Cards{
		Platform: chat.Slack, Poster: h.wall, Records: h.records, Store: h.cards, Index: index, Forge: h.forge,
		Subscriptions: &handlers.Subscriptions{
			Configured: []handlers.Subscription{{Room: hallRoom, Repo: hallRepo.String()}}, Store: &kept[handlers.Subscription]{},
		},
		Conflict: func(err error) bool { return errors.Is(err, errConflict) },
		Now:      func() time.Time { return h.now }, Log: slog.New(slog.DiscardHandler),
	}
	return h
}

// evaluated keeps the record of the pull request at a head.
func (h *hall) evaluated(head, title string) {
	h.t.Helper()
	p := pull.Pull{Repo: hallRepo, Number: 1, Title: title, State: pull.Open, Head: pull.Branch{SHA: head}}
	r := handlers.Record{EvaluatedAt: h.now, Verdict: policy.Verdict{Ref: p.Ref()}}
	r.Verdict.Preconditions.State, r.Verdict.Approval.State = h.state, h.state
	r.Inputs.Snapshot.Pull = p
	_, revision, _ := h.records.Get("7.1")
	if _, err := h.records.Put(h.t.Context(), "7.1", r, revision); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hall) handle() error { return h.Handle(h.t.Context(), "7.1") }

func (h *hall) handled() {
	h.t.Helper()
	if err := h.handle(); err != nil {
		h.t.Fatal(err)
	}
}

// card returns the card, which shows a text and is known to show its head since
// then.
func (h *hall) card(text, head string, since time.Time) handlers.Card {
	h.t.Helper()
	c, ok := h.Index.In(hallRoom, pull.Ref{RepoID: 7, Number: 1})
	if !ok || c.Head != head || !c.Since.Equal(since) || c.Sum == "" || !strings.Contains(h.wall.shows[c.Message], text) {
		h.t.Fatalf("the card is %+v (%t) and shows %q; want %q, head %s since %s", c, ok, h.wall.shows[c.Message], text, head, since)
	}
	return c
}

const headA, headB = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

func TestCardKnowsSinceWhenItsHeadIsShown(t *testing.T) {
	h := newHall(t)
	start := h.now
	h.evaluated(headA, "one")
	h.handled()
	h.card("one", headA, start)
	h.now = start.Add(time.Minute)
	h.evaluated(headA, "two")
	h.handled()
	h.card("two", headA, start)
	// To and fro: each is another edit, also for a platform that remembers them.
	for i, title := range []string{"one", "two", "one", "two"} {
		h.evaluated(headA, title)
		h.handled()
		h.card(title, headA, start)
		if h.handled(); len(h.wall.calls) != i+3 {
			t.Fatalf("what changes nothing was said: %v", h.wall.calls)
		}
	}
	h.evaluated(headB, "two")
	h.handled()
	h.card("two", headB, h.now)
}

// TestCardOverACrash: after the platform was asked and before its answer is kept.
func TestCardOverACrash(t *testing.T) {
	crash := errors.New("crash")
	for name, before := range map[string]func(h *hall){
		"of the post": func(*hall) {},
		"of an edit":  func(h *hall) { h.evaluated(headB, "first"); h.handled() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			before(h)
			h.evaluated(headA, "one")
			h.cards.before = func(c handlers.Card) error {
				if c.Sum != "" {
					return crash
				}
				return nil
			}
			if err := h.handle(); !errors.Is(err, crash) {
				t.Fatal(err)
			}
			if c, ok := h.Index.In(hallRoom, pull.Ref{RepoID: 7, Number: 1}); ok && !c.Since.IsZero() {
				t.Errorf("the card is certain to show %s: %+v", c.Head, c)
			}
			h.cards.before = nil
			h.now = h.now.Add(time.Minute)
			h.evaluated(headB, "first")
			h.handled()
			h.card("first", headB, h.now)
			if len(h.wall.shows) != 1 {
				t.Errorf("there are several cards: %v", h.wall.shows)
			}
		})
	}
}

func TestCardThatIsReopened(t *testing.T) {
	h := newHall(t)
	h.evaluated(headA, "one")
	h.handled()
	first := h.card("one", headA, h.now)
	record, _, _ := h.records.Get("7.1")
	h.forge.p = record.Inputs.Snapshot.Pull
	h.forge.p.State = pull.Closed
	if err := h.records.Delete(t.Context(), "7.1"); err != nil {
		t.Fatal(err)
	}
	// The first try ends after the card says so.
	h.wall.before = func(what, _ string) error {
		if what == "edit" {
			h.Store = lostDelete{h.cards}
		}
		return nil
	}
	if err := h.handle(); err == nil {
		t.Fatal("the end was kept")
	}
	h.Store, h.wall.before = h.cards, nil
	h.now = h.now.Add(time.Minute)
	h.evaluated(headA, "one")
	h.handled()
	h.card("one", headA, h.now)

	if err := h.records.Delete(t.Context(), "7.1"); err != nil {
		t.Fatal(err)
	}
	h.handled()
	if len(h.cards.values) != 0 {
		t.Fatalf("the card is still kept: %v", h.cards.values)
	}
	h.evaluated(headA, "one")
	h.handled()
	if again := h.card("one", headA, h.now); again.Message == first.Message {
		t.Error("the card that was ended is the one now")
	}
}

type lostDelete struct{ *kept[handlers.Card] }

func (lostDelete) Delete(context.Context, string) error { return errors.New("crash") }

func TestCardThatSomebodyDeleted(t *testing.T) {
	h := newHall(t)
	h.evaluated(headA, "one")
	h.handled()
	first := h.card("one", headA, h.now)
	delete(h.wall.shows, first.Message)
	h.evaluated(headA, "two")
	h.handled()
	if len(h.cards.values) != 0 {
		t.Fatalf("the card is still kept: %v", h.cards.values)
	}
	h.evaluated(headA, "three")
	h.handled()
	h.card("three", headA, h.now)
}

// TestNewsAreToldAfterAFailure: what was not told is not kept as told.
func TestNewsAreToldAfterAFailure(t *testing.T) {
	h := newHall(t)
	h.state = policy.Clear
	h.evaluated(headA, "one")
	down := errors.New("down")
	h.wall.before = func(_, cause string) error {
		if strings.HasPrefix(cause, "news/") {
			return down
		}
		return nil
	}
	if err := h.handle(); !errors.Is(err, down) {
		t.Fatal(err)
	}
	h.wall.before = nil
	h.handled()
	if c := h.card("one", headA, h.now); len(c.Told) != 1 || len(h.wall.posts) != 2 {
		t.Errorf("told are %v, said are %v", c.Told, h.wall.posts)
	}
	h.handled()
	if len(h.wall.calls) != 3 {
		t.Errorf("it was told again: %v", h.wall.calls)
	}
}

// TestCardOfTwoReplicas: one hangs while the other shows what came later.
func TestCardOfTwoReplicas(t *testing.T) {
	h := newHall(t)
	h.evaluated(headA, "one")
	h.handled()
	h.evaluated(headA, "two")
	h.wall.before = func(what, _ string) error {
		h.wall.before = nil
		h.evaluated(headB, "three")
		h.handled()
		h.card("three", headB, h.now)
		return nil
	}
	if err := h.handle(); !errors.Is(err, errConflict) {
		t.Fatal(err)
	}
	if c, _ := h.Index.In(hallRoom, pull.Ref{RepoID: 7, Number: 1}); !c.Since.IsZero() {
		t.Errorf("the card is certain to show %s", c.Head)
	}
	h.now = h.now.Add(time.Minute)
	h.handled() // It comes again.
	h.card("three", headB, h.now)
}

// TestCardThatAnotherReplicaEnded: the end is what it shows at last.
func TestCardThatAnotherReplicaEnded(t *testing.T) {
	h := newHall(t)
	h.evaluated(headA, "one")
	h.handled()
	card := h.card("one", headA, h.now)
	record, _, _ := h.records.Get("7.1")
	h.forge.p = record.Inputs.Snapshot.Pull
	h.forge.p.State = pull.Closed
	h.evaluated(headA, "two")
	h.wall.before = func(string, string) error {
		h.wall.before = nil
		if err := h.records.Delete(t.Context(), "7.1"); err != nil {
			return err
		}
		return h.handle()
	}
	if err := h.handle(); !errors.Is(err, errConflict) {
		t.Fatal(err)
	}
	h.handled() // It comes again.
	if text := h.wall.shows[card.Message]; !strings.Contains(text, "without a merge") || len(h.cards.values) != 0 {
		t.Errorf("it shows %q, and kept are %v", text, h.cards.values)
	}
}
