package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// page is how many events of a room come at once. What does not fit is asked for in
// pages of that size, and no more than maxPages of them.
const (
	page     = 100
	maxPages = 20
)

// filter is the filter of sync: what concerns signalbox, and what keys need.
func filter() string {
	types := []event.Type{
		event.EventMessage, event.EventEncrypted, event.EventReaction,
		event.StateMember, event.StateEncryption, event.StateHistoryVisibility,
	}
	none := &mautrix.FilterPart{NotTypes: []event.Type{{Type: "*"}}}
	// It is a value of plain strings and numbers.
	text, _ := json.Marshal(mautrix.Filter{
		AccountData: none, Presence: none,
		Room: &mautrix.RoomFilter{
			AccountData: none, Ephemeral: none,
			State:    &mautrix.FilterPart{Types: types[3:]},
			Timeline: &mautrix.FilterPart{Types: types, Limit: page},
		},
	})
	return string(text)
}

// sync waits for news, takes them in and stores the position behind them.
func (a *Adapter) sync(ctx context.Context) error {
	poll := a.limits.poll
	if a.since == "" || a.logged != "" {
		poll = 0 // Whether it works is wanted at once.
	}
	limit := poll + a.limits.request
	if a.since == "" {
		limit += time.Minute // The first answer is the longest.
	}
	asked, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := a.client.FullSyncRequest(asked, mautrix.ReqSync{Timeout: int(poll.Milliseconds()), Since: a.since, FilterID: filter()})
	if err != nil {
		return a.failure("wait for news", err)
	}
	if resp == nil || resp.NextBatch == "" {
		return &requestError{text: "wait for news: the homeserver's answer names no position"}
	}
	if err := a.take(ctx, resp); err != nil {
		return err
	}
	a.since, a.synced = resp.NextBatch, true
	a.save(ctx)
	return nil
}

// save stores the position, unless an event before it still waits for its keys. A
// position that could not be stored costs only that events come again.
func (a *Adapter) save(ctx context.Context) {
	if len(a.waiting) > 0 || a.since == a.saved {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.limits.request)
	defer cancel()
	if err := a.store.Save(ctx, a.config.Homeserver, a.self.user.String(), a.since); err != nil {
		a.log.WarnContext(ctx, "the position in the stream of events was not stored; after a restart events come again", "error", err)
		return
	}
	a.saved = a.since
}

// take takes in an answer of sync. It fails only when ctx ends.
func (a *Adapter) take(ctx context.Context, resp *mautrix.RespSync) error {
	if keys := a.keys(); keys != nil {
		keys.sync(ctx, resp, a.since)
	}
	for _, room := range slices.Sorted(maps.Keys(resp.Rooms.Leave)) {
		a.left(ctx, room)
	}
	for _, room := range slices.Sorted(maps.Keys(resp.Rooms.Invite)) {
		if err := a.invited(ctx, room, resp.Rooms.Invite[room]); err != nil {
			return err
		}
	}
	for _, room := range slices.Sorted(maps.Keys(resp.Rooms.Join)) {
		if err := a.happened(ctx, room, resp.Rooms.Join[room]); err != nil {
			return err
		}
	}
	return a.decryptWaiting(ctx)
}

// happened takes in what happened in a room.
func (a *Adapter) happened(ctx context.Context, room id.RoomID, news *mautrix.SyncJoinedRoom) error {
	if news == nil {
		return nil
	}
	floor, came := a.floor(news)
	if came {
		a.log.InfoContext(ctx, "signalbox is in a room", "room", room.String())
	}
	for _, e := range news.State.Events {
		a.noteState(ctx, room, e)
	}
	if came {
		// What came is all that there is. It fails for no room.
		_ = a.rooms.MarkMembersFetched(ctx, room)
	}
	events := news.Timeline.Events
	if news.Timeline.Limited && a.since != "" && !came {
		missed, err := a.missed(ctx, room, news.Timeline.PrevBatch)
		if err != nil {
			return err
		}
		events = append(missed, events...)
	}
	for _, e := range events {
		if err := a.takeEvent(ctx, room, e, floor); err != nil {
			return err
		}
	}
	return nil
}

// floor returns the time before which nothing is obeyed, and whether signalbox came
// into the room just now. Behind a stored position everything is new, so that
// nothing is too old.
func (a *Adapter) floor(news *mautrix.SyncJoinedRoom) (floor time.Time, came bool) {
	if a.since == "" {
		floor = a.started.Add(-stale)
	}
	for _, e := range slices.Concat(news.State.Events, news.Timeline.Events) {
		if e == nil || e.Type.Type != event.StateMember.Type || e.GetStateKey() != a.self.user.String() || membership(e) != event.MembershipJoin {
			continue
		}
		// Whoever changes only a name was in the room before.
		if prev := e.Unsigned.PrevContent; prev != nil && prev.Raw["membership"] == string(event.MembershipJoin) {
			continue
		}
		came = true
		if joined := when(e).Add(-stale); joined.After(floor) {
			floor = joined
		}
	}
	return floor, came
}

// missed returns what happened between the position and the events that came, oldest
// first.
func (a *Adapter) missed(ctx context.Context, room id.RoomID, from string) ([]*event.Event, error) {
	var all []*event.Event
	wanted := &mautrix.FilterPart{Types: []event.Type{event.EventMessage, event.EventEncrypted, event.EventReaction, event.StateMember, event.StateEncryption}}
	for n := 0; from != ""; n++ {
		if n == maxPages {
			a.log.ErrorContext(ctx, "a room has more news than are read; the oldest were not seen", "room", room.String(), "read", len(all))
			break
		}
		got, err := tryAgain(ctx, a, "read what was missed in "+room.String(), func(ctx context.Context) (*mautrix.RespMessages, error) {
			return a.client.Messages(ctx, room, from, a.since, mautrix.DirectionBackward, wanted, page)
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			a.log.ErrorContext(ctx, "events that came while signalbox was away cannot be read; they were not seen", "room", room.String(), "error", err)
			break
		}
		all = append(all, got.Chunk...)
		if got.End == from || len(got.Chunk) == 0 {
			break
		}
		from = got.End
	}
	slices.Reverse(all)
	return all, nil
}

// noteState remembers who is in a room and whether it is encrypted.
func (a *Adapter) noteState(ctx context.Context, room id.RoomID, e *event.Event) {
	if e == nil || e.StateKey == nil {
		return
	}
	e.RoomID, e.Type.Class = room, event.StateEventType
	if e.Content.Parsed == nil {
		if err := e.Content.ParseRaw(e.Type); err != nil {
			return
		}
	}
	if e.Type == event.StateEncryption {
		// Encryption is never turned off, whatever the homeserver says later.
		if c := e.Content.AsEncryption(); c.Algorithm == "" {
			return
		}
	}
	mautrix.UpdateStateStore(ctx, a.rooms, e)
	if keys := a.keys(); keys != nil && e.Type == event.StateMember {
		keys.member(ctx, e)
	}
}

// membership is what a state event says of somebody's membership.
func membership(e *event.Event) event.Membership {
	m, _ := e.Content.Raw["membership"].(string)
	return event.Membership(m)
}

// left notes that signalbox is not in a room any more.
func (a *Adapter) left(ctx context.Context, room id.RoomID) {
	if !a.rooms.IsInRoom(ctx, room, a.self.user) {
		return
	}
	a.log.WarnContext(ctx, "signalbox is not in a room any more; nothing is said there until it is invited again", "room", room.String())
	// Neither fails for any room. Who else is there is not told any more.
	_ = a.rooms.SetMembership(ctx, room, a.self.user, event.MembershipLeave)
	_ = a.rooms.ClearCachedMembers(ctx, room)
}

// tryAgain asks until there is an answer, the homeserver refuses, or ctx ends; a few
// times at most, so that one thing that cannot be had does not stop all others.
func tryAgain[T any](ctx context.Context, a *Adapter, doing string, f func(context.Context) (T, error)) (v T, err error) {
	wait := a.limits.retry
	for range 5 {
		if v, err = ask(ctx, a, doing, f); err == nil || permanent(err) {
			return v, err
		}
		pause(ctx, max(wait, min(delayOf(err), time.Minute)))
		if ctx.Err() != nil {
			return v, fmt.Errorf("%s: %w", doing, ctx.Err())
		}
		wait *= 2
	}
	return v, err
}
