package recording_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/recording"
	"signalbox/internal/work"
)

var (
	at   = time.Date(2026, 9, 7, 3, 14, 0, 0, time.UTC)
	repo = pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
	bob  = events.Person{ID: 2, Login: "bob"}
)

func value(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func event(t testing.TB, p events.Payload) recording.Line {
	t.Helper()
	e, err := events.New("test/1", "test", at, p)
	if err != nil {
		t.Fatal(err)
	}
	return recording.Line{Kind: recording.Event, Seq: 1, At: at, Key: e.Subject, Value: value(t, e)}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	header := recording.Header{Program: "v1", At: at, Clusters: []string{"prod"}, Bots: []string{"renovate"}, Self: pull.Person{ID: 9, Login: "signalbox"}, Policy: "version: 1\n"}
	lines := []recording.Line{
		event(t, events.Tick{Name: "reconcile", At: at}),
		{Kind: recording.Fact, Seq: 3, At: at, Key: "kube.prod.x.=.=", Event: "gitea/1", Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Value: json.RawMessage(`{"a":"<"}`)},
		{Kind: recording.Pull, Seq: 4, At: at, Key: "7.12", Deleted: true},
		{Kind: recording.Now, At: at},
	}
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, header)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(b.String(), `{"recording":1,`) {
		t.Errorf("it begins with %.40s", b.String())
	}
	r, err := recording.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	header.Version = recording.Version
	if diff := cmp.Diff(header, r.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	var got []recording.Line
	for {
		l, number, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, l); number != len(got)+1 {
			t.Errorf("line %d says that it is line %d", len(got)+1, number)
		}
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestReaderSaysWhatIsWrongAndWhere(t *testing.T) {
	const header = `{"recording":1,"program":"v1","at":"2026-09-07T03:14:00Z"}` + "\n"
	const time = `"at":"2026-09-07T03:14:00Z"`
	tests := []struct{ name, text, want string }{
		{"nothing", "", "it is empty; a recording is made with: bot events --export FILE"},
		{"only blanks", " \n\n", "it is empty; a recording is made with: bot events --export FILE"},
		{"something else", "kind: Pod\n", `line 1: it is no recording of signalbox, which begins with {"recording":1`},
		{"an export of the ledger", `{"seq":1,"id":"comment/1/0"}` + "\n", `line 1: it is no recording of signalbox, which begins with {"recording":1`},
		{"a newer one", `{"recording":2,"what":"ever"}` + "\n", "line 1: it has version 2, this signalbox reads version 1; use the one that wrote it"},
		{"a header with more", `{"recording":1,"what":"ever"}` + "\n", `line 1: json: unknown field "what"`},
		{"a line cut short", header + "\n" + `{"kind":"fact",` + time, "line 3: it breaks off; take it out if the recording was cut short"},
		{"an unknown kind", header + `{"kind":"fax",` + time + `,"key":"x","value":1}`, `line 2: the kind "fax" is not known`},
		{"an unknown field", header + `{"kind":"fact",` + time + `,"key":"x","value":1,"more":1}`, `line 2: json: unknown field "more"`},
		{"no time", header + `{"kind":"fact","key":"x","value":1}`, "line 2: it has no time"},
		{"no key", header + `{"kind":"fact",` + time + `,"value":1}`, "line 2: it has no key"},
		{"no value", header + `{"kind":"fact",` + time + `,"key":"x"}`, "line 2: it has no value"},
		{"a value of nothing", header + `{"kind":"now",` + time + `,"value":1}`, "line 2: a line of kind now has no value"},
		{"two objects", header + `{"kind":"now",` + time + `}{}`, "line 2: something follows the object"},
		{"a list", header + `[]`, "line 2: json: cannot unmarshal array into Go value of type recording.Line"},
		{"a long line", header + `{"kind":"` + strings.Repeat("x", recording.MaxLine) + `"}`, "line 2: it is longer than 16777216 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := recording.NewReader(strings.NewReader(tt.text))
			if err == nil {
				_, _, err = r.Next()
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"recording":1,"program":"v1","at":"2026-09-07T03:14:00Z"}` + "\n" + `{"kind":"fact","at":"2026-09-07T03:14:00Z","key":"x","value":{}}` + "\n"))
	f.Add([]byte(`{"recording":1,"at":"2026-09-07T03:14:00Z"}` + "\n" + string(value(f, event(f, events.PullChanged{Repo: events.Repo(repo), Number: 12})))))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := recording.NewReader(bytes.NewReader(in))
		if err != nil {
			return
		}
		var names recording.Names
		for {
			l, _, err := r.Next()
			if err != nil {
				return
			}
			if a := names.About(l); a.Text == "" {
				t.Errorf("nothing is said of %v", l)
			}
		}
	})
}

func TestAbout(t *testing.T) {
	ops := events.Repo(repo)
	verdict := map[string]any{
		"inputs":  map[string]any{"snapshot": pull.Snapshot{Pull: pull.Pull{Repo: repo, Number: 12}}},
		"verdict": policy.Verdict{Head: "5c0ffee51ab1e5c0ffee", Preconditions: policy.Gate{State: policy.Waiting, Reason: "apps is not Ready"}, Approval: policy.Gate{State: policy.Clear, Reason: "approved"}},
	}
	room := chat.Room{Platform: chat.Slack, ID: "C1"}
	user := chat.User{Platform: chat.Slack, ID: "U1"}
	line := func(kind recording.Kind, key string, v any) recording.Line {
		return recording.Line{Kind: kind, At: at, Key: key, Event: "gitea/1", Value: value(t, v)}
	}
	apps := fact.Kube("prod", "Kustomization", "flux-system", "apps")
	tests := []struct {
		line                 recording.Line
		repo, cluster, event string
		number               int64
		text                 string
	}{
		{event(t, events.PullChanged{Repo: ops, Number: 12, Action: "opened", Head: "5c0ffee51ab1e5c0ffee", Sender: bob}), "ops/home-gitops", "", "test/1", 12, "pull.changed: opened by bob, head 5c0ffee51a"},
		{event(t, events.BranchPushed{Repo: ops, Branch: "main", After: "f21e89d9d20c4f2b", Sender: bob}), "ops/home-gitops", "", "test/1", 0, "branch.pushed: main is at f21e89d9d2, by bob"},
		{event(t, events.CommentChanged{Repo: ops, Number: 12, CommentID: 3, Action: events.CommentEdited, Author: bob, Sender: bob}), "ops/home-gitops", "", "test/1", 12, "comment.changed: comment 3 of bob was edited by bob"},
		{event(t, events.StatusPosted{Repo: ops, SHA: "f21e", Context: "ci / test", State: "success", Sender: bob}), "ops/home-gitops", "", "test/1", 0, "status.posted: ci / test is success on f21e, by bob"},
		{event(t, events.WorkflowChanged{Repo: ops, Run: 5, Workflow: "renovate.yaml", Status: "queued"}), "ops/home-gitops", "", "test/1", 0, "workflow.changed: run 5 renovate.yaml queued"},
		{event(t, events.ChatSaid{Message: chat.Message{Room: room, User: user, Text: "link 314159"}}), "/", "", "test/1", 0, "chat.said: slack/U1 in slack/C1"},
		{event(t, events.ChatPressed{Press: chat.Press{Room: room, User: user, Button: chat.ButtonHold, Ref: pull.Ref{RepoID: 7, Number: 12}}}), "ops/home-gitops", "", "test/1", 12, "chat.pressed: slack/U1 in slack/C1 pressed hold"},
		{event(t, events.Tick{Name: "reconcile"}), "/", "", "test/1", 0, "clock.tick: reconcile"},
		{line(recording.Fact, apps.String(), fact.Fact{Key: apps, Flux: &fact.Flux{Ready: fact.Condition{Status: "False", Reason: "BuildFailed", Message: "no"}}}), "/", "prod", "gitea/1", 0, "kustomization flux-system/apps: Ready is False (BuildFailed) no"},
		{line(recording.Fact, apps.String(), fact.Fact{Key: apps, Absent: true}), "/", "prod", "gitea/1", 0, "kustomization flux-system/apps: absent"},
		{line(recording.Fact, apps.String(), fact.Fact{Key: apps, Problem: "it may not be read"}), "/", "prod", "gitea/1", 0, "kustomization flux-system/apps: unknown: it may not be read"},
		{line(recording.Fact, "", fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{Silent: true}}), "/", "prod", "gitea/1", 0, "heartbeat: silent"},
		{recording.Line{Kind: recording.Fact, At: at, Key: apps.String(), Deleted: true}, "/", "prod", "", 0, "gone"},
		{line(recording.Pull, "7.12", verdict), "ops/home-gitops", "", "gitea/1", 12, "waiting on 5c0ffee51a: preconditions waiting (apps is not Ready), approval clear (approved)"},
		{recording.Line{Kind: recording.Pull, At: at, Key: "7.12", Deleted: true}, "ops/home-gitops", "", "", 12, "gone"},
		{line(recording.Pull, "7.13", map[string]any{}), "ops/home-gitops", "", "gitea/1", 13, "no verdict yet"},
		{line(recording.Decision, "7.12.x", decision.Entry{Kind: decision.Hold, By: pull.Person(bob), Place: "comment", Repo: repo, Number: 12, Reason: "wait"}), "ops/home-gitops", "", "gitea/1", 12, "hold by bob in comment: wait"},
		{line(recording.Work, "work.run.3.7.12.full", work.Item{Ref: pull.Ref{RepoID: 7, Number: 12}, Kind: work.Retry, Reason: "reconcile", Attempt: 2}), "ops/home-gitops", "", "gitea/1", 12, "retry is due: reconcile, after 2 failures"},
		{line(recording.Work, "work.soon.7.12.full", work.Item{Ref: pull.Ref{RepoID: 7, Number: 12}, Kind: work.Full}), "ops/home-gitops", "", "gitea/1", 12, "full waits for more of its kind"},
		{line(recording.Dead, "dead.EVENTS", recording.Letter{Stream: "EVENTS", Subject: "event.x", Consumer: "events", Reason: "no", Deliveries: 20}), "/", "", "gitea/1", 0, "events could not handle event.x of EVENTS after 20 tries: no"},
		{line(recording.Event, "event.x", map[string]string{"unreadable": "x"}), "/", "", "gitea/1", 0, `cannot be read: event envelope: specversion "", want "1.0"`},
		{recording.Line{Kind: recording.Now, At: at}, "/", "", "", 0, "what follows happened since"},
	}
	var names recording.Names
	for _, tt := range tests {
		got := names.About(tt.line)
		if got.Repo.String() != tt.repo || got.Number != tt.number || got.Cluster != tt.cluster || got.Event != tt.event || got.Text != tt.text {
			t.Errorf("got  %+v\nwant %+v", got, tt)
		}
	}
}

func TestFilter(t *testing.T) {
	var names recording.Names
	lines := map[string]recording.Line{
		"event of 12":    event(t, events.PullChanged{Repo: events.Repo(repo), Number: 12}),
		"event of 13":    event(t, events.PullChanged{Repo: events.Repo(repo), Number: 13}),
		"push":           event(t, events.BranchPushed{Repo: events.Repo(repo)}),
		"other":          event(t, events.PullChanged{Repo: events.Repo{ID: 8, Owner: "ops", Name: "other"}, Number: 12}),
		"fact of prod":   {Kind: recording.Fact, At: at, Key: fact.HeartbeatKey("prod").String(), Deleted: true},
		"fact of lab":    {Kind: recording.Fact, At: at, Key: fact.HeartbeatKey("lab").String(), Deleted: true},
		"fact of Gitea":  {Kind: recording.Fact, At: at, Key: fact.ProtectionKey(7, "main").String(), Deleted: true},
		"decision of 13": {Kind: recording.Decision, At: at, Key: "x", Value: value(t, decision.Entry{Repo: repo, Number: 13})},
		"now":            {Kind: recording.Now, At: at},
	}
	tests := []struct {
		filter         recording.Filter
		wanted, needed string
	}{
		{recording.Filter{}, "all", "all"},
		{recording.Filter{Repo: "OPS/home-gitops", Number: 12}, "event of 12", "decision of 13, event of 12, fact of Gitea, fact of lab, fact of prod, now, push"},
		{recording.Filter{Repo: "ops/home-gitops"}, "decision of 13, event of 12, event of 13, push", "decision of 13, event of 12, event of 13, fact of Gitea, fact of lab, fact of prod, now, push"},
		{recording.Filter{Cluster: "prod"}, "fact of prod", "decision of 13, event of 12, event of 13, fact of Gitea, fact of prod, now, other, push"},
		{recording.Filter{Kinds: []recording.Kind{recording.Decision}}, "decision of 13", "all"},
		{recording.Filter{Since: at.Add(time.Second)}, "", "decision of 13, fact of Gitea, fact of lab, fact of prod, now"},
	}
	for _, tt := range tests {
		var wanted, needed []string
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			a := names.About(lines[name])
			if tt.filter.Wanted(lines[name], a) {
				wanted = append(wanted, name)
			}
			if tt.filter.Needed(lines[name], a) {
				needed = append(needed, name)
			}
		}
		all := strings.Join(slices.Sorted(maps.Keys(lines)), ", ")
		for what, pair := range map[string][2]string{"wanted": {strings.Join(wanted, ", "), tt.wanted}, "needed": {strings.Join(needed, ", "), tt.needed}} {
			if want := strings.Replace(pair[1], "all", all, 1); pair[0] != want {
				t.Errorf("%+v: %s is\n%s, want\n%s", tt.filter, what, pair[0], want)
			}
		}
	}
}

func TestWithoutSpeech(t *testing.T) {
	said := event(t, events.ChatSaid{Message: chat.Message{ID: "m1", User: chat.User{Platform: chat.Slack, ID: "U1"}, Text: "link 314159"}})
	got, err := recording.WithoutSpeech(said.Value)
	if err != nil || bytes.Contains(got, []byte("314159")) || !bytes.Contains(got, []byte("U1")) {
		t.Errorf("it is %s, %v", got, err)
	}
	tick := event(t, events.Tick{Name: "reconcile", At: at})
	if got, err := recording.WithoutSpeech(tick.Value); err != nil || !bytes.Equal(got, tick.Value) {
		t.Errorf("another event is changed: %s, %v", got, err)
	}
	for _, broken := range []string{"", "x", `{"specversion":"1.0","id":"1","type":"signalbox.chat.said","data":"314159"}`} {
		if got, err := recording.WithoutSpeech(json.RawMessage(broken)); err == nil {
			t.Errorf("of %q is left %s", broken, got)
		}
	}
}
