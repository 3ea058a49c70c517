package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
	"signalbox/internal/recording"
)

// Standing is how a pull request stands, by the replay and by the recording.
type Standing struct {
	Pull pull.Pull
	// Verdict is what would have been decided, At when; Reason is what made one look.
	Verdict policy.Verdict
	At      time.Time
	Reason  string
	// Recorded is what was decided then.
	Recorded policy.Verdict
	// Missing is what the verdict asked about and the recording does not hold, in
	// words: it is unknown. Another policy may ask about what nobody looked at.
	Missing []string

	// evaluated is when the recorded verdict was made.
	evaluated time.Time
}

// Same reports whether the replay came to the states that are recorded, of the gates and
// of every rule.
func (s *Standing) Same() bool {
	a, b := &s.Verdict, &s.Recorded
	return a.Preconditions.State == b.Preconditions.State && a.Approval.State == b.Approval.State && len(s.Differences()) == 0
}

// Differences are the rules that are in another state by the replay than was recorded.
func (s *Standing) Differences() []policy.RuleChange {
	return handlers.RuleChanges(s.Recorded, s.Verdict)
}

// Step is one decision of the replay that says something new, or that is another than
// was recorded at that moment.
type Step struct {
	Standing
	// Was is the state before; empty for the first.
	Was policy.GateState
	// Compared says that a verdict was recorded at that moment: by when facts change,
	// signalbox keeps a verdict only if it is another one.
	Compared bool
	// Left says that the pull request is not open any more; there is no verdict then.
	Left bool
}

// Options say how to replay.
type Options struct {
	// Policy stands for the policies of all base branches, if it is set.
	Policy *handlers.Document
	// Wanted says which pull requests are looked at; nil is all.
	Wanted func(p pull.Pull) bool
	// Step is told each step, if it is set.
	Step func(Step) error
}

// Run replays a recording, and returns how the pull requests that are open at its end
// stand then, and when that is.
func Run(r *recording.Reader, o Options) ([]Standing, time.Time, error) {
	past, err := newPast(r.Header, o.Policy)
	if err != nil {
		return nil, time.Time{}, err
	}
	p := &player{
		past: past, options: o, standing: map[pull.Ref]*Standing{}, answers: map[pull.Ref][]handlers.Answered{},
		state: state{facts: facts{}, records: map[pull.Ref]handlers.Record{}},
	}
	later, err := p.begin(r)
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, n := range later {
		if n.line.At.After(p.begun.Add(maxLength)) {
			return nil, time.Time{}, fmt.Errorf("line %d: it is of %s, more than a year after the recording began", n.number, n.line.At.UTC().Format(time.RFC3339))
		}
		if err := p.until(n.line.At); err != nil {
			return nil, time.Time{}, err
		}
		if err := p.line(n.line); err != nil {
			return nil, time.Time{}, fmt.Errorf("line %d: %w", n.number, err)
		}
	}
	refs := slices.Collect(maps.Keys(p.standing))
	sortRefs(refs)
	out := make([]Standing, len(refs))
	for i, ref := range refs {
		out[i] = *p.standing[ref]
	}
	return out, p.now, nil
}

// maxLength bounds a recording: each moment that a verdict names within it is looked at.
const maxLength = 366 * 24 * time.Hour

// newPast makes what decides.
func newPast(h recording.Header, instead *handlers.Document) (*handlers.Past, error) {
	var operator *policy.Policy
	if h.Policy != "" {
		loaded, problems := policy.Load("operator", []byte(h.Policy))
		if len(problems) > 0 {
			return nil, fmt.Errorf("line 1: the operator's rules are not valid:\n%w", problems.Err())
		}
		operator = loaded
	}
	policies, err := handlers.NewPolicies(operator)
	if err != nil {
		return nil, err
	}
	past := &handlers.Past{Policies: policies, Clusters: h.Clusters, Instead: instead, Bots: []pull.Person{h.Self}}
	for _, login := range h.Bots {
		past.Bots = append(past.Bots, pull.Person{Login: login})
	}
	return past, nil
}

// player is a replay.
type player struct {
	past     *handlers.Past
	options  Options
	state    state
	standing map[pull.Ref]*Standing
	// begun is when the recording began, and now how far the replay is.
	begun, now time.Time
	// answers are those of all records, also later ones: whether a commit contains
	// another never changes.
	answers map[pull.Ref][]handlers.Answered
}

// numbered is a line with its place in the file.
type numbered struct {
	line   recording.Line
	number int
}

// begin takes in what was there when the recording began, decides about all of it, and
// returns what came later, by the clock: two streams are recorded side by side.
func (p *player) begin(r *recording.Reader) ([]numbered, error) {
	var later []numbered
	begun := false
	for {
		l, number, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && !begun:
			return nil, errors.New("the recording ends before all is told that was there when it began; make it anew")
		case errors.Is(err, io.EOF):
			slices.SortStableFunc(later, func(a, b numbered) int { return a.line.At.Compare(b.line.At) })
			return later, nil
		case err != nil:
			return nil, err
		case l.Kind == recording.Now && begun:
			return nil, fmt.Errorf("line %d: a recording begins only once", number)
		case l.Kind == recording.Now:
			begun, p.begun, p.now = true, l.At, l.At
			if err := p.all(); err != nil {
				return nil, err
			}
		case begun:
			// What is no part of a verdict need not be kept.
			if l.Kind == recording.Fact || l.Kind == recording.Pull || l.Kind == recording.Decision {
				later = append(later, numbered{l, number})
			}
			p.learn(l)
		default:
			if _, err := p.state.apply(l); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
	}
}

// learn keeps the answers of a later record. One that cannot be read is told when it is
// its turn.
func (p *player) learn(l recording.Line) {
	ref, ok := pull.ParseRef(l.Key)
	if l.Kind != recording.Pull || l.Deleted || !ok {
		return
	}
	var r struct {
		Inputs struct {
			Answers []handlers.Answered `json:"answers"`
		} `json:"inputs"`
	}
	if json.Unmarshal(l.Value, &r) != nil {
		return
	}
	for _, a := range r.Inputs.Answers {
		if a.Answer != precondition.Foreign {
			p.answers[ref] = append(p.answers[ref], a)
		}
	}
}

// all decides about every pull request at the beginning.
func (p *player) all() error {
	refs := slices.Collect(maps.Keys(p.state.records))
	sortRefs(refs)
	for _, ref := range refs {
		if err := p.decide(ref, "the recording begins", true); err != nil {
			return err
		}
	}
	return nil
}

// line takes one line in and decides about what it concerns.
func (p *player) line(l recording.Line) error {
	if l.At.After(p.now) {
		p.now = l.At
	}
	c, err := p.state.apply(l)
	if err != nil {
		return err
	}
	if l.Kind == recording.Pull {
		if l.Deleted {
			return p.leave(c.ref)
		}
		// A record is also kept for what is no verdict.
		s, r := p.standing[c.ref], p.state.records[c.ref]
		return p.decide(c.ref, because(l), s == nil || !r.EvaluatedAt.Equal(s.evaluated))
	}
	for _, ref := range c.concerned(p.standing) {
		if err := p.decide(ref, because(l), false); err != nil {
			return err
		}
	}
	return nil
}

// because says what a line is that made one look.
func because(l recording.Line) string {
	switch l.Kind {
	case recording.Fact:
		return "fact " + l.Key
	case recording.Decision:
		return "a decision"
	}
	return "it was read again"
}

// until decides at the times that verdicts named, up to a moment.
func (p *player) until(end time.Time) error {
	for {
		var next pull.Ref
		var at time.Time
		for ref, s := range p.standing {
			// A time that has passed was looked at already.
			again := s.Verdict.LookAgain
			if again.After(s.At) && !again.After(end) && (at.IsZero() || again.Before(at) || again.Equal(at) && ref.String() < next.String()) {
				next, at = ref, again
			}
		}
		if at.IsZero() {
			return nil
		}
		if at.After(p.now) {
			p.now = at
		}
		if err := p.decide(next, "time", false); err != nil {
			return err
		}
	}
}

// decide decides about a pull request now. What is recorded is compared with where it was
// recorded at this moment.
func (p *player) decide(ref pull.Ref, reason string, compared bool) error {
	record, ok := p.state.records[ref]
	if !ok || record.EvaluatedAt.IsZero() {
		return nil // Nothing was read of it yet.
	}
	about := record.Inputs.Snapshot.Pull
	if p.options.Wanted != nil && !p.options.Wanted(about) {
		return nil
	}
	before := p.standing[ref]
	at := p.now
	if compared && before != nil && record.EvaluatedAt.After(before.At) {
		at = record.EvaluatedAt // The record was kept a moment later.
	}
	inputs := record.Inputs
	// Its own answers come last, and count.
	inputs.Answers = slices.Concat(p.answers[ref], inputs.Answers)
	s := &Standing{
		Pull: about, At: at, Reason: reason, Recorded: record.Verdict, evaluated: record.EvaluatedAt,
		Verdict: p.past.Judge(inputs, p.state.facts, p.state.ledger, at),
	}
	s.Missing = p.missing(&s.Verdict)
	p.standing[ref] = s
	step := Step{Standing: *s, Compared: compared}
	if before != nil {
		step.Was = before.Verdict.State()
	}
	if p.options.Step == nil || before != nil && !handlers.Differs(before.Verdict, s.Verdict) && (!compared || s.Same()) {
		return nil
	}
	return p.options.Step(step)
}

// missing is what a verdict asked about and nobody collected.
func (p *player) missing(v *policy.Verdict) []string {
	var out []string
	for _, a := range v.Asks {
		out = append(out, fmt.Sprintf("whether %s contains %s", a.Applied, a.Needed))
	}
	for _, w := range v.Wishes {
		if _, ok := p.state.facts[w.Key]; !ok {
			out = append(out, "the fact "+w.Key.String())
		}
	}
	return out
}

// leave forgets a pull request that is not open any more.
func (p *player) leave(ref pull.Ref) error {
	s, ok := p.standing[ref]
	if !ok {
		return nil
	}
	delete(p.standing, ref)
	if p.options.Step == nil {
		return nil
	}
	return p.options.Step(Step{Standing: Standing{Pull: s.Pull, At: p.now}, Was: s.Verdict.State(), Left: true})
}
