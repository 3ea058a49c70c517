package handlers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
)

func TestGiveRefuses(t *testing.T) {
	alice := pull.Person{ID: 1, Login: "alice"}
	tests := []struct {
		name, line, head string
		by               pull.Person
		ref              pull.Ref
		observe          bool
		want             string
	}{
		{"nothing", "", "h", alice, pull.Ref{RepoID: 7, Number: 1}, false, "is not one command"},
		{"another word", "aprove", "h", alice, pull.Ref{RepoID: 7, Number: 1}, false, "is not one command"},
		{"two commands", "approve\n/merge", "h", alice, pull.Ref{RepoID: 7, Number: 1}, false, "is not one command"},
		{"no commit", "approve", "", alice, pull.Ref{RepoID: 7, Number: 1}, false, "about which commit"},
		{"nobody", "approve", "h", pull.Person{}, pull.Ref{RepoID: 7, Number: 1}, false, "did not say who"},
		{"closed", "approve", "h", alice, pull.Ref{RepoID: 7, Number: 2}, false, "no such open pull request"},
		{"observed", "approve", "h", alice, pull.Ref{RepoID: 7, Number: 1}, true, "only observes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			records := &kept[handlers.Record]{}
			record := handlers.Record{EvaluatedAt: eight}
			record.Inputs.Snapshot.Pull = pull.Pull{Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home"}, Number: 1}
			if _, err := records.Put(t.Context(), "7.1", record, 0); err != nil {
				t.Fatal(err)
			}
			store := &kept[handlers.Request]{}
			requests := &handlers.Requests{Bucket: store, Conflict: func(err error) bool { return errors.Is(err, errConflict) }}
			h := &handlers.Pages{
				Requests: requests, Records: records, Queue: &queue{}, Address: func(pull.Pull) string { return "" }, Now: func() time.Time { return eight },
				Repositories: handlers.NewRepositories(oneRepo{}, []handlers.RepositorySetting{{Owner: "ops", Name: "home", Observe: tt.observe}}),
			}
			err := h.Give(t.Context(), "web/1", tt.by, tt.ref, tt.line, tt.head)
			if !errors.Is(err, handlers.ErrPageCommand) || !strings.Contains(err.Error(), tt.want) || len(store.values) > 0 {
				t.Errorf("got %v and %d requests, want an error with %q", err, len(store.values), tt.want)
			}
		})
	}
}

func TestPageUserIsWhoSignedIn(t *testing.T) {
	people := handlers.NewPeople(accounts{}, func() time.Time { return eight })
	d := &handlers.Directory{People: people}
	got, ok, err := d.Person(t.Context(), chat.User{Platform: handlers.PagePlace, ID: "3"})
	if err != nil || !ok || got.Login != "carol" {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	for _, id := range []string{"", "carol", "99"} {
		if got, ok, err := d.Person(t.Context(), chat.User{Platform: handlers.PagePlace, ID: id}); ok || err != nil {
			t.Errorf("%q is %+v, %v, %v", id, got, ok, err)
		}
	}
}

// accounts has carol.
type accounts struct{ handlers.PeopleReader }

func (accounts) UserByID(_ context.Context, id int64) (pull.Person, error) {
	if id != 3 {
		return pull.Person{}, pull.ErrNotFound
	}
	return pull.Person{ID: 3, Login: "carol"}, nil
}
