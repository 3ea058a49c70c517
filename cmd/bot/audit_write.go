package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"signalbox/internal/decision"
)

// auditFormats are the forms in which the ledger is printed.
var auditFormats = map[string]func(io.Writer, decision.Ledger) error{
	"table": auditTable,
	"jsonl": auditJSONL,
	"csv":   auditCSV,
}

// auditTable prints the entries for people. A column that would be empty is left
// out.
func auditTable(w io.Writer, ledger decision.Ledger) error {
	columns := []struct {
		name string
		of   func(decision.Entry) string
	}{
		{"SEQ", func(e decision.Entry) string { return strconv.FormatUint(e.Seq, 10) }},
		{"TIME", func(e decision.Entry) string { return stampOf(e.At) }},
		{"WHO", func(e decision.Entry) string { return e.By.Login }},
		{"WHAT", func(e decision.Entry) string { return string(e.Kind) }},
		{"PULL REQUEST", func(e decision.Entry) string { return fmt.Sprintf("%s#%d", e.Repo, e.Number) }},
		{"BASE", func(e decision.Entry) string { return e.Base }},
		{"HEAD", func(e decision.Entry) string { return e.Head[:min(len(e.Head), 10)] }},
		{"WHERE", func(e decision.Entry) string { return e.Place }},
		{"UNTIL", func(e decision.Entry) string { return stampOf(e.Until) }},
		{"ID", func(e decision.Entry) string { return e.ID }},
		{"COMMAND", func(e decision.Entry) string {
			if e.Kind != decision.Refused {
				return ""
			}
			return e.Command
		}},
		{"REASON", func(e decision.Entry) string { return e.Reason }},
	}
	if len(ledger) == 0 {
		return nil
	}
	rows := make([][]string, len(ledger)+1)
	for _, c := range columns {
		used := false
		for _, e := range ledger {
			used = used || c.of(e) != ""
		}
		if !used {
			continue
		}
		rows[0] = append(rows[0], c.name)
		for i, e := range ledger {
			rows[i+1] = append(rows[i+1], auditCell(c.of(e)))
		}
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// auditCell makes one cell of a table of a text from outside.
func auditCell(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// stampOf writes a time as RFC 3339 in UTC, and no time as nothing.
func stampOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// auditJSONL prints each entry whole, as one line of JSON.
func auditJSONL(w io.Writer, ledger decision.Ledger) error {
	return decision.WriteJSONLines(w, slices.Values(ledger))
}

// auditCSV prints the entries for a spreadsheet.
func auditCSV(w io.Writer, ledger decision.Ledger) error {
	return decision.WriteCSV(w, slices.Values(ledger))
}
