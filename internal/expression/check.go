package expression

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// checkSource refuses what is not worth reading.
func checkSource(source string) error {
	e := &Error{Line: 1, Column: 1}
	switch {
	case strings.TrimSpace(source) == "":
		e.Message, e.Hint = "the expression is empty", "write a condition, "+example
	case len(source) > MaxLength:
		e.Message = fmt.Sprintf("the expression has %d bytes; %d are allowed", len(source), MaxLength)
		e.Hint = "split it into several rules"
	case !utf8.ValidString(source):
		e.Message = "the expression is not valid UTF-8"
	default:
		return nil
	}
	return e
}

// checkMacros refuses what would take long to compile.
func checkMacros(tree *ast.AST) error {
	e := &Error{Line: 1, Column: 1, Hint: "write it flatter, or split it into several rules"}
	found := ast.MatchDescendants(ast.NavigateAST(tree), ast.KindMatcher(ast.ComprehensionKind))
	switch {
	case len(found) > maxMacros:
		e.Message = fmt.Sprintf("the expression goes through lists and maps %d times; %d are allowed", len(found), maxMacros)
	case shapeOf(tree) > maxShape:
		e.Message = "the expression makes lists and maps that are nested too deep"
	default:
		return nil
	}
	return e
}

// checkPatterns refuses a regular expression that is computed: how large one can
// become is only known when it is too late.
func checkPatterns(tree *ast.AST) error {
	calls := ast.MatchDescendants(ast.NavigateAST(tree), ast.FunctionMatcher("matches"))
	for _, call := range calls {
		args := call.AsCall().Args()
		pattern := args[len(args)-1]
		if _, ok := literal(pattern); ok {
			continue
		}
		at := tree.SourceInfo().GetStartLocation(pattern.ID())
		return &Error{
			Line: max(1, at.Line()), Column: max(0, at.Column()) + 1,
			Message: "the regular expression of matches() is computed",
			Hint:    `write it out, as in object.metadata.name.matches("^pvc-"), or compare with startsWith() or contains()`,
		}
	}
	return nil
}

// checkResult accepts a bool, and what only an object can tell.
func checkResult(t *cel.Type) error {
	switch t.Kind() {
	case types.BoolKind, types.DynKind:
		return nil
	case types.OpaqueKind:
		return &Error{
			Line: 1, Column: 1,
			Message: "the result is an optional value, not true or false",
			Hint:    "say what holds without it: .orValue(false)",
		}
	default:
		return &Error{
			Line: 1, Column: 1,
			Message: fmt.Sprintf("the result is %s, not true or false", kindOfType(t)),
			Hint:    "compare it with something, " + example,
		}
	}
}
