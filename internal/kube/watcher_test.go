package kube

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

const (
	revA = "main@sha1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	revB = "main@sha1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func configOf(name string, c *kubetest.Cluster) Config {
	return Config{Cluster: name, Client: c.Client(), Probe: c.Probe, Discovery: c.Discovery(), Logs: c.Logs}
}

// start runs a watcher of the cluster within a bubble of synctest, and returns
// a function that ends it.
func start(t *testing.T, name string, c *kubetest.Cluster, s Sink, wishes ...fact.Wish) (w *Watcher, stop func()) {
	t.Helper()
	w, err := New(configOf(name, c), s, quiet(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if len(wishes) > 0 {
		w.Wish(wishes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	synctest.Wait()
	return w, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	}
}

// watching runs a watcher of the cluster, named prod, until do returns.
func watching(t *testing.T, c *kubetest.Cluster, s *fakeSink, do func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s)
		defer stop()
		do(t)
	})
}

// pass lets time pass, and the watcher finish what it does then.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // The clock of a bubble jumps.
	synctest.Wait()
}

// settle lets a moment pass, less than any pause between tries.
func settle() { pass(100 * time.Millisecond) }

func wantState(t *testing.T, s *fakeSink, kind string, state fact.WatchState, message string) {
	t.Helper()
	w := s.watch(kind)
	if w.State != state || !strings.Contains(w.Message, message) {
		t.Errorf("watch on %s: %s %q, want %s %q", kind, w.State, w.Message, state, message)
	}
	if strings.Contains(w.Message, "\n") {
		t.Errorf("the message has several lines: %q", w.Message)
	}
}

func wantStates(t *testing.T, s *fakeSink, state fact.WatchState, message string) {
	t.Helper()
	for _, k := range kinds() {
		wantState(t, s, k.name(), state, message)
	}
}

func wantReady(t *testing.T, s *fakeSink, name, status, applied string) {
	t.Helper()
	f := s.object("kustomization", "flux-system", name)
	if f.Absent || f.Flux == nil || f.Flux.Ready.Status != status || f.Flux.Applied != applied {
		t.Errorf("fact of %s = %+v %+v, want Ready=%s at %s", name, f, f.Flux, status, applied)
	}
}

func wantAbsent(t *testing.T, s *fakeSink, name string) {
	t.Helper()
	if f := s.object("kustomization", "flux-system", name); !f.Absent || f.Flux != nil {
		t.Errorf("fact of %s = %+v, want it to be absent", name, f)
	}
}

func TestProgressingWritesNothing(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	watching(t, c, s, func(t *testing.T) {
		good, bad := c.Kustomization("flux-system", "apps"), c.Kustomization("flux-system", "infra")
		good.Ready(revA)
		bad.Failing("HealthCheckFailed", "health check failed after 30.022035531s: timeout")
		settle()
		wantReady(t, s, "apps", fact.True, revA)
		wantReady(t, s, "infra", fact.False, "")
		before := s.writes()
		for range 20 {
			pass(10 * time.Minute)
			good.Progressing()
			bad.Progressing()
			pass(time.Minute)
			good.Ready(revA)
			bad.Failing("HealthCheckFailed", "health check failed after 30.117935531s: timeout")
		}
		settle()
		if n := s.writes() - before; n != 0 {
			t.Errorf("%d facts were written while nothing changed", n)
		}
	})
}

func TestProgressingForTooLongIsToldWithoutAnEvent(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	watching(t, c, s, func(t *testing.T) {
		o := c.Kustomization("flux-system", "apps").Spec("timeout", "1m").Ready(revA)
		pass(time.Hour)
		o.Progressing()
		pass(4*time.Minute + 58*time.Second)
		wantReady(t, s, "apps", fact.True, revA)
		pass(3 * time.Second)
		wantReady(t, s, "apps", fact.Unknown, revA)
		if got := s.written(fact.Kube("prod", "Kustomization", "flux-system", "apps")); len(got) > 3 {
			t.Errorf("%d writes, want at most that of creation, Ready and Unknown", len(got))
		}
		o.Ready(revA)
		settle()
		wantReady(t, s, "apps", fact.True, revA)
	})
}

// Flux lets an object that depends on another fail while the other passes
// through Progressing.
func TestDependencyAtWork(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	watching(t, c, s, func(t *testing.T) {
		base := c.Kustomization("flux-system", "base").Ready(revA)
		apps := c.Kustomization("flux-system", "apps").Spec("dependsOn", []any{map[string]any{"name": "base"}}).Ready(revA)
		pass(time.Hour)
		before := s.writes()
		base.Progressing()
		apps.Progressing()
		apps.Failing("DependencyNotReady", "dependency 'flux-system/base' is not ready")
		pass(time.Minute)
		if n := s.writes() - before; n != 0 {
			t.Errorf("%d facts were written while nothing changed", n)
		}
		base.Failing("HealthCheckFailed", "timeout")
		settle()
		wantReady(t, s, "base", fact.False, revA)
		pass(dependencyRecheck)
		wantReady(t, s, "apps", fact.False, revA)
	})
}

func TestObjectsComeAndGo(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	watching(t, c, s, func(t *testing.T) {
		wantStates(t, s, fact.WatchSynced, "")
		wantReady(t, s, "apps", fact.True, revA)
		first := s.object("kustomization", "flux-system", "apps")
		c.Kustomization("flux-system", "apps").Delete()
		settle()
		wantAbsent(t, s, "apps")
		if gone := s.object("kustomization", "flux-system", "apps"); gone.UID != first.UID || !gone.Newer(first) || gone.Version == first.Version {
			t.Errorf("absent with uid %s at version %s, want uid %s after version %s", gone.UID, gone.Version, first.UID, first.Version)
		}
		c.Kustomization("flux-system", "apps").Failing("BuildFailed", "no such file")
		settle()
		wantReady(t, s, "apps", fact.False, "")
		if again := s.object("kustomization", "flux-system", "apps"); again.UID == first.UID {
			t.Error("the object that was created again has the uid of the deleted one")
		}
		c.Kustomization("flux-system", "apps").Suspended()
		settle()
		if f := s.object("kustomization", "flux-system", "apps"); !f.Flux.Suspended {
			t.Errorf("fact = %+v, want it to be suspended", f.Flux)
		}
	})
}

func TestEveryKind(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	for _, k := range kinds() {
		c.Object(k.kind, "media", "web").Ready(revA)
	}
	watching(t, c, s, func(t *testing.T) {
		for _, k := range kinds() {
			if f := s.object(k.name(), "media", "web"); f.Flux == nil || f.Flux.Applied != revA || f.Flux.Ready.Status != fact.True {
				t.Errorf("fact of %s = %+v %+v, want Ready at %s", k.kind, f, f.Flux, revA)
			}
		}
	})
}

func TestKindsComeAndGo(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Remove()
	watching(t, c, s, func(t *testing.T) {
		wantStates(t, s, fact.WatchNotInstalled, "no CustomResourceDefinition")
		for range 2 {
			c.Install("Kustomization")
			c.Kustomization("flux-system", "apps").Ready(revA)
			settle()
			wantState(t, s, "kustomization", fact.WatchSynced, "")
			wantState(t, s, "bucket", fact.WatchNotInstalled, "buckets.source.toolkit.fluxcd.io")
			wantReady(t, s, "apps", fact.True, revA)
			c.Remove("Kustomization")
			settle()
			wantState(t, s, "kustomization", fact.WatchNotInstalled, "kustomizations.kustomize.toolkit.fluxcd.io")
			pass(time.Hour)
			wantState(t, s, "kustomization", fact.WatchNotInstalled, "")
		}
	})
}

func TestKindThatIsNotEstablished(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Establish("Kustomization", false)
	c.Kustomization("flux-system", "apps").Ready(revA)
	watching(t, c, s, func(t *testing.T) {
		wantState(t, s, "kustomization", fact.WatchNotInstalled, "not established: not all names are accepted")
		c.Establish("Kustomization", true)
		settle()
		wantState(t, s, "kustomization", fact.WatchSynced, "")
		wantReady(t, s, "apps", fact.True, revA)
	})
}

func TestServedVersionChanges(t *testing.T) {
	c, s := kubetest.New("Kustomization"), newFakeSink()
	c.InstallVersions("Kustomization", "v1beta2")
	c.Kustomization("flux-system", "apps").Ready(revA)
	watching(t, c, s, func(t *testing.T) {
		wantReady(t, s, "apps", fact.True, revA)
		before := len(s.written(fact.Kube("prod", "Kustomization", "flux-system", "apps")))
		c.InstallVersions("Kustomization", "v1")
		settle()
		wantState(t, s, "kustomization", fact.WatchSynced, "")
		if n := len(s.written(fact.Kube("prod", "Kustomization", "flux-system", "apps"))); n != before {
			t.Errorf("%d more facts were written, want none: the object is the same", n-before)
		}
		c.Kustomization("flux-system", "apps").Ready(revB)
		settle()
		wantReady(t, s, "apps", fact.True, revB)
	})
}

func TestSyncedOnlyWhenWritten(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	for _, name := range []string{"a", "b", "c"} {
		c.Kustomization("flux-system", name).Ready(revA)
	}
	s.fail = func(f fact.Fact) error {
		if f.Key.Name == "b" {
			return errors.New("no space left on device")
		}
		return nil
	}
	watching(t, c, s, func(t *testing.T) {
		pass(time.Minute)
		wantReady(t, s, "a", fact.True, revA)
		wantReady(t, s, "c", fact.True, revA)
		wantState(t, s, "kustomization", fact.WatchSyncing, "")
		wantState(t, s, "bucket", fact.WatchSynced, "")
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		pass(lastRetry)
		wantReady(t, s, "b", fact.True, revA)
		wantState(t, s, "kustomization", fact.WatchSynced, "")
	})
}

func TestNamesDoNotMix(t *testing.T) {
	prod, dev, s := kubetest.New(), kubetest.New(), newFakeSink()
	prod.Kustomization("flux-system", "apps").Ready(revA)
	prod.Kustomization("staging", "apps").Failing("BuildFailed", "x")
	dev.Kustomization("flux-system", "apps").Ready(revB)
	synctest.Test(t, func(t *testing.T) {
		_, stopProd := start(t, "prod", prod, s)
		_, stopDev := start(t, "dev", dev, s)
		settle()
		for key, want := range map[fact.Key]string{
			fact.Kube("prod", "Kustomization", "flux-system", "apps"): "True " + revA,
			fact.Kube("prod", "Kustomization", "staging", "apps"):     "False ",
			fact.Kube("dev", "Kustomization", "flux-system", "apps"):  "True " + revB,
		} {
			f, ok := s.Lookup(key)
			if got := f.Flux.Ready.Status + " " + f.Flux.Applied; !ok || got != want {
				t.Errorf("%s = %q, want %q", key, got, want)
			}
		}
		dev.Remove("Kustomization")
		settle()
		wantState(t, s, "kustomization", fact.WatchSynced, "")
		stopDev()
		stopProd()
	})
}

func TestRestartWritesNoObjects(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	c.Kustomization("flux-system", "infra").Failing("BuildFailed", "x")
	synctest.Test(t, func(t *testing.T) {
		for i := range 3 {
			before := s.writes()
			w, stop := start(t, "prod", c, s)
			<-w.Settled()
			for _, f := range s.after(before) {
				if i > 0 && f.Cluster == nil {
					t.Errorf("start %d wrote %+v", i+1, f)
				}
			}
			pass(time.Hour)
			stop()
		}
	})
}

func TestHeldStateSurvivesARestart(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s)
		c.Kustomization("flux-system", "apps").Ready(revA)
		pass(time.Hour)
		since := s.object("kustomization", "flux-system", "apps").Since
		stop()
		c.Kustomization("flux-system", "apps").Progressing()
		_, stop = start(t, "prod", c, s)
		settle()
		wantReady(t, s, "apps", fact.True, revA)
		if got := s.object("kustomization", "flux-system", "apps").Since; !got.Equal(since) {
			t.Errorf("since %v, want %v as before the restart", got, since)
		}
		pass(12 * time.Minute)
		wantReady(t, s, "apps", fact.Unknown, revA)
		stop()
	})
}

// laggingSink shows a write only after some time, as a view that follows a
// server does.
type laggingSink struct {
	*fakeSink
	lag time.Duration
}

func (s laggingSink) Lookup(k fact.Key) (fact.Fact, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range slices.Backward(s.log) {
		if f.Key == k && time.Since(f.SeenAt) >= s.lag {
			return f, true
		}
	}
	return fact.Fact{}, false
}

func TestSinkThatLags(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, laggingSink{s, time.Second})
		defer stop()
		o := c.Kustomization("flux-system", "apps").Ready(revA)
		pass(time.Hour)
		o.Failing("BuildFailed", "x")
		settle()
		o.Progressing()
		settle()
		wantReady(t, s, "apps", fact.False, revA)
		o.Ready(revA)
		settle()
		o.Progressing()
		settle()
		wantReady(t, s, "apps", fact.True, revA)
	})
}
