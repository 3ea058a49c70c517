//go:build e2e

package matrix

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
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
	return siteOf(t, dendrite)
}

func siteOf(t *testing.T, dendrite *realserver.Dendrite) site {
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

// TestDendriteGap: more was missed than an answer has, and nothing of it is lost.
func TestDendriteGap(t *testing.T) {
	b := newBackend(t, realSite(t), false)
	room, err := b.Room(t.Context(), "deploy")
	if err != nil {
		t.Fatal(err)
	}
	in := b.start(t)
	var want []string
	err = b.restart(t.Context(), func() {
		for i := range 2*page + 10 {
			want = append(want, strconv.Itoa(i))
			if _, err := b.Mention(t.Context(), conformance.Place{Room: room}, conformance.Alice, want[i]); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, in.until(t, want[len(want)-1])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDendriteLimits: what Dendrite says of its limit is understood.
func TestDendriteLimits(t *testing.T) {
	const cooloff = 3 * time.Second
	d, err := realserver.StartDendrite(t.Context(), realserver.DendriteOptions{
		Options: realserver.Options{Dir: t.TempDir()}, Limit: 10, Cooloff: cooloff,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	b := newBackend(t, siteOf(t, d), false)
	b.start(t)
	// Messages are not limited by Dendrite, but who joins is.
	alice := b.people[conformance.Alice].client
	made, err := alice.CreateRoom(t.Context(), b.request("deploy"))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err = alice.JoinRoomByID(t.Context(), made.RoomID); err != nil {
			break
		}
	}
	limit, ok := errors.AsType[*chat.RetryError](b.adapter.failure("join", err))
	if !ok || limit.After <= 0 || limit.After > cooloff {
		t.Errorf("after joining often: %v, want a RetryError of at most %s", err, cooloff)
	}
}
