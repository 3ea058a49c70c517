package kube

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// No object makes a reader panic, and each says the same of it again.
func FuzzReaders(f *testing.F) {
	for _, s := range []string{
		`{"metadata":{"annotations":{"weave.works/kured-reboot-in-progress":"2026-03-01T04:00:00Z"}}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1},"status":{"conditions":[{"type":"Available","status":"True"}]}}`,
		`{"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","valueFrom":{}}],"envFrom":[{"configMapRef":{"name":"x"}}]}]}}}}}}`,
		`{"metadata":{"ownerReferences":[{"controller":true,"kind":"CronJob","uid":"x"}]},"status":{"conditions":[{"type":"Complete","status":"True"}]}}`,
		`{"status":{"conditions":[null,1,"x",{"type":1}],"observedGeneration":"x"}}`,
	} {
		f.Add(s)
	}
	test, err := expressionTest(healthy)
	if err != nil {
		f.Fatal(err)
	}
	readers := map[string]func(map[string]any) cell{
		"kstatus": kstatus, "test": test, "node": readKuredNode, "cronjob": readCronJob, "job": readJob,
	}
	f.Fuzz(func(t *testing.T, s string) {
		var o map[string]any
		if json.Unmarshal([]byte(s), &o) != nil {
			return
		}
		for name, read := range readers {
			c := column{id: name, read: read}
			first := readCell(c, o)
			if again := readCell(c, o); !first.says(again) {
				t.Errorf("%s says %+v and then %+v", name, first, again)
			}
			if len(first.why) > maxWhy {
				t.Errorf("%s says %d bytes", name, len(first.why))
			}
			if j, ok := first.data.(cronJob); ok {
				_, _ = j.configured(nil)
			}
		}
	})
}

func TestRowsKeepSince(t *testing.T) {
	var changed int
	read := func(id, field string) column {
		return column{id: id, read: func(o map[string]any) cell {
			if text(o, "status", field) == "ok" {
				return cell{verdict: passing}
			}
			return cell{verdict: failed}
		}}
	}
	object := func(uid, a, b string) any {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "x", "uid": uid}, "status": map[string]any{"a": a, "b": b},
		}}
	}
	open := func(former *rows, columns ...columnOf) *rows {
		s := &rows{rows: map[objectName]*row{}, former: former, changed: func() { changed++ }, listed: func() {}, counted: func() {}}
		for _, c := range columns {
			s.columns = append(s.columns, read(c.id, c.field))
		}
		return s
	}
	since := func(s *rows, at int) (c cell) {
		s.each(at, func(_ *row, found cell) { c = found })
		return c
	}
	s := open(nil, columnOf{"A", "a"})
	if err := s.Replace([]any{object("1", "ok", "")}, "5"); err != nil {
		t.Fatal(err)
	}
	first := since(s, 0)
	if !first.listed {
		t.Error("what was listed says that it was seen to change")
	}
	tick := func() {
		for begin := time.Now().UnixNano(); time.Now().UnixNano() == begin; {
			continue
		}
	}
	tick()
	_ = s.Update(object("1", "ok", "other"))
	if c := since(s, 0); c.since != first.since || changed != 0 {
		t.Errorf("since %d, want %d; %d changes", c.since, first.since, changed)
	}
	tick()
	_ = s.Update(object("1", "bad", ""))
	bad := since(s, 0)
	if bad.since <= first.since || bad.listed || changed != 1 {
		t.Errorf("cell %+v after %+v, %d changes", bad, first, changed)
	}

	// Other columns take over what they know of each other.
	tick()
	next := open(s, columnOf{"B", "b"}, columnOf{"A", "a"})
	if err := next.Replace([]any{object("1", "bad", "ok")}, "6"); err != nil {
		t.Fatal(err)
	}
	if a, b := since(next, 1), since(next, 0); a.since != bad.since || b.since <= bad.since || !b.listed {
		t.Errorf("a %+v, b %+v, before %+v", a, b, bad)
	}
	// Another object of the same name begins anew.
	tick()
	_ = next.Add(object("2", "bad", "ok"))
	if a := since(next, 1); a.since <= bad.since {
		t.Errorf("since %d of the former object", a.since)
	}
	if err := next.Add("what?"); err == nil {
		t.Error("kept a text")
	}
	_ = next.Delete(object("2", "", ""))
	if n := next.size(); n != 0 {
		t.Errorf("%d rows after the deletion", n)
	}
}

type columnOf struct{ id, field string }
