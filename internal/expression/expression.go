package expression

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Limits of an expression.
const (
	// MaxLength bounds the source, in bytes.
	MaxLength = 2 << 10
	// MaxCost bounds one evaluation, in units of cost: one for each field that is
	// read, each call and each element that a call goes through. It is the
	// number that Kubernetes has for one call (PerCallLimit of
	// k8s.io/apiserver/pkg/apis/cel), mostly a tenth of a second, and half of one
	// at worst.
	MaxCost = 1_000_000
	// MaxSize bounds the object, as far as it is read, and every value that is
	// made of it, in elements: one for each value, key, list and map, and one
	// for every ten bytes of a string. What etcd stores is smaller.
	MaxSize = 1_000_000
	// maxMacros bounds how many macros go through lists and maps.
	maxMacros = 32
	// maxDepth bounds how deep lists and maps are nested.
	maxDepth = 64
)

// ErrTooCostly says that an expression was stopped because it is over [MaxCost]
// or [MaxSize], or that it is refused because it would be for every object.
var ErrTooCostly = errors.New("too costly")

// Program is an expression that was compiled. It is made by [Compile]; the zero
// value is of no use.
type Program struct {
	program cel.Program
	tree    *ast.AST
	fields  []string
	whole   bool
}

// Compile reads an expression. An error is an [*Error]; if the expression is
// certain to be stopped, it wraps [ErrTooCostly] too.
func Compile(source string) (*Program, error) {
	if err := checkSource(source); err != nil {
		return nil, err
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	parsed, issues := env.cel.Parse(source)
	if issues.Err() != nil {
		return nil, explainIssues(env.names, source, nil, issues)
	}
	if err := checkMacros(parsed.NativeRep()); err != nil {
		return nil, err
	}
	checked, issues := env.cel.Check(parsed)
	if issues.Err() != nil {
		return nil, explainIssues(env.names, source, parsed.NativeRep(), issues)
	}
	if err := checkPatterns(checked.NativeRep()); err != nil {
		return nil, err
	}
	if err := checkResult(checked.OutputType()); err != nil {
		return nil, err
	}
	// How long the lists of an object are is not known here, so the upper bound
	// says nothing. The lower one is below what every object costs.
	estimate, err := env.cel.EstimateCost(checked, nil)
	if err != nil {
		return nil, fmt.Errorf("estimate the cost of an expression: %w", err)
	}
	if estimate.Min > MaxCost {
		return nil, &Error{
			Line: 1, Column: 1, Err: ErrTooCostly,
			Message: fmt.Sprintf("the expression takes more than %d steps whatever the object is", MaxCost),
			Hint:    "shorten its lists and texts, or split it into several rules",
		}
	}
	program, err := env.cel.Program(checked, env.options...)
	if err != nil {
		return nil, fmt.Errorf("plan an expression: %w", err)
	}
	p := &Program{program: program, tree: checked.NativeRep()}
	p.fields, p.whole = fieldsOf(p.tree)
	return p, nil
}

// Fields returns the names of the fields at the top of the object that the
// expression reads, sorted. False means that it may read any: it uses the object
// as a whole, or a name that is computed.
func (p *Program) Fields() ([]string, bool) {
	return p.fields, !p.whole
}

// Eval asks the expression of an object, as encoding/json or the unstructured
// package of Kubernetes read it: of int64, float64, string, bool, nil, []any and
// map[string]any. The object is only read. A nil object has no fields.
//
// An error says that there is no answer: a field is missing, values do not fit
// together, the result is not a bool, or the evaluation was stopped and the
// error wraps [ErrTooCostly]. As everywhere in CEL, || and && have an answer
// where one side is enough for it, even if the other one fails.
func (p *Program) Eval(object map[string]any) (bool, error) {
	value, err := p.adapt(object)
	if err != nil {
		return false, err
	}
	out, _, err := p.program.Eval(map[string]any{variable: value})
	if err != nil {
		return false, p.explain(err, object)
	}
	answer, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the result is %s, not true or false", kindOfValue(out))
	}
	return bool(answer), nil
}
