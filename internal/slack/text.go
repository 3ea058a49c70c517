package slack

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/chat"
)

// unescape undoes the escapes of Slack, each once.
var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// clean makes one line of plain text of what Slack sends: without the mention of
// signalbox at its beginning, with escapes undone and tokens readable. It is valid
// UTF-8 of at most [chat.MaxText] bytes; a text that was cut has just as many, so
// that it is known for one.
//
// A person can type what reads like a token: what clean returns names nobody for
// certain.
func clean(text, self string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.TrimSpace(text)
	text, _ = cutMention(text, self)
	var out strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "<")
		out.WriteString(unescape.Replace(before))
		if !found {
			break
		}
		end := strings.IndexAny(rest, "<>")
		if end >= 0 && rest[end] == '>' {
			out.WriteString(readable(rest[:end]))
			text = rest[end+1:]
			continue
		}
		out.WriteByte('<')
		text = rest
	}
	return cut(oneLine(out.String()), chat.MaxText)
}

// cutMention cuts the mention of a user off the beginning of a text, with the colon
// or comma that people put after it. False means that it begins otherwise.
func cutMention(text, user string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "<@"+user)
	if !ok || user == "" {
		return text, false
	}
	if label, after, closed := strings.Cut(rest, ">"); closed && (label == "" || label[0] == '|') {
		after = strings.TrimSpace(after)
		if after != "" && (after[0] == ':' || after[0] == ',') {
			after = after[1:]
		}
		return after, true
	}
	return text, false
}

// readable returns what a person reads of a token, which is given without its
// brackets. People stay ids, as names can be chosen.
func readable(token string) string {
	target, label, labelled := strings.Cut(token, "|")
	target, label = unescape.Replace(target), unescape.Replace(label)
	switch {
	case target == "":
		return "<" + unescape.Replace(token) + ">"
	case target[0] == '@':
		return "<" + target + ">"
	case target[0] == '#':
		return "<" + unescape.Replace(token) + ">"
	case target[0] == '!' && labelled:
		// Groups of people and dates.
		return label
	case target[0] == '!':
		return "@" + target[1:]
	case strings.HasPrefix(target, "mailto:"), strings.HasPrefix(target, "tel:"):
		_, address, _ := strings.Cut(target, ":")
		return address
	default:
		return target
	}
}

// oneLine makes one space of all that is space or cannot be seen.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// cut cuts a text to a number of bytes, at the end of a character, and fills it up
// with spaces.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + strings.Repeat(" ", limit-end)
}
