package command

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Found is what a text asks for.
type Found struct {
	// Commands are in the order of the text, without repetition. Those that a
	// more restrictive one excludes have a Problem.
	Commands []Command
	// Unknown are words that look like a misspelt command.
	Unknown []Unknown
}

// Unknown is a line that starts like a command that there is not.
type Unknown struct {
	Word    string
	Suggest Name
}

// maxCommands bounds the commands of one text; the rest is ignored.
const maxCommands = 20

// maxSize bounds a text that is searched, in bytes. What Markdown makes of nested
// quotes and links costs time that grows with the square of their number.
const maxSize = 16 << 10

// line is the form of a command: a slash, a word, and what comes after it.
var line = regexp.MustCompile(`^/([A-Za-z][A-Za-z-]*)(?:[ \t]+(.*))?$`)

// Find finds the commands in a text of Markdown. It never fails: a text that is
// no Markdown has none, and in one that is too long they are refused.
func Find(markdown string) Found {
	var found Found
	first := firstLine(markdown)
	switch {
	case first == "":
		return found
	case len(markdown) > maxSize:
		name := Name(strings.ToLower(line.FindStringSubmatch(first)[1]))
		if _, ok := specOf(name, PullSpecs()); ok {
			found.Commands = []Command{{Name: name, Line: first, Problem: "this comment is longer than 16 KiB; write the command in one of its own"}}
		}
		return found
	}
	specs := PullSpecs()
	for _, l := range paragraphLines(markdown) {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			continue
		}
		name := Name(strings.ToLower(m[1]))
		spec, ok := specOf(name, specs)
		if !ok {
			if s := nearest(string(name), specs); s != "" {
				found.Unknown = append(found.Unknown, Unknown{Word: "/" + m[1], Suggest: s})
			}
			continue
		}
		c := Command{Name: name, Line: strings.TrimSpace(l)}
		c.Problem = spec.parse(&c, strings.TrimSpace(m[2]))
		if len(found.Commands) < maxCommands && !slices.Contains(found.Commands, c) {
			found.Commands = append(found.Commands, c)
		}
	}
	found.restrict()
	return found
}

// firstLine returns the first line that has the form of a command, wherever it
// stands, or nothing: most texts have none, and need not be taken apart.
func firstLine(markdown string) string {
	for l := range strings.Lines(markdown) {
		if l = strings.TrimSpace(l); line.MatchString(l) {
			return l
		}
	}
	return ""
}

// restrict marks what a more restrictive command of the same text excludes.
func (f *Found) restrict() {
	for _, strict := range f.Commands {
		if strict.Problem != "" {
			continue
		}
		for i := range f.Commands {
			if c := &f.Commands[i]; c.Problem == "" && strict.excludes(*c) {
				c.Problem = "the same comment says " + strict.brief() + ", which holds"
			}
		}
	}
}

// nearest returns the command that a word is a misspelling of, or "". A path or
// another program's command is none.
func nearest(word string, specs []Spec) Name {
	best, distance := Name(""), 3
	for _, s := range specs {
		d := levenshtein.ComputeDistance(word, string(s.Name))
		if d < distance && d*2 < len(s.Name) {
			best, distance = s.Name, d
		}
	}
	return best
}

// paragraphLines returns the lines of the paragraphs of a text that begin with
// text as it is shown: not within code, HTML, or the address or title of a link.
func paragraphLines(markdown string) []string {
	source := []byte(strings.ReplaceAll(markdown, "\r\n", "\n"))
	doc := goldmark.DefaultParser().Parse(text.NewReader(source))
	var lines []string
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() != ast.KindParagraph {
			continue
		}
		shown := textStarts(n)
		segments := n.Lines()
		for i := range segments.Len() {
			if s := segments.At(i); shown[s.Start] {
				lines = append(lines, string(s.Value(source)))
			}
		}
	}
	return lines
}

// textStarts returns the offsets at which plain text of a paragraph begins.
func textStarts(paragraph ast.Node) map[int]bool {
	starts := map[int]bool{}
	// The walk never fails: the function below gives no error.
	_ = ast.Walk(paragraph, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Kind() == ast.KindCodeSpan {
			return ast.WalkSkipChildren, nil
		}
		if t, ok := n.(*ast.Text); ok && entering {
			starts[t.Segment.Start] = true
		}
		return ast.WalkContinue, nil
	})
	return starts
}
