package render

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"signalbox/internal/chat"
)

// maxMatrix bounds the plain text and the HTML of a message together, in bytes.
// An event holds 65,536 with all that the server adds, and an encrypted one is a
// third longer: https://spec.matrix.org/latest/client-server-api/#size-limits.
const maxMatrix = 40_000

// Matrix is a talk as HTML for Matrix, with a plain text. Instead of buttons a
// line tells which reactions stand for them. What does not fit is left out, and
// it says so.
func Matrix(t Talk) chat.Body {
	body := func(t Talk) chat.Body { return chat.Body{Text: plainText(t, true), HTML: matrixHTML(t)} }
	return body(fit(t, func(t Talk) bool {
		b := body(t)
		return len(b.Text)+len(b.HTML) <= maxMatrix
	}))
}

func matrixHTML(t Talk) string {
	var b strings.Builder
	for _, p := range t {
		switch p := p.(type) {
		case Paragraph:
			fmt.Fprintf(&b, "<p>%s</p>\n", Line(p).with(matrixRun))
		case Small:
			fmt.Fprintf(&b, "<p><sub>%s</sub></p>\n", Line(p).with(matrixRun))
		case Items:
			matrixItems(&b, p)
		case Fields:
			b.WriteString("<ul>\n")
			for _, f := range p {
				fmt.Fprintf(&b, "<li>%s: %s</li>\n", matrixRun(Strong(f.Label)), f.Value.with(matrixRun))
			}
			b.WriteString("</ul>\n")
		case Listing:
			fmt.Fprintf(&b, "<pre><code>%s</code></pre>\n", matrixText(listing(string(p))))
		case Divider:
			b.WriteString("<hr>\n")
		case Buttons:
			fmt.Fprintf(&b, "<p><sub>%s</sub></p>\n", matrixText(reactions(p)))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// matrixItems writes a list: with signs as lines of a paragraph, because a list
// has bullets.
func matrixItems(b *strings.Builder, items Items) {
	if len(items) == 0 || items[0].Sign == "" {
		b.WriteString("<ul>\n")
		for _, item := range items {
			fmt.Fprintf(b, "<li>%s</li>\n", item.Text.with(matrixRun))
		}
		b.WriteString("</ul>\n")
		return
	}
	var lines []string
	for _, item := range items {
		lines = append(lines, matrixText(item.Sign)+" "+item.Text.with(matrixRun))
		for _, under := range item.Under {
			lines = append(lines, "\u2003\u2003"+matrixText(under.Sign)+" "+under.Text.with(matrixRun))
		}
	}
	fmt.Fprintf(b, "<p>%s</p>\n", strings.Join(lines, "<br>\n"))
}

func matrixRun(r Run) string {
	shown := r.shown(maxInline)
	if strings.TrimSpace(shown) == "" {
		return shown
	}
	text := matrixText(shown)
	switch r.Style {
	case StyleCode:
		text = "<code>" + text + "</code>"
	case StyleStrong:
		text = "<strong>" + text + "</strong>"
	case StylePlain:
	}
	// An address of matrix.to is shown as the person or the room it names.
	if a := r.address(); a != "" && !matrixTo.MatchString(a) {
		text = `<a href="` + html.EscapeString(a) + `">` + text + "</a>"
	}
	return text
}

var (
	matrixTo = regexp.MustCompile(`(?i)^https?://([^/]*[.@])?matrix\.to([:/?#]|$)`)
	// matrixName is the beginning of the name of a room.
	matrixName = regexp.MustCompile(`([#!])([^\s:]+:)`)
)

// matrixText escapes text for HTML, with nobody mentioned in it.
func matrixText(s string) string { return html.EscapeString(unmention(s)) }

// unmention keeps people, rooms and addresses in a text from being found by a
// client. The number of a pull request stays as it is, to be copied.
func unmention(s string) string {
	s = strings.ReplaceAll(s, "@", "@"+joiner)
	return unlink.Replace(matrixName.ReplaceAllString(s, "${1}"+joiner+"${2}"))
}

// reactions tells which reactions stand for the buttons.
func reactions(buttons Buttons) string {
	emoji := map[chat.Button]string{}
	for e, press := range chat.Reactions() {
		emoji[press] = e
	}
	var parts []string
	for _, b := range buttons {
		if e := emoji[b.Press]; e != "" {
			parts = append(parts, e+" "+b.Label)
		}
	}
	return "Reactions: " + strings.Join(parts, " · ")
}
