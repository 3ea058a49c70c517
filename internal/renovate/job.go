package renovate

import (
	"cmp"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// read finds the places and judges them on each trigger.
func (w *workflow) read() error {
	keys, jobs := entries(child(w.root, "jobs"))
	w.jobs = map[string]*yaml.Node{}
	for n, key := range slices.Backward(keys) {
		w.jobs[key.Value] = jobs[n]
	}
	if w.size()*len(w.Triggers) > maxWork {
		return errors.New("has more jobs and steps on more events than are read; split it")
	}
	events := w.Triggers
	for i := range events {
		w.conditions = map[string]conditions{}
		var all []given
		for n, job := range jobs {
			all = append(all, w.job(events[i].Event, keys[n].Value, job, i == 0)...)
		}
		events[i].Setting = together(all)
	}
	for i := range w.Inputs {
		w.Inputs[i].DryRun = w.fed[w.Inputs[i].Name]
	}
	return nil
}

// layer is one env mapping; the first of a list that has a name gives it.
type layer struct {
	node *yaml.Node
	// lost are variables that a step before may have set anew, which goes before
	// this layer and what is behind it; all means any.
	lost map[string]bool
	all  bool
}

// environment answers variables from layers of env, the nearest first.
func (w *workflow) environment(event string, layers []layer) environment {
	return func(name string) (value, bool) {
		for i, l := range layers {
			if l.all || l.lost[name] {
				return value{unknown: "a step before may set it", lost: true}, true
			}
			node := child(l.node, name)
			if node == nil {
				keys, values := entries(l.node)
				// Expressions name variables in any letter case.
				if k := slices.IndexFunc(keys, func(k *yaml.Node) bool { return strings.EqualFold(k.Value, name) }); k >= 0 && name == strings.ToLower(name) {
					node = values[k]
				}
			}
			if node != nil {
				return interpolate(scalar(node), w.names(event, w.environment(event, layers[i+1:]))), true
			}
			if l.node != nil && l.node.Kind == yaml.ScalarNode && strings.Contains(l.node.Value, "${{") {
				return notKnown("env is " + clean(l.node.Value)), true
			}
		}
		return value{}, false
	}
}

// job judges the places of a job on an event. first says to note the places.
func (w *workflow) job(event, id string, job *yaml.Node, first bool) []given {
	skips := w.condition(event, id)
	texts, runs := skips.texts, skips.runs
	base := []layer{{node: child(job, "env")}, {node: child(w.root, "env")}}
	if uses := scalar(child(job, "uses")); uses != "" {
		if !strings.Contains(strings.ToLower(uses), "renovate") {
			return nil
		}
		return []given{w.place(Place{Job: id, Line: job.Line, How: clean(uses), Conditions: texts}, first,
			sources{doubt: "what the called workflow does cannot be told from the file"}, runs)}
	}
	var all []given
	exported := layer{lost: map[string]bool{}}
	for n, step := range items(child(job, "steps")) {
		if step.Kind != yaml.MappingNode {
			continue
		}
		at := Place{
			Job: id, Line: step.Line, Conditions: texts,
			Step: clean(cmp.Or(scalar(child(step, "id")), scalar(child(step, "name")), strconv.Itoa(n+1))),
		}
		stepRuns := runs
		layers := append([]layer{{node: child(step, "env")}, exported}, base...)
		env := w.environment(event, layers)
		if condition := child(step, "if"); condition != nil {
			at.Conditions = append(slices.Clone(texts), clean(scalar(condition)))
			stepRuns = both(runs, w.holds(scalar(condition), w.names(event, env)))
		}
		run := scalar(child(step, "run"))
		for _, found := range w.step(event, step, run, env) {
			place, runs := at, stepRuns
			place.How = found.how
			if found.nested {
				runs = both(runs, RunsMaybe)
			}
			all = append(all, w.place(place, first, found.sources, runs))
		}
		exported = exported.after(run)
	}
	return all
}

// place notes a place and what it gives.
func (w *workflow) place(at Place, first bool, s sources, runs Runs) given {
	mode, why := s.mode()
	where := "job " + clean(at.Job)
	if at.Step != "" {
		where += ", step " + at.Step
	}
	if first {
		w.Places = append(w.Places, at)
	}
	if runs == RunsNo {
		why = strings.Join(at.Conditions, "; ")
	}
	return given{mode: mode, why: where + ": " + why, runs: runs}
}

// step returns what a step starts.
func (w *workflow) step(event string, step *yaml.Node, run string, env environment) []invocation {
	uses, with := scalar(child(step, "uses")), child(step, "with")
	if shell := scalar(child(step, "shell")); run != "" && shell != "" && !posix.MatchString(shell) {
		if !strings.Contains(strings.ToLower(run), "renovate") {
			return nil
		}
		return []invocation{{how: clean(shell), sources: sources{doubt: "what a script of " + clean(shell) + " does cannot be told"}}}
	}
	if run != "" {
		text, expressions := marked(run)
		return readScript(text, func(name string) (value, bool) {
			n, ok := strings.CutPrefix(name, marker)
			if !ok {
				return env(name)
			}
			i, err := strconv.Atoi(n)
			if err != nil || i >= len(expressions) {
				return notKnown("cannot be told from the file"), true
			}
			v := evaluate(expressions[i], w.names(event, env))
			if v.isUnknown() {
				v.unknown = inExpression(expressions[i], v.unknown)
			}
			return v, true
		})
	}
	if !strings.Contains(strings.ToLower(uses), "renovate") {
		return nil
	}
	i := invocation{how: clean(uses)}
	i.inherit(env)
	switch {
	case action.MatchString(uses):
		for _, input := range []string{"configurationFile", "docker-cmd-file"} {
			if scalar(child(with, input)) != "" {
				i.doubt = input + " may give another dryRun"
			}
		}
		if pattern := scalar(child(with, "env-regex")); pattern != "" {
			// The variables that match are handed on, and no others.
			unknown := notKnown("env-regex " + clean(pattern) + " decides whether it is handed on")
			i.env, i.envAt = &unknown, dryRunEnv
		}
	case strings.HasPrefix(uses, "docker://") && image.MatchString(uses) && child(with, "args") == nil && child(with, "entrypoint") == nil:
	default:
		unknown := notKnown("what " + clean(uses) + " does cannot be told from the file")
		i.env, i.envAt = &unknown, dryRunEnv
	}
	return []invocation{i}
}

// posix are the shells whose scripts are read here.
var posix = regexp.MustCompile(`^(?:/\S*/)?(?:ba|da|a)?sh\b`)

// action is Renovate's own action, by its name or its address.
var action = regexp.MustCompile(`(?i)^(?:https?://[\w.-]+/)?renovatebot/github-action@`)

// marked puts markers in place of the expressions in a script.
func marked(text string) (string, []string) {
	text = strings.ReplaceAll(text, marker, "")
	var b strings.Builder
	var expressions []string
	for {
		before, rest, ok := strings.Cut(text, "${{")
		b.WriteString(before)
		end := expressionEnd(rest)
		if !ok || end < 0 {
			b.WriteString(text[len(before):])
			return b.String(), expressions
		}
		b.WriteString(marker + strconv.Itoa(len(expressions)) + marker)
		expressions = append(expressions, rest[:end])
		text = rest[end+2:]
	}
}

var exportedName = regexp.MustCompile(`([A-Za-z_]\w*)(?:=|<<)`)

// after adds what a script may hand to the steps behind it.
func (l layer) after(script string) layer {
	if !strings.Contains(script, "GITHUB_ENV") && !strings.Contains(script, "GITEA_ENV") {
		return l
	}
	next := layer{lost: maps.Clone(l.lost), all: l.all}
	for row := range strings.Lines(script) {
		names := exportedName.FindAllStringSubmatch(row, -1)
		for _, m := range names {
			next.lost[m[1]] = true
		}
		// Where no name stands beside it, more than one may be handed on.
		next.all = next.all || len(names) == 0 && (strings.Contains(row, "GITHUB_ENV") || strings.Contains(row, "GITEA_ENV"))
	}
	return next
}
