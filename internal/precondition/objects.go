package precondition

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"signalbox/internal/expression"
	"signalbox/internal/fact"
	"signalbox/internal/yamlfile"
)

// Objects asks about objects of any kind, on each target cluster: that all, any
// or none of them pass a test, or how many do. A test is a condition in CEL
// (https://cel.dev) on the variable "object". Without one, an object passes when
// it is Current by the rules of kstatus, which most controllers follow.
//
// An object on which the test cannot be evaluated, because a field is missing,
// is unknown: ask with has(object.status.x) for a field that may be missing.
//
// The kind is watched only while a pull request asks about it, with the rights
// that signalbox has; what it may not read is unknown, and says which right is
// missing. Secrets are never read.
type Objects struct {
	// Kind is the resource as kubectl names it: "nodes", "deployments.apps",
	// "volumes.longhorn.io", or with a version "volumes.v1beta2.longhorn.io".
	Kind string `yaml:"kind" json:"kind" jsonschema:"required"`
	// Namespace is that of the objects; every namespace if not given.
	Namespace string `yaml:"namespace" json:"namespace,omitempty"`
	// Name is that of the only object that is meant.
	Name string `yaml:"name" json:"name,omitempty"`
	// Selector is a label selector as kubectl has it, such as "app=db,tier!=test".
	Selector string `yaml:"selector" json:"selector,omitempty"`
	// All is a test that every object must pass.
	All string `yaml:"all" json:"all,omitempty"`
	// Any is a test that at least one object must pass.
	Any string `yaml:"any" json:"any,omitempty"`
	// None is a test that no object may pass.
	None string `yaml:"none" json:"none,omitempty"`
	// Count asks how many objects pass a test.
	Count *Count `yaml:"count" json:"count,omitempty"`
	// Min is the fewest objects that there must be: 1 if not given, so that a
	// misspelt namespace is not taken for a healthy one; 0 for a test that none
	// may pass.
	Min *int `yaml:"min" json:"min,omitempty" jsonschema:"minimum=0"`
}

// Count asks how many objects pass a test.
type Count struct {
	// Where is the test.
	Where string `yaml:"where" json:"where" jsonschema:"required"`
	// Min is the fewest that may pass it. At least one of min and max is given.
	Min *int `yaml:"min" json:"min,omitempty" jsonschema:"minimum=0"`
	// Max is the most that may pass it.
	Max *int `yaml:"max" json:"max,omitempty" jsonschema:"minimum=0"`
}

// Validate implements [Kind].
func (c *Objects) Validate(v *Validator, at yamlfile.Path) {
	if c.Kind == "" {
		v.Add(at.At("kind"), "name it as kubectl does, such as nodes or volumes.longhorn.io", "is missing")
	} else if _, err := fact.ParseResource(c.Kind); err != nil {
		v.Add(at.At("kind"), "", "%v", err)
	}
	for _, part := range []struct{ field, text string }{{"namespace", c.Namespace}, {"name", c.Name}} {
		if strings.ContainsAny(part.text, "/*? \t\r\n") {
			v.Add(at.At(part.field), "name one, or leave it out for all", "%q is not the name of a Kubernetes object", part.text)
		}
	}
	if c.Selector != "" {
		if c.Name != "" {
			v.Add(at.At("selector"), "leave one of them out", "is given together with a name")
		}
		if s, err := labels.Parse(c.Selector); err != nil {
			v.Add(at.At("selector"), `write it as for kubectl -l, such as "app=db,tier!=test"`, "%v", err)
		} else {
			c.Selector = s.String()
		}
	}
	c.tests(v, at)
	if c.Min != nil && *c.Min < 0 {
		v.Add(at.At("min"), "", "is %d; it must not be negative", *c.Min)
	}
}

// tests checks the tests, of which there may be one.
func (c *Objects) tests(v *Validator, at yamlfile.Path) {
	given := 0
	test := func(at yamlfile.Path, text string) {
		if text == "" {
			return
		}
		given++
		if _, err := expression.Compile(text); err != nil {
			v.Add(at, "", "%v", err)
		}
	}
	test(at.At("all"), c.All)
	test(at.At("any"), c.Any)
	test(at.At("none"), c.None)
	if n := c.Count; n != nil {
		where := at.At("count", "where")
		if n.Where == "" {
			given++
			v.Add(where, "write the test in CEL", "is missing")
		}
		test(where, n.Where)
		switch {
		case n.Min == nil && n.Max == nil:
			v.Add(at.At("count"), "give min, max or both", "has no bound")
		case n.Min != nil && *n.Min < 0, n.Max != nil && *n.Max < 0:
			v.Add(at.At("count"), "", "has a negative bound")
		case n.Min != nil && n.Max != nil && *n.Min > *n.Max:
			v.Add(at.At("count"), "", "has a min of %d above its max of %d", *n.Min, *n.Max)
		}
	}
	if given > 1 {
		v.Add(at, "give one of all, any, none and count, or none of them to ask kstatus", "has %d tests", given)
	}
}

// Query returns what a valid check asks of a cluster.
func (c *Objects) Query() fact.ObjectsQuery {
	q := fact.ObjectsQuery{Resource: c.Kind, Namespace: c.Namespace, Name: c.Name, Selector: c.Selector}
	q.Test = cmp.Or(c.All, c.Any, c.None)
	if c.Count != nil {
		q.Test = c.Count.Where
	}
	return q
}

// Evaluate implements [Kind].
func (c *Objects) Evaluate(e *Evaluation, clusters []string) []Check {
	return e.onEach(clusters, func(cluster string) Check { return c.on(e, cluster) })
}

func (c *Objects) on(e *Evaluation, cluster string) Check {
	q := c.Query()
	f, finding, ok := e.wished(fact.WishObjects(cluster, q), fmt.Sprintf("the list of %s on %s", c.subject(), cluster))
	if !ok {
		return finding
	}
	o := f.Objects
	if missed, ok := synced(o.Watch, c.subject(), cluster); !ok {
		missed.ReadAt = f.SeenAt
		return missed
	}
	finding.Evidence = c.evidence(o)
	finding.Looked = plural(o.Total(), "object")
	finding.Since = f.Since
	state, says := c.judge(o)
	finding.State, finding.Reason = state, fmt.Sprintf("%s on %s: %s", c.subject(), cluster, says)
	if why := c.why(o, finding.State); why != "" {
		finding.Reason += ": " + why
	}
	return finding
}

// subject names what is asked about.
func (c *Objects) subject() string {
	s := "resource " + c.Kind
	if c.Name != "" {
		s += " " + c.Name
	}
	if c.Selector != "" {
		s += " with " + c.Selector
	}
	if c.Namespace != "" {
		s += " in " + c.Namespace
	}
	return s
}

// judge returns the state and what is to be said of the subject.
func (c *Objects) judge(o *fact.Objects) (State, string) {
	fewest := 1
	if c.None != "" || c.Count != nil {
		fewest = 0
	}
	if c.Min != nil {
		fewest = *c.Min
	}
	switch total := o.Total(); {
	case total >= fewest:
	case c.Name != "":
		return Unmet, "it does not exist"
	default:
		return Unmet, fmt.Sprintf("there are %d, and there should be at least %d", total, fewest)
	}
	switch {
	case c.Any != "":
		return c.judgeAny(o)
	case c.None != "":
		return c.judgeNone(o)
	case c.Count != nil:
		return c.judgeCount(o)
	default:
		return c.judgeAll(o)
	}
}

func (c *Objects) judgeAll(o *fact.Objects) (State, string) {
	switch {
	case o.Failing.Count > 0 && c.All == "":
		return Unmet, number(o.Failing.Count, "is not Current", "are not Current")
	case o.Failing.Count > 0:
		return Unmet, number(o.Failing.Count, "does not pass", "do not pass")
	case o.Unclear.Count > 0:
		return unclear(o)
	case c.All == "":
		return Met, "all are Current"
	default:
		return Met, "all pass"
	}
}

func (*Objects) judgeAny(o *fact.Objects) (State, string) {
	switch {
	case o.Passing.Count > 0:
		return Met, "at least one passes"
	case o.Unclear.Count > 0:
		return unclear(o)
	default:
		return Unmet, "none passes"
	}
}

func (*Objects) judgeNone(o *fact.Objects) (State, string) {
	switch {
	case o.Passing.Count > 0:
		return Unmet, number(o.Passing.Count, "passes", "pass") + ", and none should"
	case o.Unclear.Count > 0:
		return unclear(o)
	default:
		return Met, "none passes, as it should be"
	}
}

func (c *Objects) judgeCount(o *fact.Objects) (State, string) {
	least, most := o.Passing.Count, o.Passing.Count+o.Unclear.Count
	within := func(n int) bool {
		return (c.Count.Min == nil || n >= *c.Count.Min) && (c.Count.Max == nil || n <= *c.Count.Max)
	}
	switch {
	case within(least) && within(most):
		return Met, "as many pass as should, " + c.Count.bounds()
	case c.Count.Max != nil && least > *c.Count.Max, c.Count.Min != nil && most < *c.Count.Min:
		return Unmet, fmt.Sprintf("%s, and %s should", number(least, "passes", "pass"), c.Count.bounds())
	default:
		return unclear(o)
	}
}

func unclear(o *fact.Objects) (State, string) {
	return Unknown, fmt.Sprintf("the test cannot be evaluated for %d", o.Unclear.Count)
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (c *Count) bounds() string {
	switch {
	case c.Max == nil:
		return fmt.Sprintf("at least %d", *c.Min)
	case c.Min == nil:
		return fmt.Sprintf("at most %d", *c.Max)
	case *c.Min == *c.Max:
		return fmt.Sprint(*c.Min)
	default:
		return fmt.Sprintf("%d to %d", *c.Min, *c.Max)
	}
}

// culprits are the objects that a state is due to.
func (c *Objects) culprits(o *fact.Objects, s State) fact.ObjectSet {
	switch {
	case s == Unknown:
		return o.Unclear
	case s == Unmet && c.None != "":
		return o.Passing
	case s == Unmet && c.Count == nil:
		return o.Failing
	default:
		return fact.ObjectSet{}
	}
}

func (c *Objects) why(o *fact.Objects, s State) string {
	set := c.culprits(o, s)
	var names []string
	for _, n := range set.Notes {
		name := n.Object()
		if n.Why != "" && len(names) == 0 {
			name += " (" + oneLine(n.Why) + ")"
		}
		names = append(names, name)
	}
	return listed(names, set.Count)
}

func (c *Objects) evidence(o *fact.Objects) []Evidence {
	var ev evidence
	ev.add("objects", c.subject())
	ev.add("read as", o.Version)
	ev.add("test", o.Query.Test)
	set := func(label string, s fact.ObjectSet) {
		if s.Count == 0 {
			return
		}
		part := Evidence{Label: label, Value: fmt.Sprint(s.Count)}
		for _, n := range s.Notes {
			value := "since " + stamp(n.Since)
			if n.Why != "" {
				value = n.Why + " (" + value + ")"
			}
			part.Parts = append(part.Parts, Evidence{Label: n.Object(), Value: value})
		}
		if more := s.Count - len(s.Notes); more > 0 {
			part.Parts = append(part.Parts, Evidence{Label: "and more", Value: fmt.Sprint(more)})
		}
		ev = append(ev, part)
	}
	// What is as it should be is not named: it changes all the time.
	if c.None != "" {
		set("pass", o.Passing)
	} else if c.Any == "" && c.Count == nil {
		set("do not pass", o.Failing)
	}
	set("cannot be told", o.Unclear)
	return ev
}
