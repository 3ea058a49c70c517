package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"signalbox/internal/bus"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// sharedBus starts a NATS server that several replicas could use.
func sharedBus(t *testing.T) *bus.External {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server did not start")
	}
	return &bus.External{URLs: []string{"nats://" + s.Addr().String()}}
}

// calls are what signalbox asks of Gitea about one pull request, in order.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, what)
}

// after returns what came after a call, up to the next one with the same name.
func (c *calls) after(what, until string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	found := false
	for _, call := range c.list {
		switch {
		case call == what:
			found = true
		case found && call == until:
			return out
		case found:
			out = append(out, call)
		}
	}
	return out
}

// TestWhoWasOvertakenSaysNothing: another replica, which took this one for dead, has seen to a pull request
// while it was read here.
func TestWhoWasOvertakenSaysNothing(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{shared: sharedBus(t)})
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	w.quiet()

	var seen calls
	var once sync.Once
	pullPath := fmt.Sprintf("/pulls/%d", number)
	w.forge.Fail(func(r *http.Request) *giteatest.Response {
		switch {
		case r.Method != http.MethodGet:
			seen.add("write")
		case strings.HasSuffix(r.URL.Path, pullPath):
			seen.add("begin")
		case strings.HasSuffix(r.URL.Path, pullPath+"/files"):
			once.Do(func() {
				seen.add("overtaken")
				key := pull.Ref{RepoID: w.repo.ID, Number: number}.String()
				record, revision, _ := w.app.evaluator.Records.Get(key)
				if _, err := w.app.evaluator.Records.Put(t.Context(), key, record, revision); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	})
	head := w.push("cdi", map[string]string{"clusters/base/more.yaml": "d: 1\n"})
	w.shows(number, "success", "pending", head[:10])
	if said := seen.after("overtaken", "begin"); len(said) > 0 {
		t.Errorf("it went on with %q", said)
	}
}

// TestUnsureWhatWasSaid: whoever takes over from a replica that was killed looks at what that one has said,
// and says none of it again.
func TestUnsureWhatWasSaid(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{shared: sharedBus(t)})
	number := w.open("cdi", clusterChange)
	w.shows(number, "success", "pending")
	w.quiet()
	config := w.cluster.Kustomization("flux-system", "platform-config")
	config.Failing("BuildFailed", "kustomize build failed")
	w.shows(number, "pending", "pending", "kustomize build failed")
	w.quiet()

	// So it is left by one that was killed after it had posted: the record tells what was before.
	records := w.app.evaluator.Records
	key := pull.Ref{RepoID: w.repo.ID, Number: number}.String()
	record, revision, _ := records.Get(key)
	record.Posted.Unsure, record.Posted.Statuses = true, nil
	_, err := records.Put(t.Context(), key, record, revision)
	w.must(err)
	w.forge.ResetCalls()
	w.must(w.app.reconciler.Handle(t.Context(), tick(t)))
	w.quiet()
	if n := w.forge.Calls()["POST /repos/{owner}/{repo}/statuses/{sha}"]; n != 0 {
		t.Errorf("%d statuses were posted again", n)
	}
	w.ready()
	w.shows(number, "success", "pending")
	w.eventually("it is sure after all was said", func() string {
		if record, _, _ := records.Get(key); record.Posted.Unsure {
			return "it is unsure still"
		}
		return ""
	})
}
