package digest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/digest"
)

// step is one look: what is there a number of minutes after the beginning, and what
// is announced.
type step struct {
	at    int
	there []digest.Finding
	blind []digest.Blind
	broke string
	ended string
	// again is the minute of the next look, if it is checked.
	again int
}

func fresh(id string, under ...digest.Finding) digest.Finding {
	f := broken(id, under...)
	f.Since = time.Time{}
	return f
}

func notices(all []digest.Notice) string {
	var findings []digest.Finding
	for _, n := range all {
		findings = append(findings, n.Finding)
	}
	return ids(findings)
}

func TestAlerts(t *testing.T) {
	const after, settle = 10, 5
	blind := []digest.Blind{{Section: digest.Flux, Cluster: "prod"}}
	as := func(f digest.Finding, s digest.Severity) digest.Finding { f.Severity = s; return f }
	a, b := fresh("a"), fresh("b")
	both := []digest.Finding{fresh("a", b)}
	for name, steps := range map[string][]step{
		"broke and recovered": {
			{at: 0, there: []digest.Finding{a}, again: 10},
			{at: 9, there: []digest.Finding{a}},
			{at: 10, there: []digest.Finding{a}, broke: "a"},
			{at: 11, there: []digest.Finding{a}},
			{at: 12, again: 17},
			{at: 16},
			{at: 17, ended: "a"},
			{at: 18},
		},
		"for long before it was looked at": {{at: 0, there: []digest.Finding{broken("a")}, broke: "a"}},
		"never long enough":                {{at: 0, there: []digest.Finding{a}}, {at: 9}, {at: 10, there: []digest.Finding{a}}, {at: 19, there: []digest.Finding{a}, again: 20}, {at: 20, there: []digest.Finding{a}, broke: "a"}},
		"it was away, whatever it says":    {{at: 0, there: []digest.Finding{a}}, {at: 5}, {at: 6, there: []digest.Finding{broken("a")}}, {at: 15, there: []digest.Finding{broken("a")}}, {at: 16, there: []digest.Finding{broken("a")}, broke: "a"}},
		"it flaps":                         {{at: 0, there: []digest.Finding{broken("a")}, broke: "a"}, {at: 1}, {at: 4, there: []digest.Finding{a}}, {at: 5}, {at: 9}, {at: 9, there: []digest.Finding{a}}, {at: 20}, {at: 25, ended: "a"}},
		"it comes back at once":            {{at: 0, there: []digest.Finding{broken("a")}, broke: "a"}, {at: 1}, {at: 6, ended: "a"}, {at: 7, there: []digest.Finding{broken("a")}, again: 17}, {at: 17, there: []digest.Finding{broken("a")}, broke: "a"}},
		"notable never alerts":             {{at: 0, there: []digest.Finding{as(broken("a"), digest.Notable)}}, {at: 60, there: []digest.Finding{as(broken("a"), digest.Notable)}}},
		"better is not away":               {{at: 0, there: []digest.Finding{broken("a")}, broke: "a"}, {at: 1, there: []digest.Finding{as(a, digest.Notable)}}, {at: 30, there: []digest.Finding{as(a, digest.Unclear)}}, {at: 31}, {at: 36, ended: "a"}},
		"worse only now":                   {{at: 0, there: []digest.Finding{as(a, digest.Unclear)}}, {at: 5, there: []digest.Finding{as(a, digest.Notable)}}, {at: 6, there: []digest.Finding{a}}, {at: 10, there: []digest.Finding{a}}},
		"blind":                            {{at: 0, there: []digest.Finding{broken("a")}, broke: "a"}, {at: 1}, {at: 2, blind: blind}, {at: 90, blind: blind}, {at: 91}, {at: 95}, {at: 96, ended: "a"}},
		"blind before":                     {{at: 0, there: []digest.Finding{a}}, {at: 2, blind: blind}, {at: 15, blind: blind}, {at: 16, there: []digest.Finding{a}, broke: "a"}},
		"together":                         {{at: 0, there: both}, {at: 10, there: both, broke: "a(b)"}, {at: 40, there: both}, {at: 41}, {at: 46, ended: "a"}, {at: 60}},
		"one joins":                        {{at: 0, there: []digest.Finding{a}}, {at: 10, there: []digest.Finding{a}, broke: "a"}, {at: 11, there: both}, {at: 60, there: both}},
		"the root recovers, and not the other": {
			{at: 0, there: both},
			{at: 10, there: both, broke: "a(b)"},
			{at: 20, there: []digest.Finding{b}, again: 25},
			{at: 25, there: []digest.Finding{b}, ended: "a"},
			{at: 29, there: []digest.Finding{b}},
			{at: 30, there: []digest.Finding{b}, broke: "b"},
			{at: 31},
			{at: 36, ended: "b"},
		},
		"announced, and then under another": {{at: 0, there: []digest.Finding{broken("b")}, broke: "b"}, {at: 1, there: both}, {at: 11, there: both, broke: "a"}, {at: 12, there: []digest.Finding{a}}, {at: 17, there: []digest.Finding{a}, ended: "b"}},
		"under what only is notable":        {{at: 0, there: []digest.Finding{as(fresh("a", b), digest.Notable)}}, {at: 10, there: []digest.Finding{as(fresh("a", b), digest.Notable)}, broke: "b"}},
		"waits for its root":                {{at: 0, there: []digest.Finding{b}}, {at: 5, there: both}, {at: 10, there: both}, {at: 15, there: both, broke: "a(b)"}},
	} {
		t.Run(name, func(t *testing.T) {
			rule := digest.Rule{After: after * time.Minute, Settle: settle * time.Minute}
			var s digest.State
			for _, st := range steps {
				at := now.Add(time.Duration(st.at) * time.Minute)
				var batch *digest.Batch
				var again time.Time
				s, batch, again = s.Next(digest.Result{Findings: st.there, Blind: st.blind}, rule, at)
				var broke, ended string
				if batch != nil {
					broke, ended = notices(batch.Broke), notices(batch.Recovered)
				}
				if broke != st.broke || ended != st.ended || batch != nil && broke+ended == "" {
					t.Errorf("minute %d: broke %q, want %q; recovered %q, want %q", st.at, broke, st.broke, ended, st.ended)
				}
				if want := now.Add(time.Duration(st.again) * time.Minute); st.again != 0 && !again.Equal(want) {
					t.Errorf("minute %d: look again at %v, want %v", st.at, again, want)
				}
			}
		})
	}
}

func TestAlertSaysHowLong(t *testing.T) {
	rule := digest.Rule{After: 10 * time.Minute, Settle: 5 * time.Minute}
	s, batch, _ := digest.State{}.Next(digest.Result{Findings: []digest.Finding{broken("a")}}, rule, now)
	if n := batch.Broke[0]; !n.Began.Equal(since) || !n.Ended.IsZero() {
		t.Errorf("%+v", n)
	}
	s, _, _ = s.Next(digest.Result{}, rule, now.Add(time.Minute))
	_, batch, _ = s.Next(digest.Result{}, rule, now.Add(time.Hour))
	if n := batch.Recovered[0]; !n.Began.Equal(since) || !n.Ended.Equal(now.Add(time.Minute)) || n.Finding.Text != "is not ready" {
		t.Errorf("%+v", n)
	}
}

func TestAlertRules(t *testing.T) {
	node, gate, dev := broken("node"), broken("gate"), broken("dev")
	node.Section, gate.Section, gate.Cluster, dev.Cluster = digest.Nodes, digest.Gate, "", "dev"
	res := digest.Result{Findings: []digest.Finding{broken("a"), dev, node, gate}}
	for name, tt := range map[string]struct {
		rule digest.Rule
		want string
	}{
		"all":      {digest.Rule{}, "a dev node gate"},
		"sections": {digest.Rule{Sections: []digest.Section{digest.Nodes, digest.Gate}}, "node gate"},
		"clusters": {digest.Rule{Clusters: []string{"prod"}}, "a node gate"},
	} {
		s, batch, _ := digest.State{}.Next(res, tt.rule, now)
		if got := notices(batch.Broke); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		// What a rule is not about any more did not recover.
		other := digest.Rule{Sections: []digest.Section{digest.Storage}}
		for range 2 {
			if s, batch, _ = s.Next(res, other, now.Add(time.Hour)); batch != nil || len(s.Watched) != 0 {
				t.Errorf("%s: %+v", name, batch)
			}
		}
	}
}

func TestStateIsBounded(t *testing.T) {
	var all []digest.Finding
	for i := range 5000 {
		f := broken(fmt.Sprintf("flux/prod/kustomization/flux-system/apps-%04d/not-ready", i))
		f.Text = strings.Repeat("<&>", 100)
		all = append(all, f)
	}
	rule := digest.Rule{After: time.Minute, Settle: time.Minute}
	s, batch, _ := digest.State{}.Next(digest.Result{Findings: all}, rule, now)
	text, err := json.Marshal(s)
	if err != nil || len(text) > 900_000 || len(s.Watched) == 0 || batch == nil {
		t.Fatalf("%d bytes, %d watched, %v", len(text), len(s.Watched), err)
	}
	recovered := 0
	for i := range 10 {
		if s, batch, _ = s.Next(digest.Result{}, rule, now.Add(time.Duration(i)*time.Minute)); batch != nil {
			recovered += len(batch.Recovered)
		}
	}
	if recovered == 0 || len(s.Watched) != 0 {
		t.Errorf("%d recovered, %d are watched still", recovered, len(s.Watched))
	}
}

// What holds whatever comes.
func TestAlertProperties(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(label string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(t, label)) * time.Minute
		}
		rule := digest.Rule{After: minutes("after", 0, 12), Settle: minutes("settle", 0, 6)}
		m := model{t: t, rule: rule, announced: map[string]time.Time{}, last: map[string]time.Time{}, there: map[string]time.Time{}, away: map[string]time.Time{}}
		at := now
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			at = at.Add(minutes("step", 0, 4))
			m.look(draw(t, names, at), at)
		}
		// In the end all is well, and of all that was announced the recovery is told.
		for range 4 {
			at = at.Add(max(rule.Settle, rule.After) + time.Minute)
			m.look(digest.Result{}, at)
		}
		if len(m.announced) > 0 || len(m.state.Watched) > 0 {
			t.Fatalf("never recovered: %v; watched: %v", m.announced, m.state.Watched)
		}
	})
}

// draw draws what is there: some findings, at times one under another, and at times
// nothing can be known.
func draw(t *rapid.T, names []string, at time.Time) digest.Result {
	var res digest.Result
	for _, name := range names {
		switch rapid.IntRange(0, 9).Draw(t, name) {
		case 0, 1, 2, 3:
			continue
		case 4:
			res.Blind = append(res.Blind, digest.Blind{Section: digest.Flux, Cluster: "prod", Prefix: name})
			continue
		}
		f := fresh(name)
		f.Severity = rapid.SampledFrom([]digest.Severity{digest.Broken, digest.Broken, digest.Unclear, digest.Notable}).Draw(t, "severity")
		if rapid.Bool().Draw(t, "old") {
			f.Since = at.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "since")) * time.Minute)
		}
		if n := len(res.Findings); n > 0 && rapid.Bool().Draw(t, "under") {
			res.Findings[n-1].Under = append(res.Findings[n-1].Under, f)
			continue
		}
		res.Findings = append(res.Findings, f)
	}
	return res
}

// model knows what may be announced.
type model struct {
	t     *rapid.T
	rule  digest.Rule
	state digest.State
	// announced is what is announced and did not recover, and last when it was at last.
	announced, last map[string]time.Time
	// there is since when something alerts, with nothing known to be well in between,
	// and away since when it is known to be away.
	there, away map[string]time.Time
}

func (m *model) look(res digest.Result, at time.Time) {
	seen, alerts, roots := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, f := range res.Findings {
		for _, g := range append([]digest.Finding{f}, f.Under...) {
			seen[g.ID], alerts[g.ID] = true, g.Alerts()
			if g.ID != f.ID && f.Alerts() {
				roots[g.ID] = f.ID
			}
		}
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		blind := slices.ContainsFunc(res.Blind, func(b digest.Blind) bool { return b.Prefix == id })
		switch {
		case alerts[id]:
			if m.there[id].IsZero() {
				m.there[id] = at
			}
		case !blind:
			m.there[id] = time.Time{}
		}
		if seen[id] || blind {
			m.away[id] = time.Time{}
		} else if m.away[id].IsZero() {
			m.away[id] = at
		}
	}
	before, _ := json.Marshal(m.state)
	next, batch, again := m.state.Next(res, m.rule, at)
	if now, _ := json.Marshal(m.state); string(now) != string(before) {
		m.t.Fatalf("a look changed the state that it was given")
	}
	m.state = m.reread(next)
	if batch == nil {
		batch = &digest.Batch{}
	}
	for _, n := range batch.Recovered {
		id := n.Finding.ID
		if _, ok := m.announced[id]; !ok {
			m.t.Fatalf("%s recovered, and was not announced", id)
		}
		if m.away[id].IsZero() || at.Sub(m.away[id]) < m.rule.Settle {
			m.t.Fatalf("%s recovered, and is away since %v", id, m.away[id])
		}
		delete(m.announced, id)
	}
	for _, n := range batch.Broke {
		m.broke(n, at, alerts, roots)
	}
	m.live(alerts, roots, at)
	if !again.IsZero() && !again.After(at) {
		m.t.Fatalf("look again at %v, which is not later than %v", again, at)
	}
	// Until then nothing happens by itself.
	if soon := at.Add(time.Second); again.IsZero() || soon.Before(again) {
		if _, b, _ := m.state.Next(res, m.rule, soon); b != nil {
			m.t.Fatalf("a look at %v announced %+v, and the next was said to be at %v", soon, b, again)
		}
	}
}

func (m *model) broke(n digest.Notice, at time.Time, alerts map[string]bool, roots map[string]string) {
	id := n.Finding.ID
	if _, twice := m.announced[id]; twice {
		m.t.Fatalf("%s was announced twice", id)
	}
	if last, ok := m.last[id]; ok && at.Sub(last) < m.rule.After+m.rule.Settle {
		m.t.Fatalf("%s was announced at %v and %v", id, last, at)
	}
	if !alerts[id] {
		m.t.Fatalf("%s was announced, and does not alert", id)
	}
	if root := roots[id]; root != "" {
		if _, ok := m.announced[root]; ok {
			m.t.Fatalf("%s was announced although %s is", id, root)
		}
	}
	old := !n.Finding.Since.IsZero() && at.Sub(n.Finding.Since) >= m.rule.After
	if at.Sub(m.there[id]) < m.rule.After && !old {
		m.t.Fatalf("%s was announced, and alerts only since %v", id, m.there[id])
	}
	m.announced[id], m.last[id] = at, at
}

// live checks that what is there for long is announced, or what it follows from.
func (m *model) live(alerts map[string]bool, roots map[string]string, at time.Time) {
	for id := range alerts {
		w := m.state.Watched[id]
		_, announced := m.announced[id]
		if !alerts[id] || announced || roots[id] != "" {
			continue
		}
		start := w.FirstSeen
		if w.Anew.After(start) {
			start = w.Anew
		}
		if at.Sub(start) >= m.rule.After {
			m.t.Fatalf("%s is there since %v and was not announced by %v", id, start, at)
		}
	}
}

// reread is the state after it was kept.
func (m *model) reread(s digest.State) digest.State {
	text, err := json.Marshal(s)
	if err != nil {
		m.t.Fatal(err)
	}
	var back digest.State
	if err := json.Unmarshal(text, &back); err != nil {
		m.t.Fatal(err)
	}
	if len(s.Watched) > 0 {
		if diff := cmp.Diff(s, back); diff != "" {
			m.t.Fatalf("the way through JSON changes it:\n%s", diff)
		}
	}
	return back
}
