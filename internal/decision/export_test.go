package decision

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

func TestCSVIsInert(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "a=b": "a=b", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@x": "'@x", " =1": "' =1", "\t=1": "'\t=1", "\rx": "'\rx",
		"＝1": "'＝1", "\u00a0=1": "'\u00a0=1", "'=1": "'=1",
	} {
		var out strings.Builder
		if err := WriteCSV(&out, slices.Values([]Entry{{Reason: text}})); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%q: %v, %d rows", text, err, len(rows))
		}
		if got := rows[1][14]; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
