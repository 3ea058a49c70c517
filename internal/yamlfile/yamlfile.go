// Package yamlfile reads the YAML files that people write for signalbox: it
// reports every problem at once, each with file, line, the path of the field
// and, where there is one, a suggestion. A field that the Go type does not
// have is an error, because a misspelt rule would otherwise pass in silence.
//
// [Decode] is a pure function of its input.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	// File is the name to show; Line counts from 1, and is 0 where the problem
	// has no place, such as an empty file.
	File string
	Line int
	// Path is the path of the field, such as "preconditions[0].paths[1]".
	Path string
	// Message says what is wrong, and Hint what to do, or is empty.
	Message string
	Hint    string
}

// Error implements error in one line: "file:line: path: message (hint)".
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems are all the problems of a file, in the order of its lines.
type Problems []Problem

// Err returns nil for no problems, else an error with a line for each.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// Sort orders the problems by line, then by path.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Path, b.Path))
	})
}

// maxFile bounds a file that is read, in bytes.
const maxFile = 1 << 20

// Document remembers where the fields of a decoded file stand, so that a check
// of meaning can say the line too.
type Document struct {
	file string
	root *yaml.Node
}

// Decode reads one YAML document into out, a pointer to a struct. The returned
// document is never nil. If there are problems, out holds what could be read.
func Decode(file string, data []byte, out any) (*Document, Problems) {
	doc := &Document{file: file}
	if len(data) > maxFile {
		return doc, Problems{{File: file, Message: fmt.Sprintf("is %d bytes; the limit is %d", len(data), maxFile)}}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var node yaml.Node
	if err := dec.Decode(&node); err != nil {
		if errors.Is(err, io.EOF) {
			return doc, Problems{{File: file, Message: "is empty"}}
		}
		return doc, Problems{syntaxProblem(file, err)}
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		if err != nil {
			return doc, Problems{syntaxProblem(file, err)}
		}
		return doc, Problems{{File: file, Message: "holds more than one YAML document", Hint: "keep one"}}
	}
	doc.root = node.Content[0]
	c := checker{file: file}
	c.check(doc.root, out)
	if len(c.problems) > 0 {
		c.problems.Sort()
		return doc, c.problems
	}
	if err := node.Decode(out); err != nil {
		return doc, Problems{syntaxProblem(file, err)}
	}
	return doc, nil
}

// Problem makes a problem of the field at path. If the field is not in the
// file, the line is that of the nearest field above it.
func (d *Document) Problem(path Path, message, hint string) Problem {
	return Problem{File: d.file, Line: d.line(path), Path: path.String(), Message: message, Hint: hint}
}

func (d *Document) line(path Path) int {
	node := d.root
	if node == nil {
		return 0
	}
	line := node.Line
	for _, step := range path {
		next, keyLine := child(node, step)
		if next == nil {
			break
		}
		node, line = next, keyLine
	}
	return line
}

// Text returns what stands at path as a document of its own, without comments; empty
// if nothing is there.
func (d *Document) Text(path Path) string {
	node := d.root
	for _, step := range path {
		if node == nil {
			return ""
		}
		node, _ = child(node, step)
	}
	if node == nil {
		return ""
	}
	text, err := yaml.Marshal(alone(node))
	if err != nil {
		return "" // What was decoded can be written.
	}
	return string(text)
}

// alone copies a node without comments and anchors.
func alone(node *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: node.Kind, Style: node.Style, Tag: node.Tag, Value: node.Value}
	for _, c := range node.Content {
		out.Content = append(out.Content, alone(c))
	}
	return out
}

// child returns the value at a step and the line that a person looks for: that
// of the key in a mapping, of the item in a list.
func child(node *yaml.Node, step any) (*yaml.Node, int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch s := step.(type) {
	case string:
		if node.Kind != yaml.MappingNode {
			return nil, 0
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == s {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case int:
		if node.Kind == yaml.SequenceNode && s < len(node.Content) {
			return node.Content[s], node.Content[s].Line
		}
	}
	return nil, 0
}

// Path is the way to a field: strings are keys, ints are places in a list.
type Path []any

// At returns the path with further steps; the receiver stays as it is.
func (p Path) At(steps ...any) Path {
	return append(slices.Clone(p), steps...)
}

// String returns the path as "a.b[0]".
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

// syntaxProblem takes the line out of an error of the YAML library.
func syntaxProblem(file string, err error) Problem {
	msg := err.Error()
	var te *yaml.TypeError
	if errors.As(err, &te) && len(te.Errors) > 0 {
		msg = te.Errors[0]
	}
	msg = strings.TrimPrefix(strings.TrimPrefix(msg, "yaml: "), "unmarshal errors:\n  ")
	var line int
	if _, scanErr := fmt.Sscanf(msg, "line %d: ", &line); scanErr == nil {
		_, msg, _ = strings.Cut(msg, ": ")
	}
	return Problem{File: file, Line: line, Message: msg}
}
