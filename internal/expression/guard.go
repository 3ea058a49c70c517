package expression

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"regexp"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

const (
	// maxRange bounds the list that lists.range makes.
	maxRange = 10_000
	// maxRegex bounds a regular expression, in instructions of its program.
	maxRegex = 256
	// zoneCost is the cost of finding a time zone, which reads a file.
	zoneCost = 200
)

// sizes measures values against [MaxSize].
var sizes = types.NewSizeCalculator(
	types.SizeCalculatorMaxDepth(2*maxDepth), types.SizeCalculatorMaxTraversal(2*MaxSize))

// work says for functions how much a call costs at most, by its arguments. CEL
// would know it only after the call; a product of two lengths is not waited for.
var work = map[string]func(args []ref.Val) uint64{
	"replace":         product(2),
	"join":            product(1),
	"indexOf":         product(1),
	"lastIndexOf":     product(1),
	"distinct":        product(0),
	"sets.contains":   product(1),
	"sets.equivalent": product(1),
	"sets.intersects": product(1),
	"hasAll":          product(1),
	"hasAny":          product(1),
	"hasExactly":      product(1),
	"hasOnly":         product(1),
	"getDate":         zone,
	"getDayOfMonth":   zone,
	"getDayOfWeek":    zone,
	"getDayOfYear":    zone,
	"getFullYear":     zone,
	"getHours":        zone,
	"getMilliseconds": zone,
	"getMinutes":      zone,
	"getMonth":        zone,
	"getSeconds":      zone,
}

// product is the cost of going through an argument for each element of the
// first, or ten bytes of it.
func product(with int) func(args []ref.Val) uint64 {
	return func(args []ref.Val) uint64 {
		if with >= len(args) {
			return 0
		}
		if _, ok := args[0].(types.String); ok {
			return multiply(length(args[0])+1, length(args[with])) / 10
		}
		return multiply(length(args[0]), uint64(sizes.AggregateSize(args[with])))
	}
}

// match is the cost of looking for a regular expression in a text.
func match(args []ref.Val) uint64 { return multiply(length(args[0]), maxRegex) / 100 }

func zone(args []ref.Val) uint64 {
	if len(args) < 2 {
		return 0
	}
	return zoneCost
}

func multiply(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// guards returns the functions of work once more, which refuse what is over the
// limit, and charge for the rest.
func guards(env *cel.Env) ([]*functions.Overload, []cost.TrackerOption, error) {
	var overloads []*functions.Overload
	trackers := []cost.TrackerOption{cost.OverloadTracker(literalMatches, func(args []ref.Val, _ ref.Val) *uint64 {
		c := cost.SafeAdd(match(args), 1)
		return &c
	})}
	for _, name := range slices.Sorted(maps.Keys(work)) {
		declared, ok := env.Functions()[name]
		if !ok {
			return nil, nil, fmt.Errorf("no function %s", name)
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, nil, fmt.Errorf("function %s: %w", name, err)
		}
		for _, b := range bindings {
			overloads = append(overloads, guard(b, work[name]))
			trackers = append(trackers, cost.OverloadTracker(b.Operator, func(args []ref.Val, result ref.Val) *uint64 {
				return tracker{}.CallCost(name, b.Operator, args, result)
			}))
		}
	}
	return overloads, trackers, nil
}

func guard(o *functions.Overload, charge func([]ref.Val) uint64) *functions.Overload {
	g := *o
	if o.Unary != nil {
		g.Unary = func(v ref.Val) ref.Val {
			if charge([]ref.Val{v}) > MaxCost {
				return types.WrapErr(ErrTooCostly)
			}
			return o.Unary(v)
		}
	}
	if o.Binary != nil {
		g.Binary = func(a, b ref.Val) ref.Val {
			if charge([]ref.Val{a, b}) > MaxCost {
				return types.WrapErr(ErrTooCostly)
			}
			return o.Binary(a, b)
		}
	}
	if o.Function != nil {
		g.Function = func(args ...ref.Val) ref.Val {
			if charge(args) > MaxCost {
				return types.WrapErr(ErrTooCostly)
			}
			return o.Function(args...)
		}
	}
	return &g
}

// literalMatches is the overload of matches for what literalRegex compiled.
const literalMatches = "matches_literal"

// literalRegex compiles a regular expression once, and not for every object. It
// stands for the one of CEL, which knows no limit.
var literalRegex = interpreter.RegexOptimization{
	Function:   "matches",
	RegexIndex: 1,
	Factory: func(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		return interpreter.NewCall(call.ID(), call.Function(), literalMatches, call.Args(), func(args ...ref.Val) ref.Val {
			text, ok := args[0].(types.String)
			if !ok {
				return types.NoSuchOverloadErr()
			}
			if match(args) > MaxCost {
				return types.WrapErr(ErrTooCostly)
			}
			return types.Bool(compiled.MatchString(string(text)))
		}), nil
	},
}
