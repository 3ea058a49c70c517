package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/backup"
	"signalbox/internal/bus"
	"signalbox/internal/chat"
)

// unpack unpacks a store of an older version.
func unpack(t *testing.T, archive string) (dir string, had beside) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for entries := tar.NewReader(zip); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && h.Typeflag == tar.TypeDir {
			err = root.MkdirAll(h.Name, 0o700)
		} else if err == nil {
			var text []byte
			if text, err = io.ReadAll(entries); err == nil {
				err = root.WriteFile(h.Name, text, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "beside.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &had); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "store"), had
}

// TestUpgrade opens what older versions left. Gitea and the chat have what those had put
// there, and meanwhile a pull request got a new head with the same change.
func TestUpgrade(t *testing.T) {
	archives, err := filepath.Glob("testdata/store/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatal("there are no stores", err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			t.Parallel()
			store, had := unpack(t, archive)
			l := storyWorld(t, had.At)
			l.dir = store
			l.begin()
			l.put(had)
			for number := storyApproved; number <= storySurvived; number++ {
				if _, known := had.Statuses[l.head(number)]; !known {
					t.Fatalf("the stand-in for Gitea gives pull request %d another head: make the store anew with tools/store", number)
				}
			}
			moved := l.push("survived", nil)
			// The first messages of this time are others than those that were heard then.
			l.heard = 1000
			l.openAll(chat.Room{Platform: chat.Slack, ID: "C2"})
			l.standsAsTold()
			if got := l.head(storySurvived); got != moved {
				t.Errorf("the head is %s, want %s", got, moved)
			}
			l.quiet()

			if diff := cmp.Diff(had.Ledger, l.ledgerText()); diff != "" {
				t.Errorf("the ledger (-before +after):\n%s", diff)
			}
			for number, comments := range had.Comments {
				var was, is []int64
				for _, c := range comments {
					was = append(was, c.ID)
				}
				for _, c := range l.ownComments(number) {
					is = append(is, c.ID)
				}
				if diff := cmp.Diff(was, is); diff != "" {
					t.Errorf("the comments on pull request %d (-before +after):\n%s", number, diff)
				}
			}
			told := map[string]bool{}
			for _, p := range had.Posts {
				told[p.Room.ID+" "+p.Cause] = true
			}
			for cause := range l.saidCauses() {
				if !told[cause] && !strings.Contains(cause, moved) {
					t.Errorf("in the chat it says anew %s", cause)
				}
			}
			l.isOfThisLayout()
			// It goes on.
			l.hears(l.says("alice", fmt.Sprintf("unhold home-gitops#%d", storyHeld)), "done")
			l.shows(storyHeld, "success", "success")
			l.reacts(l.say(storyApproved, "carol", "/approve cancel"), "+1")
			l.shows(storyApproved, "success", "pending")
		})
	}
}

// isOfThisLayout looks at what a backup says of the store.
func (l *lounge) isOfThisLayout() {
	l.t.Helper()
	var file strings.Builder
	head, end, err := takeBackup(l.t.Context(), bus.Config{Embedded: bus.Embedded{Dir: l.dir}}, &file)
	l.must(err)
	if head.Layout != bus.LayoutVersion {
		l.t.Errorf("the store has layout %d, want %d", head.Layout, bus.LayoutVersion)
	}
	entries := map[string]uint64{}
	for _, b := range end.Buckets {
		entries[b.Name] = b.Entries
	}
	// Those that an older version did not have are there.
	want := []backup.Total{{Name: bucketSubscriptions, Entries: 1}, {Name: bucketSchedules, Entries: 1}, {Name: bucketPulls, Entries: 3}, {Name: bucketReports}, {Name: bucketAlerts}}
	for _, b := range want {
		if n, ok := entries[b.Name]; !ok || n != b.Entries {
			l.t.Errorf("bucket %s has %d entries (made: %v), want %d", b.Name, n, ok, b.Entries)
		}
	}
}
