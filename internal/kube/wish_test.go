package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

func objectsKey(q fact.ObjectsQuery) fact.Key { return fact.ObjectsKey("prod", q) }

func wish(queries ...fact.ObjectsQuery) []fact.Wish {
	var wishes []fact.Wish
	for _, q := range queries {
		wishes = append(wishes, fact.WishObjects("prod", q))
	}
	return wishes
}

// states are the states of the watch in the writes of a query, in their order.
func (s *fakeSink) watchStates(q fact.ObjectsQuery) []fact.WatchState {
	var out []fact.WatchState
	for _, f := range s.written(objectsKey(q)) {
		out = append(out, f.Objects.Watch.State)
	}
	return out
}

// slowly makes requests for volumes take a second.
func slowly(ctx context.Context, r kubetest.Request) error {
	if r.Resource != "volumes.longhorn.io" {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}

func TestWishIsDropped(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		for range 3 {
			w.Wish(wish(volumes))
			w.Await(t.Context(), []fact.Key{objectsKey(volumes)})
			if n := s.answer(volumes).Failing.Count; n != 1 {
				t.Errorf("%d fail, want 1", n)
			}
			w.Wish(nil)
			settle()
			if f, ok := s.Lookup(objectsKey(volumes)); ok {
				t.Errorf("the fact is still there: %+v", f)
			}
			before := s.writes()
			apply(t, c, volume("a", "healthy"), volume("a", "faulted"), volume("a", "healthy"))
			pass(time.Hour)
			if n := s.writes() - before; n != 0 {
				t.Errorf("%d facts were written of what nobody wishes for", n)
			}
			if n := w.wishes.held(); n != 0 {
				t.Errorf("%d objects are kept", n)
			}
		}
	})
}

// What was wished once and is wished again must not be answered from before.
func TestWishIsNeverAnsweredFromBefore(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish(wish(volumes))
		pass(time.Minute)
		held, _ := s.Lookup(objectsKey(volumes))
		c.Break(slowly)

		t.Log("an earlier life left its fact")
		w.Wish(nil)
		settle()
		s.mu.Lock()
		s.facts[held.Key] = held
		s.mu.Unlock()
		apply(t, c, volume("b", "healthy"))
		w.Wish(wish(volumes))
		synctest.Wait()
		wantFailing(t, s, volumes, fact.WatchSyncing, "")
		w.Await(t.Context(), []fact.Key{held.Key})
		if n := s.answer(volumes).Failing.Count; s.answer(volumes).Watch.State != fact.WatchSynced || n != 0 {
			t.Errorf("answer = %+v", s.answer(volumes))
		}

		t.Log("dropped and wished within a moment")
		n := len(s.written(held.Key))
		apply(t, c, volume("b", "degraded"))
		w.Wish(nil)
		apply(t, c, volume("c", "degraded"))
		w.Wish(wish(volumes))
		w.Await(t.Context(), []fact.Key{held.Key})
		pass(gather)
		for _, f := range s.written(held.Key)[n:] {
			if o := f.Objects; o.Watch.State == fact.WatchSynced && o.Failing.Count == 0 {
				t.Errorf("an old answer was written: %+v", o)
			}
		}
		if n := s.answer(volumes).Failing.Count; n != 2 {
			t.Errorf("%d fail, want 2", n)
		}
	})
}

func TestWishOfTheStart(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s, wish(volumes)...)
		<-w.Settled()
		wantFailing(t, s, volumes, fact.WatchSynced, "")
		first, _ := s.Lookup(objectsKey(volumes))
		stop()

		t.Log("nothing changed: nothing is written")
		pass(time.Hour)
		before := s.writes()
		c.Break(slowly)
		w, stop = start(t, "prod", c, s, wish(volumes)...)
		<-w.Settled()
		pass(time.Minute)
		for _, f := range s.after(before) {
			t.Errorf("written: %+v", f)
		}
		if now, _ := s.Lookup(objectsKey(volumes)); !cmp.Equal(now.Objects, first.Objects) || !now.Since.Equal(first.Since) {
			t.Errorf("a restart changed the answer:\n%s", cmp.Diff(first.Objects, now.Objects))
		}
		stop()

		t.Log("changed meanwhile: the first write is the new answer")
		apply(t, c, volume("a", "degraded"))
		before = len(s.written(objectsKey(volumes)))
		w, stop = start(t, "prod", c, s, wish(volumes)...)
		<-w.Settled()
		notes := s.answer(volumes).Failing.Notes
		if got := s.watchStates(volumes)[before:]; !cmp.Equal(got, []fact.WatchState{fact.WatchSynced}) || len(notes) != 2 {
			t.Errorf("wrote %v: %+v", got, notes)
		} else if !notes[1].Since.Equal(first.Objects.Failing.Notes[0].Since) || !notes[0].Since.After(notes[1].Since) {
			t.Errorf("since %v and %v", notes[0].Since, notes[1].Since)
		}
		stop()

		t.Log("no answer: told after the time that it may stand")
		c.Break(kubetest.Hang)
		w, stop = start(t, "prod", c, s, wish(volumes)...)
		pass(w.limits.Start - time.Second)
		wantFailing(t, s, volumes, fact.WatchSynced, "")
		pass(2 * time.Second)
		wantFailing(t, s, volumes, fact.WatchSyncing, "")
		pass(time.Minute)
		wantFailing(t, s, volumes, fact.WatchFailing, "no answer from the API server in time")
		<-w.Settled()
		stop()
	})
}

func TestSettledWaitsForTheWishes(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	c.Break(slowly)
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s, wish(volumes)...)
		defer stop()
		wantStates(t, s, fact.WatchSynced, "")
		select {
		case <-w.Settled():
			t.Error("settled before the wish was known")
		default:
		}
		<-w.Settled()
		wantFailing(t, s, volumes, fact.WatchSynced, "")
	})
	// What is dropped before it is known is not waited for.
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s, wish(volumes)...)
		defer stop()
		w.Wish(nil)
		settle()
		select {
		case <-w.Settled():
		default:
			t.Error("waits for what is not wished any more")
		}
	})
}

func TestWishesBeforeTheStart(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		s.facts[objectsKey(volumes)] = fact.Fact{Key: objectsKey(volumes), SeenAt: time.Now(), Objects: &fact.Objects{Query: volumes}}
		w, err := New(configOf("prod", c), s, quiet(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Wish(wish(volumes))
		w.Wish(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); _ = w.Run(ctx) }()
		settle()
		if f, ok := s.Lookup(objectsKey(volumes)); ok {
			t.Errorf("the fact of what was dropped is there: %+v", f)
		}
		cancel()
		<-done
	})
}

// A wish writes and removes no other fact than that of its query.
func TestWishesThatMakeNoSense(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	c.Kustomization("flux-system", "apps").Ready(revA)
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		before := s.writes()
		key := fact.Kube("prod", "Kustomization", "flux-system", "apps")
		odd := []fact.Wish{{}, {Key: key}, {Key: key, Objects: &volumes}, {Key: fact.ProtectionKey(1, "main")}, {Key: fact.ClusterKey("prod"), Kured: &fact.KuredQuery{}}}
		w.Wish(odd)
		if n := w.wishes.size(); n != 0 {
			t.Errorf("%d wishes were taken", n)
		}
		pass(time.Minute)
		w.Wish(nil)
		pass(time.Minute)
		if n := s.writes() - before; n != 0 {
			t.Errorf("%d facts were written", n)
		}
		wantReady(t, s, "apps", fact.True, revA)
	})
}

func TestAwaitEnds(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	c.Break(slowly)
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish(wish(volumes))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		begin := time.Now()
		w.Await(ctx, []fact.Key{objectsKey(volumes)})
		if d := time.Since(begin); d != time.Millisecond {
			t.Errorf("waited for %v, want until the context ended", d)
		}
		go func() {
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // The clock of a bubble jumps.
			w.Wish(nil)
		}()
		w.Await(t.Context(), []fact.Key{objectsKey(volumes)})
		if d := time.Since(begin); d > 20*time.Millisecond {
			t.Errorf("waited for %v, want until it was dropped", d)
		}
	})
}

// A new test on objects that are watched is answered by a new list, and what
// was known goes on meanwhile.
func TestNewTestOnTheSameObjects(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	other := volumes
	other.Test = `object.status.robustness != "degraded"`
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		defer stop()
		w.Wish(wish(volumes))
		pass(time.Minute)
		var r requests
		c.Break(func(ctx context.Context, q kubetest.Request) error {
			_ = r.fault(ctx, q)
			return slowly(ctx, q)
		})
		pass(time.Minute)
		seen := len(r.all())
		before := len(s.written(objectsKey(volumes)))
		w.Wish(wish(volumes, other))
		settle()
		apply(t, c, volume("a", "faulted"))
		pass(gather)
		if n := s.answer(volumes).Failing.Count; n != 2 {
			t.Errorf("%d fail while a new test is listed, want 2", n)
		}
		w.Await(t.Context(), []fact.Key{objectsKey(other)})
		wantFailing(t, s, other, fact.WatchSynced, "")
		if n := s.answer(other).Failing.Count; n != 1 {
			t.Errorf("%d fail the new test, want 1", n)
		}
		pass(time.Minute)
		if n := len(s.written(objectsKey(volumes))) - before; n != 1 {
			t.Errorf("%d facts were written of the former test, want that of the change", n)
		}
		watches := 0
		for _, q := range r.all()[seen:] {
			if q.Resource == "volumes.longhorn.io" {
				watches++
			}
		}
		if watches != 1 {
			t.Errorf("%d requests, want one list for both tests", watches)
		}
		// With a test less, nothing is listed.
		w.Wish(wish(other))
		w.Wish(wish(other, volumes))
		w.Await(t.Context(), []fact.Key{objectsKey(volumes)})
		if n := s.answer(volumes).Failing.Count; n != 2 {
			t.Errorf("%d fail, want 2", n)
		}
	})
}

func TestTwoWatchersOnOneSink(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		first, stopFirst := start(t, "prod", c, s, wish(volumes)...)
		settle()
		second, stopSecond := start(t, "prod", c, s, wish(volumes)...)
		pass(time.Minute)
		if got := s.watchStates(volumes); !cmp.Equal(got, []fact.WatchState{fact.WatchSynced}) {
			t.Errorf("wrote %v, want one fact of both", got)
		}
		before := s.writes()
		apply(t, c, volume("a", "faulted"))
		pass(gather)
		if n := s.writes() - before; n != 1 {
			t.Errorf("%d writes of one change, want 1", n)
		}
		// One does not know of the wish any more, or not yet.
		first.Wish(nil)
		settle()
		if _, ok := s.Lookup(objectsKey(volumes)); ok {
			t.Error("the fact is still there")
		}
		pass(second.limits.ProbeEvery + time.Second)
		if n := s.answer(volumes).Failing.Count; n != 2 {
			t.Errorf("%d fail after the other has dropped the wish, want 2", n)
		}
		stopFirst()
		apply(t, c, volume("a", "healthy"))
		pass(gather)
		if n := s.answer(volumes).Failing.Count; n != 1 {
			t.Errorf("%d fail, want 1", n)
		}
		stopSecond()
	})
}

// What one replica cannot read, and then is gone, does not stay unknown while
// another reads it.
func TestReplicaThatIsCutOff(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, wish(volumes)...)
		defer stop()
		pass(time.Minute)
		cut := kubetest.New()
		cut.Break(kubetest.Down)
		_, stopCut := start(t, "prod", cut, s, wish(volumes)...)
		settle()
		wantFailing(t, s, volumes, fact.WatchFailing, "cannot be reached")
		pass(2 * unknownAge)
		wantFailing(t, s, volumes, fact.WatchSynced, "")
		before := s.writes()
		pass(time.Hour)
		if n := s.writes() - before; n != 0 {
			t.Errorf("%d facts were written by two who do not agree", n)
		}
		stopCut()
		apply(t, c, volume("a", "faulted"))
		pass(gather)
		if n := s.answer(volumes).Failing.Count; n != 2 {
			t.Errorf("%d fail, want 2", n)
		}
	})
}

// Two replicas that see a change at different moments agree since when it is so.
func TestReplicasAgreeOnSince(t *testing.T) {
	early, late, s := longhorn(t), longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		_, stopEarly := start(t, "prod", early, s, wish(volumes)...)
		defer stopEarly()
		_, stopLate := start(t, "prod", late, s, wish(volumes)...)
		defer stopLate()
		pass(time.Minute)
		key := objectsKey(volumes)
		for _, robustness := range []string{"faulted", "healthy", "degraded"} {
			before := len(s.written(key))
			apply(t, early, volume("a", robustness))
			pass(1500 * time.Millisecond)
			held, _ := s.Lookup(key)
			apply(t, late, volume("a", robustness))
			// Another object moves the version on.
			apply(t, late, volume("c", "healthy"))
			pass(time.Minute)
			apply(t, early, volume("c", "healthy"))
			pass(time.Minute)
			if got := s.written(key)[before:]; len(got) != 1 {
				t.Errorf("%d facts were written of one change, want 1: %+v", len(got), got)
			}
			if now, _ := s.Lookup(key); !now.Same(held) || !now.Since.Equal(now.Since.Truncate(time.Second)) {
				t.Errorf("%+v became %+v", held, now)
			}
		}
	})
}

// A replica that lags cannot put its old answer over a newer one.
func TestReplicaThatLags(t *testing.T) {
	slow, s := longhorn(t), newFakeSink()
	fast := longhorn(t)
	synctest.Test(t, func(t *testing.T) {
		_, stopSlow := start(t, "prod", slow, s, wish(volumes)...)
		_, stopFast := start(t, "prod", fast, s, wish(volumes)...)
		settle()
		// Both are the same cluster; one hears of a change later.
		apply(t, fast, volume("a", "faulted"), volume("a", "healthy"), volume("b", "healthy"))
		pass(gather)
		apply(t, slow, volume("a", "faulted"))
		pass(gather)
		if n := s.answer(volumes).Failing.Count; n != 0 {
			t.Errorf("%d fail, want the newer answer", n)
		}
		stopSlow()
		stopFast()
	})
}

func TestOrphansAreRemoved(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	synctest.Test(t, func(t *testing.T) {
		put := func(kind string, age time.Duration) fact.Key {
			k := fact.Kube("prod", kind, "x", fmt.Sprint(age))
			s.facts[k] = fact.Fact{Key: k, SeenAt: time.Now().Add(-age)}
			return k
		}
		old, fresh := put(fact.KindObjects, time.Hour), put(fact.KindKured, time.Second)
		of := put("kustomization", time.Hour)
		w, stop := start(t, "prod", c, s)
		defer stop()
		pass(time.Minute)
		if _, ok := s.Lookup(old); !ok {
			t.Error("removed although nobody has said what is wished")
		}
		w.Wish(nil)
		pass(time.Minute)
		for k, want := range map[fact.Key]bool{old: false, fresh: true, of: true} {
			if _, ok := s.Lookup(k); ok != want {
				t.Errorf("%s is there: %v, want %v", k, ok, want)
			}
		}
		pass(orphanAge)
		if _, ok := s.Lookup(fresh); ok {
			t.Error("an old fact that nobody wishes for is still there")
		}
	})
}

func TestWishIsWrittenAfterFailures(t *testing.T) {
	c, s := longhorn(t), newFakeSink()
	s.fail = func(f fact.Fact) error {
		if f.Objects != nil {
			return errors.New("disk full")
		}
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s, wish(volumes)...)
		defer stop()
		pass(time.Minute)
		select {
		case <-w.Settled():
			t.Error("settled before the fact was written")
		default:
		}
		s.setFail(nil)
		pass(lastRetry)
		<-w.Settled()
		wantFailing(t, s, volumes, fact.WatchSynced, "")
	})
}

// A starting replica does not take back what another one says.
func TestRestartHoldsTheClusterFact(t *testing.T) {
	c, s := kubetest.New(), newFakeSink()
	key := fact.ClusterKey("prod")
	synctest.Test(t, func(t *testing.T) {
		w, stop := start(t, "prod", c, s)
		<-w.Settled()
		pass(time.Hour)
		stop()
		before := len(s.written(key))
		w, stop = start(t, "prod", c, s)
		<-w.Settled()
		pass(time.Hour)
		stop()
		if got := s.written(key)[before:]; len(got) != 0 {
			t.Errorf("a restart wrote %+v", got[0].Cluster)
		}

		t.Log("no answer: told after the time that it may stand, then failing")
		c.Break(kubetest.Hang)
		w, stop = start(t, "prod", c, s)
		pass(w.limits.Start - time.Second)
		wantStates(t, s, fact.WatchSynced, "")
		pass(2 * time.Second)
		wantStates(t, s, fact.WatchSyncing, "")
		pass(time.Minute)
		wantStates(t, s, fact.WatchFailing, "no answer")
		stop()

		t.Log("what is not synced is not held")
		w, stop = start(t, "prod", c, s)
		wantStates(t, s, fact.WatchSyncing, "")
		c.Break(nil)
		pass(2 * time.Minute)
		<-w.Settled()
		wantStates(t, s, fact.WatchSynced, "")
		stop()

		t.Log("a kind that is gone is told at once")
		c.Remove("Bucket")
		_, stop = start(t, "prod", c, s)
		settle()
		wantState(t, s, "bucket", fact.WatchNotInstalled, "")
		wantState(t, s, "kustomization", fact.WatchSynced, "")
		stop()
	})
}
