package expression

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// adapt turns what the expression reads of an object into CEL's values, which
// know their size.
func (p *Program) adapt(object map[string]any) (ref.Val, error) {
	if !p.whole {
		read := make(map[string]any, len(p.fields))
		for _, name := range p.fields {
			if v, ok := object[name]; ok {
				read[name] = v
			}
		}
		object = read
	}
	value, _, err := adaptValue(object, 1)
	return value, err
}

// adaptValue returns a value and its size in elements.
func adaptValue(v any, depth int) (ref.Val, uint32, error) {
	if depth > maxDepth {
		return nil, 0, fmt.Errorf("the object is nested deeper than %d: %w", maxDepth, ErrTooCostly)
	}
	switch v := v.(type) {
	case nil:
		return types.NullValue, 1, nil
	case bool:
		return types.Bool(v), 1, nil
	case int64:
		return types.Int(v), 1, nil
	case int:
		return types.Int(v), 1, nil
	case float64:
		return types.Double(v), 1, nil
	case string:
		return types.String(v), stringSize(v), nil
	case []any:
		return adaptList(v, depth)
	case map[string]any:
		return adaptMap(v, depth)
	default:
		return nil, 0, fmt.Errorf("the object holds a %T, which JSON does not have", v)
	}
}

func adaptList(list []any, depth int) (ref.Val, uint32, error) {
	values, total := make([]ref.Val, len(list)), uint32(1)
	for i, item := range list {
		value, size, err := adaptValue(item, depth+1)
		if err != nil {
			return nil, 0, err
		}
		values[i] = value
		if total, err = add(total, size); err != nil {
			return nil, 0, err
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values), total, nil
}

func adaptMap(m map[string]any, depth int) (ref.Val, uint32, error) {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	keys, entries, total := make([]ref.Val, len(m)), make(map[ref.Val]ref.Val, len(m)), uint32(1)
	for i, name := range names {
		value, size, err := adaptValue(m[name], depth+1)
		if err != nil {
			return nil, 0, err
		}
		keys[i] = types.String(name)
		entries[keys[i]] = value
		if total, err = add(total, size+stringSize(name)); err != nil {
			return nil, 0, err
		}
	}
	return &sortedMap{types.NewRefValMap(types.DefaultTypeAdapter, entries), keys, total}, total, nil
}

func add(total, size uint32) (uint32, error) {
	if total+size > MaxSize {
		return 0, fmt.Errorf("what the expression reads of the object is larger than %d elements: %w", MaxSize, ErrTooCostly)
	}
	return total + size, nil
}

// stringSize counts as [types.SizeCalculator] does. A string that is longer than
// the limit is as good as one that is at it.
func stringSize(s string) uint32 {
	return uint32(min(max(1, (len(s)+9)/10), MaxSize))
}

// sortedMap is a map that is walked in the order of its keys.
type sortedMap struct {
	traits.Mapper
	keys []ref.Val
	size uint32
}

func (m *sortedMap) Iterator() traits.Iterator {
	return types.NewRefValList(types.DefaultTypeAdapter, m.keys).Iterator()
}

// AggregateSize implements [types.AggregateSizeVisitor].
func (m *sortedMap) AggregateSize(types.AggregateSizer) uint32 { return m.size }
