package slack

import (
	"context"
	"errors"
	"fmt"
	"time"

	slackapi "github.com/slack-go/slack"

	"signalbox/internal/chat"
)

const (
	// lookBack and the pages bound the search for a message.
	lookBack  = 24 * time.Hour
	pageSize  = 200
	pageLimit = 3
)

// find looks for a message of signalbox that is wanted, and returns its id, or nothing:
// among the messages of a thread, or those of a room outside of threads.
func (a *Adapter) find(ctx context.Context, room, thread string, wanted func(*slackapi.Message) bool) (string, error) {
	me, err := a.me(ctx)
	if err != nil {
		return "", err
	}
	oldest := fmt.Sprintf("%d.000000", a.config.Clock().Add(-lookBack).Unix())
	cursor := ""
	for range pageLimit {
		var messages []slackapi.Message
		if thread == "" {
			messages, cursor, err = a.history(ctx, &slackapi.GetConversationHistoryParameters{
				ChannelID: room, Oldest: oldest, Cursor: cursor, Limit: pageSize, IncludeAllMetadata: true,
			})
		} else {
			messages, cursor, err = a.replies(ctx, &slackapi.GetConversationRepliesParameters{
				ChannelID: room, Timestamp: thread, Oldest: oldest, Cursor: cursor, Limit: pageSize, IncludeAllMetadata: true,
			})
		}
		if unreadable(err) {
			a.cannotLook(ctx, room, err)
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for i := range messages {
			// Every app can write any metadata and any name of a file, but not as signalbox.
			if m := &messages[i]; m.User == me.user && wanted(m) {
				return m.Timestamp, nil
			}
		}
		if cursor == "" {
			break
		}
	}
	return "", nil
}

// history reads a page of a room, the newest messages first.
func (a *Adapter) history(ctx context.Context, params *slackapi.GetConversationHistoryParameters) (messages []slackapi.Message, cursor string, err error) {
	err = a.call(ctx, "conversations.history", func(ctx context.Context) error {
		page, err := a.api.GetConversationHistoryContext(ctx, params)
		if err == nil {
			messages, cursor = page.Messages, page.ResponseMetaData.NextCursor
		}
		return err
	})
	return messages, cursor, err
}

// replies reads a page of a thread, the oldest messages first.
func (a *Adapter) replies(ctx context.Context, params *slackapi.GetConversationRepliesParameters) (messages []slackapi.Message, cursor string, err error) {
	err = a.call(ctx, "conversations.replies", func(ctx context.Context) (err error) {
		messages, _, cursor, err = a.api.GetConversationRepliesContext(ctx, params)
		return err
	})
	return messages, cursor, err
}

// unreadable says whether an error means that the messages cannot be read, now and
// later, although signalbox may write: the right is missing, or the SDK does not
// understand what others have posted.
func unreadable(err error) bool {
	_, scope := errors.AsType[*scopeError](err)
	_, answer := errors.AsType[*answerError](err)
	return scope || answer
}

// cannotLook logs once for each kind of room that messages cannot be looked for.
func (a *Adapter) cannotLook(ctx context.Context, room string, err error) {
	kind := room[:1]
	a.mu.Lock()
	told := a.unread[kind]
	a.unread[kind] = true
	a.mu.Unlock()
	if !told {
		a.log.WarnContext(ctx, "slack: messages cannot be looked for; one whose outcome is not known may be shown twice",
			"room", chat.Room{Platform: chat.Slack, ID: room}.String(), "error", err)
	}
}
