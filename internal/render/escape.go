package render

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// joiner is U+2060 WORD JOINER: it is not shown and does not break a line, but
// keeps "@alice" and "#12" from being read as a mention or a reference.
const joiner = "\u2060"

// maxInline bounds one text within a line, in runes.
const maxInline = 600

// inline escapes text for Markdown within one line, table cells included.
func inline(s string) string {
	var b strings.Builder
	for _, r := range clip(oneLine(s), maxInline) {
		switch {
		case r == '@' || r == '#' || r == '!':
			b.WriteString("\\" + string(r) + joiner)
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case strings.ContainsRune("\\`*_[]|~$", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return unlink.Replace(b.String())
}

// unlink keeps addresses from being made into links.
var unlink = strings.NewReplacer("://", ":"+joiner+"//", "www.", "www"+joiner+".")

// oneLine folds white space and drops what cannot be seen, such as the
// characters that turn the direction of writing.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case invisible(r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func invisible(r rune) bool {
	if r < utf8.RuneSelf { // Most are, and a table is slow.
		return r < ' ' || r == 0x7f
	}
	return r == unicode.ReplacementChar || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// code puts text in a code span, or in a table cell's code span.
func code(s string) string {
	s = clip(oneLine(s), maxInline)
	if s == "" {
		return "–"
	}
	fence := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + strings.ReplaceAll(s, "|", "\\|") + fence
}

// plainAddress is an address of the web without anything that has a meaning in
// Markdown or HTML.
var plainAddress = regexp.MustCompile(`^https?://[A-Za-z0-9._:/?#=&%+,;@~-]+$`)

// link makes text a link to an address, unless that is one that could break out
// of it. The text is signalbox's own.
func link(text, address string) string {
	if !plainAddress.MatchString(address) {
		return text
	}
	return "[" + text + "](<" + address + ">)"
}

// block puts text of many lines in a fenced block.
func block(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && invisible(r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	return fence + "text\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// longestRun is the length of the longest run of backquotes.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// clip cuts text to a number of runes and says so by an ellipsis.
func clip(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}
