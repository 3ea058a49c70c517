package decision

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/pull"
)

// FuzzMoment: what a filter begins with is never after what the same words end with,
// and an age is never in the future.
func FuzzMoment(f *testing.F) {
	for _, s := range []string{"", "2026-09-07", "2026-09-07T03:00:00Z", "36h", "7d", "-1h", "99999999d", "9223372036854775807d", "1e9h", "0d"} {
		f.Add(s)
	}
	now := time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		since, err := ParseSince(s, now)
		until, errUntil := ParseUntil(s, now)
		if (err == nil) != (errUntil == nil) {
			t.Fatalf("%q begins with the error %v and ends with %v", s, err, errUntil)
		}
		if err != nil {
			if !since.IsZero() || !strings.Contains(err.Error(), "write 2026-09-07") {
				t.Errorf("%q gives %v and %v", s, since, err)
			}
			return
		}
		if since.After(until) {
			t.Errorf("%q begins at %v and ends at %v", s, since, until)
		}
		_, stamped := time.Parse(time.RFC3339, s)
		_, day := time.Parse(time.DateOnly, s)
		if stamped != nil && day != nil && since.After(now) {
			t.Errorf("%q is in the future: %v", s, since)
		}
	})
}

// FuzzEntry: an entry that the ledger takes is the same when it is read again, by the
// program and from the files that are made of it, where no cell is a formula.
func FuzzEntry(f *testing.F) {
	e := Entry{
		ID: "comment/123/0", Kind: Override, By: pull.Person{ID: 1, Login: "alice"}, Place: "comment", URL: "https://gitea.example.org/x", Command: "/override =1+1",
		Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, Number: 12, Base: "main", Head: "5c0ffee", Reviews: []int64{3},
		At: time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC), Reason: "a\nb", Passes: []string{"x"}, Until: time.Date(2026, 9, 7, 5, 0, 0, 0, time.UTC), Lifts: []string{"y"},
	}
	whole, err := json.Marshal(e)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"id":"a","kind":"approve"}`))
	f.Add([]byte(`{"id":"=1","kind":"hold","by":{"id":1},"repo":{"id":1},"number":1,"at":"2026-01-01T00:00:00+02:00","diff":{}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var e Entry
		if json.Unmarshal(in, &e) != nil || e.Check() != nil {
			return
		}
		var lines bytes.Buffer
		if err := WriteJSONLines(&lines, slices.Values(Ledger{e})); err != nil {
			t.Fatal(err)
		}
		var back Line
		if err := json.Unmarshal(lines.Bytes(), &back); err != nil || bytes.Count(lines.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("%q is written as %q: %v", in, lines.String(), err)
		}
		written, _ := json.Marshal(e)
		again, _ := json.Marshal(back.Entry)
		if diff := cmp.Diff(string(written), string(again)); diff != "" {
			t.Errorf("an entry does not survive: %s", diff)
		}
		if !back.At.Equal(e.At) || back.ID != e.ID || back.Head != e.Head || back.By != e.By {
			t.Errorf("an entry does not survive: %+v, then %+v", e, back.Entry)
		}
		var table bytes.Buffer
		if err := WriteCSV(&table, slices.Values(Ledger{e})); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&table).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%d rows of CSV: %v", len(rows), err)
		}
		for _, cell := range rows[1] {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("the cell %q is taken for a formula", cell)
			}
		}
	})
}
