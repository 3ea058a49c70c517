package render

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// Text is a talk as plain text, for a terminal.
func Text(t Talk) string { return plainText(t, false) }

// plainText is a talk as plain text. For a chat nobody is mentioned in it, and
// the buttons are told as reactions, not as commands.
func plainText(t Talk, inChat bool) string {
	escape := func(s string) string {
		if inChat {
			return unmention(s)
		}
		return s
	}
	run := func(r Run) string {
		text := escape(r.shown(maxInline))
		if a := r.address(); a != "" {
			text += " (" + a + ")"
		}
		return text
	}
	var b strings.Builder
	for i, p := range t {
		_, small := p.(Small)
		if i > 0 && !small {
			b.WriteByte('\n')
		}
		switch p := p.(type) {
		case Paragraph:
			b.WriteString(Line(p).with(run) + "\n")
		case Small:
			b.WriteString(Line(p).with(run) + "\n")
		case Items:
			listed(&b, "", p, func(l Line) string { return l.with(run) })
		case Fields:
			for _, f := range p {
				b.WriteString(run(Plain(f.Label)) + ": " + f.Value.with(run) + "\n")
			}
		case Listing:
			b.WriteString(escape(listing(string(p))))
		case Divider:
			b.WriteString("――――\n")
		case Buttons:
			if inChat {
				b.WriteString(reactions(p) + "\n")
			} else {
				b.WriteString(commands(p, func(s string) string { return s }) + "\n")
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// listed writes a list in plain text.
func listed(b *strings.Builder, indent string, items Items, form func(Line) string) {
	for _, item := range items {
		b.WriteString(indent + cmp.Or(item.Sign, "•") + " " + form(item.Text) + "\n")
		listed(b, indent+"   ", item.Under, form)
	}
}

func markdownItems(b *strings.Builder, indent string, items Items) {
	for _, item := range items {
		text := markdownLine(item.Text)
		if item.Sign != "" {
			text = item.Sign + " " + item.Text.with(markdownRun)
		}
		b.WriteString(indent + "- " + text + "\n")
		markdownItems(b, indent+"  ", item.Under)
	}
}

// commands tells which commands stand for the buttons.
func commands(buttons Buttons, form func(string) string) string {
	parts := make([]string, len(buttons))
	for i, b := range buttons {
		parts[i] = b.Label + ": " + form(b.Command)
	}
	return strings.Join(parts, " · ")
}

// listing is text of many lines without what cannot be seen, ending with a line.
func listing(s string) string {
	return strings.TrimRight(printable(strings.ReplaceAll(s, "\r\n", "\n")), "\n") + "\n"
}

// Markdown is a talk as Markdown, for a comment.
func Markdown(t Talk) string {
	var b strings.Builder
	for _, p := range t {
		switch p := p.(type) {
		case Paragraph:
			b.WriteString(markdownLine(Line(p)) + "\n\n")
		case Small:
			fmt.Fprintf(&b, "<sub>%s</sub>\n\n", markdownLine(Line(p)))
		case Items:
			markdownItems(&b, "", p)
			b.WriteByte('\n')
		case Fields:
			for _, f := range p {
				fmt.Fprintf(&b, "- %s: %s\n", markdownRun(Strong(f.Label)), f.Value.with(markdownRun))
			}
			b.WriteByte('\n')
		case Listing:
			b.WriteString(block(string(p)) + "\n")
		case Divider:
			b.WriteString("---\n\n")
		case Buttons:
			b.WriteString(commands(p, code) + "\n\n")
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// lineMark is what makes a line another thing than text where it begins one, and
// is not escaped anyway.
var lineMark = regexp.MustCompile(`^(?:[-+=:]|\d+[.)])`)

func markdownLine(l Line) string {
	text := l.with(markdownRun)
	if lineMark.MatchString(text) {
		return joiner + text
	}
	return text
}

func markdownRun(r Run) string {
	shown := r.shown(maxInline)
	trimmed := strings.TrimSpace(shown)
	if trimmed == "" {
		return shown
	}
	text := inline(shown)
	switch {
	case r.Style == StyleCode:
		text = code(shown)
	case strings.HasPrefix(shown, " ") || strings.HasSuffix(shown, " "):
		// The ends are lost in escaping.
		before, after := shown[:len(shown)-len(strings.TrimLeft(shown, " "))], shown[len(strings.TrimRight(shown, " ")):]
		text = before + text + after
	}
	text = link(text, r.Address)
	if r.Style == StyleStrong {
		text = "**" + text + "**"
	}
	return text
}
