package bus

import (
	"encoding/json"
	"regexp"
	"testing"

	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/pull"
)

// FuzzWork: a message of WORK is a pull request with a known kind, or is put aside at
// once; and what is taken is the same when it is written again.
func FuzzWork(f *testing.F) {
	f.Add([]byte(`{"ref":{"repo":7,"number":12},"kind":"retry","attempt":3}`))
	f.Add([]byte(`{"ref":{"repo":7,"number":-1},"kind":"full"}`))
	f.Add([]byte(`{"ref":{"repo":7,"number":12},"kind":"x.>"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, in []byte) {
		item, err := decodeItem(in)
		if err != nil {
			if !events.IsPermanent(err) {
				t.Errorf("%q would be tried again for ever: %v", in, err)
			}
			return
		}
		if !subjectTokens.MatchString(place(item)) {
			t.Errorf("%q has the subject %q", in, place(item))
		}
		written, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decodeItem(written); err != nil || again != item {
			t.Errorf("%q is %+v, and then %+v, %v", in, item, again, err)
		}
	})
}

// subjectTokens is what can stand in a subject: no wildcard, no empty token.
var subjectTokens = regexp.MustCompile(`^[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*$`)

// FuzzLedgerKey: whatever the id of an entry is made of, its key is one, and two
// entries never share it.
func FuzzLedgerKey(f *testing.F) {
	for _, ids := range [][2]string{{"comment/1/0", "comment/10"}, {"a.*", "a.>"}, {"", "\x00"}, {"slack/Ev1", "slack/ev1"}, {"\xff", "\ufffd"}} {
		f.Add(ids[0], ids[1], int64(7), int64(12))
	}
	f.Fuzz(func(t *testing.T, a, b string, repo, number int64) {
		one := decision.Entry{ID: a, Repo: pull.Repo{ID: repo}, Number: number}
		other := decision.Entry{ID: b, Repo: one.Repo, Number: number}
		if a != "" && repo > 0 && number > 0 && !subjectTokens.MatchString(ledgerKey(one)) {
			t.Errorf("the key of %q is %q", a, ledgerKey(one))
		}
		if (a == b) != (ledgerKey(one) == ledgerKey(other)) {
			t.Errorf("%q and %q have the keys %q and %q", a, b, ledgerKey(one), ledgerKey(other))
		}
	})
}
