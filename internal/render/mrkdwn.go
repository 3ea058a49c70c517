package render

import (
	"regexp"
	"strings"
	"unicode"
)

// slackLine is a line in Slack's mrkdwn of at most a number of bytes. Where it is
// longer, each run is clipped, and then runs are left out.
func slackLine(l Line, limit int) string {
	for n := len(l); n > 0; n /= 2 {
		part := l
		if n < len(l) {
			part = append(l[:n:n], Plain("…"))
		}
		for runes := maxInline; runes > 4; runes /= 2 {
			text := part.with(func(r Run) string { return slackRun(r, runes) })
			if len(text) <= limit {
				return text
			}
		}
	}
	return "…"
}

func slackRun(r Run, runes int) string {
	text := r.shown(runes)
	address := r.address()
	switch {
	case strings.TrimSpace(text) == "":
		return text
	case r.Style == StyleCode:
		text = "`" + slackCode(text) + "`"
	case address != "":
		text = strings.ReplaceAll(slackPlain(text), "|", "∣")
	default:
		text = slackPlain(text)
	}
	if address != "" {
		text = "<" + strings.ReplaceAll(address, "&", "&amp;") + "|" + text + ">"
	}
	if r.Style == StyleStrong {
		text = "*" + text + "*"
	}
	return text
}

// slackMarks are what has a meaning in mrkdwn and cannot be escaped there, with
// characters that look alike.
var slackMarks = map[rune]string{'*': "∗", '~': "∼", '`': "ˋ", '_': "ˍ"}

var (
	slackEscaper     = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	slackCodeEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", slackMarks['`'], "@", "@"+joiner)
	// slackEmoji is what follows the colon that begins the name of an emoji.
	slackEmoji = regexp.MustCompile(`^[A-Za-z0-9_+'-]+:`)
)

// slackCode escapes text within backquotes, where only they have a meaning.
func slackCode(s string) string { return slackCodeEscaper.Replace(s) }

// slackPlain escapes text for mrkdwn. Its marks have no escape, so others that
// look alike stand for them; an underline within a word has no meaning.
func slackPlain(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r == '_' && i > 0 && i+1 < len(runes) && wordRune(runes[i-1]) && wordRune(runes[i+1]):
			b.WriteRune(r)
		case slackMarks[r] != "":
			b.WriteString(slackMarks[r])
		case r == '@', r == ':' && slackEmoji.MatchString(string(runes[i+1:])):
			b.WriteString(string(r) + joiner)
		case r == '>' && strings.TrimSpace(string(runes[:i])) == "":
			// At the beginning of a line it would quote it.
			b.WriteString(joiner + "&gt;")
		default:
			b.WriteString(slackEscaper.Replace(string(r)))
		}
	}
	return unlink.Replace(b.String())
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
