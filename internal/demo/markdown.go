package demo

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// block is a part of a comment that is shown, or not, as one: a heading, a
// paragraph, a row of a table, details that are folded.
type block struct {
	// source is the text of the block, by which it is known again in another
	// comment, whatever the width.
	source string
	lines  []line
	// table counts the tables of the comment for a row of one; 0 for what is no
	// row. There is no space between two rows of one table.
	table int
}

// markdown turns the Markdown of a comment into what a terminal shows. It knows
// the subset that signalbox writes; of anything else it shows the text.
// HTML comments are not shown, details are folded to their summary.
func markdown(body string, width int) []block {
	source := []byte(body)
	doc := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser().Parse(text.NewReader(source))
	m := &reader{source: source, width: width}
	m.children(doc)
	if m.folded > 0 {
		m.fold()
	}
	return m.blocks
}

// reader walks the syntax tree of one comment.
type reader struct {
	source []byte
	width  int
	blocks []block
	tables int
	// folded is set within details: depth and hidden lines.
	folded, hidden int
	summary        string
}

func (m *reader) children(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		m.node(n)
	}
}

func (m *reader) node(n ast.Node) {
	if h, ok := n.(*ast.HTMLBlock); ok {
		m.htmlBlock(m.htmlText(h))
		return
	}
	if m.folded > 0 {
		m.hidden += max(n.Lines().Len(), 1)
		return
	}
	switch n := n.(type) {
	case *ast.Heading:
		m.add(m.inline(n, bold))
	case *ast.Paragraph, *ast.TextBlock:
		m.add(m.inline(n, plain))
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		m.codeBlock(n)
	case *east.Table:
		m.table(n)
	case *ast.ThematicBreak:
		m.add([]run{{strings.Repeat("─", m.width), dim}})
	default:
		// Lists and quotes are shown by what is in them.
		m.children(n)
	}
}

func (m *reader) add(runs []run) {
	source := runsText(runs)
	if strings.TrimSpace(source) != "" {
		m.blocks = append(m.blocks, block{source: source, lines: wrap(runs, m.width)})
	}
}

func runsText(runs []run) string { return line(runs).text() }

func (m *reader) codeBlock(n ast.Node) {
	b := block{}
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		l := printable(strings.TrimRight(string(segment.Value(m.source)), "\r\n"))
		b.source += l + "\n"
		b.lines = append(b.lines, cut("  "+l, code, m.width)...)
	}
	m.blocks = append(m.blocks, b)
}

var (
	tagPattern     = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)|<[^>]*>`)
	summaryPattern = regexp.MustCompile(`(?is)<summary>(.*?)</summary>`)
)

func (m *reader) htmlText(h *ast.HTMLBlock) string {
	var b strings.Builder
	for i := range h.Lines().Len() {
		segment := h.Lines().At(i)
		b.Write(segment.Value(m.source))
	}
	if h.HasClosure() {
		b.Write(h.ClosureLine.Value(m.source))
	}
	return b.String()
}

// htmlBlock folds details; of other HTML the text is shown.
func (m *reader) htmlBlock(s string) {
	lower := strings.ToLower(s)
	if opened := strings.Count(lower, "<details"); opened > 0 {
		if m.folded == 0 {
			m.hidden = 0
			m.summary = "Details"
			if found := summaryPattern.FindStringSubmatch(s); found != nil {
				m.summary = stripTags(found[1])
			}
		}
		m.folded += opened
	} else if m.folded == 0 {
		m.add([]run{{stripTags(s), plain}})
	}
	if closed := strings.Count(lower, "</details"); closed > 0 && m.folded > 0 {
		if m.folded -= closed; m.folded <= 0 {
			m.fold()
		}
	}
}

// fold shows details that have ended by their summary.
func (m *reader) fold() {
	m.folded = 0
	size := fmt.Sprintf(" (folded, %d lines)", m.hidden)
	if m.hidden == 1 {
		size = " (folded, 1 line)"
	}
	runs := []run{{"▸ " + m.summary, plain}, {size, dim}}
	m.blocks = append(m.blocks, block{source: m.summary, lines: wrap(runs, m.width)})
}

func stripTags(s string) string {
	return strings.TrimSpace(printable(html.UnescapeString(tagPattern.ReplaceAllString(s, ""))))
}

// inline returns the text within a block.
func (m *reader) inline(parent ast.Node, s style) []run {
	var runs []run
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			runs = append(runs, run{m.resolve(n), s})
			if n.HardLineBreak() {
				runs = append(runs, run{"\n", s})
			} else if n.SoftLineBreak() {
				runs = append(runs, run{" ", s})
			}
		case *ast.String:
			runs = append(runs, run{printable(string(n.Value)), s})
		case *ast.CodeSpan:
			runs = append(runs, m.inline(n, s.and(code))...)
		case *ast.Emphasis:
			emphasis := italic
			if n.Level > 1 {
				emphasis = bold
			}
			runs = append(runs, m.inline(n, s.and(emphasis))...)
		case *ast.AutoLink:
			runs = append(runs, run{printable(string(n.URL(m.source))), s})
		case *ast.RawHTML:
			tag := strings.ToLower(strings.Trim(string(n.Segments.Value(m.source)), "<>/ "))
			switch tag {
			case "br":
				runs = append(runs, run{"\n", s})
			case "sub":
				// It opens and closes with the same name, and does not nest.
				s = toggle(s, dim)
			}
		default:
			runs = append(runs, m.inline(n, s)...)
		}
	}
	return runs
}

func toggle(s, o style) style {
	if s == o {
		return plain
	}
	return o
}

// resolve returns the text of a node with its escapes and entities resolved.
func (m *reader) resolve(n *ast.Text) string {
	value := n.Segment.Value(m.source)
	if n.IsRaw() {
		return printable(string(value))
	}
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	ghtml.DefaultWriter.Write(w, value)
	// A buffer takes everything.
	_ = w.Flush()
	return printable(html.UnescapeString(b.String()))
}
