package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/backup"
	"signalbox/internal/decision"
)

var keptInTests = []Kept{{Name: "notes"}, {Name: "brief", MaxAge: time.Hour}, {Name: "never"}}

// stored fills a bus with a ledger of 300 entries and two buckets, one of whose keys
// was deleted and another written twice.
func stored(t *testing.T, b *Bus) {
	t.Helper()
	ctx := deadline(t)
	ledger := openLedger(t, b)
	for i := range 300 {
		if _, err := ledger.Append(ctx, ledgerEntry(fmt.Sprintf("comment/%d/0", i), int64(i%3+1))); err != nil {
			t.Fatal(err)
		}
	}
	k := notes(t, b)
	brief, err := OpenBriefBucket[note](ctx, b, "brief", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c", "a"} {
		if _, err := k.Set(ctx, key, note{"<" + key + ">"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Delete(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := brief.Set(ctx, "x.y", note{"short"}); err != nil {
		t.Fatal(err)
	}
}

// backedUp makes a backup with a reader.
func backedUp(t *testing.T, r *Reader) []byte {
	t.Helper()
	layout, err := r.Layout(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := backup.NewWriter(&file, backup.Head{Version: "v1.0.0", Layout: layout, At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Backup(deadline(t), w, keptInTests); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// restored restores a file.
func restored(t *testing.T, cfg Config, file []byte) error {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return Restore(deadline(t), cfg, keptInTests, r, logger(t))
}

// checkStored compares a bus with what stored has put into it.
func checkStored(t *testing.T, b *Bus, since time.Time) {
	t.Helper()
	ledger := openLedger(t, b)
	all := ledger.All()
	if len(all) != 300 || all[0].Seq != 1 || all[299].Seq != 300 || all[299].ID != "comment/299/0" || !ledger.Since().Equal(since) {
		t.Errorf("the ledger has %d entries and was begun at %v, want 300 and %v", len(all), ledger.Since(), since)
	}
	k := notes(t, b)
	a, aAt, _ := k.Get("a")
	c, cAt, _ := k.Get("c")
	if _, _, ok := k.Get("b"); a.Text != "<a>" || c.Text != "<c>" || ok || aAt <= cAt {
		t.Errorf("notes are a %v at %d, c %v at %d, b %v", a, aAt, c, cAt, ok)
	}
	brief, err := OpenBriefBucket[note](deadline(t), b, "brief", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if v, _, ok := brief.Get("x.y"); !ok || v.Text != "short" {
		t.Errorf("the brief note is %v, %v", v, ok)
	}
	// The same decision is the same, and the next one is new.
	for id, want := range map[string]bool{"comment/7/0": false, "comment/300/0": true} {
		if added, err := ledger.Append(deadline(t), ledgerEntry(id, 7%3+1)); err != nil || added != want {
			t.Errorf("append %s: added %v, %v, want %v", id, added, err, want)
		}
	}
	if all = ledger.All(); all[len(all)-1].Seq != 301 {
		t.Errorf("the next entry has place %d", all[len(all)-1].Seq)
	}
	info := mustStream(t, b.js, "KV_decisions").CachedInfo()
	if c := info.Config; !c.DenyDelete || !c.DenyPurge || c.Metadata[metaRestoring] != "" {
		t.Errorf("the ledger's stream has %+v", c)
	}
	if err := mustStream(t, b.js, "KV_decisions").DeleteMsg(deadline(t), 1); err == nil {
		t.Error("an entry could be deleted")
	}
}

// TestBackupAndRestore goes from a bus that runs to a folder, to an external server, and
// from there to a folder again.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	first := open(t, Config{})
	stored(t, first)
	since := first.views["decisions"].(*view[decision.Entry]).made
	file := backedUp(t, first.Reader())

	dir := filepath.Join(t.TempDir(), "made", "for [it]")
	if err := restored(t, Config{Embedded: Embedded{Dir: dir}}, file); err != nil {
		t.Fatal(err)
	}
	second := open(t, Config{Embedded: Embedded{Dir: dir}})
	checkStored(t, second, since)
	closeBus(t, second)

	_, ext := external(t, nil)
	if err := restored(t, Config{External: ext}, file); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(deadline(t), Config{External: ext}, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	again := backedUp(t, r)
	if err := r.Close(deadline(t)); err != nil {
		t.Error(err)
	}
	if want, got := entriesOf(t, file), entriesOf(t, again); !cmp.Equal(want, got) {
		t.Errorf("a backup of what was restored is another one:\n%s", cmp.Diff(want, got))
	}
	checkStored(t, open(t, Config{External: ext}), since)

	dir = t.TempDir()
	if err := restored(t, Config{Embedded: Embedded{Dir: dir}}, again); err != nil {
		t.Fatal(err)
	}
	checkStored(t, open(t, Config{Embedded: Embedded{Dir: dir}}), since)
}

// entriesOf are the keys and values of a backup in their order; those of the ledger with
// their places.
func entriesOf(t *testing.T, file []byte) (out []string) {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for name := ""; ; {
		b, e, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		case b != nil:
			name = b.Name
			out = append(out, name)
			if name == bucketDecisions {
				out = append(out, b.Begun.String())
			}
		case name == bucketDecisions:
			out = append(out, fmt.Sprint(e.Seq, e.Key, string(e.Value)))
		default:
			out = append(out, e.Key+string(e.Value))
		}
	}
}

// TestRestoreKeepsGaps: places in which no entry is stay empty.
func TestRestoreKeepsGaps(t *testing.T) {
	t.Parallel()
	file := madeUp(t, LayoutVersion, func(w *backup.Writer) {
		begin(t, w, bucketDecisions)
		for _, seq := range []uint64{3, 4, 9} {
			put(t, w, seq, fmt.Sprintf("7.%d.ID", seq), fmt.Sprintf(`{"id":"comment/%d/0"}`, seq))
		}
	})
	dir := t.TempDir()
	if err := restored(t, Config{Embedded: Embedded{Dir: dir}}, file); err != nil {
		t.Fatal(err)
	}
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	var got []string
	for _, e := range openLedger(t, b).All() {
		got = append(got, fmt.Sprint(e.Seq, " ", e.ID))
	}
	if diff := cmp.Diff([]string{"3 comment/3/0", "4 comment/4/0", "9 comment/9/0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func madeUp(t *testing.T, layout int, fill func(*backup.Writer)) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := backup.NewWriter(&file, backup.Head{Version: "v3.0.0", Layout: layout, At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	fill(w)
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func begin(t *testing.T, w *backup.Writer, name string) {
	t.Helper()
	if err := w.Bucket(backup.Bucket{Name: name, Begun: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, w *backup.Writer, seq uint64, key, value string) {
	t.Helper()
	if err := w.Entry(backup.Entry{Seq: seq, At: time.Now(), Key: key, Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreIsAllOrNothing: what is wrong is found before, in the middle, or at the end,
// and leaves nothing behind.
func TestRestoreIsAllOrNothing(t *testing.T) {
	t.Parallel()
	source := open(t, Config{})
	stored(t, source)
	whole := backedUp(t, source.Reader())
	for name, tt := range map[string]struct {
		file []byte
		is   error
		want string
	}{
		"cut":            {whole[:len(whole)/2], backup.ErrBroken, "ends too early"},
		"a newer layout": {madeUp(t, LayoutVersion+1, func(w *backup.Writer) { begin(t, w, bucketDecisions) }), backup.ErrNewer, `"v3.0.0"`},
		"no layout":      {madeUp(t, 0, func(w *backup.Writer) { begin(t, w, bucketDecisions) }), backup.ErrNewer, "layout 0"},
		"an unknown bucket": {madeUp(t, LayoutVersion, func(w *backup.Writer) {
			begin(t, w, "notes")
			put(t, w, 1, "a", "{}")
			begin(t, w, "moods")
		}), backup.ErrNewer, `bucket "moods"`},
		"no ledger":      {madeUp(t, LayoutVersion, func(w *backup.Writer) { begin(t, w, "notes") }), backup.ErrBroken, "ledger is not in it"},
		"nothing at all": {madeUp(t, LayoutVersion, func(*backup.Writer) {}), backup.ErrBroken, "ledger is not in it"},
		"one decision twice": {madeUp(t, LayoutVersion, func(w *backup.Writer) {
			begin(t, w, bucketDecisions)
			put(t, w, 1, "7.1.ID", "{}")
			put(t, w, 2, "7.1.ID", "{}")
		}), nil, "maximum messages per subject"},
		"a key twice": {madeUp(t, LayoutVersion, func(w *backup.Writer) {
			begin(t, w, "notes")
			put(t, w, 1, "a", "{}")
			put(t, w, 2, "a", "{}")
			begin(t, w, bucketDecisions)
		}), nil, "has 1 entries up to 2, and not 2"},
		"a key that is a pattern": {madeUp(t, LayoutVersion, func(w *backup.Writer) {
			begin(t, w, bucketDecisions)
			put(t, w, 1, ">", "{}")
		}), backup.ErrBroken, `">" as its key`},
		"a gap without end": {madeUp(t, LayoutVersion, func(w *backup.Writer) {
			begin(t, w, bucketDecisions)
			put(t, w, 1<<60, "7.1.ID", "{}")
		}), backup.ErrBroken, "comes after 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, ext := external(t, nil)
			dir := filepath.Join(t.TempDir(), "data")
			for where, cfg := range map[string]Config{"folder": {Embedded: Embedded{Dir: dir}}, "server": {External: ext}} {
				err := restored(t, cfg, tt.file)
				if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: error %v, want one about %q", where, err, tt.want)
				}
			}
			if all := storeOf(t, connect(t, ext)); len(all) > 0 {
				t.Errorf("it left the streams %v", all)
			}
			left, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			for _, e := range left {
				if e.Name() != lockFile {
					t.Errorf("it left %s", e.Name())
				}
			}
			// So the next one can be right.
			for where, cfg := range map[string]Config{"folder": {Embedded: Embedded{Dir: dir}}, "server": {External: ext}} {
				if err := restored(t, cfg, whole); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			}
		})
	}
}

func TestRestoreWritesOverNothing(t *testing.T) {
	t.Parallel()
	source := open(t, Config{})
	stored(t, source)
	file := backedUp(t, source.Reader())
	if err := restored(t, source.cfg, file); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("over a bus that runs: %v", err)
	}
	// One that was opened once and holds nothing is a store.
	dir := t.TempDir()
	closeBus(t, open(t, Config{Embedded: Embedded{Dir: dir}}))
	err := restored(t, Config{Embedded: Embedded{Dir: dir}}, file)
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), filepath.Join(dir, storeFolder)) {
		t.Errorf("over a store: %v", err)
	}
	// What else is in the folder does not matter, and stays.
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keys.db"), []byte("keys"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, storeFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := restored(t, Config{Embedded: Embedded{Dir: dir}}, file); err != nil {
		t.Errorf("into a folder that holds something else: %v", err)
	}
	if keys, err := os.ReadFile(filepath.Join(dir, "keys.db")); err != nil || string(keys) != "keys" {
		t.Errorf("the other file is %q, %v", keys, err)
	}

	_, ext := external(t, nil)
	b := open(t, Config{External: ext})
	was := storeOf(t, b.js)
	if err := restored(t, Config{External: ext}, file); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "EVENTS with 0 messages") {
		t.Errorf("over the streams of a server: %v", err)
	}
	if diff := cmp.Diff(was, storeOf(t, b.js)); diff != "" {
		t.Errorf("it changed them (-before +after):\n%s", diff)
	}
}

// TestRestoreThatWasKilled leaves what no signalbox uses and the next restore removes.
func TestRestoreThatWasKilled(t *testing.T) {
	t.Parallel()
	source := open(t, Config{})
	stored(t, source)
	file := backedUp(t, source.Reader())

	dir := t.TempDir()
	half := filepath.Join(dir, unfinishedFolder+"123", storeFolder)
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := restored(t, Config{Embedded: Embedded{Dir: dir}}, file); err != nil {
		t.Errorf("in the folder: %v", err)
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}

	_, ext := external(t, nil)
	js := connect(t, ext)
	r := killedRestore(t, ext, file)
	if len(r.made) != 1 {
		t.Fatalf("it made %v", r.made)
	}
	_, err := Open(deadline(t), fast(Config{External: ext}), logger(t), nil)
	if err == nil || !strings.Contains(err.Error(), "has not ended (stream KV_notes)") {
		t.Errorf("a store that is half restored was opened: %v", err)
	}
	if all := storeOf(t, js); len(all) != 1 {
		t.Errorf("and streams were made: %v", all)
	}
	if err := restored(t, Config{External: ext}, file); err != nil {
		t.Errorf("on the server: %v", err)
	}
	checkStored(t, open(t, Config{External: ext}), source.views["decisions"].(*view[decision.Entry]).made)
}

// killedRestore begins a restore and goes no further than an entry or two.
func killedRestore(t *testing.T, ext External, file []byte) *restore {
	t.Helper()
	from, err := backup.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	r := &restore{from: from, specs: map[string]jetstream.StreamConfig{"notes": bucketStream("notes", 0)}}
	cfg := fast(Config{External: ext}).withDefaults()
	if err := r.open(deadline(t), cfg, logger(t)); err != nil {
		t.Fatal(err)
	}
	b, _, err := from.Next()
	if err != nil || b == nil {
		t.Fatal(b, err)
	}
	s, err := r.begin(deadline(t), *b, "2026-09-07T03:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	_, e, err := from.Next()
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	if err := s.put(deadline(t), *e); err != nil {
		t.Fatal(err)
	}
	if err := s.acknowledged(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if err := r.close(deadline(t)); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBackupWhileOthersWrite: a key that was there before is in the backup, whatever is
// written meanwhile.
func TestBackupWhileOthersWrite(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	openLedger(t, b)
	k := notes(t, b)
	const keys = 200
	for i := range keys {
		if _, err := k.Set(deadline(t), fmt.Sprintf("k%d", i), note{"before"}); err != nil {
			t.Fatal(err)
		}
	}
	stop := running(t, func(ctx context.Context) error {
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := k.Set(ctx, fmt.Sprintf("k%d", i%keys), note{"meanwhile"}); err != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	})
	for range 5 {
		got := 0
		for _, line := range entriesOf(t, backedUp(t, b.Reader())) {
			if strings.HasPrefix(line, "k") {
				got++
			}
		}
		if got != keys {
			t.Errorf("the backup has %d keys, want %d", got, keys)
		}
	}
	stop()
}

// TestRestoredLedgerThatWasRemoved: what was said before it was begun anew counts no more,
// or all of it would be carried out once more.
func TestRestoredLedgerThatWasRemoved(t *testing.T) {
	t.Parallel()
	long := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	file := madeUp(t, LayoutVersion, func(w *backup.Writer) {
		if err := w.Bucket(backup.Bucket{Name: bucketDecisions, Begun: long}); err != nil {
			t.Fatal(err)
		}
	})
	_, ext := external(t, nil)
	if err := restored(t, Config{External: ext}, file); err != nil {
		t.Fatal(err)
	}
	b := open(t, Config{External: ext, timing: timing{heartbeat: 500 * time.Millisecond}})
	ledger := openLedger(t, b)
	if !ledger.Since().Equal(long) {
		t.Errorf("the ledger was begun at %s, want %s", ledger.Since(), long)
	}
	removed := time.Now()
	if err := b.js.DeleteStream(deadline(t), ledgerStream().Name); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ensureStream(deadline(t), ledgerStream()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is begun anew", func() bool { return ledger.Since().After(removed.Add(-time.Minute)) })
}

func TestNothingToBackUp(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	w, err := backup.NewWriter(io.Discard, backup.Head{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Reader().Backup(deadline(t), w, nil); err == nil || !strings.Contains(err.Error(), "there is no ledger yet") {
		t.Errorf("error %v", err)
	}
}
