package gitea_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

func TestManyStatuses(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 30})
	ctx := t.Context()
	// The oldest come on the second page.
	w.must(w.SetStatus(ctx, w.repo, w.head, "bob", pull.Status{Context: "ci / 00", State: "failure"}))
	for i := range 29 {
		w.must(w.SetStatus(ctx, w.repo, w.head, "bob", pull.Status{Context: fmt.Sprintf("ci / %02d", i+1), State: "success"}))
	}
	for _, s := range []pull.Status{
		{Context: "ci / 03", State: "failure", Description: "broken"},
		{Context: "ci / 04", State: "bogus"},
		{Context: "ci / 05", State: "pending"},
		{Context: "a", State: "skipped"},
		{Context: "b", State: "warning"},
	} {
		w.must(w.SetStatus(ctx, w.repo, w.head, "", s))
	}
	w.ResetCalls()
	got, err := w.client.CommitStatuses(ctx, w.repo, w.head)
	w.must(err)
	if len(got.Statuses) != 32 || w.TotalCalls() != 2 {
		t.Fatalf("%d statuses after %d calls, want 32 after 2", len(got.Statuses), w.TotalCalls())
	}
	by := map[string]fact.Status{}
	for i, s := range got.Statuses {
		if i > 0 && got.Statuses[i-1].Context >= s.Context {
			t.Errorf("%q comes after %q", s.Context, got.Statuses[i-1].Context)
		}
		if s.At.IsZero() {
			t.Errorf("%q has no time", s.Context)
		}
		s.At = time.Time{}
		by[s.Context] = s
	}
	for _, want := range []fact.Status{
		{Context: "ci / 00", State: "failure", Creator: "bob"},
		{Context: "ci / 02", State: "success", Creator: "bob"},
		{Context: "ci / 03", State: "failure", Description: "broken"},
		{Context: "ci / 04", State: "bogus"},
		{Context: "ci / 05", State: "pending"},
		{Context: "a", State: "skipped"},
		{Context: "b", State: "warning"},
	} {
		if d := cmp.Diff(want, by[want.Context]); d != "" {
			t.Errorf("status (-want +got):\n%s", d)
		}
	}
	if _, err := w.client.CommitStatuses(ctx, w.repo, "main"); err == nil {
		t.Error("a branch was taken for a commit")
	}
}

func TestStatusesOfJobs(t *testing.T) {
	w := newWorld(t, giteatest.Options{SubPath: "/git"})
	id := w.start("check.yaml", "change")
	got, err := w.client.CommitStatuses(t.Context(), w.repo, w.head)
	if err != nil || len(got.Statuses) != 1 {
		t.Fatalf("statuses %+v, error %v", got, err)
	}
	// Gitea gives the address without its host.
	want := fmt.Sprintf("%s%s/actions/runs/%d/jobs/1", w.URL(), w.repo, id)
	if s := got.Statuses[0]; s.URL != want || s.Context != "/ lint (push)" || s.State != "pending" || s.Creator != "" {
		t.Errorf("status %+v, want one with address %s", s, want)
	}
}

func TestMoreStatusesThanAreRead(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 3})
	ctx := t.Context()
	w.must(w.SetStatus(ctx, w.repo, w.head, "bob", pull.Status{Context: "old", State: "failure"}))
	for i := range 59 {
		w.must(w.SetStatus(ctx, w.repo, w.head, "bob", pull.Status{Context: "ci", State: []string{"success", "pending"}[i%2]}))
	}
	read := func(calls int) fact.Statuses {
		t.Helper()
		w.ResetCalls()
		got, err := w.client.CommitStatuses(ctx, w.repo, w.head)
		if err != nil || w.TotalCalls() != calls {
			t.Errorf("error %v after %d calls, want %d", err, w.TotalCalls(), calls)
		}
		return got
	}
	if got := read(20); len(got.Statuses) != 2 || got.More {
		t.Errorf("as many as are read: %+v", got)
	}
	w.must(w.SetStatus(ctx, w.repo, w.head, "bob", pull.Status{Context: "ci", State: "error"}))
	if got := read(20); len(got.Statuses) != 1 || !got.More || got.Statuses[0].State != "error" {
		t.Errorf("one more than are read: %+v; want the newest, and that there are more", got)
	}
	list, err := w.client.Statuses(ctx, w.repo, w.head)
	if err != nil || len(list) != 1 || list[0].State != "error" {
		t.Errorf("newest statuses %+v, error %v", list, err)
	}
}

func TestStatusesThatJobsBearOut(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	runner, err := w.Register(ctx, w.repo, "runner")
	w.must(err)
	id := w.start("check.yaml", "change")
	_, err = w.Run(ctx, w.repo, giteatest.NewRun{
		Workflow: "named.yaml", Name: "Check", Event: "push", Branch: "change", As: "alice", Jobs: []giteatest.NewJob{{Name: "lint"}},
	})
	w.must(err)
	elsewhere := w.start("check.yaml", "main")
	_, token, err := w.CreateUser(ctx, "mallory")
	w.must(err)
	w.must(w.Grant(ctx, w.repo, "mallory", giteatest.Write))
	mallory, err := gitea.New(gitea.Config{URL: w.URL(), Token: secret.New(token)}, nil, nil)
	w.must(err)
	page := func(run, job int64) string { return fmt.Sprintf("/%s/actions/runs/%d/jobs/%d", w.repo, run, job) }
	for what, target := range map[string]string{
		"x / lint (no page)": "", "x / lint (elsewhere)": page(elsewhere, 3), "x / lint (no run)": page(99, 1), "x / lint (no job)": page(id, 2),
		"x / test (another name)": page(id, 1), "x / lint": page(id, 1), "x / lint (not of the run)": page(elsewhere, 1),
	} {
		w.must(mallory.PostStatus(ctx, w.repo, w.head, pull.Status{Context: what, State: "success"}, target))
	}
	read := func(calls int) map[string]int64 {
		t.Helper()
		w.ResetCalls()
		got, err := w.client.CommitStatuses(ctx, w.repo, w.head)
		if err != nil || w.TotalCalls() != calls {
			t.Errorf("error %v after %d calls, want %d: %v", err, w.TotalCalls(), calls, w.Calls())
		}
		out := map[string]int64{}
		for _, s := range got.Statuses {
			if s.Job != 0 {
				out[s.Context] = s.Job
			}
		}
		return out
	}
	if got := read(1); len(got) != 0 {
		t.Errorf("of an account, and of what goes on: %v", got)
	}
	w.must(w.DeleteUser(ctx, "mallory"))
	w.finish(runner, "success", "success", "success")
	want := map[string]int64{"/ lint (push)": 1, "Check / lint (push)": 2}
	// The jobs of four runs, of which one is not there.
	if d := cmp.Diff(want, read(5)); d != "" {
		t.Errorf("when the account is gone (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, read(4)); d != "" {
		t.Errorf("once more (-want +got):\n%s", d)
	}
	w.must(w.Rerun(ctx, w.repo, id))
	delete(want, "/ lint (push)")
	if d := cmp.Diff(want, read(4)); d != "" {
		t.Errorf("when one is started again (-want +got):\n%s", d)
	}
	w.finish(runner, "success")
	w.Fail(func(r *http.Request) *giteatest.Response {
		if strings.HasSuffix(r.URL.Path, "/jobs") {
			return &giteatest.Response{Code: 403, Body: "{}"}
		}
		return nil
	})
	if d := cmp.Diff(want, read(4)); d != "" {
		t.Errorf("without the right to read jobs (-want +got):\n%s", d)
	}
}

func TestPullFact(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	long := "Depends-On: #1\n" + strings.Repeat("ä", fact.MaxBody)
	w.must(w.EditPull(ctx, w.repo, w.number, "alice", giteatest.Edit{Title: "Change", Body: long}))
	read := func() fact.Pull {
		t.Helper()
		w.ResetCalls()
		got, err := w.client.PullFact(ctx, strings.ToUpper(w.repo.Owner), w.repo.Name, w.number)
		if err != nil || w.TotalCalls() != 1 {
			t.Fatalf("error %v after %d calls, want 1", err, w.TotalCalls())
		}
		return got
	}
	want := fact.Pull{
		Repo: w.repo.String(), RepoID: w.repo.ID, Number: w.number, Title: "Change", State: fact.PullOpen, Base: "main",
		URL: fmt.Sprintf("%s%s/pulls/%d", w.URL(), w.repo, w.number),
	}
	got := read()
	if len(got.Body) > fact.MaxBody || !strings.HasPrefix(long, got.Body) || len(got.Body) < fact.MaxBody-4 {
		t.Errorf("body of %d bytes", len(got.Body))
	}
	got.Body = ""
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("open (-want +got):\n%s", d)
	}
	w.must(w.SetOpen(ctx, w.repo, w.number, "alice", false))
	if got := read(); got.State != fact.PullClosed || got.MergeCommit != "" || !got.MergedAt.IsZero() {
		t.Errorf("closed: %+v", got)
	}
	w.must(w.SetOpen(ctx, w.repo, w.number, "alice", true))
	sha, err := w.Merge(ctx, w.repo, w.number, "bot")
	w.must(err)
	if got := read(); got.State != fact.PullMerged || got.MergeCommit != sha || got.MergedAt.IsZero() {
		t.Errorf("merged: %+v, want commit %s", got, sha)
	}
	if _, err := w.client.PullFact(ctx, w.repo.Owner, w.repo.Name, 99); !errors.Is(err, gitea.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	w.must(w.SetPrivate(ctx, w.repo, true))
	_, carol, err := w.CreateUser(ctx, "carol")
	w.must(err)
	c, err := gitea.New(gitea.Config{URL: w.URL(), Token: secret.New(carol)}, nil, nil)
	w.must(err)
	if _, err := c.PullFact(ctx, w.repo.Owner, w.repo.Name, w.number); !errors.Is(err, gitea.ErrNotFound) {
		t.Errorf("error %v to a stranger, want ErrNotFound", err)
	}
}

func TestFactsThatCannotBeTold(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"forbidden":  {answer(403, recorded(t, "error-scope.json")), gitea.ErrForbidden},
		"not there":  {answer(404, `{"message":"not found"}`), gitea.ErrNotFound},
		"not JSON":   {answer(200, "<html>", "X-Total-Count", "1"), nil},
		"no answer":  {answer(200, "null"), nil},
		"breaks off": {cut("[{"), nil},
		"huge":       {answer(200, "[", "Content-Length", "99999999999", "X-Total-Count", "1"), nil},
		"down":       {answer(503, "busy", "Retry-After", "3600"), nil},
		"tells all":  {func(w http.ResponseWriter, r *http.Request) { answer(400, r.Header.Get("Authorization"))(w, r) }, nil},
		"slow": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newClient(t, tt.answer, func(config *gitea.Config) { config.Attempts, config.Timeout = 1, 50*time.Millisecond })
			statuses, errStatuses := c.CommitStatuses(t.Context(), repo, sha)
			p, errPull := c.PullFact(t.Context(), repo.Owner, repo.Name, 1)
			if !cmp.Equal(statuses, fact.Statuses{}) || !cmp.Equal(p, fact.Pull{}) {
				t.Errorf("statuses %+v, pull request %+v", statuses, p)
			}
			for what, err := range map[string]error{"statuses": errStatuses, "pull request": errPull} {
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(err.Error(), token) {
					t.Errorf("%s: error %v, want %v", what, err, tt.want)
				}
			}
		})
	}
}
