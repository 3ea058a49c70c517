package decision

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Line is an entry with its place in the ledger, as a line of JSON.
type Line struct {
	Seq uint64 `json:"seq"`
	Entry
}

// WriteJSONLines writes each entry whole, as one line of JSON: a [Line].
func WriteJSONLines(w io.Writer, entries iter.Seq[Entry]) error {
	lines := json.NewEncoder(w)
	for e := range entries {
		if err := lines.Encode(Line{e.Seq, e}); err != nil {
			return err
		}
	}
	return nil
}

// WriteCSV writes entries for a spreadsheet, after a line with the names of the
// columns. No cell of it is taken for a formula.
func WriteCSV(w io.Writer, entries iter.Seq[Entry]) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{
		"seq", "id", "at", "kind", "person", "person_id", "repository", "repository_id", "pull_request", "base", "head",
		"place", "url", "command", "reason", "until", "passes", "lifts",
	}); err != nil {
		return err
	}
	for e := range entries {
		row := []string{
			strconv.FormatUint(e.Seq, 10), e.ID, stamp(e.At), string(e.Kind), e.By.Login, strconv.FormatInt(e.By.ID, 10),
			e.Repo.String(), strconv.FormatInt(e.Repo.ID, 10), strconv.FormatInt(e.Number, 10), e.Base, e.Head,
			e.Place, e.URL, e.Command, e.Reason, stamp(e.Until), strings.Join(e.Passes, "; "), strings.Join(e.Lifts, "; "),
		}
		for i := range row {
			row[i] = inert(row[i])
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// stamp writes a time as RFC 3339 in UTC, and no time as nothing.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// inert keeps a spreadsheet from taking a text for a formula: such a text gets an
// apostrophe in front, as OWASP advises.
func inert(s string) string {
	if s == "" {
		return s
	}
	switch []rune(strings.TrimLeftFunc(s, unicode.IsSpace) + " ")[0] {
	case '=', '+', '-', '@', '＝', '＋', '－', '＠':
		return "'" + s
	}
	if s[0] == '\t' || s[0] == '\r' || s[0] == '\n' {
		return "'" + s
	}
	return s
}
