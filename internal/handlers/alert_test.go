package handlers_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
)

// siren is a world of alerts.
type siren struct {
	*morning
	states *kept[handlers.AlertState]
	alerts *handlers.Alerts
}

func newSiren(t *testing.T) *siren {
	s := &siren{morning: newMorning(t), states: &kept[handlers.AlertState]{}}
	s.alerts = &handlers.Alerts{
		Rules: []handlers.AlertRule{{
			Name: "urgent", About: handlers.About{Sections: []digest.Section{digest.Flux}}, Rooms: []chat.Room{room},
			Rule: digest.Rule{After: 5 * time.Minute, Settle: 2 * time.Minute, Sections: []digest.Section{digest.Flux}},
		}},
		Outlook: s.outlook, States: s.states, Outbox: s.Outbox,
		Conflict: func(err error) bool { return errors.Is(err, errConflict) },
		Now:      func() time.Time { return s.now }, Log: slog.New(slog.DiscardHandler),
	}
	return s
}

// look lets time go on, looks, and returns what is said.
func (s *siren) look(after time.Duration) []handlers.Outgoing {
	s.t.Helper()
	s.now = s.now.Add(after)
	if _, err := s.alerts.Look(s.t.Context(), &s.alerts.Rules[0]); err != nil {
		s.t.Fatal(err)
	}
	return s.said()
}

func TestAlerts(t *testing.T) {
	s := newSiren(t)
	s.ready("apps", fact.True, s.now)
	if said := s.look(0); len(said) != 0 {
		t.Fatalf("said %+v", said)
	}
	s.ready("apps", fact.False, s.now)
	writes := s.states.n
	if said := s.look(time.Minute); len(said) != 0 || s.states.n != writes+1 {
		t.Fatalf("said %+v, %d writes", said, s.states.n-writes)
	}
	if said := s.look(time.Minute); len(said) != 0 || s.states.n != writes+1 {
		t.Fatalf("nothing changed: said %+v, %d writes", said, s.states.n-writes)
	}
	broke := s.look(4 * time.Minute)
	if len(broke) != 1 || !strings.Contains(broke[0].Body.Text, "apps") {
		t.Fatalf("said %+v", broke)
	}
	// Its cluster falls silent: it neither recovers nor is told again.
	s.heard(true)
	if said := s.look(time.Hour); len(said) != 0 {
		t.Fatalf("said %+v", said)
	}
	s.heard(false)
	s.ready("apps", fact.True, s.now)
	if said := s.look(0); len(said) != 0 {
		t.Fatalf("said %+v", said)
	}
	recovered := s.look(2 * time.Minute)
	if len(recovered) != 1 || recovered[0].Cause == broke[0].Cause {
		t.Fatalf("said %+v", recovered)
	}
}

// What was written as to be said is said, whoever ended before that; and who is second
// says nothing of its own.
func TestAlertsWithoutALeader(t *testing.T) {
	s := newSiren(t)
	s.ready("apps", fact.False, s.now.Add(-time.Hour))
	s.outbox.before = func(handlers.Outgoing) error { return errors.New("the bus is away") }
	if _, err := s.alerts.Look(t.Context(), &s.alerts.Rules[0]); err == nil {
		t.Fatal("it could not be said, and that was no error")
	}
	s.outbox.before = nil
	said := s.look(0)
	if len(said) != 1 || said[0].Cause != "alert/urgent/1" {
		t.Fatalf("said %+v", said)
	}
	if again := s.look(0); len(again) != 0 {
		t.Fatalf("said again: %+v", again)
	}
	// Another replica writes the recovery between the look of this one and its write.
	s.ready("apps", fact.True, s.now)
	s.look(0)
	s.states.before = func(handlers.AlertState) error {
		s.states.before = nil
		return errConflict
	}
	if said := s.look(2 * time.Minute); len(said) != 0 {
		t.Fatalf("the second says %+v", said)
	}
}
