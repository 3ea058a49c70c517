package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	slackapi "github.com/slack-go/slack"
)

// takeTime bounds what the receiver may take. Slack waits three seconds in all.
const takeTime = 2500 * time.Millisecond

// errNotReady: who signalbox is on Slack is not known yet.
var errNotReady = errors.New("slack has not accepted the bot token yet")

// Kinds of what comes from Slack.
const (
	kindEvent   = "event"
	kindCommand = "command"
	kindButton  = "button"
)

// takeEvent takes an event of the Events API.
func (a *Adapter) takeEvent(ctx context.Context, payload []byte) error {
	return a.take(ctx, kindEvent, func(me identity) (func(context.Context) error, error) {
		var c callback
		if err := json.Unmarshal(payload, &c); err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		switch c.Type {
		case "event_callback":
		case "app_rate_limited":
			return nil, ignored{"Slack holds events back, as there were too many"}
		default:
			return nil, ignored{}
		}
		m, err := decodeSaid(c, me, a.config.Clock())
		return func(ctx context.Context) error { return a.receiver.Said(ctx, "slack/"+c.EventID, m) }, err
	})
}

// takeCommand takes a slash command.
func (a *Adapter) takeCommand(ctx context.Context, c slackapi.SlashCommand) error {
	return a.take(ctx, kindCommand, func(me identity) (func(context.Context) error, error) {
		m, err := decodeCommand(c, me, a.config.Clock())
		return func(ctx context.Context) error { return a.receiver.Said(ctx, "slack/"+c.TriggerID, m) }, err
	})
}

// takePress takes an interaction.
func (a *Adapter) takePress(ctx context.Context, payload []byte) error {
	return a.take(ctx, kindButton, func(me identity) (func(context.Context) error, error) {
		p, trigger, err := decodePress(payload, me, a.config.Clock())
		return func(ctx context.Context) error { return a.receiver.Pressed(ctx, "slack/"+trigger, p) }, err
	})
}

// take hands over what decode makes. Nil means that Slack may be told so. An error
// that is errMalformed will be the same the next time, any other will not.
func (a *Adapter) take(ctx context.Context, kind string, decode func(identity) (func(context.Context) error, error)) error {
	result := func(what string) { a.metrics.received.WithLabelValues(kind, what).Inc() }
	me, ok := a.whoAmI()
	if !ok {
		result("not_ready")
		return errNotReady
	}
	hand, err := decode(me)
	if skip, ok := errors.AsType[ignored](err); ok {
		result("ignored")
		if skip.why != "" {
			a.log.InfoContext(ctx, "what came from slack is not taken", "kind", kind, "reason", skip.why)
		}
		return nil
	}
	if err != nil {
		result("malformed")
		a.log.WarnContext(ctx, "what came from slack is not understood", "kind", kind, "error", err)
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, takeTime, fmt.Errorf("not taken within %s", takeTime))
	defer cancel()
	if err := hand(ctx); err != nil {
		result("not_published")
		a.log.ErrorContext(ctx, "what came from slack could not be published", "kind", kind, "error", err)
		return err
	}
	result("published")
	return nil
}
