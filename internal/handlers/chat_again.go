package handlers

import (
	"context"
	"fmt"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// AskedStore is a [RequestStore] in which a request is found by its cause.
type AskedStore interface {
	RequestStore
	By(cause string) (Request, bool)
}

// LinkLedger is the ledger, as far as chats are concerned.
type LinkLedger interface {
	Links
	Append(ctx context.Context, e decision.Entry) (added bool, err error)
	// Caused reports whether something that was said in a chat has an entry, on
	// whichever pull request.
	Caused(cause string) bool
	Sync(ctx context.Context) error
}

// again reports whether what was said is a request that is being carried out, or
// is in the ledger. The same event may come twice, and mean another pull request
// the second time: the first that is open is another one, or the room has other
// subscriptions.
func (t *talk) again(ctx context.Context) (bool, error) {
	if err := t.Requests.Sync(ctx); err != nil {
		return false, fmt.Errorf("chat %s: %w", t.cause, err)
	}
	if q, ok := t.Requests.By(t.cause); ok {
		// Whoever kept it may have ended before asking for this.
		return true, soon(ctx, t.Queue, work.Full, "request from "+string(t.m.Room.Platform), []pull.Ref{q.Ref})
	}
	// A request is forgotten after it is in the ledger.
	if err := t.Ledger.Sync(ctx); err != nil {
		return false, fmt.Errorf("chat %s: %w", t.cause, err)
	}
	return t.Ledger.Caused(t.cause), nil
}
