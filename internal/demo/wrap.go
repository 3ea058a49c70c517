package demo

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// style is the parameters of an ANSI escape sequence that sets colors, such as
// "1;33"; empty for none.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	italic style = "3"
	code   style = "36"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	purple style = "35"
	blue   style = "34"
)

// and adds a style.
func (s style) and(o style) style {
	if s == "" || o == "" {
		return s + o
	}
	return s + ";" + o
}

// run is a piece of text in one style. The text "\n" alone ends a line.
type run struct {
	text  string
	style style
}

// line is what stands on one line of the screen.
type line []run

func (l line) width() int {
	n := 0
	for _, r := range l {
		n += textWidth(r.text)
	}
	return n
}

// text returns the line without styles.
func (l line) text() string {
	var b strings.Builder
	for _, r := range l {
		b.WriteString(r.text)
	}
	return b.String()
}

// textWidth is how many cells of a terminal a text takes up.
func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// printable keeps a terminal from being steered by what is shown on it, and
// drops what cannot be seen. Line breaks and tabs become spaces.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\ufe0f':
			return -1 // It makes a sign wider on some terminals, not on others.
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, s)
}

// wrap breaks runs into lines of at most a number of cells, between words
// where that is possible.
func wrap(runs []run, limit int) []line {
	w := wrapper{limit: max(limit, 1)}
	for _, r := range runs {
		if r.text == "\n" {
			w.flush()
			w.end()
			continue
		}
		for i, part := range strings.Split(r.text, " ") {
			if i > 0 {
				w.flush()
				w.gap = true
			}
			if part != "" {
				w.word = append(w.word, run{part, r.style})
			}
		}
	}
	w.flush()
	if len(w.now) > 0 || len(w.lines) == 0 {
		w.end()
	}
	return w.lines
}

// cut breaks a text into lines of at most a number of cells, spaces and all.
func cut(text string, s style, limit int) []line {
	w := wrapper{limit: max(limit, 1)}
	w.cut(run{text, s})
	w.end()
	return w.lines
}

// wrapper fills lines with words. A word can change its style in the middle.
type wrapper struct {
	limit int
	lines []line
	now   line
	word  line
	gap   bool
}

func (w *wrapper) end() { w.lines, w.now, w.gap = append(w.lines, w.now), nil, false }

func (w *wrapper) add(text string, s style) {
	if n := len(w.now); n > 0 && w.now[n-1].style == s {
		w.now[n-1].text += text
		return
	}
	w.now = append(w.now, run{text, s})
}

// flush puts the word that is complete on this line, or on the next one.
func (w *wrapper) flush() {
	if len(w.word) == 0 {
		return
	}
	if len(w.now) > 0 {
		space := 0
		if w.gap {
			space = 1
		}
		if w.now.width()+space+w.word.width() > w.limit {
			w.end()
		} else if w.gap {
			w.add(" ", w.spaceStyle())
		}
	}
	for _, r := range w.word {
		w.cut(r)
	}
	w.word, w.gap = nil, false
}

// spaceStyle is that of the words around a space, if they share one.
func (w *wrapper) spaceStyle() style {
	if s := w.now[len(w.now)-1].style; s == w.word[0].style {
		return s
	}
	return plain
}

// cut puts a piece of a word on the line, and breaks it where it is too long.
func (w *wrapper) cut(r run) {
	for _, c := range r.text {
		if w.now.width()+runeWidth(c) > w.limit && len(w.now) > 0 {
			w.end()
		}
		w.add(string(c), r.style)
	}
}
