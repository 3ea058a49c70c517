package slack

import (
	"context"
	"errors"
	"testing"
	"time"

	slackapi "github.com/slack-go/slack"
)

// TestPanicsWhileConnecting: with a client that is none, all that asks Slack panics.
func TestPanicsWhileConnecting(t *testing.T) {
	for name, api := range map[string]*slackapi.Client{"none": nil, "empty": {}} {
		a := adapter(t)
		a.api = api
		a.config.Recheck = 10 * time.Millisecond
		close(a.known)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		a.watch(ctx)
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := a.guarded(ctx, func() error { return a.session(ctx) }); !errors.Is(err, errPanic) {
			t.Errorf("%s: the session ends with %v, want a panic", name, err)
		}
		a.listen(ctx)
		cancel()
	}
}
