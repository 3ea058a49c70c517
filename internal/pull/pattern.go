package pull

import (
	"regexp"
	"strings"
)

// Pattern is a pattern of statuses or branches as Gitea 1.26 reads it, which
// is not quite what other globs are.
type Pattern struct {
	expression *regexp.Regexp
}

// patternSpecial are the characters that make a text a pattern.
const patternSpecial = `*?\[]{}`

// CompilePattern compiles a pattern: "*" stands for any text, "?" for a
// character, "[ab]" and "[!ab]" for one of some, "{a,b}" for one of some texts,
// and "\" takes the next character for itself. Neither "*" nor "?" stands for a
// separator; "**" does. False means that Gitea does not understand the pattern
// and leaves it out.
func CompilePattern(text string, separators string) (Pattern, bool) {
	t := patternText{rest: []rune(text), one: "."}
	if separators != "" {
		t.one = "[^" + regexp.QuoteMeta(separators) + "]"
	}
	expression, ok := t.sequence(false)
	if !ok {
		return Pattern{}, false
	}
	// Without a group around it, as in Gitea: where a brace is not closed, its
	// alternatives reach to the ends of the pattern.
	compiled, err := regexp.Compile("^" + expression + "$")
	if err != nil {
		return Pattern{}, false
	}
	return Pattern{compiled}, true
}

// Match reports whether the pattern stands for the text.
func (p Pattern) Match(text string) bool { return p.expression.MatchString(text) }

// patternText is a pattern on its way to a regular expression.
type patternText struct {
	rest []rune
	one  string // What matches one character.
}

func (t *patternText) next() (rune, bool) {
	if len(t.rest) == 0 {
		return 0, false
	}
	r := t.rest[0]
	t.rest = t.rest[1:]
	return r, true
}

// sequence translates up to the end, or to the brace that closes it.
func (t *patternText) sequence(braced bool) (string, bool) {
	var out strings.Builder
	for {
		r, more := t.next()
		if !more {
			return out.String(), true
		}
		switch {
		case r == '}' && braced:
			return "(" + out.String() + ")", true
		case r == '*' && len(t.rest) > 0 && t.rest[0] == '*':
			t.rest = t.rest[1:]
			out.WriteString(".*")
		case r == '*':
			out.WriteString(t.one + "*")
		case r == '?':
			out.WriteString(t.one)
		case r == ',' && braced:
			out.WriteByte('|')
		case r == '[', r == '{', r == '\\':
			part, ok := t.group(r)
			if !ok {
				return "", false
			}
			out.WriteString(part)
		case strings.ContainsRune(".+^$()|", r):
			out.WriteString(`\` + string(r))
		default:
			out.WriteRune(r)
		}
	}
}

// group translates what one of "[", "{" and "\" begins.
func (t *patternText) group(begin rune) (string, bool) {
	switch begin {
	case '{':
		return t.sequence(true)
	case '\\':
		r, ok := t.next()
		return `\` + string(r), ok
	}
	var out strings.Builder
	out.WriteByte('[')
	if len(t.rest) > 0 && t.rest[0] == '!' {
		t.rest = t.rest[1:]
		out.WriteByte('^')
	}
	for {
		r, ok := t.next()
		switch {
		case !ok:
			return "", false
		case r == ']':
			return out.String() + "]", true
		case r == '\\':
			if r, ok = t.next(); !ok {
				return "", false
			}
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
}

// QuotePattern returns the pattern that stands for the text alone.
func QuotePattern(text string) string {
	var out strings.Builder
	for _, r := range text {
		if strings.ContainsRune(patternSpecial, r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Heeds reports whether a status of the context that is there and no success
// keeps from merging.
func (p Protection) Heeds(context string) bool {
	if !p.StatusCheck || len(p.Contexts) == 0 {
		return p.StatusCheck
	}
	for _, text := range p.Contexts {
		if pattern, ok := CompilePattern(text, ""); ok && pattern.Match(context) {
			return true
		}
	}
	return false
}

// Requires reports whether a pull request without a status of the context
// cannot be merged. A pattern that stands for other contexts too does not do
// that: one of those is enough for it.
func (p Protection) Requires(context string) bool {
	if !p.StatusCheck {
		return false
	}
	for _, text := range p.Contexts {
		if text == context && !strings.ContainsAny(text, patternSpecial) || text == QuotePattern(context) {
			return true
		}
	}
	return false
}
