package kube

import (
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

func TestFirstListWins(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	c.Kustomization("flux-system", "same").Ready(revA)
	c.Kustomization("staging", "other").Ready(revA)
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s)
		settle()
		stop()

		// Facts from a future that was undone by restoring a backup, and of
		// objects that are gone.
		future := func(name string, change func(*fact.Fact)) fact.Key {
			f := s.object("kustomization", "flux-system", name)
			f.Version = "999999"
			change(&f)
			s.facts[f.Key] = f
			return f.Key
		}
		future("apps", func(f *fact.Fact) {
			flux := *f.Flux
			flux.Applied = revB
			f.Flux = &flux
		})
		future("same", func(*fact.Fact) {})
		future("apps", func(f *fact.Fact) { f.Key.Name = "gone" })
		elsewhere := future("apps", func(f *fact.Fact) { f.Key.Scope = "dev" })
		otherKind := future("apps", func(f *fact.Fact) { f.Key.Kind = "node" })

		_, stop = start(t, "prod", c, s)
		settle()
		wantReady(t, s, "apps", fact.True, revA)
		wantReady(t, s, "same", fact.True, revA)
		wantAbsent(t, s, "gone")
		for _, key := range []fact.Key{elsewhere, otherKind} {
			if f, _ := s.Lookup(key); f.Absent {
				t.Errorf("%s is absent, although it is not of this cluster and kind", key)
			}
		}
		// What comes after the list is not held back by the versions of before.
		c.Kustomization("flux-system", "apps").Ready(revB)
		c.Kustomization("flux-system", "same").Ready(revB)
		settle()
		wantReady(t, s, "apps", fact.True, revB)
		wantReady(t, s, "same", fact.True, revB)
		stop()
	})
}

// An object is created while its absence is being written.
func TestCreatedWhileSwept(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		c.Kustomization("flux-system", "apps").Ready(revA)
		_, stop := start(t, "prod", c, s)
		stop()
		c.Kustomization("flux-system", "apps").Delete()
		s.setFail(func(f fact.Fact) error {
			if f.Absent {
				c.Kustomization("flux-system", "apps").Ready(revB)
				time.Sleep(time.Second) //nolint:forbidigo // The clock of a bubble jumps.
			}
			return nil
		})
		_, stop = start(t, "prod", c, s)
		pass(10 * time.Second)
		wantReady(t, s, "apps", fact.True, revB)
		wantState(t, s, "kustomization", fact.WatchSynced, "")
		stop()
	})
}

func TestRestoredWhileWatching(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	watching(t, c, s, func(t *testing.T) {
		c.Kustomization("flux-system", "apps").Ready(revA)
		c.Kustomization("flux-system", "deleted").Ready(revA)
		settle()
		backup := c.Backup()
		pass(time.Minute)
		c.Kustomization("flux-system", "apps").Ready(revB)
		c.Kustomization("flux-system", "apps").Failing("BuildFailed", "broken")
		c.Kustomization("flux-system", "deleted").Delete()
		c.Kustomization("flux-system", "later").Ready(revB)
		settle()
		wantAbsent(t, s, "deleted")
		pass(time.Minute)
		c.Restore(backup)
		pass(10 * time.Second)
		wantStates(t, s, fact.WatchSynced, "")
		wantReady(t, s, "apps", fact.True, revA)
		wantReady(t, s, "deleted", fact.True, revA)
		wantAbsent(t, s, "later")
		c.Kustomization("flux-system", "apps").Failing("BuildFailed", "broken again")
		settle()
		wantReady(t, s, "apps", fact.False, revA)
	})
}

// The versions of the new history have overtaken those of the old one before the
// watcher is back, so that they tell nothing.
func TestRestoredDuringAnOutage(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	watching(t, c, s, func(t *testing.T) {
		c.Kustomization("flux-system", "apps").Ready(revA)
		pass(time.Minute)
		backup := c.Backup()
		c.Kustomization("flux-system", "apps").Ready(revB)
		pass(time.Minute)
		c.Break(kubetest.Down)
		c.Restore(backup)
		for range 10 {
			c.Kustomization("flux-system", "other").Progressing().Ready(revA)
		}
		pass(time.Minute)
		wantStates(t, s, fact.WatchFailing, "")
		c.Break(nil)
		pass(10 * time.Second)
		wantStates(t, s, fact.WatchSynced, "")
		wantReady(t, s, "apps", fact.True, revA)
		wantReady(t, s, "other", fact.True, revA)
	})
}
