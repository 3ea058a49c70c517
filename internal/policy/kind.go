package policy

import (
	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// check is a kind of precondition.
type check interface {
	// validate reports what is wrong with its fields.
	validate(v *validator, at yamlfile.Path)
	// evaluate decides on one cluster, which is heard from.
	evaluate(e *evaluation, cluster string, known *fact.Cluster) Check
}

// kind is a row of the table of kinds.
type kind struct {
	// name is the key in the file.
	name string
	// of returns the check of a precondition, or nil if it has another kind.
	of func(*Precondition) check
}

var kinds = []kind{
	{"flux", func(p *Precondition) check {
		if p.Flux == nil {
			return nil
		}
		return p.Flux
	}},
}

// check returns the check of a valid precondition.
func (p *Precondition) check() check {
	for _, k := range kinds {
		if c := k.of(p); c != nil {
			return c
		}
	}
	return nil
}

func kindNames() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}
