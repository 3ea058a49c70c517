package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/events"
)

func TestInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(want bool) {
		t.Helper()
		if got, err := InUse(dir); err != nil || got != want {
			t.Errorf("in use: %v, %v, want %v", got, err, want)
		}
	}
	in(false)
	p := startProcess(t, "hold", dir)
	in(true)
	in(true)
	p.kill()
	in(false)
	// To ask must not keep anybody from starting.
	open(t, Config{Embedded: Embedded{Dir: dir}})
	in(true)
}

func TestReaderDoesNotMakeABus(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	_, err := OpenReader(deadline(t), Config{Embedded: Embedded{Dir: dir}}, logger(t))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one of a folder that does not exist", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	reader := b.Reader()

	if l, err := reader.Decisions(ctx); err != nil || len(l) != 0 {
		t.Errorf("before there is a ledger: %v, %v", l, err)
	}
	ledger := openLedger(t, b)
	if l, err := reader.Decisions(ctx); err != nil || len(l) != 0 {
		t.Errorf("an empty ledger: %v, %v", l, err)
	}
	var want []string
	for i := range 300 {
		id := fmt.Sprintf("comment/%d/0", i)
		want = append(want, id)
		if _, err := ledger.Append(ctx, ledgerEntry(id, int64(i%3+1))); err != nil {
			t.Fatal(err)
		}
	}

	subject := events.BranchPushed{Repo: events.Repo{ID: 7}}.BusSubject()
	if seq, err := reader.LastEvent(ctx, subject); err != nil || seq != 0 {
		t.Errorf("before the first push: %d, %v", seq, err)
	}
	var seqs []uint64
	for _, repo := range []int64{7, 8, 7} {
		e, err := events.New(fmt.Sprintf("gitea/%d", len(seqs)), "gitea", time.Now(), events.BranchPushed{Repo: events.Repo{ID: repo}, Branch: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Publish(ctx, e); err != nil {
			t.Fatal(err)
		}
		seq, err := reader.LastEvent(ctx, subject)
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, seq)
	}
	if diff := cmp.Diff([]uint64{1, 1, 3}, seqs); diff != "" {
		t.Errorf("places of the pushes of one repository (-want +got):\n%s", diff)
	}
	if letters, n, err := reader.DeadLetters(ctx, 3); err != nil || n != 0 || len(letters) != 0 {
		t.Errorf("dead letters: %v, %d, %v", letters, n, err)
	}
	closeBus(t, b)

	// Nobody uses the folder now, so it can be opened to be read.
	own, err := OpenReader(ctx, Config{Embedded: Embedded{Dir: dir}}, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := own.Decisions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, entryIDs(l)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if l[9].Seq != 10 {
		t.Errorf("the tenth entry has place %d", l[9].Seq)
	}
	states, missing, err := own.Streams(ctx)
	if err != nil || len(missing) != 0 || len(states) != 4 || states[0].Messages != 300 || states[0].Replicas != 1 || states[0].Clustered {
		t.Errorf("streams %+v, missing %v, %v", states, missing, err)
	}
	if err := own.Close(ctx); err != nil {
		t.Error(err)
	}
	if used, err := InUse(dir); err != nil || used {
		t.Errorf("in use after the end: %v, %v", used, err)
	}
}

func TestReaderOfAnExternalServer(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	_, ext := external(t, nil)
	reader, err := OpenReader(ctx, Config{External: ext}, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close(ctx) }()
	if states, missing, err := reader.Streams(ctx); err != nil || len(states) != 0 || len(missing) != 4 {
		t.Errorf("streams of a fresh server: %v, missing %v, %v", states, missing, err)
	}
	listening := func() bool {
		got, err := reader.Listening(ctx, "events")
		if err != nil {
			t.Error(err)
		}
		return got
	}
	if listening() {
		t.Error("somebody listens to a fresh server")
	}
	if letters, n, err := reader.DeadLetters(ctx, 1); err != nil || n+len(letters) != 0 {
		t.Errorf("dead letters of a fresh server: %d, %v", n, err)
	}
	b := open(t, Config{External: ext})
	if listening() {
		t.Error("somebody listens before the consumer runs")
	}
	stop := running(t, func(ctx context.Context) error {
		return b.ConsumeEvents(ctx, "events", []string{"event.>"}, func(context.Context, events.Event) error {
			return events.Permanent(errors.New("cannot be"))
		})
	})
	publish(t, b, event(t, "gitea/1", 1))
	eventually(t, "somebody listens", listening)
	eventually(t, "the dead letter", func() bool {
		letters, n, err := reader.DeadLetters(ctx, 1)
		return err == nil && n == 1 && letters[0].Reason == "cannot be"
	})
	stop()
	eventually(t, "nobody listens any more", func() bool { return !listening() })
}
