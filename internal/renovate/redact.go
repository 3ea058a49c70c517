package renovate

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const hidden = "***"

// credentials are forms in which a credential is known to be one. A long row of
// hex digits may be a token of Gitea or a commit; it is hidden, because nobody
// can tell.
var credentials = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^/?#@\s"']*(?:@[^/?#@\s"']*)*@`), "${1}" + hidden + "@"},
	{regexp.MustCompile(`(?i)\bx-access-token:[^@\s"']+`), "x-access-token:" + hidden},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{6,}`), "${1} " + hidden},
	{regexp.MustCompile(`(?i)\b([a-z_-]*(?:token|password|passwd|secret|authorization|api_?key|private_?key)["']?\s*[:=]\s*["']?)[^\s"'&,;)}]+`), "${1}" + hidden},
	{regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|gto_|npm_|dckr_pat_|xox[a-z]-)[A-Za-z0-9_-]{6,}`), hidden},
	{regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`), hidden},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*`), hidden},
	{regexp.MustCompile(`\b[0-9a-fA-F]{32,}\b`), hidden},
}

// clean makes one short line of a text from outside: without control
// characters, without credentials in a known form, at most maxText bytes.
func clean(s string) string {
	// A credential at the end of what is looked at must not be cut in two, so
	// that its half would not be known as one.
	const looked = 4 * maxText
	long := len(s) > looked
	if long {
		s = s[:looked]
		if i := strings.LastIndexAny(s, " \t\n,;"); i > 0 {
			s = s[:i]
		}
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsControl(r), unicode.IsSpace(r):
			return ' '
		default:
			return r
		}
	}, strings.ToValidUTF8(ansi.ReplaceAllString(s, ""), ""))
	for _, c := range credentials {
		s = c.pattern.ReplaceAllString(s, c.with)
	}
	s = strings.TrimSpace(s)
	if len(s) <= maxText && !long {
		return s
	}
	const ellipsis = "…"
	s = s[:min(len(s), maxText-len(ellipsis))]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + ellipsis
}

// ansi are the sequences that colour a terminal.
var ansi = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
