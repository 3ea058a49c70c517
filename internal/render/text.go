package render

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/policy"
)

// Terminal is a verdict as plain text. With color, states are marked by ANSI
// colors too.
func Terminal(v *policy.Verdict, color bool) string {
	p := terminal{color: color}
	p.line(0, v.State(), "%s", headline(v))
	p.gate("preconditions", v.Preconditions)
	p.gate("approval", v.Approval)
	for _, problem := range v.Problems {
		p.b.WriteString("\n" + printable(problem.Text) + "\n")
	}
	p.b.WriteByte('\n')
	for _, r := range v.Results {
		fmt.Fprintf(&p.b, "%-14s  %s\n", r.State, printable(r.Name))
		if len(r.Checks) == 0 {
			fmt.Fprintf(&p.b, "%16s%s\n", "", printable(r.Reason))
		}
		for _, c := range r.Checks {
			fmt.Fprintf(&p.b, "%16s%s%s\n", "", printable(c.Reason), sinceText(c))
		}
	}
	for _, a := range v.Approvals {
		fmt.Fprintf(&p.b, "%-14s  %s\n%16s%s\n", a.State, printable(a.Name), "", printable(a.Reason))
		for _, w := range a.Voided {
			fmt.Fprintf(&p.b, "%16svoided: %s %s\n", "", printable(w.Person.Login), printable(w.Why))
		}
	}
	if v.Proposed != nil {
		for _, problem := range v.Proposed.Problems {
			fmt.Fprintf(&p.b, "the policy in this pull request: %s\n", printable(problem))
		}
	}
	return p.b.String()
}

func sinceText(c policy.Check) string {
	if c.State == policy.Met || c.Since.IsZero() || strings.Contains(c.Reason, stamp(c.Since)) {
		return ""
	}
	return " (since " + stamp(c.Since) + ")"
}

type terminal struct {
	b     strings.Builder
	color bool
}

var ansi = map[policy.GateState]string{
	policy.Clear: "32", policy.Waiting: "33", policy.Blocked: "31", policy.Undecided: "35",
}

func (p *terminal) line(indent int, s policy.GateState, format string, args ...any) {
	text := strings.Repeat(" ", indent) + fmt.Sprintf(format, args...)
	if p.color {
		text = "\x1b[1;" + ansi[s] + "m" + text + "\x1b[0m"
	}
	p.b.WriteString(text + "\n")
}

func (p *terminal) gate(name string, g policy.Gate) {
	p.line(2, g.State, "%-13s %-9s %s", name, g.State, printable(g.Reason))
}

// printable keeps a terminal from being steered by what is shown on it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && invisible(r) {
			return -1
		}
		return r
	}, s)
}

// stamp writes a time for people; see the same in package policy.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func short(sha string) string { return sha[:min(len(sha), 10)] }

// capital starts a sentence with a capital letter.
func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func isAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "@", "@"+joiner, "#", "#"+joiner, "!", "!"+joiner)

// htmlText escapes text for HTML within one line.
func htmlText(s string) string { return htmlEscaper.Replace(clip(oneLine(s), maxInline)) }
