package expression_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/expression"
)

func TestCompileErrors(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{``, `1:1: the expression is empty; write a condition, such as object.status.state == "attached"`},
		{" \n", `1:1: the expression is empty; write a condition, such as object.status.state == "attached"`},
		{"object.a == '\xff'", `1:1: the expression is not valid UTF-8`},
		{strings.Repeat("x", 3000), `1:1: the expression has 3000 bytes; 2048 are allowed; split it into several rules`},

		{`obj.status == 1`, `1:1: unknown name "obj"; did you mean "object"?`},
		{"object.a == 1 &&\n  objetc.b == 2", `2:3: unknown name "objetc"; did you mean "object"?`},
		{`object.größe == 1 && Object.x`, `1:10: "ö" has no meaning here`},
		{`object.a == "größe" && objct.x`, `1:24: unknown name "objct"; did you mean "object"?`},
		{`self.status == 1`, `1:1: unknown name "self"; the one name is object, and a field of it object.status`},
		{`object.a == True`, `1:13: unknown name "True"; did you mean "true"?`},
		{`foo(object)`, `1:4: unknown function "foo"`},
		{`object.a.startWith("x")`, `1:19: unknown function "startWith"; did you mean "startsWith"?`},
		{`sets.contain([1], [1])`, `1:13: unknown function "sets.contain"; did you mean "sets.contains"?`},
		{`sets.nothing(object.a)`, `1:13: unknown function "sets.nothing"; known: sets.contains, sets.equivalent, sets.intersects`},
		{`sets.foo(object.a)`, `1:1: sets has no such function; known: sets.contains, sets.equivalent, sets.intersects`},
		{`quantity(object.a) > 1`, `1:9: unknown function "quantity"; the libraries that Kubernetes adds to CEL are not there`},
		{`timestamp(object.a) < now()`, `1:26: unknown function "now"; an expression has no clock`},
		{`object.a.all(x)`, `1:13: all() is used wrongly; write it like object.spec.list.all(x, x != "")`},
		{`has(object)`, `1:5: has() asks for a field; write has(object.status.state)`},

		{`1 + 1`, `1:1: the result is a number, not true or false; compare it with something, such as object.status.state == "attached"`},
		{`object.a ? "x" : "y"`, `1:1: the result is a string, not true or false; compare it with something, such as object.status.state == "attached"`},
		{`object.?a`, `1:1: the result is an optional value, not true or false; say what holds without it: .orValue(false)`},
		{`"a" + 1 == "b"`, `1:5: "+" cannot take (string, int); convert a value with string(), int() or double(), or compare like with like`},
		{`object.a && 1`, `1:13: a bool is expected, not int; compare it with something, such as object.status.state == "attached"`},
		{`object.a.matches("[")`, `1:18: the regular expression is not valid, or too large; see https://github.com/google/re2/wiki/Syntax`},
		{`object.a.matches("(a?){900}")`, `1:18: the regular expression is not valid, or too large; see https://github.com/google/re2/wiki/Syntax`},
		{`object.a.matches("^" + object.b)`, `1:22: the regular expression of matches() is computed; write it out, as in object.metadata.name.matches("^pvc-"), or compare with startsWith() or contains()`},
		{`matches(object.a, object.b)`, `1:25: the regular expression of matches() is computed; write it out, as in object.metadata.name.matches("^pvc-"), or compare with startsWith() or contains()`},
		{`duration("1x") == duration("1s")`, `1:10: the duration is not valid; write it like duration("90s") or duration("1h30m")`},
		{`timestamp("2026") == timestamp(object.a)`, `1:11: the time is not valid; write it like timestamp("2026-12-24T18:00:00Z")`},

		{`object.a ==`, `1:12: the expression ends too early`},
		{`(object.a == 1`, `1:15: ")" is missing before the end`},
		{`object.a == 1)`, `1:14: unexpected ")"`},
		{`object.a = 1`, `1:10: "=" compares nothing; write ==`},
		{`object.a == 1 & object.b`, `1:15: "&" is not an operator; write &&`},
		{`object.a == 1 and object.b`, `1:15: unexpected "and"; write && for "and"`},
		{`not object.a`, `1:5: unexpected "object"; write ! for "not"`},
		{`object.a == "x`, `1:13: a string is not closed; write its quote at its end too`},
		{`object.a == "\q"`, `1:13: a string is not closed, or has an escape that is none; write \\ for a backslash`},
		{`object{a: 1} == object`, `1:7: unknown type "object"`},
		{`$.status`, `1:1: "$" has no meaning here`},
		{`object.a == for`, `1:13: "for" is a reserved word; a field of this name is written object["for"]`},
		{strings.Repeat("(", 400) + "true" + strings.Repeat(")", 400), `1:1: the expression is nested too deep; write it flatter, or split it into several rules`},
	} {
		name, _, _ := strings.Cut(tt.want, ";")
		t.Run(name, func(t *testing.T) {
			_, err := expression.Compile(tt.source)
			if err == nil {
				t.Fatal("no error")
			}
			if _, ok := errors.AsType[*expression.Error](err); !ok || errors.Is(err, expression.ErrTooCostly) {
				t.Errorf("it is a %T", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// numbers returns a list that is written out.
func numbers(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }

func TestCompileTooCostly(t *testing.T) {
	for _, source := range []string{
		"lists.range(100000000).size() == 1",
		numbers(300) + ".map(x, " + numbers(300) + ".map(y, " + numbers(300) + ".map(z, x + y + z > 0))).size() > 0",
	} {
		_, err := expression.Compile(source)
		if !errors.Is(err, expression.ErrTooCostly) {
			t.Errorf("%s: %v", source, err)
		}
		if _, ok := errors.AsType[*expression.Error](err); !ok {
			t.Errorf("%s: %v is no problem of the source", source, err)
		}
	}
}

// tooCostly are expressions over large objects that would take minutes, or all
// memory, without the limits.
var tooCostly = []string{
	// More than once through a list for each of its elements.
	`object.list.all(x, object.list.all(y, x + y >= 0))`,
	`object.list.all(x, object.list.exists(y, y == x))`,
	`object.list.all(x, x in object.list)`,
	`object.list.all(x, object.list == object.list)`,
	`object.list.all(x, object.list.reverse().size() > 0)`,
	`object.list.all(x, object.list.sort().size() > 0)`,
	`object.list.all(x, math.greatest(object.list) > 0)`,
	`object.list.transformMap(i, x, x).size() > 0`,
	`lists.range(10000).all(x, lists.range(10000).size() > 0)`,
	// Through a long text.
	`object.list.all(x, size(object.long) > 0)`,
	`object.list.all(x, object.long.charAt(1000000) == "a")`,
	`object.list.all(x, object.long.contains("b") || true)`,
	`object.list.all(x, object.long.lowerAscii() != "")`,
	`object.list.all(x, object.texts.join() != "")`,
	`object.list.all(x, object.texts.distinct().size() >= 0 || object.long.indexOf("b", 1000000) < 0)`,
	`object.list.all(x, object.long.replace("b", "") != "")`,
	`object.list.all(x, object.long.split("b").size() > 0)`,
	`object.list.all(x, object.long + "b" != "")`,
	`object.list.all(x, "%s".format([object.long]) != "")`,
	`object.list.all(x, bytes(object.long) != b"")`,
	`object.list.all(x, object.list.map(y, y) != [])`,
	`object.list.all(x, object.list.flatten() != [])`,
	`object.list.all(x, object.list.slice(1, 4999) != [])`,
	`object.list.all(x, strings.quote(object.long) != "")`,
	`object.long.matches("(a?){60}b")`,
	// In one call.
	`object.list.distinct().size() > 0`,
	`object.texts.distinct().size() > 0`,
	`sets.contains(object.list, object.list)`,
	`object.long.indexOf(object.long + "b") == 1`,
	`object.long.replace("a", object.long) == ""`,
	`object.texts.join(object.long) == ""`,
	// Twice as large with each step.
	`[object.list]` + strings.Repeat(`.map(x, [x, x])`, 20) + `.all(x, x == x)`,
	`[object.list]` + strings.Repeat(`.map(x, x + x)`, 20) + `.all(x, x == x)`,
	`[object.long]` + strings.Repeat(`.map(x, x + x)`, 20) + `.all(x, x == x)`,
	`[0, 1].all(i, (i == 0 ? [[0]] : [object.list])` + strings.Repeat(`.map(x, x + x)`, 20) + `.all(x, x == x))`,
	`[object.long]` + strings.Repeat(`.map(x, x.replace("a", "aaaaaaaaaa"))`, 20) + `.size() > 0`,
	`optional.of(object.list)` + strings.Repeat(`.optMap(x, x + x)`, 10) + `.optMap(x, x == x).orValue(true)`,
	// Time zones are read from files.
	`object.list.all(x, timestamp("2026-01-01T00:00:00Z").getHours("America/Chicago") == 18)`,
}

// large is the object of [tooCostly].
func large() map[string]any {
	list, texts := make([]any, 5_000), make([]any, 3_000)
	for i := range list {
		list[i] = int64(i)
	}
	for i := range texts {
		texts[i] = strings.Repeat("x", 20)
	}
	return map[string]any{"list": list, "texts": texts, "long": strings.Repeat("a", 1<<20)}
}

func TestTooCostly(t *testing.T) {
	object := large()
	for _, source := range tooCostly {
		t.Run(source[:min(len(source), 60)], func(t *testing.T) {
			p, err := expression.Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.Eval(object); got || !errors.Is(err, expression.ErrTooCostly) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// BenchmarkTooCostly compares how long each runs until it is stopped with one way
// through the list. Those that copy as they go take the longest.
func BenchmarkTooCostly(b *testing.B) {
	const bound = 1000
	object := large()
	once, err := expression.Compile(`object.list.all(x, x >= 0)`)
	if err != nil {
		b.Fatal(err)
	}
	for _, source := range tooCostly {
		b.Run(source[:min(len(source), 60)], func(b *testing.B) {
			p, err := expression.Compile(source)
			if err != nil {
				b.Fatal(err)
			}
			var costly, plain time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := p.Eval(object); !errors.Is(err, expression.ErrTooCostly) {
					b.Fatal(err)
				}
				middle := time.Now()
				if ok, err := once.Eval(object); !ok || err != nil {
					b.Fatal(ok, err)
				}
				costly, plain = costly+middle.Sub(start), plain+time.Since(middle)
			}
			ratio := float64(costly) / float64(plain)
			b.ReportMetric(ratio, "stopped/once")
			if ratio > bound {
				b.Errorf("stopped after the time of %.0f ways through the list; the bound is %d", ratio, bound)
			}
		})
	}
}

// TestCompileIsBounded has what would take hours to find the types of.
func TestCompileIsBounded(t *testing.T) {
	const deep = "1:1: the expression makes lists and maps that are nested too deep; write it flatter, or split it into several rules"
	for _, tt := range []struct{ source, want string }{
		{"[[1]]" + strings.Repeat(".map(x, {x: {x: {x: [x]}}})", 16) + ".size() > 0", deep},
		{"[1]" + strings.Repeat(".map(x, {x: x})", 30) + ".size() > 0", deep},
		{strings.Repeat("[", 100) + "1" + strings.Repeat("]", 100) + " != []", deep},
		{"[1]" + strings.Repeat(".map(x, x)", 100) + ".size() > 0", "1:1: the expression goes through lists and maps 100 times; 32 are allowed; write it flatter, or split it into several rules"},
		{"object" + strings.Repeat(".a", 900) + " == 1", "1:1: the expression is nested too deep; write it flatter, or split it into several rules"},
		{strings.Repeat("1 ", 900), `1:1: this cannot be read as an expression; write a condition, such as object.status.state == "attached"`},
	} {
		_, err := expression.Compile(tt.source)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%.40s: %v", tt.source, err)
		}
	}
}

// TestNotTooCostly has what people write, on more than they have.
func TestNotTooCostly(t *testing.T) {
	conditions := make([]any, 1_000)
	for i := range conditions {
		conditions[i] = map[string]any{"type": "Ready", "status": "True", "message": strings.Repeat("applied ", 20)}
	}
	object := map[string]any{"status": map[string]any{"conditions": conditions}}
	for _, source := range []string{
		`object.status.conditions.all(c, c.type != "Ready" || c.status == "True")`,
		`object.status.conditions.filter(c, c.type == "Ready").map(c, c.status).all(s, s in ["True", "Unknown"])`,
		`object.status.conditions.all(c, c.message.matches("^(applied |healthy )*$"))`,
		`object.status.conditions.map(c, c.type).join(",").size() > 0`,
		`object.status.conditions.map(c, c.status).sort()[0] == "True"`,
		`sets.contains(["True", "False"], object.status.conditions.map(c, c.status))`,
		`object.status.conditions.all(c, object.status != null && !c.message.contains("failed"))`,
	} {
		p, err := expression.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, err := p.Eval(object); !got || err != nil {
			t.Errorf("%s: got %v, %v", source, got, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, source := range []string{
		`object.status.state != "attached" || object.status.robustness == "healthy"`,
		`has(object.a.b) && object.a.?b.orValue(1) == 1.5`,
		`object.list.all(x, x in [1, 2.0, 3u, "a", null, true])`,
		`object.status.conditions.exists_one(c, c.type.matches("^R.*") && c["status"] == 'True')`,
		`object.m.transformMapEntry(k, v, {v: k}).all(k, v, k > v)`,
		`optional.of([1]).optMap(x, x + x).optFlatMap(x, x[?0]).hasValue()`,
		`timestamp("2026-01-01T00:00:00Z") - duration("1h") < timestamp(object.t)`,
		`"%s %d %.3f".format([object.a, 1, 2.0]).replace("a", "b").split(" ").join("-").lowerAscii() == ""`,
		`[3, 2, 1].sort().distinct().slice(0, 1).flatten() == lists.range(3).reverse()`,
		`math.greatest(1, 2.0) > math.bitAnd(3, 1) ? true : sets.contains([1], [1])`,
		"object.a ==\n  (b", `"\u00e4\x41" + b"\xff" == r"\"`, `[[[1]]].map(x, [x, x]).map(x, [x, x])`, `((((((true))))))`, `!!!!true`, `{"a": {"b": [1]}}.a.b[0] == -9223372036854775808`,
	} {
		f.Add(source)
	}
	object := volume()
	object["list"] = []any{int64(1), 2.5, "a", nil, true, []any{}, map[string]any{}}
	object["m"] = map[string]any{"a": "b", "c": "d"}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := expression.Compile(source)
		if err != nil {
			problem, ok := errors.AsType[*expression.Error](err)
			if !ok {
				t.Fatalf("%T: %v", err, err)
			}
			if problem.Line < 1 || problem.Column < 1 || problem.Message == "" || problem.Line > 1+strings.Count(source, "\n") {
				t.Errorf("%+v", problem)
			}
			return
		}
		first, err := p.Eval(object)
		if err != nil && (first || strings.Contains(err.Error(), "internal error")) {
			t.Errorf("%v with the error %v", first, err)
		}
	})
}
