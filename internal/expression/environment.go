package expression

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// variable is the name of the object in an expression.
const variable = "object"

// surroundings is what every program shares. It does not change.
type surroundings struct {
	cel     *cel.Env
	options []cel.ProgramOption
	// names are the functions and macros that a person may write.
	names []string
}

var environment = sync.OnceValues(newEnvironment)

// The versions of the libraries are fixed: what an expression means does not
// change with an update.
func newEnvironment() (*surroundings, error) {
	env, err := cel.NewEnv(
		cel.Variable(variable, cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableErrorOnBadPresenceTest(true),
		cel.EnableMacroCallTracking(), // So that messages can quote macros.
		cel.OptionalTypes(cel.OptionalTypesVersion(4)),
		ext.Strings(ext.StringsVersion(5)),
		ext.Lists(ext.ListsVersion(5), ext.ListsMaxRangeSize(maxRange)),
		ext.Sets(ext.SetsVersion(0)),
		ext.Math(ext.MathVersion(3)),
		ext.TwoVarComprehensions(ext.TwoVarComprehensionsVersion(0)),
		cel.ParserExpressionSizeLimit(MaxLength),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(),
			cel.ValidateRegexProgramSizeLimit(maxRegex)),
		cel.CostSizingStrategy(cost.AggregateSizingStrategy(
			types.SizeCalculatorMaxDepth(2*maxDepth), types.SizeCalculatorMaxTraversal(2*MaxSize))),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	s := &surroundings{cel: env, names: names(env)}
	overloads, trackers, err := guards(env)
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	s.options = []cel.ProgramOption{
		override(overloads),
		cel.OptimizeRegex(&literalRegex),
		cel.CostLimit(MaxCost),
		cel.CostTracking(tracker{}),
		cel.CostTrackerOptions(trackers...),
		cel.MemoryLimit(MaxSize),
		cel.MemoryTracking(types.MemoryTrackerSizeCalculator(sizes)),
	}
	return s, nil
}

func override(overloads []*functions.Overload) cel.ProgramOption {
	return cel.Functions(overloads...) //nolint:staticcheck // Nothing else replaces a function of a library.
}

// names returns the functions and macros, without those that are operators.
func names(env *cel.Env) []string {
	var out []string
	for name := range env.Functions() {
		if !strings.ContainsAny(name, "_@!") || name == "exists_one" {
			out = append(out, name)
		}
	}
	for _, m := range env.Macros() {
		out = append(out, m.Function())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
