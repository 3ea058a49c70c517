package handlers_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/work"
)

func record(number int64, base, head string, reads ...fact.Key) *handlers.Record {
	ref := pull.Ref{RepoID: 7, Number: number}
	return &handlers.Record{
		Seen:    handlers.Place{Ref: ref, Base: base, Head: head},
		Verdict: policy.Verdict{Ref: ref, Reads: reads},
	}
}

func numbers(refs []pull.Ref) []int64 {
	var out []int64
	for _, r := range refs {
		out = append(out, r.Number)
	}
	return out
}

func TestIndexFollowsTheRecords(t *testing.T) {
	a, b := fact.ClusterKey("prod"), fact.Kube("prod", "Kustomization", "flux-system", "apps")
	x := handlers.NewIndex()
	one, two := record(1, "main", "h1", a, b), record(2, "main", "h2", a)
	x.Change("7.1", nil, one)
	x.Change("7.2", nil, two)
	check := func(what string, got []pull.Ref, want ...int64) {
		t.Helper()
		if diff := cmp.Diff(want, numbers(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("readers of the cluster", x.Readers(a), 1, 2)
	check("readers of the object", x.Readers(b), 1)
	check("on main", x.OnBase(7, "main"), 1, 2)
	check("on main of another repository", x.OnBase(8, "main"))

	moved := record(1, "next", "h3", b)
	x.Change("7.1", one, moved)
	check("readers after a change", x.Readers(a), 2)
	check("on the former base", x.OnBase(7, "main"), 2)
	check("at the former head", x.AtHead(7, "h1"))
	check("at the new head", x.AtHead(7, "h3"), 1)

	x.Change("7.1", moved, nil)
	check("readers after it left", x.Readers(b))
	check("on its base after it left", x.OnBase(7, "next"))
}

// queue notes what is asked for.
type queue struct {
	handlers.Queue
	items []work.Item
	fail  error
}

func (q *queue) Soon(_ context.Context, i work.Item) error {
	q.items = append(q.items, i)
	return q.fail
}

// records have a view that is always current.
type records struct{ handlers.Records }

func (records) Sync(context.Context) error { return nil }
func (records) All() iter.Seq2[string, handlers.Record] {
	return func(func(string, handlers.Record) bool) {}
}

type self struct{ err error }

func (s self) Self(context.Context) (pull.Person, error) {
	return pull.Person{ID: 9, Login: "signalbox"}, s.err
}

// noReading holds nothing, so nothing is read again.
type noReading struct{ t *testing.T }

func (noReading) Held(fact.Key) bool                 { return false }
func (noReading) HeldOf(int64, ...string) []fact.Key { return nil }
func (n noReading) ReadAll(_ context.Context, keys []fact.Key) error {
	if len(keys) > 0 {
		n.t.Errorf("%v are read, which nobody holds", keys)
	}
	return nil
}

func TestEventsAskForWork(t *testing.T) {
	repo := events.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
	bob, bot := events.Person{ID: 2, Login: "bob"}, events.Person{ID: 9, Login: "signalbox"}
	tests := []struct {
		name    string
		payload events.Payload
		want    []int64
	}{
		{"a pull request", events.PullChanged{Repo: repo, Number: 5, Action: "opened", Sender: bob}, []int64{5}},
		{"a push to the base of two", events.BranchPushed{Repo: repo, Branch: "main", Sender: bob}, []int64{1, 2}},
		{"a push elsewhere", events.BranchPushed{Repo: repo, Branch: "x", Sender: bob}, nil},
		{"a comment", events.CommentChanged{Repo: repo, Number: 5, Action: events.CommentCreated, Author: bob, Sender: bob}, []int64{5}},
		{"its own comment", events.CommentChanged{Repo: repo, Number: 5, Action: events.CommentCreated, Author: bot, Sender: bot}, nil},
		{"its own comment, deleted by another", events.CommentChanged{Repo: repo, Number: 5, Action: events.CommentDeleted, Author: bot, Sender: bob}, []int64{5}},
		{"its own status", events.StatusPosted{Repo: repo, SHA: "h1", Context: "signalbox / approval (main)", Sender: bot}, nil},
		{"its own context by another", events.StatusPosted{Repo: repo, SHA: "h1", Context: "signalbox / approval (main)", Sender: bob}, []int64{1}},
		{"its own context by a workflow, which has no account", events.StatusPosted{Repo: repo, SHA: "h1", Context: "signalbox / approval (main)"}, []int64{1}},
		{"another's status", events.StatusPosted{Repo: repo, SHA: "h1", Context: "ci", Sender: bob}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := handlers.NewIndex()
			x.Change("", nil, record(1, "main", "h1"))
			x.Change("", nil, record(2, "main", "h2"))
			q := &queue{}
			h := handlers.Events{Queue: q, Records: records{}, Index: x, Log: slog.New(slog.DiscardHandler), Account: handlers.NewAccount(self{}), Repositories: handlers.NewRepositories(noForge{}, nil), Forge: noReading{t}}
			e, err := events.New("gitea/1", "gitea", time.Now(), tt.payload)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Handle(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, i := range q.items {
				got = append(got, i.Ref.Number)
				if i.Kind != work.Full {
					t.Errorf("kind is %s", i.Kind)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsThatCannotBeHandled(t *testing.T) {
	h := handlers.Events{Queue: &queue{fail: errors.New("the bus is away")}, Records: records{}, Index: handlers.NewIndex(), Account: handlers.NewAccount(self{errors.New("Gitea is away")}), Log: slog.New(slog.DiscardHandler), Forge: noReading{t}}
	e, err := events.New("gitea/1", "gitea", time.Now(), events.PullChanged{Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(t.Context(), e); err == nil || events.IsPermanent(err) {
		t.Errorf("error is %v, want one that is tried again", err)
	}
	e.Type = "no.such"
	if err := h.Handle(t.Context(), e); !events.IsPermanent(err) {
		t.Errorf("error is %v, want a permanent one", err)
	}
}
