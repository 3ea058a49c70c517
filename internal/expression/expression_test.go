package expression_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/expression"
)

// volume is a volume of Longhorn, as an informer holds it.
func volume() map[string]any {
	return map[string]any{
		"apiVersion": "longhorn.io/v1beta2",
		"kind":       "Volume",
		"metadata": map[string]any{
			"name": "pvc-1", "namespace": "longhorn-system", "generation": int64(3),
			"creationTimestamp": "2026-01-02T03:04:05Z",
			"labels":            map[string]any{"longhornvolume": "pvc-1", "recurring-job.longhorn.io/daily": "enabled"},
		},
		"spec": map[string]any{"numberOfReplicas": int64(3), "size": "10737418240", "ratio": 0.5, "frozen": false},
		"status": map[string]any{
			"state": "attached", "robustness": "healthy", "lastDegradedAt": "", "actualSize": int64(1 << 30),
			"kubernetesStatus": map[string]any{"pvcName": "data", "lastPVCRefAt": nil},
			"conditions": []any{
				map[string]any{"type": "Scheduled", "status": "True"},
				map[string]any{"type": "Restore", "status": "False", "reason": "None"},
				map[string]any{"type": "Odd"},
			},
		},
	}
}

func TestEval(t *testing.T) {
	for _, tt := range []struct {
		source string
		want   bool
	}{
		{`object.status.state != "attached" || object.status.robustness == "healthy"`, true},
		{`object.status.robustness == "degraded"`, false},
		{`true`, true},
		{"object.status.state == 'attached'\n  && object.spec.numberOfReplicas >= 3", true},

		// Numbers compare by value, however JSON has them.
		{`object.spec.numberOfReplicas == 3`, true},
		{`object.spec.numberOfReplicas == 3.0`, true},
		{`object.spec.numberOfReplicas > 2.5`, true},
		{`object.spec.numberOfReplicas == 3u`, true},
		{`object.spec.ratio < 1`, true},
		{`object.spec.ratio == 0.5`, true},
		{`object.spec.numberOfReplicas in [1, 3.0]`, true},
		{`object.spec.numberOfReplicas + 1 == 4`, true},
		{`int(object.spec.size) == 10 * 1024 * 1024 * 1024`, true},
		{`object.spec.numberOfReplicas == "3"`, false},
		{`!object.spec.frozen`, true},

		// Fields that may be missing.
		{`has(object.status.state)`, true},
		{`has(object.status.missing)`, false},
		{`has(object.nothing)`, false},
		{`object.?status.?missing.orValue("none") == "none"`, true},
		{`object.?status.?state.orValue("none") == "attached"`, true},
		{`object.status.kubernetesStatus.lastPVCRefAt == null`, true},
		{`object.status.missing == 1 || object.status.state == "attached"`, true},
		{`object.status.missing == 1 && object.status.state == "detached"`, false},
		{`"recurring-job.longhorn.io/daily" in object.metadata.labels`, true},
		{`object.metadata.labels["recurring-job.longhorn.io/daily"] == "enabled"`, true},
		{`object.metadata.labels[?"nope"].hasValue()`, false},

		// Macros and libraries.
		{`object.status.conditions.exists(c, c.type == "Scheduled" && c.status == "True")`, true},
		{`object.status.conditions.all(c, has(c.status))`, false},
		{`object.status.conditions.filter(c, has(c.reason)).size() == 1`, true},
		{`object.status.conditions.map(c, c.type) == ["Scheduled", "Restore", "Odd"]`, true},
		{`object.status.conditions.exists_one(c, c.type == "Odd")`, true},
		{`object.metadata.labels.all(k, v, v != "")`, true},
		{`object.status.conditions.transformList(i, c, i) == [0, 1, 2]`, true},
		{`object.metadata.labels.exists(k, k.startsWith("recurring-job."))`, true},
		{`object.metadata.labels.map(k, k) == ["longhornvolume", "recurring-job.longhorn.io/daily"]`, true},
		{`object.status.state.upperAscii() == "ATTACHED"`, true},
		{`object.metadata.name.split("-")[1] == "1"`, true},
		{`object.metadata.name.replace("pvc", "pv") == "pv-1"`, true},
		{`["a", "b"].join("-") == "a-b"`, true},
		{`object.metadata.name.indexOf("c-") == 2`, true},
		{`"%s has %d".format([object.metadata.name, object.spec.numberOfReplicas]) == "pvc-1 has 3"`, true},
		{`object.metadata.name.matches("^pvc-[0-9]+$")`, true},
		{`matches(object.metadata.name, "^x")`, false},
		{`sets.contains(["attached", "detached"], [object.status.state])`, true},
		{`sets.intersects(object.status.conditions.map(c, c.type), ["Other"])`, false},
		{`math.greatest(object.spec.numberOfReplicas, 1) == 3`, true},
		{`[3, 1, 2].sort() == [1, 2, 3]`, true},
		{`[1, 1, 2].distinct() == [1, 2]`, true},
		{`[[1], [2]].flatten() == [1, 2]`, true},
		{`object.status.conditions.sortBy(c, c.type)[0].type == "Odd"`, true},
		{`size(object.status.state) == 8`, true},
		{`size("größe") == 5`, true},
		{`timestamp(object.metadata.creationTimestamp) < timestamp("2026-06-01T00:00:00Z")`, true},
		{`timestamp(object.metadata.creationTimestamp).getHours() == 3`, true},
		{`timestamp(object.metadata.creationTimestamp).getHours("+02:00") == 5`, true},
		{`duration("90s") == duration("1m30s")`, true},
		{`object == object`, true},
		{`object.all(k, k != "")`, true},
	} {
		t.Run(tt.source, func(t *testing.T) {
			p, err := expression.Compile(tt.source)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Eval(volume())
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

// TestEvalJSON has numbers as encoding/json reads them: all of them float64.
func TestEvalJSON(t *testing.T) {
	var object map[string]any
	if err := json.Unmarshal([]byte(`{"spec": {"replicas": 3}, "list": [1, 2]}`), &object); err != nil {
		t.Fatal(err)
	}
	p, err := expression.Compile(`object.spec.replicas == 3 && object.spec.replicas > 2 && 2 in object.list`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Eval(object); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEvalErrors(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{`object.status.missing == 1`, `object.status has no field "missing"; ask has(object.status.missing) first`},
		{`object.a.b.c == 1`, `object has no field "a"; ask has(object.a) first`},
		{`has(object.a.b)`, `object has no field "a"; ask has(object.a) first`},
		{`object.status.state.x == 1`, `object.status.state has no field "x": it is a string`},
		{`object.status.kubernetesStatus.lastPVCRefAt.x == 1`, `object.status.kubernetesStatus.lastPVCRefAt has no field "x": it is null`},
		{`object.metadata.labels["no/label"] == ""`, `object.metadata.labels has no key "no/label"; ask "no/label" in object.metadata.labels first`},
		{`object.status[object.status.state] == ""`, `"object.status[object.status.state]": a field of it is missing; ask for it with has() or in first`},
		{`object.status.conditions.all(c, c.status != "")`, `"c.status": a field of it is missing; ask for it with has() first`},
		{`object.status.conditions[7].type == ""`, `"object.status.conditions[7].type": the list has no element at this index`},
		{`object.status.state > 1`, `"object.status.state > 1": > cannot take a string and a number`},
		{`object.spec.numberOfReplicas && true`, `"object.spec.numberOfReplicas && true": && cannot take a number and a bool`},
		{`object.spec.numberOfReplicas.startsWith("3")`, `"object.spec.numberOfReplicas.startsWith(\"3\")": startsWith cannot take a number and a string`},
		{`object.spec.numberOfReplicas.matches("3")`, `"object.spec.numberOfReplicas.matches(\"3\")": matches cannot take a number and a string`},
		{`object.status.conditions.map(c, c.type)[0] > 1`, `"object.status.conditions.map(c, c.type)[0] > 1": > cannot take these values; their types do not fit`},
		{`object.status.state`, `the result is a string, not true or false`},
		{`object.status.conditions`, `the result is a list, not true or false`},
		{`object.status.kubernetesStatus.lastPVCRefAt`, `the result is null, not true or false`},
		{`object.spec.numberOfReplicas / 0 == 1`, `"object.spec.numberOfReplicas / 0": division by zero`},
		{`9223372036854775807 + object.spec.numberOfReplicas > 0`, `"9223372036854775807 + object.spec.numberOfReplicas": the result is too large`},
		{`timestamp(object.status.state) > timestamp("2026-01-01T00:00:00Z")`, `"timestamp(object.status.state)": the string is not a time like "2026-12-24T18:00:00Z"`},
		{`int(object.status.state) == 1`, `"int(object.status.state)": the value cannot be converted`},
		{`object.?status.?nope.value() == 1`, `"object.?status.?nope.value()": there is no value; write .orValue() or ask .hasValue() first`},
		{`timestamp(object.metadata.creationTimestamp).getHours(object.status.state) == 1`, `"timestamp(object.metadata.creationTimestamp).getHours(object.status.state)": the time zone is not known`},
		{`object.metadata.name.substring(4, 1) == ""`, `"object.metadata.name.substring(4, 1)": the end of the part is before its start`},
		{`object.metadata.name.charAt(99) == ""`, `"object.metadata.name.charAt(99)": the string is shorter`},
	} {
		t.Run(tt.source, func(t *testing.T) {
			p, err := expression.Compile(tt.source)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Eval(volume())
			if err == nil || got {
				t.Fatalf("got %v, %v; want an error", got, err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if errors.Is(err, expression.ErrTooCostly) {
				t.Error("it counts as too costly")
			}
		})
	}
}

// TestEvalTellsNoValues looks for a value of the object, which may be secret, in
// the errors that CEL would put it in.
func TestEvalTellsNoValues(t *testing.T) {
	const value = "hunter2"
	object := map[string]any{"data": map[string]any{"token": value, "list": []any{value}}}
	for _, source := range []string{
		`object.data.token`, `object.data[object.data.token] == ""`, `int(object.data.token) == 1`,
		`timestamp(object.data.token) == timestamp(object.data.token)`, `duration(object.data.token) == duration("1s")`,
		`double(object.data.token) == 1.0`, `bool(object.data.token)`, `object.data.token + 1 == ""`, `object.data.token.x == 1`,
		`("%d" + object.data.token).format(object.data.list) == ""`,
		`timestamp("2026-01-01T00:00:00Z").getHours(object.data.token) == 1`, `object.data.list[object.data.token] == 1`,
		`object.data.list.map(x, x.y) == []`, `{object.data.token: 1}["x"] == 1`, `math.greatest(object.data.list) == 1`,
		`object.data.list == 1 || object.data.list.join(1) == ""`, `[object.data.token, 1].sort() == []`, `b"a" == object.data.token || object.data.nope`,
		`object.data.token.charAt(99) == ""`, `object.data.list.slice(3, 9) == []`,
	} {
		p, err := expression.Compile(source)
		if err != nil {
			continue // It does not come to the value.
		}
		_, err = p.Eval(object)
		if err == nil {
			t.Errorf("%s: no error", source)
		} else if strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestEvalObjects(t *testing.T) {
	p, err := expression.Compile(`object.a == 1`)
	if err != nil {
		t.Fatal(err)
	}
	deep := any(map[string]any{})
	for range 100 {
		deep = []any{deep}
	}
	for _, tt := range []struct {
		name   string
		object map[string]any
		want   string
		costly bool
	}{
		{"nil", nil, `object has no field "a"; ask has(object.a) first`, false},
		{"of another type", map[string]any{"a": time.Second}, "the object holds a time.Duration, which JSON does not have", false},
		{"nested deep", map[string]any{"a": deep}, "the object is nested deeper than 64: too costly", true},
		{"large", map[string]any{"a": []any{strings.Repeat("x", 6<<20), strings.Repeat("x", 6<<20)}}, "what the expression reads of the object is larger than 1000000 elements: too costly", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.Eval(tt.object)
			if err == nil || got {
				t.Fatalf("got %v, %v", got, err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if errors.Is(err, expression.ErrTooCostly) != tt.costly {
				t.Errorf("too costly is %v", !tt.costly)
			}
		})
	}
	// What is not read does not matter.
	if got, err := p.Eval(map[string]any{"a": int64(1), "b": deep, "c": time.Second}); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestFields(t *testing.T) {
	for _, tt := range []struct {
		source string
		want   []string
		all    bool
	}{
		{`true`, nil, false},
		{`object.status.state == "x" || has(object.spec.size)`, []string{"spec", "status"}, false},
		{`object["status"].state == "x"`, []string{"status"}, false},
		{`object.?metadata.name.orValue("") == "x"`, []string{"metadata"}, false},
		{`object[?"metadata"].hasValue()`, []string{"metadata"}, false},
		{`object.status.conditions.all(c, c.type == object.kind)`, []string{"kind", "status"}, false},
		{`.object.kind == "x"`, []string{"kind"}, false},
		{`object == object`, nil, true},
		{`object.all(k, k != "")`, nil, true},
		{`"status" in object`, nil, true},
		{`object[object.kind] == 1`, nil, true},
		{`{"x": 1}[object.kind] == 1`, []string{"kind"}, false},
		{`object`, nil, true},
	} {
		p, err := expression.Compile(tt.source)
		if err != nil {
			t.Errorf("%s: %v", tt.source, err)
			continue
		}
		got, some := p.Fields()
		if diff := cmp.Diff(tt.want, got); diff != "" || some == tt.all {
			t.Errorf("%s: may read any is %v, (-want +got):\n%s", tt.source, !some, diff)
		}
	}
}

func TestConcurrently(t *testing.T) {
	p, err := expression.Compile(`object.status.conditions.exists(c, c.type == "Scheduled") && object.metadata.name.matches("^pvc-1$")`)
	if err != nil {
		t.Fatal(err)
	}
	shared := volume()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if got, err := p.Eval(shared); !got || err != nil {
					t.Errorf("got %v, %v", got, err)
				}
				if _, err := expression.Compile(`object.status.state == "x"`); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if diff := cmp.Diff(volume(), shared); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
}

// BenchmarkEval bounds what a rule costs for one object: about twenty microseconds.
func BenchmarkEval(b *testing.B) {
	p, err := expression.Compile(`object.status.state != "attached" || object.status.robustness == "healthy"`)
	if err != nil {
		b.Fatal(err)
	}
	object := volume()
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := p.Eval(object); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
