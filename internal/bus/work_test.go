package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
	"signalbox/internal/pull"
)

// consumeWork runs the workers of a replica in the background.
func consumeWork(t testing.TB, b *Bus, h func(context.Context, Item) error) (stop func()) {
	return running(t, func(ctx context.Context) error { return b.work.Consume(ctx, h) })
}

func soon(t testing.TB, b *Bus, item Item) {
	t.Helper()
	if err := b.work.Soon(deadline(t), item); err != nil {
		t.Fatal(err)
	}
}

func schedule(t testing.TB, b *Bus, item Item, in time.Duration) {
	t.Helper()
	if err := b.work.Schedule(deadline(t), item, time.Now().Add(in)); err != nil {
		t.Fatal(err)
	}
}

// queued returns how many messages of work there are, waiting or due.
func queued(t testing.TB, b *Bus) uint64 {
	t.Helper()
	info, err := b.streams[streamWork].Info(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

func TestBurstBecomesOneEvaluation(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Debounce: 100 * time.Millisecond, MaxWait: time.Second})
	var seen record[Item]
	consumeWork(t, b, func(_ context.Context, i Item) error { seen.add(i); return nil })
	for i := range 50 {
		soon(t, b, Item{Ref: ref(1), Kind: Full, Reason: fmt.Sprint(i)})
	}
	last := time.Now()
	eventually(t, "it is handled", func() bool { return seen.len() > 0 && queued(t, b) == 0 })
	if diff := cmp.Diff([]Item{{Ref: ref(1), Kind: Full, Reason: "49"}}, seen.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if wait := seen.times()[0].Sub(last); wait < 95*time.Millisecond {
		t.Errorf("it was handled %v after the last call, want 100ms", wait)
	}
}

func TestKindsDoNotReplaceOneAnother(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var seen record[WorkKind]
	soon(t, b, Item{Ref: ref(1), Kind: Full})
	soon(t, b, Item{Ref: ref(1), Kind: Fact})
	schedule(t, b, Item{Ref: ref(1), Kind: Full}, time.Millisecond)
	schedule(t, b, Item{Ref: ref(1), Kind: Wake}, time.Hour)
	schedule(t, b, Item{Ref: ref(1), Kind: Wake}, time.Millisecond) // replaces the one before
	consumeWork(t, b, func(_ context.Context, i Item) error { seen.add(i.Kind); return nil })
	eventually(t, "all are handled", func() bool { return queued(t, b) == 0 })
	count := map[WorkKind]int{}
	for _, k := range seen.all() {
		count[k]++
	}
	if count[Fact] != 1 || count[Wake] != 1 || count[Full] < 1 {
		t.Errorf("handled %v, want each kind", count)
	}
}

func TestSteadyStreamCannotPutWorkOffForever(t *testing.T) {
	busses(t, func(t *testing.T, replica func() *Bus) {
		// The configuration of busses has 20ms and 200ms.
		a, b := replica(), replica()
		var seen record[Item]
		start := time.Now()
		consumeWork(t, a, func(_ context.Context, i Item) error { seen.add(i); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 1100*time.Millisecond)
		defer cancel()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-tick.C
			soon(t, []*Bus{a, b}[n%2], Item{Ref: ref(1), Kind: Full})
		}
		n := seen.len()
		if n < 2 {
			t.Errorf("%d evaluations in %v under a steady stream, want about one each 200ms", n, time.Since(start))
		}
		if n > 15 {
			t.Errorf("%d evaluations in %v, want about one each 200ms", n, time.Since(start))
		}
		if first := seen.times()[0].Sub(start); first > 600*time.Millisecond {
			t.Errorf("the first came after %v, want about 200ms", first)
		}
		eventually(t, "nothing is left", func() bool { return queued(t, a) == 0 })
	})
}

// TestManyEventsFewEvaluations is 200 events on one pull request in a second
// while an evaluation takes its time: few evaluations, of which the last began
// after the last event, and others do not wait.
func TestManyEventsFewEvaluations(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Debounce: 50 * time.Millisecond, MaxWait: 150 * time.Millisecond, Partitions: 2})
	other := ref(2)
	for partition(other, 2) == partition(ref(1), 2) {
		other.Number++
	}
	var mine, others record[Item]
	consumeWork(t, b, func(_ context.Context, i Item) error {
		if i.Ref == other {
			others.add(i)
			return nil
		}
		mine.add(i)
		<-time.After(400 * time.Millisecond) // an evaluation asks a slow forge
		return nil
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var asked time.Time
	for i := range 200 {
		<-tick.C
		if i == 100 {
			asked = time.Now()
			soon(t, b, Item{Ref: other, Kind: Full})
		}
		soon(t, b, Item{Ref: ref(1), Kind: Full, Reason: fmt.Sprint(i)})
	}
	eventually(t, "nothing is left", func() bool { return queued(t, b) == 0 })
	list := mine.all()
	if len(list) > 5 || list[len(list)-1].Reason != "199" {
		t.Errorf("%d evaluations, the last for %q; want at most 5, the last for 199", len(list), list[len(list)-1].Reason)
	}
	if wait := others.times()[0].Sub(asked); wait > time.Second {
		t.Errorf("another pull request waited %v", wait)
	}
	if n := counted(t, b.metrics.handled.WithLabelValues("work", resultCollapsed)); n < 1 {
		t.Errorf("%v pieces of work collapsed, want some", n)
	}
}

func TestScheduleIsExactEnough(t *testing.T) {
	b := open(t, Config{})
	var seen record[Item]
	consumeWork(t, b, func(_ context.Context, i Item) error { seen.add(i); return nil })
	at := map[pull.Ref]time.Time{}
	for i, in := range []time.Duration{-time.Hour, 0, 50 * time.Millisecond, 400 * time.Millisecond, 900 * time.Millisecond} {
		r := ref(int64(i + 1))
		at[r] = time.Now().Add(max(in, 0))
		schedule(t, b, Item{Ref: r, Kind: Wake}, in)
	}
	eventually(t, "all are handled", func() bool { return seen.len() == len(at) })
	times := seen.times()
	for i, item := range seen.all() {
		// The server looks four times a second.
		if late := times[i].Sub(at[item.Ref]); late < 0 || late > 900*time.Millisecond {
			t.Errorf("pull request %d was woken %v after its time", item.Ref.Number, late)
		}
	}
}

func TestCancelWake(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var seen record[int64]
	consumeWork(t, b, func(_ context.Context, i Item) error { seen.add(i.Ref.Number); return nil })
	schedule(t, b, Item{Ref: ref(1), Kind: Wake}, 300*time.Millisecond)
	schedule(t, b, Item{Ref: ref(2), Kind: Wake}, 301*time.Millisecond)
	for range 2 { // twice is no error
		if err := b.work.CancelWake(deadline(t), ref(1)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the other is woken", func() bool { return seen.len() > 0 && queued(t, b) == 0 })
	if diff := cmp.Diff([]int64{2}, seen.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadWorkIsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	for _, item := range []Item{{}, {Ref: ref(1)}, {Ref: ref(1), Kind: "other"}, {Ref: pull.Ref{RepoID: 7}, Kind: Full}, {Ref: pull.Ref{RepoID: -7, Number: 1}, Kind: Full}} {
		if err := b.work.Soon(deadline(t), item); !events.IsPermanent(err) {
			t.Errorf("Soon(%+v) = %v, want a permanent error", item, err)
		}
		if err := b.work.Schedule(deadline(t), item, time.Now()); !events.IsPermanent(err) {
			t.Errorf("Schedule(%+v) = %v, want a permanent error", item, err)
		}
	}
	if n := queued(t, b); n != 0 {
		t.Errorf("%d messages are queued", n)
	}
}

// TestOneAtATime lets three replicas work on few pull requests and checks that
// none is in two hands.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	_, ext := external(t, nil)
	const pulls, replicas = 5, 3
	var inHand [pulls + 1]atomic.Int32
	var handled [replicas]atomic.Int32
	var done atomic.Int32
	var all []*Bus
	for n := range replicas {
		b := open(t, Config{External: ext, Debounce: 5 * time.Millisecond, MaxWait: 20 * time.Millisecond})
		all = append(all, b)
		consumeWork(t, b, func(_ context.Context, i Item) error {
			if inHand[i.Ref.Number].Add(1) > 1 {
				t.Errorf("pull request %d is in two hands", i.Ref.Number)
			}
			<-time.After(10 * time.Millisecond) // long enough to be caught
			inHand[i.Ref.Number].Add(-1)
			handled[n].Add(1)
			done.Add(1)
			return nil
		})
	}
	const enough = 60
	ctx := deadline(t)
	var wg sync.WaitGroup
	for n, b := range all {
		wg.Go(func() {
			tick := time.NewTicker(7 * time.Millisecond)
			defer tick.Stop()
			for i := n; done.Load() < enough && ctx.Err() == nil; i++ {
				<-tick.C
				if err := b.work.Soon(context.Background(), Item{Ref: ref(int64(i%pulls) + 1), Kind: []WorkKind{Full, Fact}[i%2]}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "nothing is left", func() bool { return queued(t, all[0]) == 0 })
	t.Logf("%d evaluations: %d, %d, %d", done.Load(), handled[0].Load(), handled[1].Load(), handled[2].Load())
	if done.Load() < enough {
		t.Error("too few to mean anything")
	}
}

func TestFailedWorkIsScheduledAgain(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Partitions: 1})
	var seen record[Item]
	var others record[int64]
	consumeWork(t, b, func(_ context.Context, i Item) error {
		if i.Ref.Number == 2 {
			others.add(i.Ref.Number)
			return nil
		}
		if seen.add(i) < 4 {
			if i.Attempt == 1 {
				panic("nil map")
			}
			return errors.New("the forge is down")
		}
		return nil
	})
	soon(t, b, Item{Ref: ref(1), Kind: Fact, Reason: "why"})
	eventually(t, "the first try", func() bool { return seen.len() == 1 })
	soon(t, b, Item{Ref: ref(2), Kind: Full})
	eventually(t, "all is done", func() bool { return seen.len() == 4 && queued(t, b) == 0 })
	want := []Item{
		{Ref: ref(1), Kind: Fact, Reason: "why"},
		{Ref: ref(1), Kind: Retry, Reason: "why", Attempt: 1},
		{Ref: ref(1), Kind: Retry, Reason: "why", Attempt: 2},
		{Ref: ref(1), Kind: Retry, Reason: "why", Attempt: 3},
	}
	if diff := cmp.Diff(want, seen.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if o, s := others.times()[0], seen.times()[3]; o.After(s) {
		t.Errorf("another pull request of the partition waited for the retries")
	}
	if len(dead(t, b)) != 0 {
		t.Error("work that was done in the end is a dead letter")
	}
}

func TestRetryWaitsAsLongAsAsked(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var seen record[Item]
	consumeWork(t, b, func(_ context.Context, i Item) error {
		if seen.add(i) == 1 {
			return events.RetryAfter(errors.New("rate limited"), 700*time.Millisecond)
		}
		return nil
	})
	soon(t, b, Item{Ref: ref(1), Kind: Full})
	eventually(t, "it is tried again", func() bool { return seen.len() == 2 })
	if gap := seen.times()[1].Sub(seen.times()[0]); gap < 700*time.Millisecond {
		t.Errorf("tried again after %v, asked for 700ms", gap)
	}
}

func TestWorkThatCannotBeDoneIsPutAside(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var healed atomic.Bool
	var seen record[Item]
	consumeWork(t, b, func(_ context.Context, i Item) error {
		if !healed.Load() {
			return events.Permanent(errors.New("no such repository"))
		}
		seen.add(i)
		return nil
	})
	soon(t, b, Item{Ref: ref(1), Kind: Full, Reason: "why"})
	for subject, data := range map[string]string{
		b.work.runSubject(Item{Ref: ref(2), Kind: Full}): `{`,
		b.work.runSubject(Item{Ref: ref(3), Kind: Full}): `{"ref":{},"kind":"full"}`,
	} {
		if _, err := b.js.Publish(deadline(t), subject, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are put aside", func() bool { return len(dead(t, b)) == 3 && queued(t, b) == 0 })
	healed.Store(true)
	for _, l := range dead(t, b) {
		if l.Reason == "no such repository" {
			if err := b.dead.Retry(deadline(t), l.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "it is tried again", func() bool { return seen.len() == 1 && queued(t, b) == 0 })
	if diff := cmp.Diff([]Item{{Ref: ref(1), Kind: Full, Reason: "why"}}, seen.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestKilledProcessLosesNothing ends another process with SIGKILL and opens
// the bus on what it left.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, "leave", dir)
	if p.line != "ready" {
		t.Fatal(p.line)
	}
	left := time.Now()
	p.kill()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	var done record[string]
	var seen record[string]
	consumeWork(t, b, func(_ context.Context, i Item) error { done.add(i.Reason); return nil })
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { seen.add(e.ID); return nil })
	eventually(t, "the work is done", func() bool { return done.len() == 2 && queued(t, b) == 0 })
	eventually(t, "the event is handled", func() bool { return seen.len() == 1 })
	if diff := cmp.Diff([]string{"soon", "later"}, done.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if wait := done.times()[1].Sub(left); wait < killedDelay-200*time.Millisecond {
		t.Errorf("what was due after %v was done after %v", killedDelay, wait)
	}
	if v, ok := b.facts.Lookup(someFact("apps", "", "").Key); !ok || v.Flux.Applied != "one" {
		t.Errorf("the fact is %+v, %v", v, ok)
	}
}

func TestWorkInHandOfAKilledProcessIsDone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, "work", dir)
	if p.line != "ready" {
		t.Fatal(p.line)
	}
	p.kill()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	start := time.Now()
	var seen record[string]
	consumeWork(t, b, func(_ context.Context, i Item) error { seen.add(i.Reason); return nil })
	eventually(t, "it is done", func() bool { return seen.len() == 1 && queued(t, b) == 0 })
	t.Logf("done %v after the start", time.Since(start))
}

// TestPastDueAfterRestart leaves schedules behind whose time passes while
// nothing runs.
func TestPastDueAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}, Debounce: 100 * time.Millisecond, MaxWait: 150 * time.Millisecond})
	due := time.Now().Add(300 * time.Millisecond)
	soon(t, b, Item{Ref: ref(1), Kind: Full})
	schedule(t, b, Item{Ref: ref(2), Kind: Wake}, time.Until(due))
	closeBus(t, b)
	<-time.After(time.Until(due)) // the time that passes is what is tested
	b = open(t, Config{Embedded: Embedded{Dir: dir}})
	var seen record[int64]
	consumeWork(t, b, func(_ context.Context, i Item) error { seen.add(i.Ref.Number); return nil })
	eventually(t, "both are done", func() bool { return seen.len() == 2 && queued(t, b) == 0 })
}

// TestServerFiresWhatStandsBy takes the timers away, as if this process stood
// still, and asks again for what the server is about to start.
func TestServerFiresWhatStandsBy(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Debounce: 10 * time.Millisecond, MaxWait: 20 * time.Millisecond})
	var seen record[string]
	consumeWork(t, b, func(_ context.Context, i Item) error { seen.add(i.Reason); return nil })
	soon(t, b, Item{Ref: ref(1), Kind: Full, Reason: "first"})
	d := b.work.debounce
	d.mu.Lock()
	for _, g := range d.pending {
		g.timer.Stop()
	}
	d.mu.Unlock()
	eventually(t, "the server starts it", func() bool { return seen.len() == 1 && queued(t, b) == 0 })
	// The gathering is past its limit, so the next call stores a new schedule.
	soon(t, b, Item{Ref: ref(1), Kind: Full, Reason: "second"})
	d.mu.Lock()
	for _, g := range d.pending {
		g.timer.Reset(0)
	}
	d.mu.Unlock()
	eventually(t, "the next is done", func() bool { return seen.len() == 2 && queued(t, b) == 0 })
}

func TestPartitions(t *testing.T) {
	// What replicas of different versions agree on must never change.
	for r, want := range map[pull.Ref]int{
		{RepoID: 7, Number: 12}: 3, {RepoID: 1, Number: 1}: 5, {RepoID: 123456789, Number: 4321}: 2,
	} {
		if got := partition(r, 8); got != want {
			t.Errorf("partition(%s, 8) = %d, want %d", r, got, want)
		}
	}
	const pulls, n = 8000, 8
	count := make([]int, n)
	for i := range pulls {
		count[partition(pull.Ref{RepoID: int64(i%20 + 1), Number: int64(i/20 + 1)}, n)]++
	}
	for p, c := range count {
		if c < pulls/n*8/10 || c > pulls/n*12/10 {
			t.Errorf("partition %d has %d of %d", p, c, pulls)
		}
	}
}

// TestWorkIsOneMessageInFlight checks what the promise of one pair of hands
// stands on.
func TestWorkIsOneMessageInFlight(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Partitions: 3})
	stop := consumeWork(t, b, nothing[Item])
	for p := range 3 {
		eventually(t, "the consumer is there", func() bool {
			_, err := b.js.Consumer(deadline(t), streamWork, fmt.Sprint("work-", p))
			return err == nil
		})
		cons, err := b.js.Consumer(deadline(t), streamWork, fmt.Sprint("work-", p))
		if err != nil {
			t.Fatal(err)
		}
		c := cons.CachedInfo().Config
		if c.MaxAckPending != 1 || c.AckPolicy != jetstream.AckExplicitPolicy || c.FilterSubject != fmt.Sprintf("work.run.%d.>", p) {
			t.Errorf("consumer %d: %+v", p, c)
		}
	}
	stop()
}
