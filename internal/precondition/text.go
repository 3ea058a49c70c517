package precondition

import (
	"fmt"
	"strings"
	"time"
)

// stamp writes a time for people. It is absolute, so that a comment stays true
// without being edited.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// maxReason bounds a message from outside within a reason, in runes; the
// evidence has all of it.
const maxReason = 240

// oneLine folds a message into one line of bounded length.
func oneLine(message string) string {
	text := strings.Join(strings.Fields(message), " ")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason]) + "…"
	}
	return text
}

// short abbreviates a commit id for people.
func short(sha string) string {
	if len(sha) > 10 {
		return sha[:10]
	}
	return sha
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// listed joins the first few of some names, and says how many there are beside.
func listed(names []string, total int) string {
	const most = 3
	shown := names[:min(len(names), most)]
	text := strings.Join(shown, ", ")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
