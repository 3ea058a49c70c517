package handlers

import (
	"encoding/json"
	"testing"
	"time"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// FuzzRecord: a record that was read from the bus is the same when it is written, also
// one of an older version, and can be indexed.
func FuzzRecord(f *testing.F) {
	r := Record{
		Seen:        Place{Ref: pull.Ref{RepoID: 7, Number: 12}, Base: "main", Head: "5c0ffee"},
		Verdict:     policy.Verdict{Head: "5c0ffee", Base: "main", LookAgain: time.Date(2026, 9, 7, 6, 0, 0, 0, time.UTC)},
		Posted:      Posted{Head: "5c0ffee", Statuses: map[string]pull.Status{"signalbox / approval (main)": {State: "success"}}, CommentID: 3},
		Answered:    []string{"comment/1"},
		Heard:       map[string]Heard{"1": {Sum: "x", At: time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)}},
		EvaluatedAt: time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC),
	}
	whole, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"inputs":{"snapshot":{"pull":{"number":1}}},"verdict":{"reads":["x"]},"evaluatedAt":"0001-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"heard":{"":null},"posted":{"statuses":{"a":null}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var first, again Record
		if json.Unmarshal(in, &first) != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Skip() // A time outside of what RFC 3339 can say; signalbox writes none.
		}
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%s cannot be read: %v", written, err)
		}
		twice, err := json.Marshal(again)
		if err != nil || string(twice) != string(written) {
			t.Errorf("a record changes on its way:\n%s\n%s\n%v", written, twice, err)
		}
		NewIndex().Change("7.12", nil, &first)
	})
}
