package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/fact"
)

// maxText bounds a text of a finding, in runes. maxName bounds the name of a thing,
// and maxURL an address, which is left out if it is longer.
const (
	maxText = 300
	maxName = 120
	maxURL  = 500
)

// oneLine folds a text from outside into one line of bounded length.
func oneLine(s string) string { return clip(s, maxText) }

func clip(s string, runes int) string {
	// What is far beyond the end is not worth the work.
	if most := 8 * runes; len(s) > most {
		s = s[:most]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}

// clean bounds the texts of a finding and puts its time in UTC and whole seconds.
func (f Finding) clean() Finding {
	f.Subject, f.Text = clip(f.Subject, 2*maxName), oneLine(f.Text)
	if len(f.URL) > maxURL {
		f.URL = ""
	}
	if f.Since = f.Since.UTC(); f.Since.Unix() <= 0 {
		f.Since = time.Time{}
	}
	return f
}

// maxPart bounds a part of an ID, in bytes; what is longer is told by its sum.
const maxPart = 260

// id makes an ID. Different parts make different ones, whatever they hold; empty ones
// at the end are no parts.
func id(s Section, parts ...any) string { return strings.TrimRight(prefix(s, parts...), "/") }

// prefix is what begins the IDs that have these parts and others after them.
func prefix(s Section, parts ...any) string {
	var b strings.Builder
	b.WriteString(string(s) + "/")
	for _, p := range parts {
		part := fmt.Sprint(p)
		if len(part) > maxPart {
			sum := sha256.Sum256([]byte(part))
			part = strings.ToValidUTF8(part[:maxPart/2], "") + "~" + hex.EncodeToString(sum[:8])
		}
		for _, r := range part {
			if r == '/' || r == '%' || r <= ' ' || r == 0x7f || r == utf8.RuneError {
				fmt.Fprintf(&b, "%%%02x", r)
			} else {
				b.WriteRune(r)
			}
		}
		b.WriteByte('/')
	}
	return b.String()
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// isAre follows a number.
func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// enumerate joins texts as a sentence does.
func enumerate(texts []string) string {
	if n := len(texts) - 1; n > 0 {
		return strings.Join(texts[:n], ", ") + " and " + texts[n]
	}
	return strings.Join(texts, "")
}

// someOf joins the first of some texts, and counts the rest.
func someOf(texts []string) string {
	const most = 3
	if more := len(texts) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), more)
	}
	return enumerate(texts)
}

// short names a revision of Flux for people.
func short(revision string) string {
	rev := fact.ParseRevision(revision)
	switch {
	case rev.Commit != "":
		return rev.Commit[:10]
	default:
		return clip(revision, 40)
	}
}

// blindBy says why a watch shows nothing, or is empty if it shows everything. What
// is the plural of what is watched.
func blindBy(w fact.Watch, what, cluster string) string {
	switch w.State {
	case fact.WatchSynced:
		return ""
	case fact.WatchSyncing:
		return fmt.Sprintf("the list of %s on %s has not arrived yet", what, cluster)
	default:
		why := fmt.Sprintf("%s on %s cannot be watched", what, cluster)
		if w.Message != "" {
			why += ": " + w.Message
		}
		return why
	}
}
