package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/decision"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
	"signalbox/internal/recording"
	"signalbox/internal/replay"
)

var (
	// begin is a Monday.
	begin = time.Date(2026, 9, 7, 2, 0, 0, 0, time.UTC)
	home  = pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
	alice = pull.Person{ID: 1, Login: "alice"}
	apps  = fact.Kube("prod", "Kustomization", "flux-system", "apps")
)

const (
	base = "f21e89d9d20c4f2b9a6d1e7e5a5f4c3b2a190817"
	next = "a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9"

	onlyAtNight = `version: 1
preconditions:
  - {name: at night, window: {deny: ["03:00-06:00"]}}
`
	appsReady = `version: 1
preconditions:
  - {name: apps is Ready, flux: {kustomization: flux-system/apps, contains: base}}
`
)

// tape is a recording that is made by hand.
type tape struct {
	t      testing.TB
	header recording.Header
	lines  []recording.Line
	seq    uint64
}

func newTape(t testing.TB) *tape {
	c := &tape{t: t, header: recording.Header{Program: "v1", At: begin, Clusters: []string{"prod"}}}
	return c.fact(0, fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{}}).
		fact(0, fact.Fact{Key: fact.ClusterKey("prod"), Cluster: &fact.Cluster{Kinds: map[string]fact.Watch{"kustomization": {State: fact.WatchSynced}}}})
}

func (c *tape) add(kind recording.Kind, after time.Duration, key string, value any) *tape {
	c.t.Helper()
	c.seq++
	l := recording.Line{Kind: kind, Seq: c.seq, At: begin.Add(after), Key: key}
	if value == nil {
		l.Deleted = kind != recording.Now
	} else {
		data, err := json.Marshal(value)
		if err != nil {
			c.t.Fatal(err)
		}
		l.Value = data
	}
	c.lines = append(c.lines, l)
	return c
}

func (c *tape) now() *tape { return c.add(recording.Now, 0, "", nil) }

func (c *tape) fact(after time.Duration, f fact.Fact) *tape {
	return c.add(recording.Fact, after, f.Key.String(), f)
}

// applied says which revision the Kustomization has applied.
func (c *tape) applied(after time.Duration, sha string) *tape {
	return c.fact(after, fact.Fact{Key: apps, Since: begin, SeenAt: begin, Flux: &fact.Flux{
		Ready: fact.Condition{Status: "True", Reason: "ReconciliationSucceeded"}, Applied: "main@sha1:" + sha,
	}})
}

// record keeps pull request n with the text of a policy; what was decided of it is clear
// or waiting.
func (c *tape) record(after time.Duration, n int64, text string, decided policy.GateState, answers ...handlers.Answered) *tape {
	p := pull.Pull{Repo: home, Number: n, State: pull.Open, Author: pull.Person{ID: 2, Login: "bob"}, Head: pull.Branch{Name: "x", SHA: next}, Base: pull.Branch{Name: "main", SHA: base}}
	r := handlers.Record{
		Inputs: handlers.Inputs{
			Snapshot: pull.Snapshot{Pull: p, Files: []pull.File{{Path: "a.yaml", Change: pull.Modified}}, ReadAt: begin},
			Policy:   &handlers.Document{Name: "policy", Text: text}, Answers: answers,
		},
		EvaluatedAt: begin.Add(after),
	}
	r.Verdict = policy.Verdict{Ref: p.Ref(), Head: next, Base: "main", Preconditions: policy.Gate{State: decided}, Approval: policy.Gate{State: policy.Clear}}
	return c.add(recording.Pull, after, p.Ref().String(), r)
}

func (c *tape) text() []byte {
	c.t.Helper()
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, c.header)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range c.lines {
		if err := w.Write(l); err != nil {
			c.t.Fatal(err)
		}
	}
	return b.Bytes()
}

// play replays and returns the steps and the end, in short.
func (c *tape) play(o replay.Options) (steps []string, end []string) {
	c.t.Helper()
	r, err := recording.NewReader(bytes.NewReader(c.text()))
	if err != nil {
		c.t.Fatal(err)
	}
	o.Step = func(s replay.Step) error {
		text := fmt.Sprintf("+%s #%d ", s.At.Sub(begin), s.Pull.Number)
		if s.Left {
			text += "left"
		} else {
			text += string(s.Verdict.Preconditions.State) + ": " + s.Reason
		}
		steps = append(steps, text)
		return nil
	}
	standings, _, err := replay.Run(r, o)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range standings {
		end = append(end, fmt.Sprintf("#%d %s %s", s.Pull.Number, s.Verdict.State(), strings.Join(s.Missing, ", ")))
	}
	return steps, end
}

func (c *tape) check(o replay.Options, steps, end []string) {
	c.t.Helper()
	gotSteps, gotEnd := c.play(o)
	if diff := cmp.Diff(steps, gotSteps); diff != "" {
		c.t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(end, gotEnd); diff != "" {
		c.t.Errorf("end (-want +got):\n%s", diff)
	}
}

// TestTimePasses looks again at the moments that verdicts name, and no further than the
// recording goes.
func TestTimePasses(t *testing.T) {
	newTape(t).record(0, 1, onlyAtNight, policy.Clear).now().applied(90*time.Minute, base).applied(5*time.Hour, base).check(replay.Options{},
		[]string{"+0s #1 clear: the recording begins", "+1h0m0s #1 waiting: time", "+4h0m0s #1 clear: time"},
		[]string{"#1 clear "})
	newTape(t).record(0, 1, onlyAtNight, policy.Clear).now().applied(90*time.Minute, base).check(replay.Options{},
		[]string{"+0s #1 clear: the recording begins", "+1h0m0s #1 waiting: time"},
		[]string{"#1 waiting "})
}

// TestAFactWakesItsReaders leaves those alone whose verdict does not rest on it.
func TestAFactWakesItsReaders(t *testing.T) {
	absent := fact.Fact{Key: apps, Absent: true}
	newTape(t).applied(0, base).record(0, 1, appsReady, policy.Clear).record(0, 2, onlyAtNight, policy.Clear).now().
		fact(time.Minute, absent).fact(2*time.Minute, fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "other")}).
		add(recording.Fact, 3*time.Minute, apps.String(), nil).check(replay.Options{},
		[]string{
			"+0s #1 clear: the recording begins", "+0s #2 clear: the recording begins",
			"+1m0s #1 waiting: fact kube.prod.kustomization.flux-system.apps",
		},
		[]string{"#1 waiting ", "#2 clear "})
}

// TestStreamsAreInTheOrderOfTheClock has the lines of two streams side by side.
func TestStreamsAreInTheOrderOfTheClock(t *testing.T) {
	newTape(t).applied(0, base).record(0, 1, appsReady, policy.Clear).now().
		record(2*time.Minute, 1, appsReady, policy.Clear).
		fact(time.Minute, fact.Fact{Key: apps, Absent: true}).
		applied(90*time.Second, base).check(replay.Options{},
		[]string{
			"+0s #1 clear: the recording begins",
			"+1m0s #1 waiting: fact kube.prod.kustomization.flux-system.apps",
			"+1m30s #1 clear: fact kube.prod.kustomization.flux-system.apps",
			"+2m0s #1 clear: it was read again",
		},
		[]string{"#1 clear "})
}

// TestAncestryIsKnownFromLaterRecords finds an answer that Gitea gave a moment after the
// fact that raised the question.
func TestAncestryIsKnownFromLaterRecords(t *testing.T) {
	ask := policy.Ask{Repo: home.String(), Applied: next, Needed: base}
	known := newTape(t).applied(0, base).record(0, 1, appsReady, policy.Clear).now().applied(time.Minute, next)
	_, end := known.play(replay.Options{})
	if len(end) != 1 || !strings.Contains(end[0], "#1 waiting whether "+next+" contains "+base) {
		t.Fatalf("without an answer the end is %v", end)
	}
	var asked string
	if asked = strings.TrimPrefix(end[0], "#1 waiting "); asked == "" {
		t.Fatal("nothing is missing")
	}
	for _, repo := range []string{"", home.String()} {
		ask.Repo = repo
		known.record(2*time.Minute, 1, appsReady, policy.Clear, handlers.Answered{Ask: ask, Answer: precondition.Contained})
	}
	steps, end := known.play(replay.Options{})
	if diff := cmp.Diff([]string{"#1 clear "}, end); diff != "" || strings.Contains(strings.Join(steps, "\n"), "waiting") {
		t.Errorf("with an answer the steps are %v and the end is %v", steps, end)
	}
}

func TestDecisionsCount(t *testing.T) {
	entry := func(after time.Duration, n int64, kind decision.Kind) decision.Entry {
		return decision.Entry{
			ID: "comment/1/0", Kind: kind, By: alice, Place: "comment", Repo: home, Number: n, Base: "main", Head: next,
			At: begin.Add(after), Reason: "wait", Until: begin.Add(after + time.Hour),
		}
	}
	tape := newTape(t).record(0, 1, onlyAtNight, policy.Clear).record(0, 2, onlyAtNight, policy.Clear).now().
		add(recording.Decision, time.Minute, "7.1.x", entry(time.Minute, 1, decision.Freeze)).
		add(recording.Pull, 2*time.Minute, "7.2", nil)
	tape.check(replay.Options{},
		[]string{
			"+0s #1 clear: the recording begins", "+0s #2 clear: the recording begins",
			"+1m0s #1 waiting: a decision", "+1m0s #2 waiting: a decision",
			"+2m0s #2 left",
		},
		[]string{"#1 waiting "})
	tape.check(replay.Options{Wanted: func(p pull.Pull) bool { return p.Number == 2 }},
		[]string{"+0s #2 clear: the recording begins", "+1m0s #2 waiting: a decision", "+2m0s #2 left"}, nil)
}

// TestTheOperatorsRulesCount has them in the header, and another policy instead of the
// repository's.
func TestTheOperatorsRulesCount(t *testing.T) {
	tape := newTape(t).record(0, 1, onlyAtNight, policy.Clear).now()
	tape.header.Policy = appsReady
	tape.check(replay.Options{}, []string{"+0s #1 waiting: the recording begins"}, []string{"#1 waiting "})
	tape.header.Policy = ""
	tape.check(replay.Options{Policy: &handlers.Document{Name: "other", Text: appsReady}},
		[]string{"+0s #1 waiting: the recording begins"}, []string{"#1 waiting "})
}

func TestWhatIsWrongIsToldWithItsLine(t *testing.T) {
	tests := []struct {
		name string
		tape func(c *tape)
		want string
	}{
		{"cut short", func(c *tape) {}, "the recording ends before all is told that was there when it began; make it anew"},
		{"begun twice", func(c *tape) { c.now().now() }, "line 5: a recording begins only once"},
		{"the key of another", func(c *tape) { c.add(recording.Fact, 0, apps.String(), fact.Fact{}) }, "line 4: the fact kube.prod.kustomization.flux-system.apps says that it is =.=.=.=.="},
		{"no key of a fact", func(c *tape) { c.add(recording.Fact, 0, "x", fact.Fact{}) }, `line 4: fact key "x" has 1 parts, want 5`},
		{"no pull request", func(c *tape) { c.add(recording.Pull, 0, "x", handlers.Record{}) }, `line 4: "x" names no pull request`},
		{"another pull request", func(c *tape) {
			c.record(0, 1, appsReady, policy.Clear)
			c.lines[len(c.lines)-1].Key = "7.2"
		}, "line 4: the record of 7.2 is about 7.1"},
		{"no record", func(c *tape) { c.now().add(recording.Pull, 0, "7.1", "x") }, "line 5: the record of 7.1: json: cannot unmarshal string into Go value of type handlers.Record"},
		{"years later", func(c *tape) { c.now().applied(10000*time.Hour, base) }, "line 5: it is of 2027-10-28T18:00:00Z, more than a year after the recording began"},
		{"no decision", func(c *tape) { c.add(recording.Decision, 0, "7.1.x", decision.Entry{}) }, "line 4: decision has no id"},
		{"rules that are not valid", func(c *tape) { c.header.Policy = "version: 2\n" }, "line 1: the operator's rules are not valid:\noperator:1: version: version 2 is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newTape(t)
			tt.tape(c)
			r, err := recording.NewReader(bytes.NewReader(c.text()))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := replay.Run(r, replay.Options{}); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func FuzzRun(f *testing.F) {
	f.Add(newTape(f).applied(0, base).record(0, 1, appsReady, policy.Clear).record(0, 2, onlyAtNight, policy.Clear).now().
		applied(2*time.Hour, next).add(recording.Pull, 3*time.Hour, "7.2", nil).text())
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := recording.NewReader(bytes.NewReader(in))
		if err != nil {
			return
		}
		var steps int
		standings, _, err := replay.Run(r, replay.Options{Step: func(replay.Step) error {
			if steps++; steps > 1000 {
				return io.ErrShortWrite // More than a person wants to wait for.
			}
			return nil
		}})
		if err != nil {
			return
		}
		for i := range standings {
			if v := &standings[i].Verdict; v.State() == "" || v.Head != standings[i].Pull.Head.SHA {
				t.Errorf("the verdict is %+v", v)
			}
		}
	})
}
