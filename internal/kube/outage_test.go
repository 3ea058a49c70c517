package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

func TestMissingRights(t *testing.T) {
	const crd, ks = "customresourcedefinitions.apiextensions.k8s.io", "kustomizations.kustomize.toolkit.fluxcd.io"
	tests := map[string]struct {
		fault    kubetest.Fault
		message  string
		allKinds bool
	}{
		"definitions":   {kubetest.Forbid("", crd), "missing right: watch " + crd, true},
		"objects":       {kubetest.Forbid("", ks), "missing right: watch " + ks + ` (list and watch are needed); the API server says: ` + ks + ` is forbidden: User "signalbox" cannot watch`, false},
		"watch objects": {kubetest.Forbid("watch", ks), "missing right: watch " + ks, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := kubetest.New(), newFakeSink()
			c.Kustomization("flux-system", "apps").Ready(revA)
			c.Break(tt.fault)
			watching(t, c, s, func(t *testing.T) {
				wantState(t, s, "kustomization", fact.WatchFailing, tt.message)
				if tt.allKinds {
					wantStates(t, s, fact.WatchFailing, tt.message)
				} else {
					wantState(t, s, "bucket", fact.WatchSynced, "")
				}
				before := s.writes()
				pass(time.Hour)
				if n := s.writes() - before; n != 0 {
					t.Errorf("%d facts were written in an hour of the same failure", n)
				}
				if n := s.heard(); n < 300 {
					t.Errorf("%d heartbeats in an hour, want one each 10 s: the cluster answers", n)
				}
				c.Break(nil)
				pass(2 * maxDeniedPause)
				wantStates(t, s, fact.WatchSynced, "")
				wantReady(t, s, "apps", fact.True, revA)
			})
		})
	}
}

func TestOutage(t *testing.T) {
	tests := map[string]struct {
		fault   kubetest.Fault
		message string
	}{
		"down":                {kubetest.Down, "the API server cannot be reached: dial tcp 127.0.0.1:6443: connect: connection refused"},
		"not answering":       {kubetest.Hang, "no answer from the API server in time"},
		"credentials expired": {kubetest.Expired, "the API server refuses the credentials: the token has expired"},
	}
	for name, tt := range tests {
		t.Run(name+" at the start", func(t *testing.T) {
			c, s := kubetest.New(), newFakeSink()
			c.Kustomization("flux-system", "apps").Ready(revA)
			c.Break(tt.fault)
			watching(t, c, s, func(t *testing.T) {
				pass(time.Minute)
				wantStates(t, s, fact.WatchFailing, tt.message)
				if n := s.heard(); n != 0 {
					t.Errorf("%d heartbeats of a cluster that does not answer", n)
				}
				c.Break(nil)
				pass(time.Minute)
				wantStates(t, s, fact.WatchSynced, "")
				wantReady(t, s, "apps", fact.True, revA)
				if n := s.heard(); n == 0 {
					t.Error("no heartbeat after the outage")
				}
			})
		})
		t.Run(name+" later", func(t *testing.T) {
			c, s := kubetest.New(), newFakeSink()
			c.Kustomization("flux-system", "apps").Ready(revA)
			c.Kustomization("flux-system", "old").Ready(revA)
			watching(t, c, s, func(t *testing.T) {
				pass(time.Minute)
				c.Break(tt.fault)
				settle()
				wantStates(t, s, fact.WatchSynced, "")
				c.Kustomization("flux-system", "apps").Ready(revB)
				c.Kustomization("flux-system", "old").Delete()
				before, heard := s.writes(), s.heard()
				pass(time.Minute)
				wantStates(t, s, fact.WatchFailing, tt.message)
				if n := s.writes() - before; n > len(kinds()) {
					t.Errorf("%d facts were written, want at most one for each kind", n)
				}
				if n := s.heard() - heard; n != 0 {
					t.Errorf("%d heartbeats of a cluster that does not answer", n)
				}
				c.Break(nil)
				pass(time.Minute)
				wantStates(t, s, fact.WatchSynced, "")
				wantReady(t, s, "apps", fact.True, revB)
				wantAbsent(t, s, "old")
			})
		})
	}
}

func TestShortOutageIsNoNews(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	watching(t, c, s, func(t *testing.T) {
		before := s.writes()
		for range 5 {
			pass(time.Minute)
			c.Cut()
			pass(time.Minute)
			c.Break(kubetest.Down)
			pass(5 * time.Second)
			c.Break(nil)
		}
		pass(time.Minute)
		if n := s.writes() - before; n != 0 {
			t.Errorf("%d facts were written over outages of seconds", n)
		}
		c.Kustomization("flux-system", "apps").Ready(revB)
		settle()
		wantReady(t, s, "apps", fact.True, revB)
	})
}

func TestRecoveryIsQuick(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	watching(t, c, s, func(t *testing.T) {
		c.Break(kubetest.Down)
		pass(10 * time.Minute)
		c.Kustomization("flux-system", "apps").Ready(revB)
		c.Break(nil)
		pass(2 * maxPause)
		wantStates(t, s, fact.WatchSynced, "")
		wantReady(t, s, "apps", fact.True, revB)
	})
}

func TestHistoryIsForgotten(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	c.Kustomization("flux-system", "old").Ready(revA)
	watching(t, c, s, func(t *testing.T) {
		c.Break(kubetest.Down)
		c.Kustomization("flux-system", "apps").Ready(revB)
		c.Kustomization("flux-system", "old").Delete()
		c.Forget()
		before := s.writes()
		c.Break(nil)
		pass(10 * time.Second)
		wantReady(t, s, "apps", fact.True, revB)
		wantAbsent(t, s, "old")
		if n := s.writes() - before; n != 2 {
			t.Errorf("%d facts were written, want 2", n)
		}
	})
}

func TestWatchThatTellsNothing(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	watching(t, c, s, func(t *testing.T) {
		c.Stall()
		c.Kustomization("flux-system", "apps").Ready(revB)
		pass(Limits{}.withDefaults().Idle + time.Second)
		wantReady(t, s, "apps", fact.True, revB)
		wantStates(t, s, fact.WatchSynced, "")
	})
}

func TestWatchListWithoutBookmark(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	c.Mute(true)
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		pass(10 * time.Second)
		wantStates(t, s, fact.WatchSyncing, "")
		select {
		case <-w.Settled():
			t.Error("settled without a complete list")
		default:
		}
		// The definitions and then the objects each wait, and then list.
		pass(70 * time.Second)
		wantStates(t, s, fact.WatchSynced, "")
		wantReady(t, s, "apps", fact.True, revA)
		<-w.Settled()
	})
}

func TestSlowListIsFailing(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	slow := func(ctx context.Context, r kubetest.Request) error {
		if r.Resource == "kustomizations.kustomize.toolkit.fluxcd.io" {
			return kubetest.Hang(ctx, r)
		}
		return nil
	}
	c.Break(slow)
	watching(t, c, s, func(t *testing.T) {
		wantState(t, s, "kustomization", fact.WatchSyncing, "")
		pass(31 * time.Second)
		wantState(t, s, "kustomization", fact.WatchFailing, "kustomizations.kustomize.toolkit.fluxcd.io")
		wantState(t, s, "bucket", fact.WatchSynced, "")
	})
}
