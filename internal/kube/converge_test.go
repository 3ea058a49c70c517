package kube

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

// Whatever happens to a cluster, the connection to it and the sink: once it is
// over, the facts say what is true.
func TestConverges(t *testing.T) {
	for seed := range 8 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { converge(t, rand.New(rand.NewPCG(uint64(seed), 7))) })
		})
	}
}

// model is what is true of an object.
type model struct {
	exists, suspended bool
	ready             string
}

func converge(t *testing.T, r *rand.Rand) {
	c, s := kubetest.New(), newFakeSink()
	now := map[string]model{}
	installed := true
	backup, backedUp := c.Backup(), map[string]model{}
	_, stop := start(t, "prod", c, s)
	names := []string{"a", "b", "c"}
	var log []string
	for range 60 {
		name := names[r.IntN(len(names))]
		o, m := c.Kustomization("flux-system", name), now[name]
		op := r.IntN(16)
		log = append(log, fmt.Sprint(op, name))
		switch {
		case op < 6 && !installed, op == 6:
			c.Install("Kustomization")
			installed = true
		case op == 0:
			o.Ready(revA)
			now[name] = model{true, m.suspended, fact.True}
		case op == 1:
			o.Failing("BuildFailed", "x")
			now[name] = model{true, m.suspended, fact.False}
		case op == 2 && m.exists:
			o.Progressing()
			m.ready = fact.Unknown
			now[name] = m
		case op == 3 && m.exists:
			o.Suspended()
			m.suspended = true
			now[name] = m
		case op == 4:
			o.Delete()
			delete(now, name)
		case op == 5:
			backup, backedUp = c.Backup(), maps.Clone(now)
		case op == 7:
			c.Remove("Kustomization")
			installed = false
			clear(now)
		case op == 8:
			c.Cut()
		case op == 9:
			c.Forget()
		case op == 10:
			c.Stall()
		case op == 11:
			c.Break([]kubetest.Fault{kubetest.Down, kubetest.Hang, kubetest.Expired, kubetest.Forbid("watch", "")}[r.IntN(4)])
		case op == 12:
			c.Break(nil)
		case op == 13 && installed:
			c.Break(kubetest.Down)
			pass(time.Minute)
			c.Restore(backup)
			c.Break(nil)
			now = maps.Clone(backedUp)
		case op == 14:
			var n atomic.Int64
			s.setFail(func(fact.Fact) error {
				if n.Add(1)%2 == 0 {
					return errors.New("disk full")
				}
				return nil
			})
		case op == 15:
			s.setFail(nil)
			stop()
			_, stop = start(t, "prod", c, s)
		}
		pass([]time.Duration{0, time.Millisecond, time.Second, time.Minute}[r.IntN(4)])
	}
	s.setFail(nil)
	c.Break(nil)
	c.Install("Kustomization")
	pass(time.Hour)
	wantStates(t, s, fact.WatchSynced, "")
	for _, name := range names {
		m, f := now[name], s.object("kustomization", "flux-system", name)
		got := model{exists: f.Flux != nil}
		if f.Flux != nil {
			got.suspended, got.ready = f.Flux.Suspended, f.Flux.Ready.Status
		}
		if got != m {
			t.Errorf("fact of %s says %+v, want %+v\nafter %v", name, got, m, log)
		}
	}
	stop()
}
