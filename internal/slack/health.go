package slack

import (
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons why signalbox cannot speak or listen, beside the codes of Slack that
// mean a refused token.
const (
	reasonStarting    = "starting"
	reasonUnreachable = "unreachable"
)

// health is whether signalbox can speak and listen. A change is logged once.
type health struct {
	log *slog.Logger
	up  *prometheus.GaugeVec

	mu sync.Mutex
	// token and link are why not, or empty: the bot token, and Socket Mode.
	token, link string
	// logged is the reason that was logged last, and shown the one that is shown.
	logged, shown string
}

func newHealth(logger *slog.Logger, up *prometheus.GaugeVec, socket bool) *health {
	h := &health{log: logger, up: up, token: reasonStarting, logged: reasonStarting}
	if socket {
		h.link = reasonStarting
	}
	h.show(reasonStarting)
	return h
}

// setToken says why the bot token does not work, or with an empty reason that it
// does. The error is for the log.
func (h *health) setToken(reason string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.token = reason
	h.changed(err)
}

// setLink says why Socket Mode is not connected, or with an empty reason that it is.
// The error is for the log.
func (h *health) setLink(reason string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link = reason
	h.changed(err)
}

// changed shows the reason that counts: a refused token before all others.
func (h *health) changed(err error) {
	reason := h.token
	if reason == "" || (!revoked[reason] && revoked[h.link]) {
		reason = h.link
	}
	h.show(reason)
	if reason == h.logged {
		return
	}
	h.logged = reason
	switch {
	case reason == "":
		h.log.Info("slack is connected")
	case reason == h.token && revoked[reason]:
		h.log.Error("slack refuses the bot token; install the app again, and give signalbox the token that is shown then", "reason", reason)
	case revoked[reason]:
		h.log.Error("slack refuses the app-level token; make one with the scope connections:write, and give it to signalbox", "reason", reason)
	case reason != reasonStarting:
		h.log.Warn("slack is not connected; trying again", "reason", reason, "error", err)
	}
}

// Trouble says why signalbox cannot speak or listen now, in a word or two; nothing
// while it can.
func (a *Adapter) Trouble() string {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	return a.health.shown
}

func (h *health) show(reason string) {
	h.shown = reason
	value := 0.0
	if reason == "" {
		value = 1
	}
	h.up.Reset()
	h.up.WithLabelValues(reason).Set(value)
}
