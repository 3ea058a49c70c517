package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
)

// moment is one point of the history of a pull request.
type moment struct {
	At   time.Time
	Sign sign
	// Title is one line, Lines are more of them.
	Title string
	Lines []string
	// Rules are how single rules changed.
	Rules []policy.RuleChange
	Head  string
	// Place is where a decision was given, and URL leads there; both may be empty.
	Place, URL string
}

// history puts the changes of a verdict and the entries of the ledger in one
// order, the newest first.
func history(changes []policy.Change, entries decision.Ledger) []moment {
	moments := make([]moment, 0, len(changes)+len(entries))
	for i, c := range changes {
		m := moment{At: c.At, Sign: signOf(c.State()), Head: c.Head, Rules: c.Rules, Title: "Became " + signOf(c.State()).Word}
		if i == 0 {
			m.Title = "First seen as " + signOf(c.State()).Word
		} else if changes[i-1].State() == c.State() {
			m.Title = "Still " + signOf(c.State()).Word
		}
		if i > 0 && changes[i-1].Head != c.Head {
			m.Title += ", at a new head"
		}
		m.Lines = append(m.Lines, "Preconditions "+signOf(c.Preconditions.State).Word+": "+c.Preconditions.Reason, "Approval "+signOf(c.Approval.State).Word+": "+c.Approval.Reason)
		if c.Because != "" {
			m.Place = "by " + c.Because
		}
		moments = append(moments, m)
	}
	for _, e := range entries {
		moments = append(moments, momentOf(e))
	}
	// What is at one time stays in its order, a decision after the change before it.
	slices.Reverse(moments)
	slices.SortStableFunc(moments, func(a, b moment) int { return b.At.Compare(a.At) })
	return moments
}

// kindWords are what an entry says, after the name of the person.
var kindWords = map[decision.Kind]struct {
	words string
	sign  sign
}{
	decision.Approve:        {"approved", sign{"clear", "✓", "approval"}},
	decision.ApproveCancel:  {"took the approval back", sign{"waiting", "↩", "taken back"}},
	decision.Override:       {"overrode what was open", sign{"overridden", "»", "override"}},
	decision.OverrideCancel: {"ended the overrides", sign{"waiting", "↩", "taken back"}},
	decision.Hold:           {"held this", sign{"blocked", "■", "hold"}},
	decision.Unhold:         {"lifted the hold", sign{"clear", "▷", "hold lifted"}},
	decision.Freeze:         {"froze the repository", sign{"blocked", "■", "freeze"}},
	decision.Unfreeze:       {"ended the freeze", sign{"clear", "▷", "freeze ended"}},
	decision.Merge:          {"asked to merge", sign{"overridden", "⇥", "merge"}},
	decision.MergeCancel:    {"took the request to merge back", sign{"waiting", "↩", "taken back"}},
	decision.Merged:         {"had it merged by signalbox", sign{"clear", "⇥", "merged"}},
	decision.MergeFailed:    {"asked to merge, which failed", sign{"blocked", "✕", "not merged"}},
	decision.Link:           {"linked an account of a chat", sign{"none", "–", "link"}},
	decision.Unlink:         {"unlinked an account of a chat", sign{"none", "–", "link"}},
	decision.Refused:        {"was refused", sign{"blocked", "✕", "refused"}},
	decision.Answered:       {"asked", sign{"none", "–", "question"}},
	decision.Edited:         {"edited somebody else's comment", sign{"blocked", "!", "edit"}},
}

// wordsOf is what an entry says, after the name of the person.
func wordsOf(k decision.Kind) (string, sign) {
	if w, ok := kindWords[k]; ok {
		return w.words, w.sign
	}
	return "did something that this version does not know: " + string(k), signUndecided
}

// placeText says where something was said.
func placeText(place string) string {
	switch place {
	case "":
		return ""
	case "web":
		return "on this page"
	case "comment", "review":
		return "in a " + place
	}
	return "in " + strings.ToUpper(place[:1]) + place[1:]
}

func momentOf(e decision.Entry) moment {
	words, s := wordsOf(e.Kind)
	m := moment{At: e.At, Sign: s, Title: e.By.Login + " " + words, Head: e.Head, Place: placeText(e.Place), URL: e.URL}
	if e.Reason != "" {
		m.Lines = append(m.Lines, e.Reason)
	}
	if e.Command != "" && (e.Kind == decision.Refused || e.Kind == decision.Answered) {
		m.Lines = append(m.Lines, "Command: "+e.Command)
	}
	if len(e.Passes) > 0 {
		m.Lines = append(m.Lines, "It passes: "+strings.Join(e.Passes, "; "))
	}
	if !e.Until.IsZero() && (e.Kind == decision.Override || e.Kind == decision.Freeze) {
		m.Lines = append(m.Lines, fmt.Sprintf("It ends by itself at %s", stamp(e.Until)))
	}
	return m
}
