package render

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// FromMarkdown is a text of Markdown as a talk, for an answer that a pull request
// and a chat get alike: its paragraphs, lists and blocks of code. What else
// Markdown has, and HTML, is text.
func FromMarkdown(markdown string) Talk {
	source := []byte(markdown)
	doc := goldmark.DefaultParser().Parse(text.NewReader(source))
	var t Talk
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.List:
			var items Items
			for i := n.FirstChild(); i != nil; i = i.NextSibling() {
				items = append(items, Item{Text: inlineRuns(i, source)})
			}
			t = append(t, items)
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			t = append(t, Listing(n.Lines().Value(source)))
		case *ast.HTMLBlock:
			raw := string(n.Lines().Value(source))
			if n.HasClosure() {
				raw += string(n.ClosureLine.Value(source))
			}
			t = append(t, Paragraph{Plain(raw)})
		case *ast.ThematicBreak:
			t = append(t, Divider{})
		default:
			if l := inlineRuns(n, source); len(l) > 0 {
				t = append(t, Paragraph(l))
			}
		}
	}
	return t
}

// inlineRuns are all texts under a node in one line.
func inlineRuns(under ast.Node, source []byte) Line {
	var l Line
	style, address := StylePlain, ""
	// The walk never fails: the function below gives no error.
	_ = ast.Walk(under, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.CodeSpan:
			if entering {
				l = append(l, Run{Text: spanText(n, source), Style: StyleCode, Address: address})
			}
			return ast.WalkSkipChildren, nil
		case *ast.Emphasis:
			style = StylePlain
			if entering && n.Level == 2 {
				style = StyleStrong
			}
		case *ast.Link:
			address = ""
			if entering {
				address = string(n.Destination)
			}
		case *ast.AutoLink:
			if entering {
				l = append(l, Plain(string(n.Label(source))))
			}
		case *ast.RawHTML:
			if entering {
				l = append(l, Plain(string(n.Segments.Value(source))))
			}
		case *ast.Text:
			if entering {
				l = append(l, Run{Text: unescape(string(n.Value(source))), Style: style, Address: address})
				if n.SoftLineBreak() || n.HardLineBreak() {
					l = append(l, Plain(" "))
				}
			}
		case *ast.String:
			if entering {
				l = append(l, Run{Text: string(n.Value), Style: style, Address: address})
			}
		}
		return ast.WalkContinue, nil
	})
	return l
}

func spanText(span ast.Node, source []byte) string {
	var b strings.Builder
	for c := span.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(source))
		}
	}
	return b.String()
}

// unescape undoes what Markdown writes for its own marks.
func unescape(s string) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations([]byte(s)))))
}
