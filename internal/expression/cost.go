package expression

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// tracker says what a call costs. CEL's own model goes by the types that it
// finds when it compiles, and of an object it finds none: without this, going
// through a long list or string would cost what adding two numbers does.
type tracker struct{}

// constant are the functions that take as long for every argument.
var constant = map[string]bool{
	operators.Index: true, operators.OptIndex: true, operators.OptSelect: true,
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true,
	operators.NotStrictlyFalse: true,
	"dyn":                      true, "type": true, "first": true, "last": true,
	"optional.of": true, "optional.none": true, "value": true, "hasValue": true, "or": true, "orValue": true,
}

// mapInsert is how a macro adds to the map that it makes.
const mapInsert = "cel.@mapInsert"

// CallCost implements [cost.ActualCostEstimator]: one for the call, and one for
// each element, or ten bytes, that it goes through.
func (tracker) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	c := uint64(1)
	switch charge, ok := work[function]; {
	case ok:
		c += min(charge(args), MaxCost)
		for _, a := range args {
			c += through(a)
		}
	case constant[function]:
	case function == mapInsert:
		// The limit of the size looks through what a macro makes at each step.
		c += length(result) / 10
	case function == operators.Add:
		if _, ok := result.(traits.Lister); ok {
			c += length(result) / 100
			break
		}
		c += through(result)
	case function == operators.Equals || function == operators.NotEquals:
		c += min(through(args[0]), through(args[1]))
	case function == operators.In || function == "size":
		for _, a := range args {
			if _, ok := a.(traits.Mapper); ok || function == "size" && isList(a) {
				continue
			}
			c += through(a)
		}
	default:
		for _, a := range args {
			c += through(a)
		}
	}
	return &c
}

func isList(v ref.Val) bool {
	_, ok := v.(traits.Lister)
	return ok
}

// through is the cost of going through a value.
func through(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case types.Bytes:
		return uint64(len(v)) / 10
	case traits.Lister, traits.Mapper:
		return uint64(sizes.AggregateSize(v))
	default:
		return 0
	}
}

// length returns the bytes of a string, or the elements of a list or map.
func length(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}
