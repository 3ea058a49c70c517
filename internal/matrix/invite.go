package matrix

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
)

// invited follows an invitation or turns it down. It fails only when ctx ends.
func (a *Adapter) invited(ctx context.Context, room id.RoomID, invite *mautrix.SyncInvitedRoom) error {
	inviter, direct, ok := a.inviter(invite)
	if !ok {
		return nil
	}
	log := a.log.With("room", room.String(), "inviter", inviter.String())
	allowed, err := a.allowed(ctx, room, inviter, direct)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		log.WarnContext(ctx, "an invitation was turned down, because the aliases that are allowed cannot be looked up; invite again", "error", err)
	}
	if !allowed {
		if err == nil {
			log.WarnContext(ctx, "an invitation into a room that is not configured was turned down")
		}
		a.metrics.received.WithLabelValues(resultRejected).Inc()
		_, err := tryAgain(ctx, a, "turn the invitation down", func(ctx context.Context) (*mautrix.RespLeaveRoom, error) { return a.client.LeaveRoom(ctx, room) })
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "an invitation was not turned down, but not followed either", "error", err)
		}
		return ctx.Err()
	}
	_, err = tryAgain(ctx, a, "join the room", func(ctx context.Context) (*mautrix.RespJoinRoom, error) {
		return a.client.JoinRoom(ctx, room.String(), &mautrix.ReqJoinRoom{Via: []string{inviter.Homeserver()}})
	})
	if err != nil && ctx.Err() == nil {
		log.ErrorContext(ctx, "signalbox could not follow an invitation; invite it again", "error", err)
	}
	return ctx.Err()
}

// inviter returns who invites, and whether it is to a talk of two.
func (a *Adapter) inviter(invite *mautrix.SyncInvitedRoom) (inviter id.UserID, direct, ok bool) {
	if invite == nil {
		return "", false, false
	}
	for _, e := range invite.State.Events {
		if e != nil && e.Type.Type == event.StateMember.Type && e.GetStateKey() == a.self.user.String() && membership(e) == event.MembershipInvite {
			direct, _ := e.Content.Raw["is_direct"].(bool)
			return e.Sender, direct, true
		}
	}
	return "", false, false
}

// meets reports whether somebody is in a room that signalbox is in.
func (a *Adapter) meets(ctx context.Context, person id.UserID) bool {
	rooms, err := a.joined(ctx)
	return err == nil && slices.ContainsFunc(rooms, func(r id.RoomID) bool { return a.rooms.IsInRoom(ctx, r, person) })
}

// allowed reports whether signalbox may follow an invitation. An alias is looked up:
// what an invitation says of its room is what the inviter's homeserver says. Whoever
// is in a room with signalbox may talk to it alone, as they do for their first link.
func (a *Adapter) allowed(ctx context.Context, room id.RoomID, inviter id.UserID, direct bool) (bool, error) {
	if slices.Contains(a.config.Rooms, room.String()) {
		return true, nil
	}
	var problems []error
	for _, alias := range a.config.Rooms {
		if !strings.HasPrefix(alias, "#") {
			continue
		}
		found, err := tryAgain(ctx, a, "look up "+alias, func(ctx context.Context) (*mautrix.RespAliasResolve, error) {
			return a.client.ResolveAlias(ctx, id.RoomAlias(alias))
		})
		if err == nil && found.RoomID == room {
			return true, nil
		}
		if err != nil && !errors.Is(err, chat.ErrGone) {
			problems = append(problems, err)
		}
	}
	if direct && a.meets(ctx, inviter) {
		return true, nil
	}
	if a.config.Allowed != nil && a.config.Allowed(ctx, chatRoom(room), chatUser(inviter)) {
		return true, nil
	}
	return false, errors.Join(problems...)
}

// delayOf is how long the homeserver wants to be left alone, or nothing.
func delayOf(err error) time.Duration {
	if again, ok := errors.AsType[*chat.RetryError](err); ok {
		return again.After
	}
	return 0
}

func chatRoom(room id.RoomID) chat.Room { return chat.Room{Platform: chat.Matrix, ID: room.String()} }

func chatUser(user id.UserID) chat.User { return chat.User{Platform: chat.Matrix, ID: user.String()} }
