package bus

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// TestAnotherServerIsTried: a server that is cut off from the others answers pings and nothing else.
func TestAnotherServerIsTried(t *testing.T) {
	t.Parallel()
	servers := map[string]*server.Server{}
	var both External
	for range 2 {
		s, ext := external(t, nil)
		servers[s.Addr().String()] = s
		both.URLs = append(both.URLs, ext.URLs...)
	}
	b := open(t, Config{External: both, timing: timing{moveAfter: 500 * time.Millisecond}})
	first := b.nc.ConnectedAddr()
	if err := servers[first].DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another server is tried", func() bool { return b.nc.IsConnected() && b.nc.ConnectedAddr() != first })
}

func TestStreamWithoutALeader(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cluster *jetstream.ClusterInfo
		ok      bool
	}{
		"one server":  {nil, true},
		"a leader":    {&jetstream.ClusterInfo{Name: "signalbox", Leader: "nats-1"}, true},
		"without one": {&jetstream.ClusterInfo{Name: "signalbox"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := led(&jetstream.StreamInfo{Cluster: test.cluster}); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHealthIsToldInTime: many may ask, also while nothing answers.
func TestHealthIsToldInTime(t *testing.T) {
	t.Parallel()
	s, ext := external(t, nil)
	b := open(t, Config{External: ext})
	if err := s.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	answering(t, ext, "$JS.API.>", func(int) string { return "" })
	var all sync.WaitGroup
	began := time.Now()
	for range 10 {
		all.Go(func() {
			if err := b.Health(context.Background()); err == nil {
				t.Error("it is healthy")
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("ten answers took %s, each may take two seconds", took)
	}
}
