package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

// About is what a line is about, in words. Zero stands for what does not apply.
type About struct {
	// Repo and Number name a pull request. Of a line that tells only the id of its
	// repository, the name is what earlier lines called it, or empty.
	Repo   pull.Repo
	Number int64
	// Cluster is that of a fact.
	Cluster string
	// Event is the id of the event that it is, or that led to it.
	Event string
	// Text is one sentence. It may repeat what comes from outside: it is not clean.
	Text string
}

// Names says what lines are about, and remembers what repositories are called. The zero
// value is ready.
type Names struct{ repos map[int64]pull.Repo }

// About returns what a line is about. A value that cannot be read is told as such.
func (n *Names) About(l Line) About {
	var a About
	var err error
	switch {
	case l.Kind == Now:
		a.Text = "what follows happened since"
	case l.Deleted:
		a = n.key(l)
		a.Text = "gone"
	case l.Kind == Event:
		a, err = n.event(l)
	case l.Kind == Fact:
		a, err = n.fact(l)
	case l.Kind == Pull:
		a, err = n.pull(l)
	case l.Kind == Decision:
		a, err = n.decision(l)
	case l.Kind == Work:
		a, err = n.work(l)
	case l.Kind == Dead:
		a, err = n.dead(l)
	}
	if err != nil {
		a = n.key(l)
		a.Text = "cannot be read: " + err.Error()
	}
	if a.Event == "" {
		a.Event = l.Event
	}
	if a.Repo.ID != 0 && a.Repo.Name == "" {
		if known, ok := n.repos[a.Repo.ID]; ok {
			a.Repo = known
		}
	}
	return a
}

// learn remembers what a repository is called.
func (n *Names) learn(r pull.Repo) {
	if r.ID == 0 || r.Name == "" {
		return
	}
	if n.repos == nil {
		n.repos = map[int64]pull.Repo{}
	}
	n.repos[r.ID] = r
}

// key reads what the key alone tells.
func (n *Names) key(l Line) About {
	switch l.Kind {
	case Fact:
		if k, err := fact.ParseKey(l.Key); err == nil {
			return About{Cluster: k.Scope}
		}
	case Pull:
		if ref, ok := pull.ParseRef(l.Key); ok {
			return About{Repo: pull.Repo{ID: ref.RepoID}, Number: ref.Number}
		}
	}
	return About{}
}

func (n *Names) event(l Line) (About, error) {
	var e events.Event
	if err := json.Unmarshal(l.Value, &e); err != nil {
		return About{}, err
	}
	payload, err := events.Decode(e)
	if err != nil {
		return About{}, err
	}
	a := About{Event: e.ID, Text: string(e.Type)}
	say := func(format string, args ...any) { a.Text += ": " + fmt.Sprintf(format, args...) }
	switch p := payload.(type) {
	case events.PullChanged:
		a.Repo, a.Number = pull.Repo(p.Repo), p.Number
		say("%s by %s, head %s", p.Action, p.Sender.Login, short(p.Head))
	case events.BranchPushed:
		a.Repo = pull.Repo(p.Repo)
		say("%s is at %s, by %s", p.Branch, short(p.After), p.Sender.Login)
	case events.CommentChanged:
		a.Repo, a.Number = pull.Repo(p.Repo), p.Number
		say("comment %d of %s was %s by %s", p.CommentID, p.Author.Login, p.Action, p.Sender.Login)
	case events.StatusPosted:
		a.Repo = pull.Repo(p.Repo)
		say("%s is %s on %s, by %s", p.Context, p.State, short(p.SHA), p.Sender.Login)
	case events.WorkflowChanged:
		a.Repo = pull.Repo(p.Repo)
		say("%s", strings.Join(strings.Fields(fmt.Sprintf("run %d %s %s %s %s", p.Run, p.Workflow, p.Job, p.Status, p.Conclusion)), " "))
	case events.ChatSaid:
		say("%s in %s", p.User, p.Room)
	case events.ChatPressed:
		say("%s in %s pressed %s", p.User, p.Room, p.Button)
		a.Repo.ID, a.Number = p.Ref.RepoID, p.Ref.Number
	case events.Tick:
		say("%s", p.Name)
	}
	n.learn(a.Repo)
	return a, nil
}

func (n *Names) fact(l Line) (About, error) {
	var f fact.Fact
	if err := json.Unmarshal(l.Value, &f); err != nil {
		return About{}, err
	}
	a := About{Cluster: f.Key.Scope, Text: cmp.Or(strings.TrimSpace(f.Key.Kind+" "+f.Key.Object()), l.Key)}
	say := func(format string, args ...any) { a.Text += ": " + fmt.Sprintf(format, args...) }
	switch {
	case f.Absent:
		say("absent")
	case f.Problem != "":
		say("unknown: %s", f.Problem)
	case f.Flux != nil:
		say("Ready is %s (%s) %s", f.Flux.Ready.Status, f.Flux.Ready.Reason, f.Flux.Ready.Message)
	case f.Heartbeat != nil && f.Heartbeat.Silent:
		say("silent")
	case f.Heartbeat != nil:
		say("heard from")
	case f.Protection != nil:
		say("%d gaps", len(f.Protection.Gaps))
	}
	return a, nil
}

// record is as much of a record as lines tell.
type record struct {
	Inputs struct {
		Snapshot pull.Snapshot `json:"snapshot"`
	} `json:"inputs"`
	Verdict policy.Verdict `json:"verdict"`
}

func (n *Names) pull(l Line) (About, error) {
	var r record
	if err := json.Unmarshal(l.Value, &r); err != nil {
		return About{}, err
	}
	a := n.key(l)
	if r.Verdict.Head == "" {
		a.Text = "no verdict yet"
		return a, nil
	}
	p := &r.Inputs.Snapshot.Pull
	a.Repo, a.Number = p.Repo, p.Number
	n.learn(p.Repo)
	v := &r.Verdict
	a.Text = fmt.Sprintf("%s on %s: preconditions %s (%s), approval %s (%s)", v.State(), short(v.Head),
		v.Preconditions.State, v.Preconditions.Reason, v.Approval.State, v.Approval.Reason)
	return a, nil
}

func (n *Names) decision(l Line) (About, error) {
	var e decision.Entry
	if err := json.Unmarshal(l.Value, &e); err != nil {
		return About{}, err
	}
	n.learn(e.Repo)
	text := fmt.Sprintf("%s by %s in %s", e.Kind, e.By.Login, e.Place)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return About{Repo: e.Repo, Number: e.Number, Text: text}, nil
}

func (n *Names) work(l Line) (About, error) {
	var i work.Item
	if err := json.Unmarshal(l.Value, &i); err != nil {
		return About{}, err
	}
	text := string(i.Kind)
	switch {
	case strings.HasPrefix(l.Key, "work.soon."):
		text += " waits for more of its kind"
	case strings.HasPrefix(l.Key, "work.at."):
		text += " waits for its time"
	default:
		text += " is due"
	}
	if i.Reason != "" {
		text += ": " + i.Reason
	}
	if i.Attempt > 0 {
		text += ", after " + strconv.Itoa(i.Attempt) + " failures"
	}
	return About{Repo: pull.Repo{ID: i.Ref.RepoID}, Number: i.Ref.Number, Text: text}, nil
}

func (n *Names) dead(l Line) (About, error) {
	var d Letter
	if err := json.Unmarshal(l.Value, &d); err != nil {
		return About{}, err
	}
	return About{Text: fmt.Sprintf("%s could not handle %s of %s after %d tries: %s", d.Consumer, d.Subject, d.Stream, d.Deliveries, d.Reason)}, nil
}

func short(commit string) string { return commit[:min(len(commit), 10)] }
