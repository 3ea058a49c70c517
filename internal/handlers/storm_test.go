package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"signalbox/internal/fact"
)

// What breaks all at once, with long messages from outside, has to fit into what the
// bus takes as one value.
func TestAStormIsTold(t *testing.T) {
	for _, under := range []bool{false, true} {
		s := newSiren(t)
		for i := range 3000 {
			name := fmt.Sprintf("a-kustomization-with-a-name-%d", i)
			s.ready(name, fact.False, s.now.Add(-time.Hour))
			k := fact.Kube("prod", "Kustomization", "flux-system", name)
			f := s.facts.facts[k]
			f.Flux.Ready.Message = strings.Repeat("<é>", 200)
			if under && i > 0 {
				f.Flux.Ready.Reason = "DependencyNotReady"
				f.Flux.DependsOn = []fact.Ref{{Namespace: "flux-system", Name: "a-kustomization-with-a-name-0"}}
			}
			s.facts.facts[k] = f
		}
		s.now = s.now.Add(time.Second)
		if _, err := s.alerts.Look(t.Context(), &s.alerts.Rules[0]); err != nil {
			t.Errorf("under %t: %v", under, err)
		}
		said := s.said()
		if len(said) != 1 {
			t.Errorf("under %t: said %d", under, len(said))
			continue
		}
		if under && !strings.Contains(said[0].Body.Text, "2996 more") {
			t.Errorf("what follows is not counted: %s", said[0].Body.Text)
		}
		for k, f := range s.facts.facts {
			if f.Flux != nil {
				f.Flux.Ready.Status = fact.True
				s.facts.facts[k] = f
			}
		}
		if said := s.look(0); len(said) != 0 {
			t.Errorf("under %t: said %+v", under, said)
		}
		if said := s.look(2 * time.Minute); len(said) != 1 || !strings.Contains(strings.ToLower(said[0].Body.Text), "recovered") {
			t.Errorf("under %t: said %+v", under, said)
		}
	}
}
