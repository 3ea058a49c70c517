package handlers_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"signalbox/internal/events"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
)

// noForge is a forge that is down.
type noForge struct{}

var errDown = errors.New("down")

func (noForge) Repo(context.Context, string, string) (pull.Repo, string, error) {
	return pull.Repo{}, "", errDown
}

func (noForge) RepoByID(context.Context, int64) (pull.Repo, string, error) {
	return pull.Repo{}, "", errDown
}

func TestOldTicksAreGivenUp(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		age   time.Duration
		again bool
	}{
		{"at once", 0, true},
		{"before the next one", 5*time.Minute - time.Second, true},
		{"when the next one is due", 5 * time.Minute, false},
		{"after hours", 3 * time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &handlers.Reconciler{
				Repositories: handlers.NewRepositories(noForge{}, []handlers.RepositorySetting{{Owner: "ops", Name: "home-gitops"}}),
				Refresh:      func(context.Context) error { return nil },
				Every:        5 * time.Minute,
				Now:          func() time.Time { return start.Add(test.age) },
				Log:          slog.New(slog.DiscardHandler),
			}
			err := h.Handle(t.Context(), events.Event{ID: "clock/reconcile/1", Time: start})
			if again := errors.Is(err, errDown); again != test.again {
				t.Errorf("the error is %v, want one: %t", err, test.again)
			}
		})
	}
}
