package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime/debug"
	"time"

	slackapi "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"golang.org/x/sync/errgroup"

	"signalbox/internal/chat"
)

const (
	// firstPause is how long to wait after a first failure; it doubles.
	firstPause = time.Second
	// maxEnvelope bounds what comes by Socket Mode, in bytes. A message has at most
	// 40,000 characters, and comes as text and as blocks.
	maxEnvelope = 4 << 20
	// ackTime bounds the waiting for a connection to acknowledge on. Later Slack has
	// sent it again.
	ackTime = 3 * time.Second
)

// Run keeps signalbox on Slack until the context ends, and then returns nil: it looks
// whether Slack takes the tokens, and with an app-level token it listens by Socket
// Mode. It never ends for any other reason.
func (a *Adapter) Run(ctx context.Context) error {
	var parts errgroup.Group
	parts.Go(func() error { a.watch(ctx); return nil })
	if !a.config.AppToken.Empty() {
		parts.Go(func() error { a.listen(ctx); return nil })
	}
	return parts.Wait()
}

// errPanic stands for a panic, which was logged.
var errPanic = errors.New("a panic")

// guarded makes an error of a panic, which would end the gate for Gitea and all other
// chats too.
func (a *Adapter) guarded(ctx context.Context, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			a.log.ErrorContext(ctx, "a panic while talking to slack", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return f()
}

// watch looks whether Slack takes the bot token: at once, soon again after a
// failure, and then and now.
func (a *Adapter) watch(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		err := a.guarded(ctx, func() error { _, err := a.identify(ctx); return err })
		wait := a.config.Recheck
		limit, limited := errors.AsType[*chat.RetryError](err)
		switch {
		case err == nil:
			pause = firstPause
		case limited:
			wait = limit.After
		case !errors.Is(err, chat.ErrRevoked):
			wait = min(pause, a.config.Recheck)
			pause = min(2*pause, a.config.Recheck)
		}
		rest(ctx, wait)
	}
}

// listen listens by Socket Mode. It begins when it is known who signalbox is: else
// its own words could not be told from others.
func (a *Adapter) listen(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-a.known:
	}
	for ctx.Err() == nil {
		err := a.guarded(ctx, func() error { return a.session(ctx) })
		if ctx.Err() != nil {
			return
		}
		wait := firstPause
		if a.unlinked(err) {
			wait = a.config.Recheck
		}
		rest(ctx, wait)
	}
}

// unlinked shows why Socket Mode is not connected. It says whether the app-level
// token was refused.
func (a *Adapter) unlinked(err error) bool {
	reason := codeOf(err)
	if status, ok := errors.AsType[slackapi.StatusCodeError](err); ok && status.Code == http.StatusNotFound {
		// So it is answered where the app is gone.
		reason = "account_inactive"
	}
	refused := revoked[reason]
	if !refused {
		reason = reasonUnreachable
	}
	a.health.setLink(reason, a.silent(translate("apps.connections.open", err)))
	return refused
}

// session listens until Slack refuses the app-level token or the context ends, over
// as many connections as it takes.
func (a *Adapter) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Without debugging it logs nothing; all that is to be told comes as an event.
	client := socketmode.New(a.api, socketmode.OptionReadLimit(maxEnvelope), socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ended := make(chan error, 1)
	go func() { ended <- a.guarded(ctx, func() error { return client.RunContext(ctx) }) }()
	for {
		select {
		case err := <-ended:
			return err
		case e := <-client.Events:
			// After a panic it is not acknowledged, and Slack sends it again a few times.
			_ = a.guarded(ctx, func() error { a.socketEvent(ctx, client, e); return nil })
		}
	}
}

// socketEvent handles what the SDK tells. It handles one after the other, so that
// what a person said first arrives first.
func (a *Adapter) socketEvent(ctx context.Context, client *socketmode.Client, e socketmode.Event) {
	switch e.Type {
	case socketmode.EventTypeHello:
		a.health.setLink("", nil)
	case socketmode.EventTypeConnectionError:
		if failed, ok := e.Data.(*slackapi.ConnectionErrorEvent); ok {
			a.unlinked(failed.ErrorObj)
		}
	case socketmode.EventTypeEventsAPI, socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive:
		a.envelope(ctx, client, e.Request)
	case socketmode.EventTypeErrorBadMessage:
		// The SDK does not know every event. That is no reason to get it again.
		if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok {
			var request socketmode.Request
			if json.Unmarshal(bad.Message, &request) == nil {
				a.envelope(ctx, client, &request)
			}
		}
	}
}

// envelope takes what came by Socket Mode, and acknowledges it after that.
func (a *Adapter) envelope(ctx context.Context, client *socketmode.Client, request *socketmode.Request) {
	if request == nil || request.EnvelopeID == "" {
		return
	}
	var err error
	switch request.Type {
	case socketmode.RequestTypeEventsAPI:
		err = a.takeEvent(ctx, request.Payload)
	case socketmode.RequestTypeSlashCommands:
		var c slackapi.SlashCommand
		if err = json.Unmarshal(request.Payload, &c); err == nil {
			err = a.takeCommand(ctx, c)
		} else {
			a.log.WarnContext(ctx, "what came from slack is not understood", "kind", kindCommand, "error", err)
			err = errMalformed
		}
	case socketmode.RequestTypeInteractive:
		err = a.takePress(ctx, request.Payload)
	}
	if err != nil && !errors.Is(err, errMalformed) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	if err := client.AckCtx(ctx, request.EnvelopeID, nil); err != nil {
		a.log.WarnContext(ctx, "not acknowledged to slack, which sends it again", "error", err)
	}
}

// rest waits, unless the context ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
