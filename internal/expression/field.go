package expression

import (
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// fieldsOf returns the fields of the object that an expression reads, or that it
// may read any.
func fieldsOf(tree *ast.AST) (fields []string, whole bool) {
	read := map[string]bool{}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree), ast.KindMatcher(ast.IdentKind)) {
		if !isObject(e) {
			continue
		}
		parent, ok := e.Parent()
		if !ok {
			return nil, true
		}
		of, name, ok := step(parent)
		if !ok || of.ID() != e.ID() {
			return nil, true
		}
		read[name] = true
	}
	return slices.Sorted(maps.Keys(read)), false
}

// isObject reports whether e is the object. With a dot before it, it cannot be
// the variable of a macro.
func isObject(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == variable
}

// step takes an expression that reads one field apart: what it reads it of, and
// its name. Only a name that is written out is one.
func step(e ast.Expr) (of ast.Expr, name string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, ok := literal(call.Args()[1])
			return call.Args()[0], name, ok
		}
	}
	return nil, "", false
}

// literal returns a string that is written out.
func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
