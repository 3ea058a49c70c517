package actions

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)
	number     = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	lookup     = regexp.MustCompile(`^[a-zA-Z_][\w-]*(\.[a-zA-Z_][\w-]*)+$`)
)

// expand replaces the expressions in a text by their values.
func (t *Task) expand(text string) (string, error) {
	var failed error
	out := expression.ReplaceAllStringFunc(text, func(match string) string {
		value, err := t.evaluate(unwrap(match))
		if err != nil && failed == nil {
			failed = err
		}
		return written(value)
	})
	return out, failed
}

// unwrap takes the expression out of its braces, which a condition may be without.
func unwrap(text string) string {
	if m := expression.FindStringSubmatch(text); m != nil && m[0] == strings.TrimSpace(text) {
		text = m[1]
	}
	return strings.TrimSpace(text)
}

// evaluate evaluates the part of the expressions that the tests use: lookups such as inputs.dryRun,
// literals, and ==, !=, && and || without parentheses. Anything else is an error.
func (t *Task) evaluate(text string) (any, error) {
	for _, operator := range []string{"||", "&&"} {
		left, right, ok := strings.Cut(text, operator)
		if !ok {
			continue
		}
		value, err := t.evaluate(left)
		if err != nil || truth(value) == (operator == "||") {
			return value, err
		}
		return t.evaluate(right)
	}
	for _, operator := range []string{"!=", "=="} {
		left, right, ok := strings.Cut(text, operator)
		if !ok {
			continue
		}
		a, err := t.operand(left)
		if err != nil {
			return nil, err
		}
		b, err := t.operand(right)
		if err != nil {
			return nil, err
		}
		return strings.EqualFold(written(a), written(b)) == (operator == "=="), nil
	}
	return t.operand(text)
}

func (t *Task) operand(text string) (any, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "true", text == "false":
		return text == "true", nil
	case len(text) >= 2 && strings.HasPrefix(text, "'") && strings.HasSuffix(text, "'"):
		return strings.ReplaceAll(text[1:len(text)-1], "''", "'"), nil
	case number.MatchString(text):
		return strconv.ParseFloat(text, 64)
	case lookup.MatchString(text):
		return t.lookup(strings.Split(text, "."))
	}
	return nil, fmt.Errorf("the test runner does not know the expression %q", text)
}

// lookup finds a value in a context. What is not there is nil, as with Gitea's own runner.
func (t *Task) lookup(path []string) (any, error) {
	root, rest := path[0], path[1:]
	var value any
	switch root {
	case "github", "gitea":
		value = t.Context
	case "inputs":
		event, _ := t.Context["event"].(map[string]any)
		value = event["inputs"]
	case "secrets":
		return named(t.Secrets, rest), nil
	case "vars":
		return named(t.Vars, rest), nil
	default:
		return nil, fmt.Errorf("the test runner does not know the context %q", root)
	}
	for _, name := range rest {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value, nil
}

func named(values map[string]string, path []string) any {
	for name, value := range values {
		if len(path) == 1 && strings.EqualFold(name, path[0]) { // Gitea keeps the names in capitals.
			return value
		}
	}
	return nil
}

func written(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func truth(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0
	default:
		return true
	}
}
