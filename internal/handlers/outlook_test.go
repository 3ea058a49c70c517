package handlers_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"signalbox/internal/digest"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// awayForge is a forge that can be away.
type awayForge struct {
	away bool
	name string
}

func (f *awayForge) Repo(context.Context, string, string) (pull.Repo, string, error) {
	if f.away {
		return pull.Repo{}, "", errors.New("the forge is away")
	}
	return pull.Repo{ID: 7, Owner: "ops", Name: f.name}, "main", nil
}

func (f *awayForge) RepoByID(ctx context.Context, _ int64) (pull.Repo, string, error) {
	return f.Repo(ctx, "", "")
}

// undecided is the record of a pull request on which nobody can decide.
func undecided(at time.Time) handlers.Record {
	gate := policy.Gate{State: policy.Undecided, Reason: "cluster prod is silent"}
	return handlers.Record{
		Inputs:      handlers.Inputs{Snapshot: pull.Snapshot{Pull: pull.Pull{Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home"}, Number: 1}}},
		Verdict:     policy.Verdict{Preconditions: gate, Approval: gate},
		EvaluatedAt: at, History: []policy.Change{{At: at, Preconditions: gate, Approval: gate}},
	}
}

// gateOf is what is found at the gate.
func (m *morning) gateOf(about handlers.About) digest.Result {
	m.t.Helper()
	about.Sections = []digest.Section{digest.Gate}
	found, err := m.outlook.Look(m.t.Context(), about, time.Time{})
	if err != nil {
		m.t.Fatal(err)
	}
	return found
}

func (m *morning) repositories(forge *awayForge, observe bool) {
	m.outlook.Repositories = handlers.NewRepositories(forge, []handlers.RepositorySetting{{Owner: "ops", Name: "home", Observe: observe}})
	m.Repositories = m.outlook.Repositories
	records := &kept[handlers.Record]{}
	if _, err := records.Put(m.t.Context(), "7.1", undecided(eight.Add(-time.Hour)), 0); err != nil {
		m.t.Fatal(err)
	}
	m.outlook.Records = records
}

func TestWhatIsOnlyObservedIsNotHeldToAnything(t *testing.T) {
	for _, observe := range []bool{false, true} {
		m := newMorning(t)
		m.repositories(&awayForge{name: "home"}, observe)
		key := fact.ProtectionKey(7, "main")
		m.facts.facts[key] = fact.Fact{Key: key, Since: eight, Protection: &fact.Protection{Gaps: []string{"administrators may merge"}}}
		if err := m.outlook.Repositories.Complete(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := m.gateOf(handlers.About{}).Findings; (len(found) == 0) != observe {
			t.Errorf("observe %t: found %+v", observe, found)
		}
		m.outlook.Records = &kept[handlers.Record]{}
		if found := m.gateOf(handlers.About{}).Findings; (len(found) == 0) != observe {
			t.Errorf("observe %t, no pull request: found %+v", observe, found)
		}
	}
}

func TestARenamedRepositoryIsLookedAt(t *testing.T) {
	m := newMorning(t)
	m.repositories(&awayForge{name: "house"}, false)
	m.outlook.Renovate = map[string][]string{"ops/home": {"renovate.yaml"}}
	if err := m.outlook.Repositories.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := m.gateOf(handlers.About{Repositories: []string{"Ops/Home"}}).Findings; len(found) != 1 {
		t.Errorf("found %+v", found)
	}
	if !slices.ContainsFunc(m.outlook.Wishes(), func(w fact.Wish) bool { return w.Key == fact.RenovateKey(7, "renovate.yaml") }) {
		t.Error("its Renovate is not wished for")
	}
}

func TestWhileTheForgeIsAwayNothingRecovers(t *testing.T) {
	forge := &awayForge{name: "home"}
	s := newSiren(t)
	s.repositories(forge, false)
	s.alerts.Outlook = s.outlook
	rule := &s.alerts.Rules[0]
	rule.About.Sections, rule.Sections = []digest.Section{digest.Gate}, []digest.Section{digest.Gate}
	if err := s.outlook.Repositories.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said := s.look(0); len(said) != 1 {
		t.Fatalf("said %+v", said)
	}
	// A start without the forge: which repositories there are is not known.
	records := s.outlook.Records
	forge.away = true
	s.repositories(forge, false)
	s.outlook.Records = records
	for range 3 {
		if said := s.look(10 * time.Minute); len(said) != 0 {
			t.Fatalf("said %+v", said)
		}
	}
	if found := s.gateOf(handlers.About{}); len(found.Blind) != 1 {
		t.Errorf("blind spots: %+v", found.Blind)
	}
	tick := hour(t, s.now)
	s.ready("apps", fact.True, eight)
	if err := s.Samples.Handle(t.Context(), tick); err != nil || len(s.samples.values) != 0 {
		t.Errorf("sampled %+v, %v", s.samples.values, err)
	}
	forge.away = false
	if err := s.Samples.Handle(t.Context(), tick); err != nil || len(s.samples.values) != 1 {
		t.Errorf("sampled %+v, %v", s.samples.values, err)
	}
	for _, sample := range s.samples.values {
		if sample.Pulls != 1 {
			t.Errorf("sampled %+v", sample)
		}
	}
	if said := s.look(10 * time.Minute); len(said) != 0 {
		t.Fatalf("said %+v", said)
	}
}

// hour is the tick of a sample.
func hour(t *testing.T, at time.Time) events.Event {
	t.Helper()
	tick := events.Tick{Name: handlers.SampleTick, At: at}
	e, err := events.New(tick.ID(), "clock", at, tick)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOnlyTheGateCountsDeadLetters(t *testing.T) {
	s := newSiren(t)
	asked := 0
	s.outlook.DeadLetters = func(context.Context) (int, error) { asked++; return 0, nil }
	for _, section := range digest.Sections() {
		asked = 0
		if _, err := s.outlook.Look(t.Context(), handlers.About{Sections: []digest.Section{section}}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 1}[section == digest.Gate]; asked != want {
			t.Errorf("%s: asked %d times, want %d", section, asked, want)
		}
	}
}
