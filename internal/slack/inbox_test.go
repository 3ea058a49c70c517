package slack_test

import (
	"context"
	"testing"
	"time"

	"signalbox/internal/chat"
)

// inbox is a receiver that keeps what it took.
type inbox struct {
	said    chan delivered
	refusal chan error
}

// delivered is what came: one of the two.
type delivered struct {
	Cause   string
	Message chat.Message
	Press   chat.Press
}

func newInbox() *inbox {
	return &inbox{said: make(chan delivered, 100), refusal: make(chan error, 100)}
}

func (in *inbox) Said(ctx context.Context, cause string, m chat.Message) error {
	return in.take(ctx, delivered{Cause: cause, Message: m})
}

func (in *inbox) Pressed(ctx context.Context, cause string, p chat.Press) error {
	return in.take(ctx, delivered{Cause: cause, Press: p})
}

// take refuses with the next refusal, if there is one; context.Canceled stands for
// waiting until the context ends.
func (in *inbox) take(ctx context.Context, d delivered) error {
	select {
	case err := <-in.refusal:
		if err == context.Canceled { //nolint:errorlint // It stands for something.
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return err
	default:
	}
	in.said <- d
	return nil
}

// next waits for what comes next.
func (in *inbox) next(t *testing.T) delivered {
	t.Helper()
	select {
	case d := <-in.said:
		return d
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
		return delivered{}
	}
}
