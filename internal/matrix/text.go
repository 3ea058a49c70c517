package matrix

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
)

// self is by what people address signalbox.
type self struct {
	user   id.UserID
	name   string // What is shown for it, or empty.
	prefix string
}

// pill is a link to a user, as clients write a mention.
var pill = regexp.MustCompile(`<a [^>]*href=["']https://matrix\.to/#/(@|%40)([^"'?/]+)[^"']*["'][^>]*>([^<]*)</a>`)

// read returns what was said in a message as one line, without what it was
// addressed with, and whether it was addressed to signalbox at all.
func (s self) read(content *event.MessageEventContent) (text string, addressed bool) {
	body, formatted := content.Body, content.FormattedBody
	if content.RelatesTo.GetReplyTo() != "" {
		// Clients of old repeat what they answer to.
		body, formatted = event.TrimReplyFallbackText(body), event.TrimReplyFallbackHTML(formatted)
	}
	text = oneLine(body)
	if rest, ok := s.cutPrefix(text); ok {
		return bound(rest), true
	}
	names, mentioned := s.mentions(content, formatted)
	if rest, ok := cutName(text, names, mentioned); ok {
		// A mention in front of the prefix says the same twice.
		if again, ok := s.cutPrefix(rest); ok {
			rest = again
		}
		return bound(rest), true
	}
	return bound(text), mentioned
}

// bound cuts a text to [chat.MaxText] bytes, and fills it up to just as many with
// spaces: so it is known for one that was cut.
func bound(text string) string {
	if len(text) <= chat.MaxText {
		return text
	}
	text = cut(text, chat.MaxText)
	return text + strings.Repeat(" ", chat.MaxText-len(text))
}

func (s self) cutPrefix(text string) (rest string, ok bool) {
	rest, ok = cutFold(text, s.prefix)
	if !ok || (rest != "" && !strings.ContainsAny(rest[:1], " :,")) {
		return text, false
	}
	return trimAddress(rest), true
}

// mentions returns the names that signalbox may be called by in this message, and
// whether the client says that it is mentioned. What a client says it mentions
// counts more than what the text looks like.
func (s self) mentions(content *event.MessageEventContent, formatted string) (names []string, mentioned bool) {
	names = []string{s.user.String(), s.user.Localpart()}
	if s.name != "" {
		names = append(names, oneLine(s.name))
	}
	for _, m := range pill.FindAllStringSubmatch(formatted, -1) {
		if user, err := url.PathUnescape(m[2]); err == nil && "@"+user == s.user.String() {
			mentioned = true
			names = append(names, oneLine(html.UnescapeString(m[3])))
		}
	}
	if content.Mentions != nil {
		mentioned = slices.Contains(content.Mentions.UserIDs, s.user)
	}
	return names, mentioned
}

// cutName cuts one of the names from the front of a text. Where the client does not
// say that it is a mention, the name must look like one.
func cutName(text string, names []string, mentioned bool) (rest string, ok bool) {
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	bare, at := strings.CutPrefix(text, "@")
	for _, name := range names {
		name = strings.TrimPrefix(name, "@")
		rest, ok := cutFold(bare, name)
		if !ok || name == "" || (rest != "" && !strings.ContainsAny(rest[:1], " :,")) {
			continue
		}
		if mentioned || at || (rest != "" && rest[0] != ' ') {
			return trimAddress(rest), true
		}
	}
	return text, false
}

// cutFold is strings.CutPrefix for any case.
func cutFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// trimAddress removes what stands between an address and what is said.
func trimAddress(s string) string {
	s = strings.TrimLeft(s, " ")
	if s != "" && (s[0] == ':' || s[0] == ',') {
		s = strings.TrimLeft(s[1:], " ")
	}
	return s
}

// oneLine makes a text one line of valid UTF-8, without characters that cannot be
// seen: what is obeyed is what people read.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// reaction returns the button that an emoji stands for. Clients add a sign that asks
// for the colored form, and a tone of skin.
func reaction(key string) (chat.Button, bool) {
	plain := strings.Map(func(r rune) rune {
		if r == 0xFE0F || (r >= 0x1F3FB && r <= 0x1F3FF) {
			return -1
		}
		return r
	}, key)
	button, ok := chat.Reactions()[plain]
	return button, ok
}
