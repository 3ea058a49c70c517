package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// Marks between which the document is written.
const (
	beginMark = "<!-- begin of what make bench writes -->\n"
	endMark   = "<!-- end of what make bench writes -->\n"
)

// write puts the results of an output of go test into a document, in the place of those
// of the last time.
func write(file string, output []byte, on string) error {
	rows, err := read(output)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("no benchmark ran, so %s stays as it is", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(data), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return fmt.Errorf("%s lacks the marks between which to write", file)
	}
	text := before + beginMark + "\n" + table(rows, on) + "\n" + endMark + after
	return os.WriteFile(file, []byte(text), 0o644)
}

// row is the result of one benchmark.
type row struct {
	name, pkg string
	// perOp is how long one operation took, in seconds.
	perOp float64
	// more are the other measures, in the units that the benchmark gave them.
	more []measure
}

type measure struct {
	unit  string
	value float64
}

// read reads the output of go test.
func read(output []byte) ([]row, error) {
	var rows []row
	r := benchfmt.NewReader(bytes.NewReader(output), "go test")
	for r.Scan() {
		result, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue // What is no result of a benchmark.
		}
		made := row{name: nameOf(result.Name.String()), pkg: strings.TrimPrefix(result.GetConfig("pkg"), "signalbox/")}
		for _, v := range result.Values {
			unit, value := cmp.Or(v.OrigUnit, v.Unit), v.Value
			if v.OrigUnit != "" {
				value = v.OrigValue
			}
			if unit == "ns/op" {
				made.perOp = value / 1e9
			} else {
				made.more = append(made.more, measure{unit, value})
			}
		}
		slices.SortFunc(made.more, func(a, b measure) int { return strings.Compare(a.unit, b.unit) })
		rows = append(rows, made)
	}
	return rows, r.Err()
}

// nameOf takes the number of processors off the name of a benchmark.
func nameOf(name string) string {
	i := strings.LastIndex(name, "-")
	if i < 0 {
		return name
	}
	if _, err := strconv.Atoi(name[i+1:]); err != nil {
		return name
	}
	return name[:i]
}

func table(rows []row, on string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s.\n\n", on)
	b.WriteString("| Benchmark | Package | One operation | Beside that |\n|---|---|---|---|\n")
	for _, r := range rows {
		var more []string
		for _, m := range r.more {
			more = append(more, figure(m.value)+" "+m.unit)
		}
		name := strings.ReplaceAll(r.name, "|", `\|`) // It would begin another cell.
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", name, r.pkg, span(r.perOp), strings.Join(more, ", "))
	}
	return b.String()
}

// figure writes a number with three digits that count.
func figure(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// span writes a time with three digits that count.
func span(seconds float64) string {
	d := time.Duration(seconds * 1e9)
	switch {
	case d >= time.Second:
		return figure(seconds) + " s"
	case d >= time.Millisecond:
		return figure(seconds*1e3) + " ms"
	case d >= time.Microsecond:
		return figure(seconds*1e6) + " µs"
	default:
		return figure(seconds*1e9) + " ns"
	}
}
