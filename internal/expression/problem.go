package expression

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Error is what is wrong with the source of an expression.
type Error struct {
	// Line and Column say where, from 1. A column is a character, not a byte.
	Line, Column int
	// Message says what, and Hint what to do. The hint may be empty.
	Message, Hint string
	// Err is ErrTooCostly or nil.
	Err error
}

// Error returns "line:column: message; hint".
func (e *Error) Error() string {
	text := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

const example = `such as object.status.state == "attached"`

// explainIssues returns the first problem that CEL found, in words. What follows
// it is often its consequence. The tree is nil where there is none.
func explainIssues(names []string, source string, tree *ast.AST, issues *cel.Issues) *Error {
	found := slices.MinFunc(issues.Errors(), func(a, b *cel.Error) int {
		return cmp.Or(cmp.Compare(a.Location.Line(), b.Location.Line()), cmp.Compare(a.Location.Column(), b.Location.Column()))
	})
	e := &Error{Line: max(1, found.Location.Line()), Column: max(0, found.Location.Column()) + 1}
	if text, ok := strings.CutPrefix(found.Message, "Syntax error: "); ok {
		e.Message, e.Hint = explainSyntax(text, before(source, e.Line, e.Column))
		return e
	}
	for _, p := range checks {
		if m := p.pattern.FindStringSubmatch(found.Message); m != nil {
			e.Message, e.Hint = p.explain(m, names, nodeOf(tree, found.ExprID))
			return e
		}
	}
	e.Message = found.Message
	return e
}

// before returns what stands on the line before the column.
func before(source string, line, column int) string {
	lines := strings.Split(source, "\n")
	if line > len(lines) {
		return ""
	}
	text := []rune(lines[line-1])
	return string(text[:min(column-1, len(text))])
}

// words are the operators of other languages.
var words = map[string]string{"and": "&&", "or": "||", "not": "!", "is": "=="}

var (
	badToken = regexp.MustCompile(`(?s)^token recognition error at: '(.*)'$`)
	missing  = regexp.MustCompile(`(?s)^missing '(.+)' at '(.*)'$`)
	badInput = regexp.MustCompile(`(?s)^(?:mismatched|extraneous|no viable alternative at) input '(.*?)'(?: expecting .*)?$`)
)

func explainSyntax(text, before string) (message, hint string) {
	if m := badToken.FindStringSubmatch(text); m != nil {
		token := strings.TrimSpace(m[1])
		switch {
		case strings.HasPrefix(token, `"`) || strings.HasPrefix(token, "'"):
			if strings.Contains(token, `\`) {
				return "a string is not closed, or has an escape that is none", `write \\ for a backslash`
			}
			return "a string is not closed", "write its quote at its end too"
		case token == "=":
			return `"=" compares nothing`, "write =="
		case token == "&" || token == "|":
			return fmt.Sprintf("%q is not an operator", token), "write " + token + token
		}
		return fmt.Sprintf("%s has no meaning here", quote(token)), ""
	}
	if m := missing.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%q is missing before %s", m[1], input(m[2])), ""
	}
	if m := badInput.FindStringSubmatch(text); m != nil {
		hint := ""
		last := before[strings.LastIndexAny(strings.TrimSpace(before), " \t()")+1:]
		for _, word := range []string{m[1], strings.TrimSpace(last)} {
			if operator := words[strings.ToLower(word)]; operator != "" {
				hint = fmt.Sprintf("write %s for %q", operator, word)
			}
		}
		if m[1] == "<EOF>" {
			return "the expression ends too early", hint
		}
		return "unexpected " + input(m[1]), hint
	}
	return "it cannot be read: " + quote(text), ""
}

func input(token string) string {
	if token == "<EOF>" {
		return "the end"
	}
	return quote(token)
}

// quote returns a part of an expression for a message.
func quote(text string) string {
	if runes := []rune(text); len(runes) > 80 {
		text = string(runes[:79]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// checks are the problems that CEL finds in what can be read.
var checks = []struct {
	pattern *regexp.Regexp
	explain func(m, names []string, node ast.Expr) (message, hint string)
}{
	{regexp.MustCompile(`^undeclared reference to '([^']*)'`), explainUnknown},
	{regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'$`), explainOverload},
	{regexp.MustCompile(`^expected type 'bool' but found '(.*)'$`), func(m, _ []string, _ ast.Expr) (string, string) {
		return fmt.Sprintf("a bool is expected, not %s", m[1]), "compare it with something, " + example
	}},
	{regexp.MustCompile(`^undefined field '(.*)'$`), func(m, _ []string, _ ast.Expr) (string, string) {
		return "there is no field " + quote(m[1]), ""
	}},
	{regexp.MustCompile(`^invalid argument to has\(\) macro`), func([]string, []string, ast.Expr) (string, string) {
		return "has() asks for a field", "write has(object.status.state)"
	}},
	{regexp.MustCompile(`^invalid matches argument|^regex program size`), func([]string, []string, ast.Expr) (string, string) {
		return "the regular expression is not valid, or too large", "see https://github.com/google/re2/wiki/Syntax"
	}},
	{regexp.MustCompile(`^invalid duration argument`), func([]string, []string, ast.Expr) (string, string) {
		return "the duration is not valid", `write it like duration("90s") or duration("1h30m")`
	}},
	{regexp.MustCompile(`^invalid timestamp argument`), func([]string, []string, ast.Expr) (string, string) {
		return "the time is not valid", `write it like timestamp("2026-12-24T18:00:00Z")`
	}},
	{regexp.MustCompile(`^reserved identifier: (.*)$`), func(m, _ []string, _ ast.Expr) (string, string) {
		return quote(m[1]) + " is a reserved word", fmt.Sprintf("a field of this name is written object[%q]", m[1])
	}},
	{regexp.MustCompile(`^error recovery`), func([]string, []string, ast.Expr) (string, string) {
		return "this cannot be read as an expression", "write a condition, " + example
	}},
	{regexp.MustCompile(`recursion limit|recursion depth|nesting`), func([]string, []string, ast.Expr) (string, string) {
		return "the expression is nested too deep", "write it flatter, or split it into several rules"
	}},
}

// explainUnknown explains a name that is none.
func explainUnknown(m, names []string, node ast.Expr) (message, hint string) {
	name := m[1]
	if node != nil && node.Kind() == ast.StructKind {
		return fmt.Sprintf("unknown type %s", quote(name)), ""
	}
	if node == nil || node.Kind() != ast.CallKind {
		message = fmt.Sprintf("unknown name %s", quote(name))
		if near := nearest(name, []string{variable, "true", "false", "null"}); near != "" {
			return message, fmt.Sprintf("did you mean %q?", near)
		}
		if known := library(name, names); known != "" {
			return fmt.Sprintf("%s has no such function", name), known
		}
		return message, "the one name is object, and a field of it object.status"
	}
	if usage := usages[name]; usage != "" {
		return fmt.Sprintf("%s() is used wrongly", name), "write it like " + usage
	}
	message = fmt.Sprintf("unknown function %s", quote(name))
	switch name {
	case "now":
		return message, "an expression has no clock"
	case "quantity", "isQuantity", "ip", "isIP", "cidr", "isCIDR", "url", "isURL", "semver", "isSemver", "find", "findAll", "isSorted":
		return message, "the libraries that Kubernetes adds to CEL are not there"
	}
	if near := nearest(name, names); near != "" {
		return message, fmt.Sprintf("did you mean %q?", near)
	}
	of, _, _ := strings.Cut(name, ".")
	return message, library(of, names)
}

// library lists the functions that begin with a name and a dot.
func library(name string, names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, name+".") })
	if len(names) == 0 {
		return ""
	}
	return "known: " + strings.Join(names, ", ")
}

// usages show the macros, which CEL knows only with the right number of
// arguments.
var usages = map[string]string{
	"has":        "has(object.status.state)",
	"all":        `object.spec.list.all(x, x != "")`,
	"exists":     `object.spec.list.exists(x, x != "")`,
	"exists_one": `object.spec.list.exists_one(x, x != "")`,
	"existsOne":  `object.spec.list.existsOne(i, x, x != "")`,
	"filter":     `object.spec.list.filter(x, x != "")`,
	"map":        "object.spec.list.map(x, x.name)",
}

// explainOverload explains types that do not fit.
func explainOverload(m, _ []string, _ ast.Expr) (message, hint string) {
	name := m[1]
	if operator, ok := operators.FindReverse(name); ok && operator != "" {
		name = operator
	}
	switch m[1] {
	case operators.Index:
		name = "[]"
	case operators.Conditional:
		name = "?:"
	}
	return fmt.Sprintf("%q cannot take %s", name, m[2]), "convert a value with string(), int() or double(), or compare like with like"
}

// nearest returns the known word that is nearest to one that is not, or "".
func nearest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k))
		if d < distance && d <= max(1, len(word)/3) {
			best, distance = k, d
		}
	}
	if best == "" && len(word) > 1 && strings.HasPrefix(variable, strings.ToLower(word)) && slices.Contains(known, variable) {
		return variable
	}
	return best
}

// nodeOf returns the part of the tree with an id, or nil.
func nodeOf(tree *ast.AST, id int64) ast.Expr {
	if tree == nil {
		return nil
	}
	found := ast.MatchDescendants(ast.NavigateAST(tree), func(e ast.NavigableExpr) bool { return e.ID() == id })
	if len(found) == 0 {
		return nil
	}
	return found[0]
}
