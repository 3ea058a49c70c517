package demo

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// screen writes to a terminal, or to what is none.
type screen struct {
	out   io.Writer
	width int
	color bool
	// err is the first error of out; nothing is written after it.
	err error
}

const (
	// margin stands before what happens; gutter before what signalbox posted,
	// and quote before the lines of its comment.
	margin = "  "
	gutter = "    "
	quote  = gutter + "┃ "
)

func (s *screen) raw(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.out, text)
	}
}

// ErrOutput is that the output of the demo cannot be written.
var ErrOutput = errors.New("write to the terminal")

func (s *screen) failed() error {
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrOutput, s.err)
}

func (s *screen) blank() { s.raw("\n") }

// line writes a line after a prefix.
func (s *screen) line(prefix string, l line) {
	var b strings.Builder
	for _, r := range append(line{{prefix, dim}}, l...) {
		if s.color && r.style != plain && strings.TrimSpace(r.text) != "" {
			b.WriteString("\x1b[" + string(r.style) + "m" + r.text + "\x1b[0m")
		} else {
			b.WriteString(r.text)
		}
	}
	s.raw(strings.TrimRight(b.String(), " ") + "\n")
}

// say writes text, wrapped, after a prefix.
func (s *screen) say(prefix string, runs ...run) {
	for _, l := range wrap(runs, s.width-textWidth(prefix)) {
		s.line(prefix, l)
	}
}

// tell writes plain words.
func (s *screen) tell(format string, args ...any) {
	s.say(margin, run{printable(fmt.Sprintf(format, args...)), plain})
}

// heading begins a step.
func (s *screen) heading(text string) {
	s.blank()
	rest := max(s.width-textWidth(text)-4, 0)
	s.line("", line{{"── ", dim}, {text, bold}, {" " + strings.Repeat("─", rest), dim}})
}

// stamped writes what was posted, with the time that it took at the end of the
// line.
func (s *screen) stamped(l line, after time.Duration) {
	stamp := fmt.Sprintf("after %d ms", after.Milliseconds())
	space := s.width - textWidth(gutter) - l.width() - len(stamp)
	s.line(gutter, append(l, run{strings.Repeat(" ", max(space, 1)), plain}, run{stamp, dim}))
}

// sign shows the state of a commit status, as Gitea does by a colored icon.
type sign struct {
	icon  string
	style style
}

var signs = map[string]sign{
	"success": {"✔", green}, "pending": {"●", yellow}, "failure": {"✖", red}, "error": {"!", purple},
}

// statusLine is the first line of a status; its description goes below.
func statusLine(st status) line {
	look, ok := signs[st.State]
	if !ok {
		look = sign{"?", plain}
	}
	l := line{{look.icon + " ", look.style}, {fmt.Sprintf("%-8s", st.State), look.style.and(bold)}, {printable(st.Context), bold}}
	if st.Creator.Login != bot {
		l = append(l, run{"  posted by " + printable(st.Creator.Login), red})
	}
	return l
}

// descriptionPrefix puts the description of a status below its context.
const descriptionPrefix = gutter + "          "

func (s *screen) description(st status) {
	s.say(descriptionPrefix, run{printable(st.Description), plain})
}

// blocks writes a comment or parts of it.
func (s *screen) blocks(blocks []block) {
	for i, b := range blocks {
		if i > 0 && (b.table == 0 || b.table != blocks[i-1].table) {
			s.line(quote, nil)
		}
		for _, l := range b.lines {
			s.line(quote, l)
		}
	}
}

func (s *screen) markdown(body string) []block { return markdown(body, s.width-textWidth(quote)) }

// table writes rows of words, aligned; the last column is wrapped.
func (s *screen) table(prefix string, head []string, rows [][]string) {
	cells := [][][]run{cellsOf(head, dim)}
	for _, row := range rows {
		cells = append(cells, cellsOf(row, plain))
	}
	widths := columns(cells, s.width-textWidth(prefix))
	for _, row := range cells {
		for _, l := range layRow(row, widths) {
			s.line(prefix, l)
		}
	}
}

func cellsOf(words []string, st style) [][]run {
	cells := make([][]run, len(words))
	for i, w := range words {
		cells[i] = []run{{printable(w), st}}
	}
	return cells
}
