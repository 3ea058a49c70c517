package kube

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

// Whatever happens: once it is over, the facts of what is wished say what is
// true, and there are no others.
func TestWishesConverge(t *testing.T) {
	for seed := range 12 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { convergeWishes(t, rand.New(rand.NewPCG(uint64(seed), 11))) })
		})
	}
}

func convergeWishes(t *testing.T, r *rand.Rand) {
	c, s := longhorn(t), newFakeSink()
	other := volumes
	other.Test = `object.status.robustness == "degraded"`
	one := volumes
	one.Name = "a"
	queries := []fact.ObjectsQuery{volumes, other, one}
	now := map[string]string{"a": "healthy", "b": "degraded", "c": "healthy"}
	w, stop := start(t, "prod", c, s)
	var wished []fact.ObjectsQuery
	installed := true
	var log []int
	for range 60 {
		op := r.IntN(14)
		log = append(log, op)
		name := string(rune('a' + r.IntN(4)))
		switch {
		case op < 4 && installed:
			now[name] = []string{"healthy", "degraded", "faulted"}[r.IntN(3)]
			apply(t, c, volume(name, now[name]))
		case op == 4 && installed:
			c.Delete(volume(name, ""))
			delete(now, name)
		case op < 7:
			wished = nil
			for _, q := range queries {
				if r.IntN(3) > 0 {
					wished = append(wished, q)
				}
			}
			w.Wish(wish(wished...))
		case op == 7:
			c.Withdraw(kubetest.Volumes)
			installed = false
			clear(now)
		case op == 8:
			c.Serve(kubetest.Volumes)
			installed = true
		case op == 9:
			[]func(){c.Cut, c.Forget, c.Stall}[r.IntN(3)]()
		case op == 10:
			c.Break([]kubetest.Fault{kubetest.Down, kubetest.Hang, slowly, kubetest.Forbid("watch", "")}[r.IntN(4)])
		case op == 11:
			c.Break(nil)
		case op == 12:
			stop()
			w, stop = start(t, "prod", c, s, wish(wished...)...)
		case op == 13:
			s.setFail(func(fact.Fact) error { return errors.New("disk full") })
			pass(time.Second)
			s.setFail(nil)
		}
		pass([]time.Duration{0, time.Millisecond, time.Second, time.Minute}[r.IntN(4)])
	}
	c.Break(nil)
	c.Serve(kubetest.Volumes)
	pass(time.Hour)
	for _, q := range queries {
		o, is := s.answer(q), false
		for _, x := range wished {
			is = is || x == q
		}
		if is && (o.Watch.State != fact.WatchSynced || o.Passing.Count != passingOf(q, now)) || !is && o.Watch.State != "" {
			t.Errorf("wished %v: the answer to %+v is %+v, of %v\nafter %v", is, q, o, now, log)
		}
	}
	stop()
}

// passingOf is how many volumes pass, by their robustness.
func passingOf(q fact.ObjectsQuery, now map[string]string) (n int) {
	passes := "healthy"
	if q.Test != healthy {
		passes = "degraded"
	}
	for name, robustness := range now {
		if (q.Name == "" || q.Name == name) && robustness == passes {
			n++
		}
	}
	return n
}
