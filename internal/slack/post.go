package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"signalbox/internal/chat"
)

// maxText is the longest text that Slack shows, in characters. It cuts what is
// longer without an error.
// See https://docs.slack.dev/reference/methods/chat.postMessage.
const maxText = 40000

// metadataType names the metadata of signalbox's messages.
const metadataType = "signalbox"

// key is what was said or shown: one cause is said once in a room, and one picture is
// shown for it.
type key struct {
	room, cause string
	picture     bool
}

// Post implements [chat.Poster]. It first looks for what it does not remember to
// have posted, see the package.
func (a *Adapter) Post(ctx context.Context, room chat.Room, thread, cause string, body chat.Body) (string, error) {
	options, err := a.compose(room, cause, body)
	if err != nil {
		return "", err
	}
	k := key{room: room.ID, cause: cause}
	release, err := a.alone(ctx, k)
	if err != nil {
		return "", err
	}
	defer release()
	if id, ok := a.posted.Get(k); ok {
		return id, nil
	}
	id, err := a.find(ctx, room.ID, thread, func(m *slackapi.Message) bool {
		return m.Metadata.EventType == metadataType && m.Metadata.EventPayload["cause"] == cause
	})
	if err != nil {
		return "", err
	}
	if id == "" {
		if thread != "" {
			options = append(options, slackapi.MsgOptionTS(thread))
		}
		err = a.call(ctx, "chat.postMessage", func(ctx context.Context) (err error) {
			_, id, err = a.api.PostMessageContext(ctx, room.ID, options...)
			return err
		})
		if err != nil {
			return "", err
		}
		if id == "" {
			return "", errors.New("chat.postMessage: the answer names no message")
		}
	}
	a.posted.Add(k, id)
	return id, nil
}

// Edit implements [chat.Poster]. It is the same message as often as it is called.
func (a *Adapter) Edit(ctx context.Context, room chat.Room, id, cause string, body chat.Body) error {
	options, err := a.compose(room, "", body)
	if err != nil {
		return err
	}
	err = a.call(ctx, "chat.update", func(ctx context.Context) error {
		_, _, _, err := a.api.UpdateMessageContext(ctx, room.ID, id, options...)
		return err
	})
	if err != nil {
		return fmt.Errorf("edit for %s: %w", cause, err)
	}
	return nil
}

// Whisper implements [chat.Poster]. What only one person sees cannot be found again:
// after a call whose answer was lost, it may be said twice. Where the person or
// signalbox is not in the room, it is said in their own conversation; a room that is
// such a conversation is posted to.
func (a *Adapter) Whisper(ctx context.Context, room chat.Room, thread string, to chat.User, cause string, body chat.Body) error {
	if to.Platform != chat.Slack || to.ID == "" {
		return fmt.Errorf("slack: %s is nobody on Slack", to)
	}
	if strings.HasPrefix(room.ID, "D") {
		// It is either signalbox's own with the person, or between people, where
		// signalbox cannot be.
		_, err := a.Post(ctx, room, thread, cause, body)
		if errors.Is(err, chat.ErrGone) {
			return a.tell(ctx, member(to), cause, body)
		}
		return err
	}
	err := a.ephemeral(ctx, room, thread, to, cause, body)
	if errors.Is(err, chat.ErrGone) {
		return a.tell(ctx, member(to), cause, body)
	}
	return err
}

// ephemeral says something in a room that one person sees until they look anew.
func (a *Adapter) ephemeral(ctx context.Context, room chat.Room, thread string, to chat.User, cause string, body chat.Body) error {
	options, err := a.compose(room, "", body)
	if err != nil {
		return err
	}
	k := key{room: room.ID + "/" + to.ID, cause: cause}
	release, err := a.alone(ctx, k)
	if err != nil {
		return err
	}
	defer release()
	if a.posted.Contains(k) {
		return nil
	}
	if thread != "" {
		options = append(options, slackapi.MsgOptionTS(thread))
	}
	var id string
	err = a.call(ctx, "chat.postEphemeral", func(ctx context.Context) (err error) {
		id, err = a.api.PostEphemeralContext(ctx, room.ID, member(to), options...)
		return err
	})
	if err == nil {
		a.posted.Add(k, id)
	}
	return err
}

// tell says something in the conversation with one person.
func (a *Adapter) tell(ctx context.Context, user, cause string, body chat.Body) error {
	room, ok := a.direct.Get(user)
	if !ok {
		err := a.call(ctx, "conversations.open", func(ctx context.Context) error {
			opened, _, _, err := a.api.OpenConversationContext(ctx, &slackapi.OpenConversationParameters{Users: []string{user}})
			if err == nil && opened != nil {
				room = opened.ID
			}
			return err
		})
		if err != nil {
			return err
		}
		if room == "" {
			return errors.New("conversations.open: the answer names no conversation")
		}
		a.direct.Add(user, room)
	}
	_, err := a.Post(ctx, chat.Room{Platform: chat.Slack, ID: room}, "", cause, body)
	return err
}

// alone waits until nobody else in this process says the same.
func (a *Adapter) alone(ctx context.Context, k key) (release func(), err error) {
	turn := a.turn[maphash.Comparable(a.seed, k)%stripes]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// compose makes the options of a message of its body, with its cause if it has one.
// Addresses in it are not looked up by Slack, to be shown as more than they are.
func (a *Adapter) compose(room chat.Room, cause string, body chat.Body) ([]slackapi.MsgOption, error) {
	if room.Platform != chat.Slack || room.ID == "" {
		return nil, fmt.Errorf("slack: %s is no room of Slack", room)
	}
	if n := utf8.RuneCountInString(body.Text); n > maxText {
		return nil, fmt.Errorf("slack: %w: %d characters of at most %d", chat.ErrTooLong, n, maxText)
	}
	blocks, err := rawBlocks(body.Blocks)
	if err != nil {
		return nil, err
	}
	options := []slackapi.MsgOption{
		// The renderer has escaped it.
		slackapi.MsgOptionText(body.Text, false),
		// Without any, an edited message would keep those it had.
		slackapi.MsgOptionBlocks(blocks...),
		slackapi.MsgOptionDisableLinkUnfurl(),
		slackapi.MsgOptionDisableMediaUnfurl(),
	}
	if cause != "" {
		options = append(options, slackapi.MsgOptionMetadata(slackapi.SlackMetadata{
			EventType: metadataType, EventPayload: map[string]any{"cause": cause},
		}))
	}
	return options, nil
}

// rawBlocks hands the blocks on as they are.
func rawBlocks(text string) ([]slackapi.Block, error) {
	if text == "" {
		return nil, nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("slack: %w: the blocks are no list in JSON: %w", chat.ErrTooLong, err)
	}
	blocks := make([]slackapi.Block, 0, len(raw))
	for i, r := range raw {
		b, err := slackapi.BlockFromJSON(string(r))
		if err != nil {
			return nil, fmt.Errorf("slack: %w: block %d: %w", chat.ErrTooLong, i, err)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}
