package precondition

import (
	"fmt"
	"reflect"
	"strings"

	"signalbox/internal/yamlfile"
)

// Kinds are the kinds of preconditions, of which one is given.
type Kinds struct {
	// Flux asks that an object of Flux is Ready on each target cluster.
	Flux *Flux `yaml:"flux" json:"flux,omitempty"`
	// Renovate asks what the last completed run of Renovate really was.
	Renovate *Renovate `yaml:"renovate" json:"renovate,omitempty"`
	// Status asks for commit statuses on the head of the pull request.
	Status *Status `yaml:"status" json:"status,omitempty"`
	// Workflow asks that a workflow of Gitea Actions really ran.
	Workflow *Workflow `yaml:"workflow" json:"workflow,omitempty"`
	// Kured asks that no node is being rebooted by kured.
	Kured *Kured `yaml:"kured" json:"kured,omitempty"`
	// Objects asks about objects of any kind.
	Objects *Objects `yaml:"objects" json:"objects,omitempty"`
	// Window asks that the clock allows it.
	Window *Window `yaml:"window" json:"window,omitempty"`
	// DependsOn asks for what the description names as dependencies.
	DependsOn *DependsOn `yaml:"dependsOn" json:"dependsOn,omitempty"`
}

// Kind is one kind of precondition.
type Kind interface {
	// Validate reports what is wrong with its fields and fills in defaults.
	Validate(v *Validator, at yamlfile.Path)
	// Evaluate finds out whether it holds. Clusters are those that the change
	// reaches, sorted; a kind that concerns no cluster does not use them. There
	// is at least one finding.
	Evaluate(e *Evaluation, clusters []string) []Check
}

// Named is a kind with the key it has in the file.
type Named struct {
	Name string
	Kind Kind
}

// Given returns the kinds that are given; a valid precondition has one.
func (k *Kinds) Given() []Named {
	var given []Named
	v := reflect.ValueOf(k).Elem()
	for i, name := range Names() {
		if field := v.Field(i); !field.IsNil() {
			given = append(given, Named{name, field.Interface().(Kind)})
		}
	}
	return given
}

// Names returns the keys of all kinds, in the order of [Kinds].
func Names() []string {
	var names []string
	for f := range reflect.TypeFor[Kinds]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		names = append(names, name)
	}
	return names
}

// Validator collects what is wrong with the meaning of a policy; its shape was
// checked before.
type Validator struct {
	doc      *yamlfile.Document
	problems yamlfile.Problems
}

// NewValidator makes a validator for a document.
func NewValidator(doc *yamlfile.Document) *Validator { return &Validator{doc: doc} }

// Add adds a problem: where it is, what to do about it (or ""), and what it is.
func (v *Validator) Add(path yamlfile.Path, hint, format string, args ...any) {
	v.problems = append(v.problems, v.doc.Problem(path, fmt.Sprintf(format, args...), hint))
}

// Problems returns what was added, in the order of the document.
func (v *Validator) Problems() yamlfile.Problems {
	v.problems.Sort()
	return v.problems
}
