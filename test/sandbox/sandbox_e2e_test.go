//go:build e2e

package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSandbox types what the guide suggests, and looks at the statuses after each.
func TestSandbox(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := start(ctx, t.Output(), t.TempDir())
	defer func() {
		if err := s.end(!t.Failed()); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	s.printGuide()
	for _, step := range []struct {
		line string
		want []string // Preconditions, approval.
	}{
		{"", []string{"pending", "pending"}},
		{"recover", []string{"success", "pending"}},
		{"approve", []string{"success", "success"}},
		{"push", []string{"success", "pending"}},
		{"break", []string{"pending", "pending"}},
		{"show", []string{"pending", "pending"}},
	} {
		if err := s.do(ctx, step.line); err != nil {
			t.Fatalf("%s: %v", step.line, err)
		}
		started := time.Now()
		if got := s.awaitStatuses(ctx, t, step.want); !cmp.Equal(step.want, got) {
			t.Fatalf("after %q the statuses are %v, want %v", step.line, got, step.want)
		}
		t.Logf("%-8s %s after %s", step.line, step.want, time.Since(started).Round(10*time.Millisecond))
	}
}

// awaitStatuses returns the statuses that signalbox shows as soon as they are as wanted, or in the end.
func (s *sandbox) awaitStatuses(ctx context.Context, t *testing.T, want []string) []string {
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		api, err := s.world.Gitea.API(ctx, s.repo.Mallory.Token)
		if err != nil {
			t.Fatal(err)
		}
		pull, _, err := api.GetPullRequest(s.repo.Owner, s.repo.Name, s.pull.Index)
		if err != nil {
			t.Fatal(err)
		}
		combined, _, err := api.GetCombinedStatus(s.repo.Owner, s.repo.Name, pull.Head.Sha)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, 2)
		for _, status := range combined.Statuses {
			switch status.Context {
			case "signalbox / preconditions (main)":
				got[0] = string(status.State)
			case "signalbox / approval (main)":
				got[1] = string(status.State)
			}
		}
		if cmp.Equal(want, got) {
			return got
		}
		select {
		case <-limited.Done():
			return got
		case <-time.After(50 * time.Millisecond):
		}
	}
}
