package yamlfile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"
)

// checker compares a YAML tree with a Go type and collects what does not fit.
type checker struct {
	file     string
	problems Problems
}

func (c *checker) check(node *yaml.Node, out any) {
	c.value(node, reflect.TypeOf(out).Elem(), nil)
}

func (c *checker) add(node *yaml.Node, path Path, message, hint string) {
	c.problems = append(c.problems, Problem{File: c.file, Line: node.Line, Path: path.String(), Message: message, Hint: hint})
}

var unmarshaler = reflect.TypeFor[yaml.Unmarshaler]()

func (c *checker) value(node *yaml.Node, t reflect.Type, path Path) {
	if node.Kind == yaml.AliasNode || node.Tag == "!!merge" {
		c.add(node, path, "YAML aliases are not supported here", "write the value out")
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
		c.decode(node, t, path)
	case t.Kind() == reflect.Struct:
		c.mapping(node, t, path)
	case t.Kind() == reflect.Slice:
		if !c.kind(node, yaml.SequenceNode, "a list", path) {
			return
		}
		for i, item := range node.Content {
			c.value(item, t.Elem(), path.At(i))
		}
	default:
		c.decode(node, t, path)
	}
}

func (c *checker) kind(node *yaml.Node, want yaml.Kind, name string, path Path) bool {
	if node.Kind == want {
		return true
	}
	if node.Tag == "!!null" {
		c.add(node, path, "is empty; expected "+name, "remove the key or give it a value")
	} else {
		c.add(node, path, fmt.Sprintf("expected %s, found %s", name, describe(node)), "")
	}
	return false
}

func (c *checker) mapping(node *yaml.Node, t reflect.Type, path Path) {
	if !c.kind(node, yaml.MappingNode, "a mapping", path) {
		return
	}
	fields, names := fieldsOf(t)
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := path.At(key.Value)
		if first, dup := seen[key.Value]; dup {
			c.add(key, at, fmt.Sprintf("is given twice, first on line %d", first), "")
			continue
		}
		seen[key.Value] = key.Line
		field, ok := fields[key.Value]
		if !ok {
			c.add(key, at, "unknown field", Suggest(key.Value, names))
			continue
		}
		c.value(value, field, at)
	}
}

func (c *checker) decode(node *yaml.Node, t reflect.Type, path Path) {
	if node.Tag == "!!null" {
		c.add(node, path, "is empty", "remove the key or give it a value")
		return
	}
	if t.Kind() == reflect.String && node.Kind != yaml.ScalarNode {
		c.add(node, path, "expected text, found "+describe(node), "")
		return
	}
	if err := node.Decode(reflect.New(t).Interface()); err != nil {
		p := syntaxProblem(c.file, err)
		p.Line, p.Path = node.Line, path.String()
		c.problems = append(c.problems, p)
	}
}

// fieldsOf returns the types of the fields of a struct by their YAML names,
// and the names. Fields of inlined structs are the struct's own.
func fieldsOf(t reflect.Type) (map[string]reflect.Type, []string) {
	fields := map[string]reflect.Type{}
	var names []string
	for f := range t.Fields() {
		if !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			inner, innerNames := fieldsOf(f.Type)
			maps.Copy(fields, inner)
			names = append(names, innerNames...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		fields[name] = f.Type
		names = append(names, name)
	}
	return fields, names
}

func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", node.Value)
	}
}

// Suggest returns a hint for a word that is none of the known ones: the
// nearest if one is near, else all of them.
func Suggest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return ""
	}
	known = slices.Sorted(slices.Values(known))
	return "known: " + strings.Join(known, ", ")
}
