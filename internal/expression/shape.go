package expression

import (
	"maps"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// maxShape bounds how large the types of an expression can be: that of
// {x: [x]}, where x is a number, has a size of four. A few macros one after the
// other could double it with each step, and CEL would look for it for hours.
const maxShape = 48

// shape finds upper bounds of the sizes of types, without types.
type shape struct {
	variables map[string]int
	largest   int
}

// shapeOf returns a bound of the largest type in an expression.
func shapeOf(tree *ast.AST) int {
	s := &shape{variables: map[string]int{}}
	s.of(tree.Expr())
	return s.largest
}

func (s *shape) of(e ast.Expr) int {
	size := min(s.size(e), 10*maxShape)
	s.largest = max(s.largest, size)
	return size
}

// most returns the largest size of several.
func (s *shape) most(exprs ...ast.Expr) int {
	most := 1
	for _, e := range exprs {
		most = max(most, s.of(e))
	}
	return most
}

func (s *shape) size(e ast.Expr) int {
	switch e.Kind() {
	case ast.IdentKind:
		return max(1, s.variables[e.AsIdent()])
	case ast.SelectKind:
		return s.of(e.AsSelect().Operand())
	case ast.ListKind:
		return 1 + s.most(e.AsList().Elements()...)
	case ast.MapKind:
		keys, values := 1, 1
		for _, entry := range e.AsMap().Entries() {
			keys = max(keys, s.of(entry.AsMapEntry().Key()))
			values = max(values, s.of(entry.AsMapEntry().Value()))
		}
		return 1 + keys + values
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			s.of(field.AsStructField().Value())
		}
		return 1
	case ast.CallKind:
		return s.call(e.AsCall())
	case ast.ComprehensionKind:
		return s.comprehension(e.AsComprehension())
	default:
		return 1
	}
}

func (s *shape) call(c ast.CallExpr) int {
	most := s.most(c.Args()...)
	if c.IsMemberFunction() {
		most = max(most, s.of(c.Target()))
	}
	if _, operator := operators.FindReverse(c.FunctionName()); operator {
		return most
	}
	return 1 + most // Such as an optional of it.
}

func (s *shape) comprehension(c ast.ComprehensionExpr) int {
	over := s.of(c.IterRange())
	made := s.of(c.AccuInit())
	outer := s.variables
	defer func() { s.variables = outer }()
	s.variables = maps.Clone(outer)
	s.variables[c.AccuVar()] = made
	s.variables[c.IterVar()] = over
	if c.HasIterVar2() {
		s.variables[c.IterVar2()] = over
	}
	s.of(c.LoopCondition())
	s.variables[c.AccuVar()] = max(made, s.of(c.LoopStep()))
	return s.of(c.Result())
}
