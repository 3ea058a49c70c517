package renovate

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxWorkflow bounds a workflow file, in bytes.
const maxWorkflow = 1 << 20

// Workflow reads a workflow file of Gitea Actions or GitHub Actions. file is its
// name for messages. variables are the variables of the repository (vars.X) by
// name; nil means that they are not known.
//
// What is told is what the file says. A few forms of expression are evaluated;
// any other makes the setting unknown, with the expression quoted. The error is
// about YAML that cannot be read, or that is not a workflow, and names the line.
func Workflow(file string, data []byte, variables map[string]string) (Configuration, error) {
	if len(data) > maxWorkflow {
		return Configuration{}, fmt.Errorf("%s: is %d bytes; the limit is %d", file, len(data), maxWorkflow)
	}
	var document yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	if err := dec.Decode(&document); errors.Is(err, io.EOF) {
		return Configuration{}, fmt.Errorf("%s: is empty", file)
	} else if err != nil {
		return Configuration{}, fmt.Errorf("%s: %w", file, yamlError(err))
	}
	if len(document.Content) == 0 {
		return Configuration{}, fmt.Errorf("%s: is empty", file)
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return Configuration{}, fmt.Errorf("%s:%d: is not a workflow; expected a mapping with on and jobs", file, root.Line)
	}
	w := &workflow{root: root, variables: variables, fed: map[string]bool{}}
	w.Secrets, w.Variables = named(string(data))
	if child(root, "on") == nil {
		return Configuration{}, fmt.Errorf("%s:%d: is not a workflow; it has no on", file, root.Line)
	}
	if jobs := child(root, "jobs"); jobs == nil || jobs.Kind != yaml.MappingNode {
		return Configuration{}, fmt.Errorf("%s:%d: is not a workflow; it has no jobs", file, root.Line)
	}
	w.triggers()
	if err := w.read(); err != nil {
		return Configuration{}, fmt.Errorf("%s: %w", file, err)
	}
	return w.Configuration, nil
}

// yamlLine is how the library says where a fault is.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func yamlError(err error) error {
	text := clean(yamlLine.ReplaceAllString(err.Error(), ""))
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		return fmt.Errorf("line %s: %s", m[1], text)
	}
	return errors.New(text)
}

type workflow struct {
	Configuration
	root      *yaml.Node
	variables map[string]string
	// fed are the inputs that were asked for.
	fed map[string]bool
	// jobs are the jobs by id, and conditions what was found of them on the event
	// in hand.
	jobs       map[string]*yaml.Node
	conditions map[string]conditions
}

// child returns the value of a key, or nil. Aliases and merges are followed.
func child(node *yaml.Node, key string) *yaml.Node { return childWithin(node, key, 8) }

func childWithin(node *yaml.Node, key string, depth int) *yaml.Node {
	node = target(node)
	if node == nil || node.Kind != yaml.MappingNode || depth == 0 {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		switch node.Content[i].Value {
		case key:
			return target(node.Content[i+1])
		case "<<":
			merged = childWithin(node.Content[i+1], key, depth-1)
		}
	}
	return merged
}

func target(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// scalar returns the text of a scalar, else "".
func scalar(node *yaml.Node) string {
	if node == nil || node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		return ""
	}
	return node.Value
}

// entries returns the keys and values of a mapping.
func entries(node *yaml.Node) (keys, values []*yaml.Node) {
	node = target(node)
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		keys, values = append(keys, node.Content[i]), append(values, target(node.Content[i+1]))
	}
	return keys, values
}

// items returns the items of a list, or the one thing that stands for it.
func items(node *yaml.Node) []*yaml.Node {
	node = target(node)
	switch {
	case node == nil || node.Tag == "!!null":
		return nil
	case node.Kind != yaml.SequenceNode:
		return []*yaml.Node{node}
	}
	list := make([]*yaml.Node, len(node.Content))
	for i, item := range node.Content {
		list[i] = target(item)
	}
	return list
}

// triggers reads what starts the workflow.
func (w *workflow) triggers() {
	on := child(w.root, "on")
	if on.Kind != yaml.MappingNode {
		for _, item := range items(on) {
			if name := scalar(item); name != "" {
				w.Triggers = append(w.Triggers, Trigger{Event: clean(name)})
			}
		}
		return
	}
	keys, values := entries(on)
	for i, key := range keys {
		t := Trigger{Event: clean(key.Value)}
		switch t.Event {
		case "schedule":
			for _, item := range items(values[i]) {
				if cron := scalar(child(item, "cron")); cron != "" {
					t.Crons = append(t.Crons, clean(cron))
				}
			}
		case "workflow_dispatch":
			w.inputs(child(values[i], "inputs"))
		}
		w.Triggers = append(w.Triggers, t)
	}
}

func (w *workflow) inputs(node *yaml.Node) {
	keys, values := entries(node)
	for i, key := range keys {
		in := Input{Name: key.Value, Type: scalar(child(values[i], "type"))}
		if d := child(values[i], "default"); d != nil && d.Kind == yaml.ScalarNode {
			in.Default, in.HasDefault = scalar(d), true
		}
		w.Inputs = append(w.Inputs, in)
	}
}

// input answers what an input is on an event. typed says that a boolean is one,
// and no text.
func (w *workflow) input(event, name string, typed bool) value {
	i := slices.IndexFunc(w.Inputs, func(in Input) bool { return strings.EqualFold(in.Name, name) })
	if i >= 0 {
		w.fed[w.Inputs[i].Name] = true
	}
	switch {
	case event == "workflow_call":
		return notKnown("the calling workflow gives it")
	case event != "workflow_dispatch" || i < 0:
		return known(nil)
	}
	in := w.Inputs[i]
	switch {
	case in.Type == "boolean" && typed:
		return known(strings.EqualFold(in.Default, "true"))
	case in.Type == "boolean":
		return known(strconv.FormatBool(strings.EqualFold(in.Default, "true")))
	case !in.HasDefault && in.Type == "choice":
		return notKnown("the input " + clean(in.Name) + " has no default")
	}
	return known(in.Default)
}

// names answers the names in expressions on an event. env are the variables of
// the environment that an expression may use.
func (w *workflow) names(event string, env environment) scope {
	return func(name string) value {
		name = strings.Replace(name, "gitea.", "github.", 1)
		prefix, rest, _ := strings.Cut(name, ".")
		switch {
		case prefix == "inputs":
			return w.input(event, rest, true)
		case strings.HasPrefix(name, "github.event.inputs."):
			return w.input(event, strings.TrimPrefix(name, "github.event.inputs."), false)
		case name == "github.event_name":
			return known(event)
		case prefix == "vars":
			return w.variable(rest)
		case prefix == "env":
			if v, ok := env(rest); ok {
				return v
			}
			return known("")
		case prefix == "secrets", slices.Contains(inertNames, name):
			v := notKnown("cannot be told from the file")
			v.inert = true
			return v
		}
		return notKnown("cannot be told from the file")
	}
}

// inertNames are names and addresses that the server makes.
var inertNames = []string{
	"github.repository", "github.repository_owner", "github.actor", "github.sha", "github.ref", "github.ref_name",
	"github.token", "github.server_url", "github.api_url", "github.run_id", "github.run_number", "github.workspace",
}

func (w *workflow) variable(name string) value {
	if w.variables == nil {
		return notKnown("the variables of the repository are not known")
	}
	for k, v := range w.variables {
		if strings.EqualFold(k, name) {
			return known(v)
		}
	}
	return known("")
}

// named returns the names of secrets and variables in the expressions of a file.
// Servers keep them in upper case.
func named(text string) (secrets, variables []string) {
	for row := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(row), "#") {
			continue
		}
		for _, m := range contextName.FindAllStringSubmatch(row, -1) {
			name := strings.ToUpper(m[2] + m[3])
			if strings.EqualFold(m[1], "secrets") {
				secrets = append(secrets, name)
			} else {
				variables = append(variables, name)
			}
		}
	}
	slices.Sort(secrets)
	slices.Sort(variables)
	return slices.Compact(secrets), slices.Compact(variables)
}

var contextName = regexp.MustCompile(`(?i)(?:^|[^\w.-])(secrets|vars)(?:\.([A-Z_]\w*)|\['([A-Z_]\w*)'\])`)
