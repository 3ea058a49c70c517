package renovate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// value is what an expression of a workflow gives: a string, a bool, a float64
// or nil. Where it cannot be told from the file, unknown says why.
type value struct {
	v       any
	unknown string
	// inert says that what is unknown is a name or a credential, and no option of
	// a command.
	inert bool
	// lost says that what is unknown is whether it is set at all.
	lost bool
}

func known(v any) value            { return value{v: v} }
func notKnown(why string) value    { return value{unknown: why} }
func (v value) isUnknown() bool    { return v.unknown != "" }
func (v value) truthy() bool       { return v.v != nil && v.v != "" && v.v != false && v.v != 0.0 }
func (v value) equal(w value) bool { return equalValues(v.v, w.v) }
func equalValues(a, b any) bool {
	s, ok := a.(string)
	t, ok2 := b.(string)
	if ok && ok2 {
		return strings.EqualFold(s, t)
	}
	if a == nil && b == nil {
		return true
	}
	x, okX := toNumber(a)
	y, okY := toNumber(b)
	return okX && okY && x == y
}

// toNumber converts as the language of workflows does to compare values of
// different types.
func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case nil:
		return 0, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case float64:
		return v, true
	case string:
		if strings.TrimSpace(v) == "" {
			return 0, true
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return n, err == nil
	}
	return 0, false
}

// text is the value as it stands in an environment.
func (v value) text() string {
	switch v := v.v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// scope answers a name such as "inputs.dryRun", in lower case.
type scope func(name string) value

// interpolate evaluates the expressions in a text.
func interpolate(text string, names scope) value {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${{")
		b.WriteString(before)
		if !ok {
			return known(b.String())
		}
		end := expressionEnd(rest)
		if end < 0 {
			return notKnown(fmt.Sprintf("the expression ${{%s is not closed", clean(rest)))
		}
		v := evaluate(rest[:end], names)
		if v.isUnknown() {
			v.unknown = inExpression(rest[:end], v.unknown)
			return v
		}
		b.WriteString(v.text())
		text = rest[end+2:]
	}
}

func inExpression(text, why string) string {
	return fmt.Sprintf("${{ %s }}: %s", clean(text), why)
}

// expressionEnd finds the closing braces outside of quotes.
func expressionEnd(s string) int {
	quoted := false
	for i := 0; i+1 < len(s); i++ {
		switch {
		case s[i] == '\'':
			quoted = !quoted
		case !quoted && s[i] == '}' && s[i+1] == '}':
			return i
		}
	}
	return -1
}

// token is one of the few that an expression here may have.
var token = regexp.MustCompile(`^(?:\s+|'(?:[^']|'')*'|[A-Za-z_][\w-]*(?:\.[A-Za-z_*][\w-]*|\['[\w-]+'\])*|-?\d+(?:\.\d+)?|&&|\|\||==|!=|!|\(|\)|,)`)

// maxDepth bounds the parentheses in an expression.
const maxDepth = 50

// evaluate evaluates one expression: names, literals, ! == != && || and
// parentheses, and always(), success() and failure() as a condition has them.
// What is beyond that is unknown.
func evaluate(text string, names scope) value {
	var tokens []string
	for rest := text; rest != ""; {
		t := token.FindString(rest)
		if t == "" {
			return notKnown("cannot be told from the file")
		}
		rest = rest[len(t):]
		if t = strings.TrimSpace(t); t != "" {
			tokens = append(tokens, t)
		}
	}
	p := &expression{tokens: tokens, names: names}
	v := p.or()
	if p.failed || len(p.tokens) > 0 {
		return notKnown("cannot be told from the file")
	}
	return v
}

type expression struct {
	tokens []string
	names  scope
	depth  int
	failed bool
}

func (p *expression) take(want ...string) string {
	if len(p.tokens) > 0 && slices.Contains(want, p.tokens[0]) {
		t := p.tokens[0]
		p.tokens = p.tokens[1:]
		return t
	}
	return ""
}

func (p *expression) or() value {
	left := p.and()
	for p.take("||") != "" {
		right := p.and()
		if !left.isUnknown() && !left.truthy() {
			left = right
		}
	}
	return left
}

func (p *expression) and() value {
	left := p.comparison()
	for p.take("&&") != "" {
		right := p.comparison()
		if !left.isUnknown() && left.truthy() {
			left = right
		}
	}
	return left
}

func (p *expression) comparison() value {
	left := p.unary()
	for {
		op := p.take("==", "!=")
		if op == "" {
			return left
		}
		right := p.unary()
		switch {
		case left.isUnknown():
		case right.isUnknown():
			left = right
		default:
			left = known(left.equal(right) == (op == "=="))
		}
	}
}

func (p *expression) unary() value {
	negate := 0
	for p.take("!") != "" {
		negate++
	}
	v := p.operand()
	if negate == 0 || v.isUnknown() {
		return v
	}
	return known(v.truthy() == (negate%2 == 0))
}

func (p *expression) operand() value {
	if len(p.tokens) == 0 || p.depth > maxDepth {
		p.failed = true
		return value{}
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	switch {
	case t == "(":
		p.depth++
		v := p.or()
		p.depth--
		if p.take(")") == "" {
			p.failed = true
		}
		return v
	case t[0] == '\'':
		return known(strings.ReplaceAll(t[1:len(t)-1], "''", "'"))
	case t[0] == '-' || t[0] >= '0' && t[0] <= '9':
		n, err := strconv.ParseFloat(t, 64)
		p.failed = p.failed || err != nil
		return known(n)
	case t == "true", t == "false":
		return known(t == "true")
	case t == "null":
		return known(nil)
	case len(p.tokens) > 0 && p.tokens[0] == "(":
		return p.call(t)
	case strings.ContainsAny(t[:1], "&|=!),"):
		p.failed = true
		return value{}
	}
	return p.names(strings.ToLower(indexed.ReplaceAllString(t, ".$1")))
}

var indexed = regexp.MustCompile(`\['([\w-]+)'\]`)

// call handles the functions without arguments of a condition: as far as the
// file can tell, the job has not failed and was not cancelled.
func (p *expression) call(name string) value {
	if len(p.tokens) >= 2 && p.tokens[1] == ")" {
		p.tokens = p.tokens[2:]
		switch strings.ToLower(name) {
		case "always", "success":
			return known(true)
		case "failure", "cancelled":
			return known(false)
		}
	}
	p.tokens = nil
	return notKnown("cannot be told from the file")
}
