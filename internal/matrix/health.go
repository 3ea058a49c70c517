package matrix

import (
	"errors"

	"signalbox/internal/chat"
)

// Reasons why signalbox cannot speak or listen.
const (
	reasonStarting    = "starting"
	reasonUnreachable = "unreachable"
	reasonRevoked     = "token refused"
)

// up notes that the homeserver was asked with success. A change is logged once.
func (a *Adapter) up() {
	a.setRefused(false)
	if !a.synced {
		return
	}
	a.setTrouble("")
	if a.logged != "" {
		a.log.Info("matrix is connected", "user", a.self.user.String())
	}
	a.logged = ""
}

// down notes a failure. The same failure is logged once.
func (a *Adapter) down(err error) {
	reason := reasonUnreachable
	if errors.Is(err, chat.ErrRevoked) {
		reason = reasonRevoked
	}
	a.setRefused(reason == reasonRevoked)
	a.setTrouble(reason)
	if text := err.Error(); text != a.logged {
		if reason == reasonRevoked {
			a.log.Error("matrix refuses the token; it is tried again now and then", "error", err)
		} else {
			a.log.Warn("matrix is not connected; it is tried again", "error", err)
		}
		a.logged = text
	}
}

func (a *Adapter) setRefused(refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = refused
}

func (a *Adapter) setTrouble(reason string) {
	a.metrics.setUp(reason)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trouble = reason
}

// Trouble says why signalbox cannot speak or listen now, in a word or two; nothing
// while it can.
func (a *Adapter) Trouble() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trouble
}
