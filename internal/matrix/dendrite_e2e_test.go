//go:build e2e

package matrix

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/chat/conformance"
	"signalbox/test/realserver"
)

// dendrite is the homeserver of all tests; every test has people of its own.
var dendrite *realserver.Dendrite

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "signalbox-matrix-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dendrite, err = realserver.StartDendrite(ctx, realserver.DendriteOptions{Options: realserver.Options{Dir: filepath.Join(dir, "dendrite")}})
	if err != nil {
		panic(err)
	}
	defer dendrite.Stop()
	return m.Run()
}

// crowd tells the people of one test from those of another.
var crowd atomic.Int64

// realSite is Dendrite with a gate in front.
func realSite(t *testing.T) site {
	t.Helper()
	target, err := url.Parse(dendrite.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w) }
	suffix := "-" + strconv.FormatInt(crowd.Add(1), 10)
	return site{
		url: dendrite.URL(), gate: newGate(t, proxy),
		account: func(name string) (account, error) {
			a, err := dendrite.CreateAccount(t.Context(), name+suffix)
			return account{a.ID, a.Token}, err
		},
	}
}

func TestDendrite(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Backend { return newBackend(t, realSite(t), false) })
}

func TestDendriteInvitations(t *testing.T) {
	invitations(t, func(t *testing.T) *backend { return newBackend(t, realSite(t), false) })
}
