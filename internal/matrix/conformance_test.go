package matrix

import (
	"testing"

	"signalbox/internal/chat/conformance"
	"signalbox/internal/matrix/matrixtest"
)

// standIn is a homeserver in memory.
func standIn(t *testing.T) (*matrixtest.Server, site) {
	t.Helper()
	s := matrixtest.New()
	people := newGate(t, s)
	return s, site{
		url: people.server.URL, gate: newGate(t, s), before: s.Before,
		account: func(name string) (account, error) {
			user, token := s.User(name)
			return account{user, token}, nil
		},
	}
}

func TestStandIn(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Backend {
		_, s := standIn(t)
		return newBackend(t, s, false)
	})
}
