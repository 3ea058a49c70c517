package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/config"
	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/policy"
)

// natsForAgents starts NATS as the example for agents has it, and returns how signalbox
// and the agent of prod connect.
func natsForAgents(t *testing.T) (hub, prod bus.External) {
	t.Helper()
	all := bustest.Example(t, "../../deploy/examples/nats/agents.conf")
	return all[0], all[1]
}

// agent starts an agent of the cluster of the world, and returns its address and how to
// stop it.
func (w *world) agent(nats bus.External) (addr string, stop func() error) {
	w.t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	w.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	o := outpost{cluster: w.watched(), nats: nats, listener: listener, log: bustest.Logger(w.t)}
	go func() { done <- o.run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	w.t.Cleanup(func() {
		if err := stop(); err != nil {
			w.t.Error(err)
		}
	})
	return "http://" + listener.Addr().String(), stop
}

// TestAgent: what an agent tells makes verdicts, also of what only they wish for; while
// it is away everything about its cluster is unknown; and it goes on by itself.
func TestAgent(t *testing.T) {
	nats, prod := natsForAgents(t)
	w := newWorld(t, worldOptions{files: map[string]string{policy.Path: `version: 1
preconditions:
  - {name: platform, flux: {kustomization: flux-system/platform-config}}
` + volumesRule}})
	w.cluster.Serve(kubetest.Volumes)
	w.must(w.cluster.Apply(volume("a", "degraded")))
	platform := w.cluster.Kustomization("flux-system", "platform-config")
	platform.Ready("main@sha1:" + strings.Repeat("a", 40))
	options := worldOptions{shared: &nats, remote: true, unread: true, adjust: func(c *config.Config) {
		c.Timing.ClusterSilence = 3 * time.Second
		c.Timing.Reconcile = time.Hour
	}}
	w.start(options)
	number := w.open("a", map[string]string{"apps/a.yaml": "a: 1\n"})
	w.shows(number, "pending", "success", "prod has not been heard from")

	addr, stop := w.agent(prod)
	w.shows(number, "pending", "success", "flux-system/platform-config on prod is Ready", "1 does not pass: longhorn-system/a")
	w.must(w.cluster.Apply(volume("a", "healthy")))
	w.shows(number, "success", "success", "all pass")
	if code, text := w.get(addr + "/readyz"); code != http.StatusOK {
		t.Errorf("the agent is not ready: %d %s", code, text)
	}
	if _, text := w.get(addr + "/metrics"); !strings.Contains(text, `signalbox_kube_watch_state{cluster="prod",kind="kustomization",state="synced"} 1`) {
		t.Error("the agent does not show how its watches are")
	}

	k := w.checker()
	k.clusters, k.agents, k.bus = nil, []string{"prod"}, bus.Config{External: nats}
	out, code := w.checks(k, number, false)
	if code != 0 {
		t.Errorf("bot check: exit code %d", code)
	}
	w.has(out, "all pass")

	w.must(stop())
	w.shows(number, "pending", "success", "Nothing has been heard from cluster prod")
	if out, code = w.checks(k, number, false); code == 0 {
		t.Errorf("bot check without the agent:\n%s", out)
	}
	platform.Failing("BuildFailed", "no such file")
	w.agent(prod)
	w.shows(number, "pending", "success", "no such file", "all pass")
}

// get reads a page.
func (w *world) get(address string) (code int, text string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, address, nil)
	w.must(err)
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	defer func() { _ = resp.Body.Close() }()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	w.must(err)
	return resp.StatusCode, b.String()
}

// TestAgentMayOnlySpeakOfItsCluster: with the key of an agent nothing else of the bus can
// be read or written, as the example of a NATS configuration has it.
func TestAgentMayOnlySpeakOfItsCluster(t *testing.T) {
	hub, prod := natsForAgents(t)
	w := newWorld(t, worldOptions{})
	w.start(worldOptions{shared: &hub, remote: true, unread: true})
	w.agent(prod)
	key := fact.HeartbeatKey("prod")
	w.eventually("the agent is heard", func() string {
		if f, _ := w.app.bus.Facts().Lookup(key); f.Heartbeat == nil || f.Heartbeat.Silent {
			return "it is silent"
		}
		return ""
	})
	refused := make(chan error, 100)
	option, err := nats.NkeyOptionFromSeed(prod.NKeyFile)
	w.must(err)
	nc, err := nats.Connect(prod.URLs[0], option, nats.CustomInboxPrefix("_INBOX.agent.prod"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	w.must(err)
	defer nc.Close()
	is := func(what string) {
		t.Helper()
		w.must(nc.Flush())
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s was not refused", what)
		}
	}
	for what, subject := range map[string]string{
		"a fact of its own, past the hub":      "$KV.facts." + fact.Kube("prod", "Kustomization", "flux-system", "apps").String(),
		"a fact of another cluster":            "$KV.facts." + fact.Kube("dev", "Kustomization", "flux-system", "apps").String(),
		"a heartbeat of another cluster":       "signalbox.v1.hub.dev.beat",
		"a question as the hub":                "signalbox.v1.agent.dev.await",
		"a decision":                           "$KV.decisions.1.1.x",
		"an event":                             "event.gitea.pull.1.1",
		"work":                                 "work.1.1",
		"the streams":                          "$JS.API.STREAM.NAMES",
		"a consumer of the facts":              "$JS.API.CONSUMER.CREATE.KV_facts",
		"a message of a stream, read directly": "$JS.API.DIRECT.GET.KV_facts",
		"an answer to somebody else":           "_INBOX.somebody.1",
	} {
		w.must(nc.Publish(subject, []byte("x")))
		is(what)
	}
	for what, subject := range map[string]string{
		"everything":                 "> ",
		"all facts":                  "$KV.facts.>",
		"what others ask":            "signalbox.v1.hub.>",
		"what the other agent hears": "signalbox.v1.agent.dev.changed",
		"the answers to all":         "_INBOX.>",
		"the answers to another":     "_INBOX.agent.dev.x",
	} {
		_, err := nc.SubscribeSync(strings.TrimSpace(subject))
		w.must(err)
		is("hearing " + what)
	}
	// And what it may say is refused by the hub where it is about others.
	answer, err := nc.RequestWithContext(t.Context(), "signalbox.v1.hub.prod.put", []byte(`{"fact":{"key":{"source":"kube","scope":"dev","kind":"kustomization"}}}`))
	w.must(err)
	if !strings.Contains(string(answer.Data), "may not tell kube.dev") {
		t.Errorf("a fact of another cluster by its own hub subject: %s", answer.Data)
	}
	for _, f := range w.app.bus.Facts().Select(fact.SourceKube, "dev", "") {
		t.Errorf("dev has %v", f.Key)
	}
}
