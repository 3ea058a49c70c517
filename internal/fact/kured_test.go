package fact

import "testing"

func TestKuredKey(t *testing.T) {
	keys := map[Key]KuredQuery{}
	for _, q := range []KuredQuery{
		{Namespace: "n", Name: "kured"},
		{Namespace: "n", Name: "kured", Annotation: "x/y"},
		{Namespace: "n", Name: "kured@x/y"},
		{Namespace: "n", Name: "kured%40x/y"},
		{Namespace: "m", Name: "kured"},
	} {
		k := KuredKey("prod", q)
		if other, ok := keys[k]; ok {
			t.Errorf("%+v and %+v have one key: %s", q, other, k)
		}
		keys[k] = q
	}
	q := KuredQuery{Namespace: "n", Name: "kured"}
	named := q
	named.Annotation = DefaultKuredLock
	if KuredKey("prod", q) != KuredKey("prod", named) {
		t.Error("the default annotation has another key when it is named")
	}
}
