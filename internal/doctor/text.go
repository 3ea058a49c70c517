package doctor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Style says how text is written.
type Style struct {
	// Color marks severities with ANSI colors.
	Color bool
	// Width is where lines are broken; zero means 100.
	Width int
}

var ansi = map[Severity]string{Problem: "1;31", Warning: "1;33", Unknown: "1;35", Info: "1;34", OK: "32"}

// margin is the width of the column with the severities.
const margin = 9

// Text is the report for a person: the worst first, and what is fine in one line
// each.
func (r Report) Text(s Style) string {
	if s.Width == 0 {
		s.Width = 100
	}
	w := writer{Style: s}
	for i, f := range r.Findings {
		if i > 0 && (f.Severity != OK || r.Findings[i-1].Severity != OK) {
			w.b.WriteByte('\n')
		}
		w.finding(f)
	}
	fmt.Fprintf(&w.b, "\n%s\n", r.Summary())
	if r.ExitCode == ExitProblem && r.Fixable() {
		w.b.WriteString("bot doctor --fix sets what Gitea's settings can mend, after it has shown you the difference.\n")
	}
	return w.b.String()
}

// Summary is the report in one line.
func (r Report) Summary() string {
	var parts []string
	add := func(s Severity, one, many string) {
		switch n := r.Counts[s]; {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(Problem, "problem", "problems")
	add(Warning, "warning", "warnings")
	add(Unknown, "thing that could not be checked", "things that could not be checked")
	add(Info, "note", "notes")
	add(OK, "thing fine", "things fine")
	text := strings.Join(parts, ", ") + "."
	switch r.exit() {
	case ExitProblem:
		text += " The gate is not a gate yet."
	case ExitUnchecked:
		text += " Nothing wrong was found in what could be checked."
	default:
		text += " The gate holds."
	}
	return text
}

type writer struct {
	Style
	b strings.Builder
}

func (w *writer) finding(f Finding) {
	label := string(f.Severity)
	if f.Severity == Problem || f.Severity == Warning || f.Severity == Unknown {
		label = strings.ToUpper(label)
	}
	w.b.WriteString(w.paint(f.Severity, fmt.Sprintf("%-*s", margin, label)))
	w.paragraph(f.Subject+": "+f.What, 0)
	if f.Why != "" {
		w.indent()
		w.paragraph(f.Why, 0)
	}
	for i, line := range strings.Split(strings.TrimRight(f.Remedy, "\n"), "\n") {
		switch {
		case f.Remedy == "":
		case i == 0:
			w.indent()
			w.b.WriteString("→ ")
			w.paragraph(line, 2)
		default:
			// What is to be copied is not broken.
			w.indent()
			w.b.WriteString("  " + printable(line) + "\n")
		}
	}
}

func (w *writer) indent() { w.b.WriteString(strings.Repeat(" ", margin)) }

func (w *writer) paint(s Severity, text string) string {
	if !w.Color {
		return text
	}
	return "\x1b[" + ansi[s] + "m" + text + "\x1b[0m"
}

// paragraph writes text whose first line has begun, so far from the margin, and
// ends it.
func (w *writer) paragraph(text string, indent int) {
	left := margin + indent
	at := left
	for i, word := range strings.Fields(printable(text)) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > w.Width:
			w.b.WriteString("\n" + strings.Repeat(" ", left))
			at = left
		default:
			w.b.WriteByte(' ')
			at++
		}
		w.b.WriteString(word)
		at += n
	}
	w.b.WriteByte('\n')
}

// printable keeps a terminal from being steered by what is shown on it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, s)
}

// DifferenceText is what a change does, for a person who decides about it.
func DifferenceText(subject string, list []Difference, s Style) string {
	w := writer{Style: s}
	fmt.Fprintf(&w.b, "%s\n", printable(subject))
	for _, d := range list {
		fmt.Fprintf(&w.b, "  %s\n", printable(d.Setting))
		for _, line := range d.Before {
			if !slices.Contains(d.After, line) {
				w.b.WriteString(w.paint(Problem, "    - "+printable(line)) + "\n")
			}
		}
		for _, line := range d.After {
			sign, severity := "+", OK
			if slices.Contains(d.Before, line) {
				sign, severity = " ", Severity("")
			}
			text := "    " + sign + " " + printable(line)
			if severity != "" {
				text = w.paint(severity, text)
			}
			w.b.WriteString(text + "\n")
		}
	}
	return w.b.String()
}
