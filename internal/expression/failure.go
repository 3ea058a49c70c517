package expression

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
)

// explain says in words why an evaluation failed. CEL's own messages may hold
// values of the object; none is passed on.
func (p *Program) explain(err error, object map[string]any) error {
	if cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err); ok {
		if cancelled.Cause == interpreter.MemoryLimitExceeded {
			return fmt.Errorf("%w: a value of the evaluation has more than %d elements", ErrTooCostly, MaxSize)
		}
		return fmt.Errorf("%w: the evaluation takes more than %d steps on this object", ErrTooCostly, MaxCost)
	}
	failed, ok := errors.AsType[*types.Err](err)
	if !ok {
		return errors.New("the expression cannot be evaluated")
	}
	node := nodeOf(p.tree, failed.NodeID())
	if errors.Is(failed.Unwrap(), ErrTooCostly) {
		return fmt.Errorf("%w: %s takes more than %d steps on this object", ErrTooCostly, p.text(node), MaxCost)
	}
	message := failed.Error()
	switch {
	case strings.HasPrefix(message, "no such key"):
		return p.explainMissing(node, object)
	case strings.HasPrefix(message, "no such overload"):
		return p.explainTypes(node, object)
	}
	for _, r := range reasons {
		if strings.Contains(message, r.part) {
			return fmt.Errorf("%s: %s", p.text(node), r.words)
		}
	}
	return fmt.Errorf("%s cannot be evaluated with the values of this object", p.text(node))
}

// reasons are what parts of CEL's messages mean.
var reasons = []struct{ part, words string }{
	{"index out of bounds", "the list has no element at this index"},
	{"out of range in list", "the list has no element at this index"},
	{"index out of range", "the string is shorter"},
	{"invalid substring range", "the end of the part is before its start"},
	{"division by zero", "division by zero"},
	{"modulus by zero", "division by zero"},
	{"overflow", "the result is too large"},
	{"RFC 3339", `the string is not a time like "2026-12-24T18:00:00Z"`},
	{"optional.none() dereference", "there is no value; write .orValue() or ask .hasValue() first"},
	{"exceeds maximum allowed", "the list is too long"},
	{"time zone", "the time zone is not known"},
	{"type conversion error", "the value cannot be converted"},
}

// text quotes a part of the expression.
func (p *Program) text(node ast.Expr) string {
	if node == nil {
		node = p.tree.Expr()
	}
	text, err := parser.Unparse(node, p.tree.SourceInfo())
	if err != nil {
		return "the expression"
	}
	return quote(text)
}

// explainMissing names the field that is not there.
func (p *Program) explainMissing(node ast.Expr, object map[string]any) error {
	path, ok := pathOf(node)
	if !ok {
		return fmt.Errorf("%s: a field of it is missing; ask for it with has() or in first", p.text(node))
	}
	// Where the object itself is read, it says which field is the first that is
	// not there.
	var at any = object
	for i, name := range path.names {
		m, isMap := at.(map[string]any)
		next, found := m[name]
		if path.root == variable && found {
			at = next
			continue
		}
		parent, field := path.upTo(i), path.upTo(i+1)
		switch {
		case path.root != variable:
			return fmt.Errorf("%s: a field of it is missing; ask for it with has() first", quote(path.upTo(len(path.names))))
		case !isMap:
			return fmt.Errorf("%s has no field %s: it is %s", parent, quote(name), kindOf(at))
		case strings.HasSuffix(field, "]"):
			return fmt.Errorf("%s has no key %s; ask %s in %s first", parent, quote(name), quote(name), parent)
		default:
			return fmt.Errorf("%s has no field %s; ask has(%s) first", parent, quote(name), field)
		}
	}
	return fmt.Errorf("%s: a field of it is missing", p.text(node))
}

// explainTypes says which types do not fit.
func (p *Program) explainTypes(node ast.Expr, object map[string]any) error {
	if node == nil || node.Kind() != ast.CallKind {
		return fmt.Errorf("%s: the types of its values do not fit", p.text(node))
	}
	call := node.AsCall()
	name := call.FunctionName()
	if operator, ok := operators.FindReverse(name); ok && operator != "" {
		name = operator
	}
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	var kinds []string
	for _, a := range args {
		kind, ok := kindOfExpr(a, object)
		if !ok {
			return fmt.Errorf("%s: %s cannot take these values; their types do not fit", p.text(node), name)
		}
		kinds = append(kinds, kind)
	}
	return fmt.Errorf("%s: %s cannot take %s", p.text(node), name, strings.Join(kinds, " and "))
}

// path is a chain of fields, such as object.status.state.
type path struct {
	root  string
	names []string
	index []bool // Whether a name is written in brackets.
}

// pathOf returns the chain that a node is, if it is one of names that are
// written out.
func pathOf(node ast.Expr) (path, bool) {
	if node == nil {
		return path{}, false
	}
	if node.Kind() == ast.IdentKind {
		return path{root: strings.TrimPrefix(node.AsIdent(), ".")}, true
	}
	of, name, ok := step(node)
	if !ok {
		return path{}, false
	}
	p, ok := pathOf(of)
	p.names = append(p.names, name)
	p.index = append(p.index, node.Kind() == ast.CallKind)
	return p, ok
}

// upTo returns the chain with its first n names, as it is written.
func (p path) upTo(n int) string {
	var out strings.Builder
	out.WriteString(p.root)
	for i, name := range p.names[:n] {
		if p.index[i] {
			out.WriteString("[" + quote(name) + "]")
		} else {
			out.WriteString("." + name)
		}
	}
	return out.String()
}

// kindOfExpr returns the kind of what an expression is for an object, where that
// is plain to see.
func kindOfExpr(e ast.Expr, object map[string]any) (string, bool) {
	if e.Kind() == ast.LiteralKind {
		return kindOfValue(e.AsLiteral()), true
	}
	p, ok := pathOf(e)
	if !ok || p.root != variable {
		return "", false
	}
	var at any = object
	for _, name := range p.names {
		m, _ := at.(map[string]any)
		if at, ok = m[name]; !ok {
			return "", false
		}
	}
	return kindOf(at), true
}

// kindOf names the type of a value of an object.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return "a number"
	}
}

// kindOfValue names the type of a value of CEL.
func kindOfValue(v ref.Val) string {
	if t, ok := v.Type().(*types.Type); ok {
		return kindOfType(t)
	}
	return "a value of another type"
}

// kindOfType names a type of CEL.
func kindOfType(t *cel.Type) string {
	switch t.Kind() {
	case types.NullTypeKind:
		return "null"
	case types.BoolKind:
		return "a bool"
	case types.IntKind, types.UintKind, types.DoubleKind:
		return "a number"
	case types.StringKind:
		return "a string"
	case types.BytesKind:
		return "a string of bytes"
	case types.ListKind:
		return "a list"
	case types.MapKind:
		return "a map"
	case types.TimestampKind:
		return "a timestamp"
	case types.DurationKind:
		return "a duration"
	case types.TypeKind:
		return "a type"
	default:
		return "an optional value"
	}
}
