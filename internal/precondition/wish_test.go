package precondition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
)

func TestWishesOn(t *testing.T) {
	pol, problems := policy.Load("p", []byte(`version: 1
preconditions:
  - {name: objects, objects: {kind: nodes, none: "true"}}
  - {name: kured, kured: {daemonSet: kube-system/kured, lockAnnotation: a/b}}
  - {name: cronjob, renovate: {cronJob: renovate/bot, mode: live}}
  - {name: flux, flux: {kustomization: a/b}}
  - {name: workflow, workflow: {file: a.yaml}}
  - {name: renovate, renovate: {workflow: a.yaml, mode: live}}
  - {name: status, status: {context: ci}}
  - {name: window, window: {deny: "03:00-04:00"}}
  - {name: depends, dependsOn: {applied: true}}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	var got []fact.Wish
	file := pol.File()
	for i := range file.Preconditions {
		for _, k := range file.Preconditions[i].Given() {
			got = append(got, precondition.WishesOn(k.Kind, "prod")...)
		}
	}
	want := []fact.Wish{
		fact.WishObjects("prod", fact.ObjectsQuery{Resource: "nodes", Test: "true"}),
		fact.WishKured("prod", fact.KuredQuery{Namespace: "kube-system", Name: "kured", Annotation: "a/b"}),
		fact.WishRenovate("prod", fact.RenovateQuery{Namespace: "renovate", Name: "bot"}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
