package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/agent"
	"signalbox/internal/fact"
)

// TestTell: what an agent tells is held, also by an agent that comes later.
func TestTell(t *testing.T) {
	w := newWire()
	h, beats := newHub(t, w, nil)
	r, _ := remote(t, w, "prod", "a")
	apps := kustomization("prod", "apps", "5", "main@sha1:1")
	if changed, err := r.Put(t.Context(), apps); err != nil || !changed {
		t.Fatalf("put: %t, %v", changed, err)
	}
	if changed, err := r.Put(t.Context(), apps); err != nil || changed {
		t.Errorf("put the same: %t, %v; nothing changed", changed, err)
	}
	held, _, ok := h.Facts.Held(apps.Key)
	if diff := cmp.Diff(apps, held); !ok || diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	later, _ := remote(t, w, "prod", "b")
	if got, ok := later.Lookup(apps.Key); !ok || !got.Same(apps) {
		t.Errorf("the later agent has %+v, %t", got, ok)
	}
	if got := later.Select(fact.SourceKube, "prod", "kustomization"); len(got) != 1 {
		t.Errorf("the later agent selects %d facts", len(got))
	}
	if err := r.Beat(t.Context(), "prod", time.Now()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"prod by agent a"}, beats.all); diff != "" {
		t.Errorf("heartbeats (-want +got):\n%s", diff)
	}
	if r.Heard().IsZero() || !later.Heard().IsZero() {
		t.Error("only the agent that sent a heartbeat was heard")
	}
	if err := r.Delete(t.Context(), apps.Key); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := h.Facts.Held(apps.Key); ok {
		t.Error("the fact is still held")
	}
	if err := r.Delete(t.Context(), apps.Key); err != nil {
		t.Errorf("delete what is not there: %v", err)
	}
	if changed, err := r.Put(t.Context(), apps); err != nil || !changed {
		t.Errorf("put after delete: %t, %v", changed, err)
	}
}

// TestTwoAgents: of two agents of one cluster, the one that lags puts no old value back,
// and what it last saw does not matter.
func TestTwoAgents(t *testing.T) {
	w := newWire()
	h, _ := newHub(t, w, nil)
	slow, _ := remote(t, w, "prod", "slow")
	fast, _ := remote(t, w, "prod", "fast")
	if _, err := fast.Put(t.Context(), kustomization("prod", "apps", "9", "new")); err != nil {
		t.Fatal(err)
	}
	if changed, err := slow.Put(t.Context(), kustomization("prod", "apps", "8", "old")); err != nil || changed {
		t.Errorf("the old value: %t, %v", changed, err)
	}
	if held, _, _ := h.Facts.Held(kustomization("prod", "apps", "", "").Key); held.Flux.Applied != "new" {
		t.Errorf("held is %s", held.Flux.Applied)
	}
	if changed, err := slow.PutAfterList(t.Context(), kustomization("prod", "apps", "3", "restored")); err != nil || !changed {
		t.Errorf("what a list has shown: %t, %v", changed, err)
	}
	// The other agent deletes what it believes to be something else.
	if err := fast.Delete(t.Context(), kustomization("prod", "apps", "", "").Key); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := h.Facts.Held(kustomization("prod", "apps", "", "").Key); ok {
		t.Error("the fact is still held")
	}
	if err := slow.Delete(t.Context(), kustomization("prod", "apps", "", "").Key); err != nil {
		t.Errorf("delete what another agent deleted: %v", err)
	}
}

// TestRefused: an agent has no say in anything but the facts of its own cluster.
func TestRefused(t *testing.T) {
	w := newWire()
	h, beats := newHub(t, w, nil)
	at := time.Now().UTC()
	good := kustomization("prod", "apps", "5", "main@sha1:1")
	with := func(change func(*fact.Fact)) fact.Fact {
		f := good
		change(&f)
		return f
	}
	put := func(f fact.Fact) any { return map[string]any{"fact": f} }
	tests := []struct {
		name, subject string
		body          any
		want          string
	}{
		{"another cluster", "prod.put", put(with(func(f *fact.Fact) { f.Key.Scope = "dev" })), "the agent of cluster prod may not tell kube.dev"},
		{"Gitea", "prod.put", put(with(func(f *fact.Fact) { f.Key.Source = fact.SourceGitea })), "may not tell gitea.prod"},
		{"its own silence", "prod.put", put(fact.Fact{Key: fact.HeartbeatKey("prod"), Since: at, SeenAt: at, Heartbeat: &fact.Heartbeat{}}), "may not tell kube.prod.heartbeat"},
		{"no kind", "prod.put", put(with(func(f *fact.Fact) { f.Key.Kind = "" })), "may not tell"},
		{"a heartbeat under another name", "prod.put", put(with(func(f *fact.Fact) { f.Heartbeat = &fact.Heartbeat{} })), "holds what no cluster tells"},
		{"a pull request", "prod.put", put(with(func(f *fact.Fact) { f.Pull = &fact.Pull{} })), "holds what no cluster tells"},
		{"no time", "prod.put", put(with(func(f *fact.Fact) { f.Since = time.Time{} })), "does not say since when"},
		{"delete elsewhere", "prod.delete", map[string]any{"key": fact.Kube("dev", "Kustomization", "flux-system", "apps")}, "may not tell kube.dev"},
		{"delete its own silence", "prod.delete", map[string]any{"key": fact.HeartbeatKey("prod")}, "may not tell kube.prod.heartbeat"},
		{"a clock ahead", "prod.beat", map[string]any{"agent": "a", "at": at.Add(time.Hour)}, "are 1h0m"},
		{"a clock behind", "prod.beat", map[string]any{"agent": "a", "at": at.Add(-time.Hour)}, "30s at most is trusted"},
		{"a clock that says nothing", "prod.beat", map[string]any{"agent": "a"}, "apart"},
		{"no such request", "prod.purge", map[string]any{}, `"purge" is not known to this hub`},
		{"garbage", "prod.put", "x", "decode the request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, err := json.Marshal(tt.body)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := w.Request(t.Context(), "signalbox.v1.hub."+tt.subject, data)
			if err != nil || !strings.Contains(string(answer), strings.ReplaceAll(tt.want, `"`, `\"`)) {
				t.Errorf("answer %s, %v; want %q", answer, err, tt.want)
			}
		})
	}
	if all := h.Facts.Select(fact.SourceKube, "dev", ""); len(all) != 0 {
		t.Errorf("dev has %v", all)
	}
	if all := h.Facts.Select(fact.SourceKube, "prod", ""); len(all) != 0 {
		t.Errorf("prod has %v", all)
	}
	if len(beats.all) != 0 {
		t.Errorf("heartbeats: %v", beats.all)
	}
}

// TestManyFacts: a long list comes in pages, complete and without what the hub keeps to
// itself.
func TestManyFacts(t *testing.T) {
	w := newWire()
	h, _ := newHub(t, w, nil)
	const n = 700
	long := strings.Repeat("x", 1000)
	for i := range n {
		if _, err := h.Facts.PutAt(t.Context(), kustomization("prod", fmt.Sprintf("app-%d", i), "1", long), 0); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().UTC()
	for _, f := range []fact.Fact{
		kustomization("dev", "apps", "1", "x"),
		{Key: fact.HeartbeatKey("prod"), Since: at, SeenAt: at, Heartbeat: &fact.Heartbeat{}},
	} {
		if _, err := h.Facts.PutAt(t.Context(), f, 0); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := remote(t, w, "prod", "a")
	if got := len(r.Select(fact.SourceKube, "prod", "")); got != n {
		t.Errorf("the mirror has %d facts, want %d", got, n)
	}
	all, err := agent.Facts(t.Context(), w, "dev")
	if err != nil || len(all) != 1 {
		t.Errorf("dev: %d facts, %v", len(all), err)
	}
}

// TestFull: an agent gone wrong does not fill the store of all.
func TestFull(t *testing.T) {
	w := newWire()
	h, _ := newHub(t, w, nil)
	r, _ := remote(t, w, "prod", "a")
	apps := kustomization("prod", "apps", "1", "x")
	if _, err := r.Put(t.Context(), apps); err != nil {
		t.Fatal(err)
	}
	for i := range 50_000 - 1 {
		h.FactChanged(kustomization("prod", fmt.Sprintf("app-%d", i), "1", "x").Key.String(), nil, &apps)
	}
	if _, err := r.Put(t.Context(), kustomization("prod", "more", "1", "x")); err == nil || !strings.Contains(err.Error(), "has 50000 facts, and may have no more") {
		t.Errorf("one more: %v", err)
	}
	if changed, err := r.Put(t.Context(), kustomization("prod", "apps", "2", "y")); err != nil || !changed {
		t.Errorf("a change of one that is there: %t, %v", changed, err)
	}
	other, _ := remote(t, w, "dev", "a")
	if _, err := other.Put(t.Context(), kustomization("dev", "apps", "1", "x")); err != nil {
		t.Errorf("a fact of another cluster: %v", err)
	}
}

// TestWishes: an agent collects what any replica wishes for, learns of a change at once,
// and says when a fact is of its present life.
func TestWishes(t *testing.T) {
	w := newWire()
	h, _ := newHub(t, w, nil)
	nodes := fact.WishObjects("prod", fact.ObjectsQuery{Resource: "nodes"})
	pods := fact.WishObjects("prod", fact.ObjectsQuery{Resource: "pods"})
	prod := h.Collector("prod")
	prod.Wish([]fact.Wish{nodes})
	if prod.Await(t.Context(), []fact.Key{nodes.Key}) {
		t.Error("without an agent nothing is of its present life")
	}
	if _, err := h.Wishes.Set(t.Context(), "kube.prod.wishes.=.other", agent.Wished{Cluster: "prod", Wishes: []fact.Wish{pods}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wishes.Set(t.Context(), "kube.dev.wishes.=.other", agent.Wished{Cluster: "dev", Wishes: []fact.Wish{fact.WishObjects("dev", fact.ObjectsQuery{Resource: "jobs"})}}); err != nil {
		t.Fatal(err)
	}
	r, of := remote(t, w, "prod", "a")
	if diff := cmp.Diff([]fact.Key{nodes.Key, pods.Key}, of.wished); diff != "" {
		t.Errorf("wished at first (-want +got):\n%s", diff)
	}
	<-of.told
	run(t, func(ctx context.Context) error { return r.Run(ctx, of) })
	w.awaits(t, "signalbox.v1.agent.prod.await")
	w.awaits(t, "signalbox.v1.agent.prod.changed")
	if err := agent.Answers(t.Context(), w, "prod"); err != nil {
		t.Errorf("the agent does not answer: %v", err)
	}
	if err := agent.Answers(t.Context(), w, "dev"); err == nil {
		t.Error("an agent that is not there answers")
	}

	prod.Wish(nil)
	select {
	case <-of.told:
	case <-time.After(10 * time.Second):
		t.Fatal("the agent was not told that a wish is gone")
	}
	of.mu.Lock()
	got := of.wished
	of.mu.Unlock()
	if diff := cmp.Diff([]fact.Key{pods.Key}, got); diff != "" {
		t.Errorf("wished now (-want +got):\n%s", diff)
	}

	prod.Wish([]fact.Wish{nodes})
	if prod.Await(t.Context(), []fact.Key{nodes.Key}) {
		t.Error("the fact was not told yet")
	}
	of.mu.Lock()
	of.settled[nodes.Key] = true
	wished := len(of.wished)
	of.mu.Unlock()
	if wished != 2 {
		t.Errorf("an agent that is asked for a fact knows of %d wishes, want 2", wished)
	}
	if !prod.Await(t.Context(), []fact.Key{nodes.Key}) {
		t.Error("the fact was told")
	}
}

// TestOtherStore: an agent that told another store begins anew.
func TestOtherStore(t *testing.T) {
	w := newWire()
	made := time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	newHub(t, w, func(h *agent.Hub) { h.Made = func() time.Time { return made } })
	r, of := remote(t, w, "prod", "a")
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context(), of) }()
	if err := r.Beat(t.Context(), "prod", time.Now()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("it ended with the same store: %v", err)
	default:
	}
	made = made.Add(time.Hour)
	if err := r.Beat(t.Context(), "prod", time.Now()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, agent.ErrOtherStore) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on as if the facts were there")
	}
}
