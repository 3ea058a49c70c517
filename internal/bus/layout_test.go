package bus

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
)

// storeOf is all that clients can see of a store: each stream with its marks and what
// it holds.
func storeOf(t *testing.T, js jetstream.JetStream) map[string]string {
	t.Helper()
	all := map[string]string{}
	list := js.ListStreams(deadline(t))
	for s := range list.Info() {
		all[s.Config.Name] = fmt.Sprintf("%+v %d %d %s", s.Config, s.State.Msgs, s.State.LastSeq, s.Created)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// remark changes the marks of a stream.
func remark(t *testing.T, js jetstream.JetStream, name string, change func(map[string]string)) {
	t.Helper()
	c := mustStream(t, js, name).CachedInfo().Config
	c.Metadata = maps.Clone(c.Metadata)
	change(c.Metadata)
	if _, err := js.UpdateStream(deadline(t), c); err != nil {
		t.Fatal(err)
	}
}

// TestDowngradeIsRefused: one stream of a newer layout is enough, wherever it is in the
// order in which streams are opened, and also one that this signalbox does not know.
// Nothing is made or changed then.
func TestDowngradeIsRefused(t *testing.T) {
	t.Parallel()
	newer := strconv.Itoa(LayoutVersion + 1)
	for _, name := range []string{streamEvents, "KV_beats", "KV_decisions", "KV_moods"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := open(t, Config{Embedded: Embedded{Dir: dir}, Version: "v2.0.0"})
			ledger := openLedger(t, b)
			if _, err := ledger.Append(deadline(t), ledgerEntry("comment/1/0", 1)); err != nil {
				t.Fatal(err)
			}
			if name == "KV_moods" {
				if _, err := b.ensureStream(deadline(t), bucketStream("moods", 0)); err != nil {
					t.Fatal(err)
				}
			}
			remark(t, b.js, name, func(m map[string]string) { m[metaLayout] = newer })
			// A store of a version that has not made all of its streams yet.
			if err := b.js.DeleteStream(deadline(t), streamDead); err != nil {
				t.Fatal(err)
			}
			was := storeOf(t, b.js)
			closeBus(t, b)

			_, err := Open(deadline(t), fast(Config{Embedded: Embedded{Dir: dir}, Version: "v1.0.0", EventsMaxBytes: 64 << 20}), logger(t), nil)
			if err == nil {
				t.Fatal("the older version opened it")
			}
			for _, want := range []string{"this is signalbox v1.0.0", "used by signalbox v2.0.0", "layout " + strconv.Quote(newer), name, "run v2.0.0 or newer", "restore a backup"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
			r, err := OpenReader(deadline(t), Config{Embedded: Embedded{Dir: dir}, EventsMaxBytes: 64 << 20}, logger(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Layout(deadline(t)); err == nil {
				t.Error("its layout is taken for one that is known")
			}
			if diff := cmp.Diff(was, storeOf(t, r.b.js)); diff != "" {
				t.Errorf("the refused store was changed (-before +after):\n%s", diff)
			}
			remark(t, r.b.js, name, func(m map[string]string) { m[metaLayout] = strconv.Itoa(LayoutVersion) })
			if err := r.Close(deadline(t)); err != nil {
				t.Error(err)
			}
			// It was that alone for which it was refused.
			b = open(t, Config{Embedded: Embedded{Dir: dir}})
			if got := entryIDs(openLedger(t, b).All()); len(got) != 1 {
				t.Errorf("the ledger has %v", got)
			}
		})
	}
}

// TestUpgradeMarksEveryStream: what was of an older layout is of this one afterwards, with
// the version that did it, so that the older one refuses it.
func TestUpgradeMarksEveryStream(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	openLedger(t, b)
	publish(t, b, event(t, "gitea/1", 1))
	for name := range storeOf(t, b.js) {
		remark(t, b.js, name, func(m map[string]string) { m[metaLayout] = "1" })
	}
	closeBus(t, b)

	b = open(t, Config{Embedded: Embedded{Dir: dir}, Version: "v1.0.0"})
	openLedger(t, b)
	own, err := ownStreams(deadline(t), b.js)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range own {
		if s.Config.Metadata[metaLayout] != strconv.Itoa(LayoutVersion) || s.Config.Metadata[metaVersion] != "v1.0.0" {
			t.Errorf("%s has the marks %v", s.Config.Name, s.Config.Metadata)
		}
	}
	if len(own) != 6 {
		t.Errorf("there are %d streams, want 6", len(own))
	}
	if seq, err := b.Reader().LastEvent(deadline(t), events.SubjectRoot+".>"); err != nil || seq != 1 {
		t.Errorf("the event is at %d, %v", seq, err)
	}
}
