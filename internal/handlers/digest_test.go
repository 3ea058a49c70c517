package handlers_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
)

var (
	room  = chat.Room{Platform: chat.Slack, ID: "C0123456"}
	eight = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
)

// morning is a world of digests: a cluster, one repository, a chat and a forge.
type morning struct {
	t       *testing.T
	now     time.Time
	facts   *factStore
	reports *kept[digest.Report]
	samples *kept[digest.Sample]
	outbox  *kept[handlers.Outgoing]
	issues  *issues
	outlook *handlers.Outlook
	*handlers.Digests
}

// issues keeps what was written.
type issues struct {
	written []string
	fail    error
}

func (i *issues) KeepIssue(_ context.Context, repo pull.Repo, author, marker, title, body string) (string, error) {
	if i.fail != nil {
		return "", i.fail
	}
	if !strings.HasPrefix(body, marker) {
		return "", errors.New("the marker is missing")
	}
	i.written = append(i.written, repo.String()+" by "+author+": "+title)
	return "https://gitea.example.org/1", nil
}

type wholeLedger struct{ entries decision.Ledger }

func (l *wholeLedger) All() decision.Ledger     { return l.entries }
func (*wholeLedger) Sync(context.Context) error { return nil }

func noDeadLetters(context.Context) (int, error) { return 0, nil }

// atEight is the schedule of every day at eight.
func atEight(after, until time.Time) (time.Time, bool) {
	at := until.Truncate(24 * time.Hour).Add(8 * time.Hour)
	if at.After(until) {
		at = at.Add(-24 * time.Hour)
	}
	return at, at.After(after)
}

func newMorning(t *testing.T) *morning {
	m := &morning{
		t: t, now: eight, facts: &factStore{facts: map[fact.Key]fact.Fact{}}, reports: &kept[digest.Report]{}, samples: &kept[digest.Sample]{},
		outbox: &kept[handlers.Outgoing]{}, issues: &issues{},
	}
	clock := func() time.Time { return m.now }
	conflict := func(err error) bool { return errors.Is(err, errConflict) }
	repositories := handlers.NewRepositories(oneRepo{}, []handlers.RepositorySetting{{Owner: "ops", Name: "home"}})
	if _, err := repositories.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.outlook = &handlers.Outlook{
		Facts: m.facts, Records: &kept[handlers.Record]{}, Repositories: repositories, Ledger: &wholeLedger{},
		DeadLetters: noDeadLetters, Clusters: []string{"prod"}, Now: clock,
	}
	m.Digests = &handlers.Digests{
		Rules: []handlers.DigestRule{{
			Name: "morning", Zone: "UTC", About: handlers.About{Sections: digest.Sections()}, Rooms: []chat.Room{room},
			Issues: []string{"ops/home"}, Chart: true, Latest: atEight,
		}},
		Outlook: m.outlook, Reports: m.reports,
		Samples: &handlers.Samples{Outlook: m.outlook, Store: m.samples, Conflict: conflict, Now: clock},
		Outbox: &handlers.Outbox{
			Store: m.outbox, Posters: map[chat.Platform]chat.Poster{chat.Slack: &wall{}}, Conflict: conflict, Now: clock, Log: slog.New(slog.DiscardHandler),
		},
		Issues: m.issues, Account: handlers.NewAccount(self{}), Repositories: repositories,
		Chart: func(samples []digest.Sample, _ time.Time) (chat.Picture, error) {
			if len(samples) == 0 {
				return chat.Picture{}, errors.New("no samples")
			}
			return chat.Picture{Name: "trend.png"}, nil
		},
		Page: func(r *digest.Report) string { return "https://signalbox.example.org/" + r.Name }, Conflict: conflict, Now: clock,
		Log: slog.New(slog.DiscardHandler),
	}
	m.heard(false)
	return m
}

// heard says whether the cluster is silent, and that its Kustomizations are known.
func (m *morning) heard(silent bool) {
	m.facts.facts[fact.HeartbeatKey("prod")] = fact.Fact{Key: fact.HeartbeatKey("prod"), Since: m.now, Heartbeat: &fact.Heartbeat{Silent: silent, LastHeard: m.now}}
	m.facts.facts[fact.ClusterKey("prod")] = fact.Fact{Key: fact.ClusterKey("prod"), Cluster: &fact.Cluster{
		Kinds: map[string]fact.Watch{"kustomization": {State: fact.WatchSynced}},
	}}
}

// ready sets the state of a Kustomization.
func (m *morning) ready(name, status string, since time.Time) {
	k := fact.Kube("prod", "Kustomization", "flux-system", name)
	m.facts.facts[k] = fact.Fact{Key: k, UID: name, Version: "1", Since: since, SeenAt: m.now, Flux: &fact.Flux{
		Generation: 1, ObservedGeneration: 1, Ready: fact.Condition{Status: status, Reason: "HealthCheckFailed", Message: "a Deployment is not ready"},
	}}
}

// tick is the tick of a digest.
func (m *morning) tick(at time.Time) error {
	m.t.Helper()
	tick := events.Tick{Name: handlers.DigestTick + "morning", At: at}
	e, err := events.New(tick.ID(), "clock", at, tick)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.Handle(m.t.Context(), e)
}

// said returns what is to be said, and forgets it.
func (m *morning) said() []handlers.Outgoing {
	var out []handlers.Outgoing
	for key, o := range m.outbox.All() {
		out = append(out, o)
		_ = m.outbox.Delete(m.t.Context(), key)
	}
	return out
}

func TestDigestIsMadeOnce(t *testing.T) {
	m := newMorning(t)
	m.ready("apps", fact.False, eight.Add(-time.Hour))
	m.issues.fail = errors.New("Gitea is away")
	if err := m.tick(eight); err == nil {
		t.Fatal("the issue could not be written, and that was no error")
	}
	first := m.said()
	if len(first) != 1 || !strings.Contains(first[0].Body.Text, "apps") || first[0].Room != room {
		t.Fatalf("said %+v", first)
	}
	// The second try says the same, though the world has changed and it is later.
	m.now = eight.Add(time.Minute)
	m.ready("apps", fact.True, m.now)
	m.issues.fail = nil
	if err := m.tick(eight); err != nil {
		t.Fatal(err)
	}
	second := m.said()
	if len(second) != 1 || second[0].Cause != first[0].Cause {
		t.Fatalf("said %+v", second)
	}
	if diff := cmp.Diff(first[0].Body, second[0].Body); diff != "" {
		t.Errorf("the second try says something else (-first +second):\n%s", diff)
	}
	if len(m.issues.written) != 1 || len(m.reports.values) != 1 {
		t.Errorf("%d issues, %d reports", len(m.issues.written), len(m.reports.values))
	}
	// The next one says what recovered, and is late.
	m.now = eight.Add(25 * time.Hour)
	m.heard(false)
	if err := m.tick(eight.Add(24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	next, ok := m.Last("morning", m.now)
	if !ok || !next.Late || len(next.Recovered) != 1 || next.New != 0 {
		t.Errorf("the next is %+v", next)
	}
}

func TestDigestOfAnother(t *testing.T) {
	m := newMorning(t)
	m.ready("apps", fact.True, eight)
	// Another replica is first, between the look and the write.
	theirs := digest.Report{Name: "morning", Scheduled: eight, Made: eight, New: 7}
	m.reports.before = func(digest.Report) error {
		m.reports.before = nil
		_, err := m.reports.Put(t.Context(), handlers.ReportKey("morning", eight), theirs, 0)
		if err != nil {
			t.Fatal(err)
		}
		return errConflict
	}
	if err := m.tick(eight); err != nil {
		t.Fatal(err)
	}
	if got := m.reports.values[handlers.ReportKey("morning", eight)]; got.New != 7 {
		t.Errorf("the report of the other is gone: %+v", got)
	}
	// A digest that is configured no more, and one that is newer than an old tick.
	m.Rules = nil
	if err := m.tick(eight.Add(time.Hour)); err != nil || len(m.reports.values) != 1 {
		t.Errorf("%v, %d reports", err, len(m.reports.values))
	}
}

func TestOldTickDoesNotPutTheIssueBack(t *testing.T) {
	m := newMorning(t)
	for _, at := range []time.Time{eight.Add(24 * time.Hour), eight} {
		if err := m.tick(at); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.issues.written) != 1 {
		t.Errorf("written %q", m.issues.written)
	}
}

func TestSamples(t *testing.T) {
	m := newMorning(t)
	sample := func(at time.Time) {
		t.Helper()
		tick := events.Tick{Name: handlers.SampleTick, At: at}
		e, err := events.New(tick.ID(), "clock", at, tick)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Samples.Handle(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	m.heard(true)
	sample(eight)
	if len(m.samples.values) != 0 {
		t.Fatal("a sample was taken while nothing was known")
	}
	m.heard(false)
	m.ready("apps", fact.False, eight.Add(-time.Hour))
	m.ready("infra", fact.True, eight.Add(-time.Hour))
	sample(eight)
	sample(eight)
	sample(eight.Add(10 * time.Minute))
	sample(eight.Add(-2 * time.Hour)) // What was then cannot be seen now.
	m.now = eight.Add(time.Hour)
	sample(m.now)
	got := m.Samples.Held(m.now)
	if len(got) != 2 || !got[0].At.Equal(eight) || got[0].Ready != 1 || got[0].Total != 2 || got[0].Open[digest.Flux] != 1 {
		t.Errorf("got %+v", got)
	}
	if old := m.Samples.Held(eight.Add(31 * 24 * time.Hour)); len(old) != 0 {
		t.Errorf("after a month there is %+v", old)
	}
}

func TestWhatWasMissedIsOneDigest(t *testing.T) {
	m := newMorning(t)
	// Nobody handled the tick of Tuesday until Thursday, when that of Thursday comes too.
	m.now = eight.Add(49 * time.Hour)
	for _, at := range []time.Time{eight, eight.Add(48 * time.Hour)} {
		if err := m.tick(at); err != nil {
			t.Fatal(err)
		}
	}
	if said := m.said(); len(said) != 1 || len(m.reports.values) != 1 {
		t.Fatalf("%d reports, said %+v", len(m.reports.values), said)
	}
	// One that was made is sent on, whatever is due meanwhile, and not said again when
	// nobody can tell any more that it was.
	m.now = eight.Add(73 * time.Hour)
	if err := m.tick(eight.Add(48 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if said := m.said(); len(said) != 0 || len(m.issues.written) != 2 {
		t.Fatalf("%d issues, said %+v", len(m.issues.written), said)
	}
}

func TestOneIssueThatCannotBeDoesNotKeepTheOthers(t *testing.T) {
	m := newMorning(t)
	m.Rules[0].Issues = []string{"ops/gone", "ops/home"}
	m.issues.fail = errors.New("Gitea is away")
	if err := m.tick(eight); err == nil || events.IsPermanent(err) {
		t.Errorf("given up: %v", err)
	}
	m.issues.fail = nil
	if err := m.tick(eight); !events.IsPermanent(err) || len(m.issues.written) != 1 {
		t.Errorf("%v, written %q", err, m.issues.written)
	}
}

// An override stands in the ledger with the time of its comment, which may be read after
// the digest that it would have been in.
func TestOverrideThatIsReadLate(t *testing.T) {
	m := newMorning(t)
	ledger := &wholeLedger{}
	m.outlook.Ledger = ledger
	override := func(id string, at time.Time) {
		ledger.entries = append(ledger.entries, decision.Entry{
			ID: id, Kind: decision.Override, Repo: pull.Repo{ID: 7}, Number: 1, By: pull.Person{Login: "alice"}, At: at, Passes: []string{"ready"},
		})
	}
	told := func(days int) (ids []string) {
		t.Helper()
		at := eight.AddDate(0, 0, days)
		m.now = at
		if err := m.tick(at); err != nil {
			t.Fatal(err)
		}
		r, _ := m.Last("morning", at.Add(time.Second))
		for _, p := range r.Sections {
			for _, f := range p.Findings {
				if f.Once {
					ids = append(ids, f.ID)
				}
			}
		}
		return ids
	}
	told(0)
	override("late", eight.Add(-time.Minute))
	override("then", eight.Add(23*time.Hour))
	if got := told(1); len(got) != 2 {
		t.Errorf("told %q", got)
	}
	if got := told(2); len(got) != 0 {
		t.Errorf("told again %q", got)
	}
}

// What nobody collects is not known, and is not said to be well.
func TestOutlookKnowsWhatIsNotWatched(t *testing.T) {
	m := newMorning(t)
	for _, tt := range []struct {
		sections []digest.Section
		want     []digest.Section
	}{
		{digest.Sections(), []digest.Section{digest.Nodes, digest.Storage, digest.Pipelines}},
		{[]digest.Section{digest.Nodes}, []digest.Section{digest.Nodes}},
		{[]digest.Section{digest.Flux}, nil},
	} {
		m.outlook.Watching = false
		found, err := m.outlook.Look(t.Context(), handlers.About{Sections: tt.sections}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		var blind []digest.Section
		for _, b := range found.Blind {
			if b.Section != digest.Flux { // Of which this world has one kind only.
				blind = append(blind, b.Section)
			}
		}
		if diff := cmp.Diff(tt.want, blind); diff != "" {
			t.Errorf("%v: blind (-want +got):\n%s", tt.sections, diff)
		}
	}
}
