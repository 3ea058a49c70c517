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

	"signalbox/internal/fact"
)

// someFact is a Kustomization at a version that applied something.
func someFact(name, version, applied string) fact.Fact {
	return fact.Fact{
		Key: fact.Kube("prod", "Kustomization", "flux-system", name), UID: "u", Version: version,
		SeenAt: time.Now().UTC(), Flux: &fact.Flux{Applied: applied},
	}
}

func putFact(t testing.TB, f *Facts, v fact.Fact) bool {
	t.Helper()
	changed, err := f.Put(deadline(t), v)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestFactsAreOrderedByTheirSource(t *testing.T) {
	t.Parallel()
	absent := fact.Fact{Key: someFact("apps", "", "").Key, UID: "u", Version: "20", Absent: true}
	other := someFact("apps", "3", "other")
	other.UID = "v"
	tests := []struct {
		name    string
		old     fact.Fact
		put     fact.Fact
		list    bool
		changed bool
		applied string
		version string
	}{
		{"newer", someFact("apps", "9", "one"), someFact("apps", "10", "two"), false, true, "two", "10"},
		{"older", someFact("apps", "10", "one"), someFact("apps", "9", "two"), false, false, "one", "10"},
		{"the same at a newer version", someFact("apps", "9", "one"), someFact("apps", "10", "one"), false, false, "one", "9"},
		{"another object", someFact("apps", "9", "one"), other, false, true, "other", "3"},
		{"back after it was gone", absent, someFact("apps", "21", "back"), false, true, "back", "21"},
		{"late news of what is gone", absent, someFact("apps", "19", "late"), false, false, "", "20"},
		{"a list with newer", someFact("apps", "9", "one"), someFact("apps", "10", "two"), true, true, "two", "10"},
		{"a list after a restore", someFact("apps", "10", "one"), someFact("apps", "2", "two"), true, true, "two", "2"},
		{"a list after a restore that says the same", someFact("apps", "10", "one"), someFact("apps", "2", "one"), true, true, "one", "2"},
		{"a list that says the same", someFact("apps", "10", "one"), someFact("apps", "11", "one"), true, false, "one", "10"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := open(t, Config{}).facts
			putFact(t, f, tt.old)
			before := f.Revision(tt.old.Key)
			put := f.Put
			if tt.list {
				put = f.PutAfterList
			}
			changed, err := put(deadline(t), tt.put)
			if err != nil || changed != tt.changed {
				t.Errorf("changed = %v, %v; want %v", changed, err, tt.changed)
			}
			syncBucket(t, f)
			got, ok := f.Lookup(tt.old.Key)
			applied := ""
			if got.Flux != nil {
				applied = got.Flux.Applied
			}
			if !ok || applied != tt.applied || got.Version != tt.version {
				t.Errorf("stored is %q at %s, want %q at %s", applied, got.Version, tt.applied, tt.version)
			}
			if grew := f.Revision(tt.old.Key) > before; grew != changed && before != 0 {
				t.Errorf("changed = %v, but the revision went from %d to %d", changed, before, f.Revision(tt.old.Key))
			}
		})
	}
}

// TestReplicasAgreeOnFacts lets replicas that see the same changes at their own
// pace write them, and the newest must stand.
func TestReplicasAgreeOnFacts(t *testing.T) {
	t.Parallel()
	busses(t, func(t *testing.T, replica func() *Bus) {
		const replicas, versions = 3, 60
		var wg sync.WaitGroup
		var writes atomic.Int64
		all := make([]*Facts, replicas)
		for i := range all {
			all[i] = replica().facts
		}
		for _, f := range all {
			wg.Go(func() {
				for v := 1; v <= versions; v++ {
					changed, err := f.Put(context.Background(), someFact("apps", fmt.Sprint(v), fmt.Sprint("revision ", v)))
					if err != nil {
						t.Error(err)
					}
					if changed {
						writes.Add(1)
					}
				}
			})
		}
		wg.Wait()
		for _, f := range all {
			syncBucket(t, f)
			if got, _ := f.Lookup(someFact("apps", "", "").Key); got.Version != fmt.Sprint(versions) {
				t.Errorf("version %s stands, want %d", got.Version, versions)
			}
		}
		if n := writes.Load(); n > versions {
			t.Errorf("%d writes of %d versions", n, versions)
		}
	})
}

// TestChangeAgainstAStaleView puts a value that equals an older one, right
// after another was written: it is a change, whatever the view says.
func TestChangeAgainstAStaleView(t *testing.T) {
	t.Parallel()
	busses(t, func(t *testing.T, replica func() *Bus) {
		a, b := replica().facts, replica().facts
		for i := 1; i < 100; i += 2 {
			putFact(t, a, someFact("apps", fmt.Sprint(i), "one"))
			if !putFact(t, b, someFact("apps", fmt.Sprint(i+1), "two")) {
				t.Fatalf("change %d was taken for none", i)
			}
		}
	})
}

func TestSelect(t *testing.T) {
	t.Parallel()
	f := open(t, Config{}).facts
	var want []fact.Key
	for _, name := range []string{"a", "b", "c.d"} {
		v := someFact(name, "1", "x")
		putFact(t, f, v)
		want = append(want, v.Key)
	}
	dev := someFact("a", "1", "x")
	dev.Key.Scope = "dev"
	putFact(t, f, dev)
	cluster := fact.Fact{Key: fact.ClusterKey("prod"), Cluster: &fact.Cluster{}}
	putFact(t, f, cluster)
	syncBucket(t, f)
	keys := func(list []fact.Fact) (out []fact.Key) {
		for _, v := range list {
			out = append(out, v.Key)
		}
		return out
	}
	if diff := cmp.Diff(want, keys(f.Select(fact.SourceKube, "prod", "kustomization"))); diff != "" {
		t.Errorf("one kind (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append([]fact.Key{cluster.Key}, want...), keys(f.Select(fact.SourceKube, "prod", ""))); diff != "" {
		t.Errorf("all kinds (-want +got):\n%s", diff)
	}
	if got := f.Select(fact.SourceKube, "test", ""); len(got) != 0 {
		t.Errorf("unknown cluster: %v", got)
	}
	if err := f.Delete(deadline(t), dev.Key); err != nil {
		t.Fatal(err)
	}
	syncBucket(t, f)
	if got := f.Select(fact.SourceKube, "dev", ""); len(got) != 0 {
		t.Errorf("after delete: %v", got)
	}
	if len(f.groups) != 2 {
		t.Errorf("%d groups are kept, want 2", len(f.groups))
	}
}

func TestChangedFactsAreHandedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	var before, absent, deleted, after record[string]
	consume := func(b *Bus, r *record[string]) func() {
		return running(t, func(ctx context.Context) error {
			return b.facts.Consume(ctx, "fact", func(_ context.Context, k fact.Key) error {
				// What the handler looks up is never older than the change.
				v, ok := b.facts.Lookup(k)
				state := "deleted"
				if ok && v.Flux != nil {
					state = v.Flux.Applied
				} else if ok {
					state = "absent"
				}
				r.add(k.Name + " " + state)
				return nil
			})
		})
	}
	wait := func(r *record[string], want ...string) {
		t.Helper()
		eventually(t, fmt.Sprint("handed over: ", want), func() bool { return r.len() >= len(want) })
		if diff := cmp.Diff(want, r.all()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	putFact(t, b.facts, someFact("apps", "1", "one"))
	putFact(t, b.facts, someFact("config", "2", "two"))
	stop := consume(b, &before)
	wait(&before, "apps one", "config two")
	stop()

	// What changes while nobody listens is handed over once, as it is then.
	for i := range 10 {
		putFact(t, b.facts, someFact("apps", fmt.Sprint(10+i), fmt.Sprint("step ", i)))
	}
	stop = consume(b, &after)
	wait(&after, "apps step 9")
	stop()

	gone := someFact("apps", "30", "")
	gone.Flux, gone.Absent = nil, true
	putFact(t, b.facts, gone)
	closeBus(t, b)

	b = open(t, Config{Embedded: Embedded{Dir: dir}})
	stop = consume(b, &absent)
	wait(&absent, "apps absent")
	stop()
	if err := b.facts.Delete(deadline(t), gone.Key); err != nil {
		t.Fatal(err)
	}
	consume(b, &deleted)
	wait(&deleted, "apps deleted")
}

func TestFactChangedWhileItsHandlerFails(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	var seen record[string]
	running(t, func(ctx context.Context) error {
		return b.facts.Consume(ctx, "fact", func(ctx context.Context, k fact.Key) error {
			v, _ := b.facts.Lookup(k)
			seen.add(v.Flux.Applied)
			if v.Flux.Applied == "one" {
				if _, err := b.facts.Put(ctx, someFact("apps", "2", "two")); err != nil {
					t.Error(err)
				}
				return errors.New("not now")
			}
			return nil
		})
	})
	putFact(t, b.facts, someFact("apps", "1", "one"))
	eventually(t, "the newer one is handed over", func() bool { return seen.len() >= 2 })
	eventually(t, "nothing is left", func() bool {
		cons, err := b.js.Consumer(deadline(t), "KV_facts", "fact")
		return err == nil && cons.CachedInfo().NumAckPending == 0 && cons.CachedInfo().NumPending == 0
	})
	if diff := cmp.Diff([]string{"one", "two"}, seen.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(dead(t, b)) != 0 {
		t.Error("a fact that was replaced is a dead letter")
	}
}
