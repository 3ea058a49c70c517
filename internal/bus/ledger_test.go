package bus

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

func ledgerEntry(id string, number int64) decision.Entry {
	return decision.Entry{
		ID: id, Kind: decision.Approve, By: pull.Person{ID: 1, Login: "alice"}, Place: "comment",
		Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home.gitops"}, Number: number, Base: "main", Head: "h",
		At: time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC),
	}
}

func openLedger(t *testing.T, b *Bus) *Ledger {
	t.Helper()
	l, err := OpenLedger(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func entryIDs(l decision.Ledger) []string {
	var ids []string
	for _, e := range l {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestLedgerKeepsOneEntryForACause(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	l := openLedger(t, b)
	want := []string{}
	for i := range 12 {
		id := fmt.Sprintf("comment/%d/0 ü.*>", 12-i)
		want = append(want, id)
		for range 2 {
			if _, err := l.Append(t.Context(), ledgerEntry(id, 3)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if added, err := l.Append(t.Context(), ledgerEntry("other", 4)); err != nil || !added {
		t.Errorf("a new entry: added %v, %v", added, err)
	}
	changed := ledgerEntry("other", 4)
	changed.Kind = decision.Override
	if added, err := l.Append(t.Context(), changed); err != nil || added {
		t.Errorf("an entry with a known id: added %v, %v", added, err)
	}
	ref := pull.Ref{RepoID: 7, Number: 3}
	if diff := cmp.Diff(want, entryIDs(l.Entries(ref))); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if got := l.Entries(pull.Ref{RepoID: 7, Number: 4}); len(got) != 1 || got[0].Kind != decision.Approve {
		t.Errorf("the first of an id stays, got %+v", got)
	}
	closeBus(t, b)

	again := openLedger(t, open(t, Config{Embedded: Embedded{Dir: dir}}))
	if diff := cmp.Diff(want, entryIDs(again.Entries(ref))); diff != "" {
		t.Errorf("entries after a restart (-want +got):\n%s", diff)
	}
	if n := len(again.All()); n != 13 {
		t.Errorf("%d entries in all, want 13", n)
	}
	if _, err := again.Append(t.Context(), decision.Entry{ID: "x"}); err == nil {
		t.Error("an entry about nothing was taken")
	}
}

func TestLedgerKnowsTheFreezesOfARepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	l := openLedger(t, b)
	for _, e := range []struct {
		id           string
		kind         decision.Kind
		repo, number int64
	}{
		{"1", decision.Freeze, 7, 3},
		{"2", decision.Hold, 7, 3},
		{"3", decision.Freeze, 8, 3},
		{"4", decision.Unfreeze, 7, 4},
		{"5", decision.Freeze, 7, 5},
		{"1", decision.Freeze, 7, 3},
	} {
		entry := ledgerEntry(e.id, e.number)
		entry.Kind, entry.Repo.ID, entry.Until = e.kind, e.repo, entry.At.Add(time.Hour)
		if _, err := l.Append(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	check := func(l *Ledger) {
		t.Helper()
		for repo, want := range map[int64][]string{7: {"1", "4", "5"}, 8: {"3"}, 9: nil} {
			if diff := cmp.Diff(want, entryIDs(l.Freezes(repo))); diff != "" {
				t.Errorf("freezes of repository %d (-want +got):\n%s", repo, diff)
			}
		}
		if diff := cmp.Diff([]string{"1", "2"}, entryIDs(l.Entries(pull.Ref{RepoID: 7, Number: 3}))); diff != "" {
			t.Errorf("entries of the pull request (-want +got):\n%s", diff)
		}
	}
	check(l)
	closeBus(t, b)
	check(openLedger(t, open(t, Config{Embedded: Embedded{Dir: dir}})))
}

func TestLedgerCannotBeShortened(t *testing.T) {
	t.Parallel()
	_, ext := external(t, nil)
	b := open(t, Config{External: ext})
	l := openLedger(t, b)
	if _, err := l.Append(t.Context(), ledgerEntry("1", 3)); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(ext.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_decisions")
	if err != nil {
		t.Fatal(err)
	}
	var subject string
	for subject = range mustInfo(t, s).State.Subjects {
		break
	}
	for name, try := range map[string]func(context.Context) error{
		"purge":  func(ctx context.Context) error { return s.Purge(ctx) },
		"delete": func(ctx context.Context) error { return s.DeleteMsg(ctx, 1) },
		"overwrite": func(ctx context.Context) error {
			_, err := js.Publish(ctx, subject, []byte(`{}`))
			return err
		},
	} {
		if err := try(t.Context()); err == nil {
			t.Errorf("%s: the server allowed it", name)
		}
	}
	if n := len(l.Entries(pull.Ref{RepoID: 7, Number: 3})); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

func mustInfo(t *testing.T, s jetstream.Stream) *jetstream.StreamInfo {
	t.Helper()
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return info
}
