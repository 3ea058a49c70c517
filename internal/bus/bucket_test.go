package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/events"
)

type note struct {
	Text string `json:"text"`
}

// opened are the buckets of notes by bus: a bucket is opened once.
var opened sync.Map

func notes(t testing.TB, b *Bus) *Bucket[note] {
	t.Helper()
	if k, ok := opened.Load(b); ok {
		return k.(*Bucket[note])
	}
	k, err := OpenBucket[note](deadline(t), b, "notes")
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(b, k)
	t.Cleanup(func() { opened.Delete(b) })
	return k
}

func syncBucket(t testing.TB, s interface{ Sync(context.Context) error }) {
	t.Helper()
	if err := s.Sync(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

// busses are the two ways to run a bus: the function gives another replica of
// it each time, or the same one where there can be no other.
func busses(t *testing.T, test func(t *testing.T, replica func() *Bus)) {
	t.Run("embedded", func(t *testing.T) {
		b := open(t, Config{})
		test(t, func() *Bus { return b })
	})
	t.Run("external", func(t *testing.T) {
		_, ext := external(t, nil)
		test(t, func() *Bus { return open(t, Config{External: ext}) })
	})
}

func TestBucketComparesAndSets(t *testing.T) {
	t.Parallel()
	busses(t, func(t *testing.T, replica func() *Bus) {
		b := replica()
		k := notes(t, b)
		ctx := deadline(t)
		first, err := k.Create(ctx, "7.12", note{"a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Create(ctx, "7.12", note{"b"}); !errors.Is(err, ErrConflict) {
			t.Errorf("created twice: %v", err)
		}
		second, err := k.Put(ctx, "7.12", note{"b"}, first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Put(ctx, "7.12", note{"c"}, first); !errors.Is(err, ErrConflict) {
			t.Errorf("an old revision was accepted: %v", err)
		}
		// Who was second has not failed to write.
		for result, want := range map[string]float64{"conflict": 2, "error": 0} {
			if n := counted(t, b.metrics.published.WithLabelValues(k.stream, result)); n != want {
				t.Errorf("%v writes counted as %s, want %v", n, result, want)
			}
		}
		syncBucket(t, k)
		if v, revision, ok := k.Get("7.12"); !ok || v.Text != "b" || revision != second {
			t.Errorf("Get = %+v, %d, %v; want b, %d, true", v, revision, ok, second)
		}
		for range 2 { // twice is no error
			if err := k.Delete(ctx, "7.12"); err != nil {
				t.Fatal(err)
			}
		}
		syncBucket(t, k)
		if _, revision, ok := k.Get("7.12"); ok || revision != 0 {
			t.Errorf("deleted, but Get = %d, %v", revision, ok)
		}
		if _, err := k.Put(ctx, "7.12", note{"d"}, second); !errors.Is(err, ErrConflict) {
			t.Errorf("a revision from before the deletion was accepted: %v", err)
		}
		if _, err := k.Create(ctx, "7.12", note{"d"}); err != nil {
			t.Errorf("create after delete: %v", err)
		}
		if _, err := k.Set(ctx, "7.12", note{"e"}); err != nil {
			t.Errorf("set: %v", err)
		}
	})
}

func TestBucketRefuses(t *testing.T) {
	t.Parallel()
	k := notes(t, open(t, Config{}))
	for _, key := range []string{"", ".", "a..b", "a b", "*", ">", "a.", "ü"} {
		if _, err := k.Set(deadline(t), key, note{}); !events.IsPermanent(err) {
			t.Errorf("key %q: error = %v, want a permanent one", key, err)
		}
		if err := k.Delete(deadline(t), key); !events.IsPermanent(err) {
			t.Errorf("delete of key %q: error = %v, want a permanent one", key, err)
		}
	}
	if _, err := k.Set(deadline(t), "large", note{strings.Repeat("x", maxPayload)}); !events.IsPermanent(err) {
		t.Errorf("too large: error = %v, want a permanent one", err)
	}
}

func TestBucketIsThereAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	k := notes(t, b)
	want := map[string]note{}
	for i := range 1500 { // more than one batch of the view
		key := fmt.Sprint("7.", i)
		want[key] = note{key}
		if _, err := k.Set(deadline(t), key, note{key}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Delete(deadline(t), "7.3"); err != nil {
		t.Fatal(err)
	}
	delete(want, "7.3")
	closeBus(t, b)
	k = notes(t, open(t, Config{Embedded: Embedded{Dir: dir}}))
	if diff := cmp.Diff(want, maps.Collect(k.All())); diff != "" {
		t.Errorf("(-written +loaded):\n%s", diff)
	}
}

func TestUndecodableValueIsShownAndBlocksNothing(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	k := notes(t, b)
	var changes record[string]
	k.OnChange(func(key string, old, now *note) { changes.add(fmt.Sprint(key, " ", old != nil, " ", now != nil)) })
	if _, err := k.Set(deadline(t), "bad", note{"was good"}); err != nil {
		t.Fatal(err)
	}
	bad, err := b.publish(deadline(t), k.stream, msgFor("$KV.notes.bad", `{"text":1}`))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bad value is seen", func() bool { return k.Broken("bad") != nil })
	if _, err := k.Set(deadline(t), "good", note{"x"}); err != nil {
		t.Fatal(err)
	}
	if _, revision, ok := k.Get("bad"); ok || revision != bad {
		t.Errorf("Get = %d, %v; want %d, false", revision, ok, bad)
	}
	if err := k.Broken("bad"); err == nil || !strings.Contains(err.Error(), "notes") || !strings.Contains(err.Error(), "bad") {
		t.Errorf("Broken = %v, want the bucket and the key", err)
	}
	if got := maps.Collect(k.All()); len(got) != 1 || got["good"].Text != "x" || k.Broken("good") != nil || k.Broken("none") != nil {
		t.Errorf("All = %v, want good alone", got)
	}
	want := []string{"bad false true", "bad true false", "good false true"}
	if diff := cmp.Diff(want, changes.all()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if _, err := k.Put(deadline(t), "bad", note{"repaired"}, bad); err != nil {
		t.Fatal(err)
	}
	syncBucket(t, k)
	if v, _, ok := k.Get("bad"); !ok || v.Text != "repaired" {
		t.Errorf("after the repair Get = %+v, %v", v, ok)
	}
}

func TestChangesAreToldOnceAndInOrder(t *testing.T) {
	t.Parallel()
	k := notes(t, open(t, Config{}))
	write := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := k.Set(deadline(t), "key", note{fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
		}
	}
	write(0, 10)
	if _, err := OpenBucket[note](deadline(t), k.b, "notes"); err == nil {
		t.Error("a bucket was opened twice")
	}
	var wg sync.WaitGroup
	wg.Go(func() { write(10, 200) })
	var seen []string
	var last *note
	k.OnChange(func(_ string, old, now *note) {
		if (old == nil) != (last == nil) || old != nil && *old != *last {
			t.Errorf("old value is %v, the one before was %v", old, last)
		}
		last = now
		seen = append(seen, now.Text)
	})
	wg.Wait()
	syncBucket(t, k) // after which seen is not written any more
	if seen[len(seen)-1] != "199" {
		t.Errorf("the last change seen is %s, want 199", seen[len(seen)-1])
	}
	for i := 1; i < len(seen); i++ {
		var a, b int
		if _, err := fmt.Sscan(seen[i-1]+" "+seen[i], &a, &b); err != nil || b != a+1 && i > 1 {
			t.Fatalf("%s follows %s", seen[i], seen[i-1])
		}
	}
}

// TestSyncSeesEveryWriteBeforeIt lets writers write while others check that
// after a barrier they see what was acknowledged before it.
func TestSyncSeesEveryWriteBeforeIt(t *testing.T) {
	t.Parallel()
	busses(t, func(t *testing.T, replica func() *Bus) {
		writer, reader := notes(t, replica()), notes(t, replica())
		indexed := sync.Map{}
		reader.OnChange(func(key string, _, now *note) { indexed.Store(key, now.Text) })
		const keys = 4
		var acked [keys]atomic.Int64
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var wg sync.WaitGroup
		for n := range keys {
			wg.Go(func() {
				for i := int64(1); ctx.Err() == nil; i++ {
					if _, err := writer.Set(context.Background(), fmt.Sprint("k", n), note{fmt.Sprint(i)}); err != nil {
						t.Error(err)
						return
					}
					acked[n].Store(i)
				}
			})
		}
		var checks atomic.Int64
		for range 2 {
			wg.Go(func() {
				for ctx.Err() == nil {
					runtime.Gosched() // where a barrier costs nothing, let others write
					var before [keys]int64
					for n := range keys {
						before[n] = acked[n].Load()
					}
					if err := reader.Sync(context.Background()); err != nil {
						t.Error(err)
						return
					}
					for n := range keys {
						key := fmt.Sprint("k", n)
						v, _, _ := reader.Get(key)
						index, _ := indexed.LoadOrStore(key, "0")
						if seen, inIndex := number(v.Text), number(index.(string)); seen < before[n] || inIndex < before[n] {
							t.Errorf("%s: %d was acknowledged before the barrier, the view has %d and the index %d", key, before[n], seen, inIndex)
							return
						}
					}
					checks.Add(1)
				}
			})
		}
		wg.Wait()
		t.Logf("%d barriers among %d writes", checks.Load(), acked[0].Load()+acked[1].Load()+acked[2].Load()+acked[3].Load())
		if checks.Load() < 10 {
			t.Error("too few to mean anything")
		}
	})
}

func number(s string) (n int64) {
	fmt.Sscan(s, &n) //nolint:errcheck // nothing is 0
	return n
}

func TestSyncEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, ext := external(t, nil)
	k := notes(t, open(t, Config{External: ext}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := k.view.wait(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "notes") {
		t.Errorf("error = %v, want the deadline and the bucket", err)
	}
	if n := len(k.view.waiters); n != 0 {
		t.Errorf("%d waiters left behind", n)
	}
	if err := k.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want the deadline", err)
	}
}

// TestViewFollowsThroughLoss cuts what a view stands on and checks that it is
// right again.
func TestViewFollowsThroughLoss(t *testing.T) {
	t.Parallel()
	_, ext := external(t, nil)
	js := connect(t, ext)
	b := open(t, Config{External: ext, timing: timing{heartbeat: 500 * time.Millisecond}})
	k := notes(t, b)
	var changes record[string]
	k.OnChange(func(key string, old, now *note) { changes.add(fmt.Sprint(key, " ", old != nil, " ", now != nil)) })
	set := func(key, text string) {
		t.Helper()
		if _, err := k.Set(deadline(t), key, note{text}); err != nil {
			t.Fatal(err)
		}
	}
	set("a", "1")
	set("b", "1")
	syncBucket(t, k)

	for info := range mustStream(t, js, k.stream).ListConsumers(deadline(t)).Info() {
		if err := js.DeleteConsumer(deadline(t), k.stream, info.Name); err != nil {
			t.Fatal(err)
		}
	}
	set("a", "2")
	syncBucket(t, k)
	if v, _, _ := k.Get("a"); v.Text != "2" {
		t.Errorf("after its consumer was deleted the view has %q, want 2", v.Text)
	}

	// Somebody removes the stream and it is made again, with other contents.
	if err := js.DeleteStream(deadline(t), k.stream); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the view is unhealthy", func() bool { return b.Health(deadline(t)) != nil })
	if err := b.Health(deadline(t)); !strings.Contains(err.Error(), "notes") {
		t.Errorf("health = %v, want one that names the bucket", err)
	}
	if _, err := b.ensureStream(deadline(t), bucketStream("notes", 0)); err != nil {
		t.Fatal(err)
	}
	set("b", "3")
	eventually(t, "the view is right again", func() bool {
		return cmp.Equal(maps.Collect(k.All()), map[string]note{"b": {"3"}}) && b.Health(deadline(t)) == nil
	})
	got := changes.all()
	if !slices.Contains(got, "a true false") {
		t.Errorf("changes %v do not tell that a is gone", got)
	}
}

func TestBeatsStayBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	if _, ok := b.beats.Last("prod"); ok {
		t.Error("heard from a cluster before the first beat")
	}
	start := time.Date(2026, 9, 6, 22, 0, 0, 0, time.UTC)
	const beats = 2000
	for i := range beats {
		for _, v := range []Beat{
			{Cluster: "prod", Replica: "bot-0", At: start.Add(time.Duration(i) * time.Second)},
			{Cluster: "prod.eu", Replica: "bot-1", At: start},
		} {
			if err := b.beats.Send(deadline(t), v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.beats.Send(deadline(t), Beat{Cluster: "prod", Replica: "bot-1", At: start}); err != nil {
		t.Fatal(err)
	}
	syncBucket(t, b.beats)
	if at, ok := b.beats.Last("prod"); !ok || !at.Equal(start.Add((beats-1)*time.Second)) {
		t.Errorf("Last = %v, %v; want the newest of any replica", at, ok)
	}
	closeBus(t, b)
	if size := treeSize(t, dir); size > 1<<20 {
		t.Errorf("%d beats of 3 replicas take %d bytes on disk", 2*beats, size)
	}
	b = open(t, Config{Embedded: Embedded{Dir: dir}})
	if at, ok := b.beats.Last("prod"); !ok || at.Before(start.Add(time.Second)) {
		t.Errorf("after a restart Last = %v, %v", at, ok)
	}
}

func TestOldBeatsAreForgotten(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	k, err := OpenBriefBucket[note](deadline(t), b, "brief", 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Set(deadline(t), "a", note{"x"}); err != nil {
		t.Fatal(err)
	}
	syncBucket(t, k)
	if _, _, ok := k.Get("a"); !ok {
		t.Fatal("it is not there at first")
	}
	eventually(t, "it is gone", func() bool {
		_, _, ok := k.Get("a")
		return !ok && len(maps.Collect(k.All())) == 0
	})
	syncBucket(t, k)
}
